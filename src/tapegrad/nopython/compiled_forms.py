"""Compiled functions of ours that record another one, and which compiled code calls without Python."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numba
import numpy as np
from numba.core import cgutils, types
from numba.core.errors import NumbaError
from numba.core.extending import intrinsic

from tapegrad.compilation.compiler_room import with_few_collections
from tapegrad.errors import CompileError
from tapegrad.nopython.arguments import conversion, native_results
from tapegrad.nopython.functions.registered_calls import recorded_call
from tapegrad.nopython.numba_interface.error_reports import Failures, explained
from tapegrad.nopython.numba_interface.linking import DriveCompiler, overload, part
from tapegrad.nopython.recorder import Recorder, recorder
from tapegrad.nopython.registered_derivatives import stand_in
from tapegrad.nopython.tape import native_memory
from tapegrad.nopython.twins.registrations import Registration, register

__all__ = ["Form", "compiled_form"]

Kinds = tuple[Any, ...]


class Form(NamedTuple):
    """What is made of a recording.

    Attributes
    ----------
    name : str
        Of the public function, for messages.
    suffix : str
        What the name of a result ends with.
    has_defaults : bool
        Whether arguments keep their defaults.
    further : callable
        Names of further arguments, by the names of those that the derivative is taken by, and of all.
    check : callable
        Raises CompileError for types of further arguments, by the recorder, the types of those that the derivative is taken by, and
        theirs.
    before, after : callable
        Lines of the function before and after the recording, whose result is called `result`: by the places of those arguments that
        the derivative is taken by (and after it, whether it is asked for as a single one, and their types), and the names and types
        of further ones.
    needed : dict
        What the lines name.
    """

    name: str
    suffix: str
    has_defaults: bool
    further: Callable[[list[str], list[str]], list[str]]
    check: Callable[[Recorder, Kinds, Kinds], None]
    before: Callable[[tuple[int, ...], list[str], Kinds], list[str]]
    after: Callable[[tuple[int, ...], bool, Kinds, list[str], Kinds], list[str]]
    needed: dict[str, Any]


def compiled_form(f: Callable[..., Any], argnums: int | Sequence[int], form: Form) -> Any:
    """A compiled function that compiled code calls.

    Parameters
    ----------
    f : callable
    argnums : int or sequence of int
    form : Form

    Raises
    ------
    TypeError
        If `f` is no function, or `argnums` no integers.
    ValueError
        If `f` has no such argument, or takes ``*args``.
    """
    single = isinstance(argnums, (int, float, np.integer))
    numbers: tuple[Any, ...] = (argnums,) if isinstance(argnums, (int, float, np.integer)) else tuple(argnums)
    if any(isinstance(k, bool) or not isinstance(k, (int, np.integer)) for k in numbers):
        raise TypeError(f"{form.name}: argnums must be an integer or a sequence of integers, but got {argnums!r}")
    record = recorder(f, numbers)
    names = _names(record, form.name)
    places = tuple(_place(form.name, record.name, k, len(names)) for k in numbers)
    if not places or len(set(places)) != len(places):
        raise ValueError(f"{form.name}: argnums of {record.name} must name each argument once, and at least one, not {argnums}")
    further = form.further([names[k] for k in places], names)
    whole = names + further
    made = _dispatcher(record, form, _call(_Parts(record, form, places, single, names, further)), whole)
    refused = (
        f"and what tg.{form.name} makes cannot be differentiated itself; take tg.hessian or tg.hvp of the function for second "
        "derivatives, outside of compiled code"
    )
    refusing = recorded_call(made.__name__, made, (None,) * len(whole), whole, refused)
    register(made, Registration((None,) * len(whole), refusing, stand_in(made, refusing, whole)))
    return made


class _Parts(NamedTuple):
    """What a compiled function is made of, whatever it is called with."""

    record: Recorder
    form: Form
    places: tuple[int, ...]
    single: bool
    names: list[str]
    further: list[str]


def _dispatcher(record: Recorder, form: Form, call: Callable[..., Any], names: list[str]) -> Any:
    """What compiled code calls, with the names and defaults of the function."""
    arguments, space = ", ".join(names), {"__name__": __name__, "call": call}
    # Globals of a recording are known by files and lines, so these are others than those of the form that records.
    exec(compile(f"def of({arguments}):\n    return call({arguments})", f"<tapegrad derivative {record.name}>", "exec"), space)
    made: Any = space["of"]
    made.__name__ = record.name + form.suffix
    made.__defaults__ = record.function.__defaults__ if form.has_defaults else None
    derivative: Any = numba.njit(made)
    derivative._compiler._failed_cache = Failures()
    return derivative


def _names(record: Recorder, name: str) -> list[str]:
    parameters = inspect.signature(record.function).parameters.values()
    if any(p.kind is not p.POSITIONAL_OR_KEYWORD for p in parameters):
        raise ValueError(f"{name}: {record.name} takes *args or arguments by keyword alone; give it arguments with names")
    return [p.name for p in parameters]


def _place(form: str, name: str, number: int, count: int) -> int:
    if not -count <= number < count:
        raise ValueError(f"{form}: {name} has no argument {number} to differentiate with respect to: it has {count}")
    return number % count


def _call(parts: _Parts) -> Callable[..., Any]:
    """A function that compiled code calls with any types, and which is compiled for these."""
    record, names = parts.record, parts.names + parts.further
    arguments = ", ".join(names)
    compiled: dict[Any, Any] = {}

    def implementation(*kinds: Any) -> Any:
        given = tuple(_passed_as(kind, k in parts.places) for k, kind in enumerate(kinds))
        if given not in compiled:
            compiled[given] = _native(parts, given)
        space = {"native": compiled[given]}
        passed = []
        for k, kind in enumerate(kinds):
            if isinstance(kind, types.Omitted):
                space[f"default{k}"] = kind.value
            if not isinstance(given[k], types.Omitted):
                passed.append(f"default{k}" if isinstance(kind, types.Omitted) else names[k])
        text = f"def impl({arguments}):\n    return native({', '.join(passed)})"
        exec(compile(text, f"<tapegrad {record.name}>", "exec"), space)
        return space["impl"]

    space: dict[str, Any] = {"__name__": __name__, "implementation": implementation}
    text = (
        f"def call({arguments}):\n    raise NotImplementedError\ndef define({arguments}):\n    return implementation({arguments})"
    )
    exec(compile(text, f"<tapegrad {record.name}>", "exec"), space)
    overload(space["call"], complex_too=True)(space["define"])  # code of its own would be written for nothing
    call: Callable[..., Any] = space["call"]
    return call


def _passed_as(kind: Any, is_input: bool) -> Any:
    """The type of an argument; defaults are constants of the compiled function, unless it is differentiated by them."""
    if isinstance(kind, types.Omitted):
        return types.float64 if is_input and isinstance(kind.value, float) else kind
    return types.unliteral(kind)


def _native(parts: _Parts, given: Kinds) -> Any:
    """The compiled function for some types."""
    native_memory.prepare()
    record, count = parts.record, len(parts.names)
    kinds = given[:count]
    _check(record, parts.form.name, kinds, parts.places)
    parts.form.check(record, tuple(kinds[k] for k in parts.places), given[count:])
    passed = [k for k, kind in enumerate(kinds) if not isinstance(kind, types.Omitted)]
    arrays = [found for k in passed for found in native_results.arrays_in(f"a{k}", kinds[k])]
    # A function that does not write into its arguments need not know whether they share memory.
    shared = len(arrays) > 1 or any(kind.layout == "A" for _, kind in arrays)
    failure: Exception | None = None
    for level in (2, 0, 1) if shared else (0, 1):
        try:
            return with_few_collections(_compiled, parts, given, level, arrays if shared and level < 2 else [])
        except NumbaError as error:
            failure = error
    assert failure is not None
    raise explained(record.function, failure) from failure


def _check(record: Recorder, name: str, kinds: Kinds, places: tuple[int, ...]) -> None:
    for k, kind in enumerate(kinds):
        if k in places and not native_results.is_input(kind):
            raise CompileError(
                f"{name}: argument {k} of {record.name} is {kind}, but derivatives are taken by float64 and float32 numbers and "
                "arrays, and tuples of these: write float(...) or .astype(np.float64), or leave it out of argnums"
            )
        if not isinstance(kind, types.Omitted) and not native_results.is_plain(kind):
            raise CompileError(
                f"{name}: argument {k} of {record.name} is {kind}; compiled code may call its derivative with numbers, text, "
                "functions, arrays of numbers and tuples of these: pass what it holds in these"
            )


def _compiled(parts: _Parts, given: Kinds, level: int, sharing: list[tuple[str, Any]]) -> Any:
    """A tape is taken, the function recorded and asked, and the tape given back, whatever the function raises."""
    record, form, places = parts.record, parts.form, parts.places
    count = len(parts.names)
    kinds = given[:count]
    passed = [k for k, kind in enumerate(kinds) if not isinstance(kind, types.Omitted)]
    further = [f"t{k}" for k in range(len(parts.further))]
    types_passed = (*(kinds[k] for k in passed), *given[count:])
    names = ", ".join([*(f"a{k}" for k in passed), *further])
    space: dict[str, Any] = {"__name__": conversion.__name__, "twin": record.current_twin(level)}
    space |= {made.__name__: made for made in (conversion.input_, conversion.held, conversion.guarded, conversion.constant)}
    space |= {made.__name__: made for made in (native_results.apart, native_results.distinct)} | form.needed
    lines = [f"def run(tape, {names}):"]
    lines += _refusals(record.name, sharing) + form.before(places, further, given[count:])
    for k, kind in enumerate(kinds):
        if isinstance(kind, types.Omitted):
            space[f"v{k}"] = kind.value
    for k in [*places, *(k for k in passed if k not in places)]:  # rows of inputs are numbered in this order
        text = f"input_(tape, a{k})" if k in places else f"{'constant' if level == 1 else 'held'}(a{k})"
        lines.append(f"    v{k} = {f'guarded({text})' if level == 2 else text}")
    lines.append(f"    result = twin({', '.join(['tape', *(f'v{k}' for k in range(count))])})")
    lines += form.after(places, parts.single, tuple(kinds[k] for k in places), further, given[count:])
    exec(compile("\n".join(lines), f"<tapegrad {record.name}>", "exec"), space)
    run = part(space["run"])
    run.compile((types.int64, *types_passed))
    space = {"borrow": native_memory.borrow, "lent": _lent(run.overloads[types.int64, *types_passed])}
    text = f"def native({names}):\n    return lent(borrow(), ({names},))"
    exec(compile(text, f"<tapegrad {record.name}>", "exec"), space)
    native = numba.njit(pipeline_class=DriveCompiler)(space["native"])
    native.compile(types_passed)
    return native


def _refusals(name: str, arrays: list[tuple[str, Any]]) -> list[str]:
    """What raises where arrays share memory into which the function may write."""
    message = (
        f"{name}: arrays in its arguments share memory, or lie between each other's elements, and the function writes into its "
        "arguments; pass a copy of one of them"
    )
    pairs = [f"apart({a}, {b})" for k, (a, _) in enumerate(arrays) for b, _ in arrays[:k]]
    pairs += [f"distinct({a})" for a, kind in arrays if kind.layout == "A"]
    return [line for pair in pairs for line in (f"    if not {pair}:", f"        raise ValueError({message!r})")]


def _lent(run: Any) -> Any:
    """A call of compiled code with a tape, which is given back at its end, be it an exception."""
    native_memory.give.compile((types.int64,))
    (give,) = native_memory.give.overloads.values()

    @intrinsic
    def lent(typingctx: Any, tape: Any, arguments: Any) -> Any:
        def write(context: Any, builder: Any, sig: Any, args: Any) -> Any:
            for made in (run, give):
                context.active_code_library.add_linking_library(made.library)
            given = [args[0], *cgutils.unpack_tuple(builder, args[1], len(arguments.types))]
            status, result = context.call_internal_no_propagate(builder, run.fndesc, run.signature, given)
            context.call_internal_no_propagate(builder, give.fndesc, give.signature, [args[0]])
            with cgutils.if_unlikely(builder, status.is_error):
                context.call_conv.return_status_propagate(builder, status)
            return result

        return run.signature.return_type(types.int64, arguments), write

    return lent
