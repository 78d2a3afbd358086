"""Value and gradient as a compiled function that compiled code calls, without Python."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numba
import numpy as np
from numba.core import cgutils, types
from numba.core.errors import NumbaError
from numba.core.extending import intrinsic
from numba.extending import overload

from tapegrad.compilation.compiler_room import with_room
from tapegrad.errors import CompileError
from tapegrad.nopython.arguments import conversion, native_results
from tapegrad.nopython.functions.registered_calls import recorded_call
from tapegrad.nopython.numba_interface.error_reports import Failures, explained
from tapegrad.nopython.numba_interface.linking import DriveCompiler, part
from tapegrad.nopython.recorder import Recorder, recorder
from tapegrad.nopython.registered_derivatives import stand_in
from tapegrad.nopython.tape import native_memory
from tapegrad.nopython.twins.registrations import Registration, register

__all__ = ["njit_derivative"]

NAME = "njit_derivative"
NEEDED = (
    native_results.apart, native_results.distinct, native_results.gathered, native_results.number, native_results.size,
)  # fmt: skip
REFUSED = (
    "and what tg.njit_derivative makes cannot be differentiated itself; take tg.hessian or tg.hvp of the function for second "
    "derivatives, outside of compiled code"
)


def njit_derivative(f: Callable[..., Any], argnums: int | Sequence[int] = 0) -> Any:
    """A compiled function of the value and the gradient, which compiled code may call.

    Parameters
    ----------
    f : callable
        A function decorated with `numba.njit`, unmodified, or a plain function, which is then compiled. It returns a number.
    argnums : int or sequence of int, optional
        Which arguments it is differentiated by: float64 and float32 numbers and arrays, and tuples of these.

    Returns
    -------
    compiled function
        Of the arguments of `f`, with their names and defaults. It returns the value of `f`, and the gradient: a number, an array
        or a tuple like the argument, or a tuple of these for several. Arrays in it are new. It is called from Python and from
        functions that `numba.njit` compiles, those with ``nogil=True`` and ``parallel=True`` too.

    Raises
    ------
    CompileError
        When called first with arguments of some types, or when a function that calls it is compiled, if `f` uses what cannot be
        recorded, or if an argument is something else than numbers, text, functions, arrays and tuples of these.
    TypeError
        If `f` is no function, or `argnums` no integers.
    ValueError
        If `f` has no such argument, or takes ``*args``; in a call, if arrays in its arguments share memory and `f` writes into
        one of its arguments.

    Notes
    -----
    A call records `f` and sweeps back, as the drivers do, and costs the same; Python has no part in it, and its lock is not taken.
    Tapes are kept for calls to come (`free_tape_memory` gives their memory back); in several threads each call has its own.

    `f`, what it calls, and derivatives that were registered are those of the time at which the result is compiled for some types,
    as Numba's own callers of a function have it; what is made later is of what there is then. A function that calls the result is
    compiled in each process: Numba does not keep it on disk.

    Second derivatives are those of `tg.hessian` and `tg.hvp`: a function that calls the result with what depends on its inputs
    cannot be differentiated.

    See Also
    --------
    tapegrad.value_and_grad : The same to be called from Python.

    Examples
    --------
    Gradient descent in compiled code:

    >>> import numba
    >>> import numpy as np
    >>> @numba.njit
    ... def f(x, a):
    ...     return (x[0] - a) ** 2 + 10 * (x[1] - x[0] ** 2) ** 2
    >>> derivative = tg.njit_derivative(f)
    >>> @numba.njit
    ... def descend(x, steps):
    ...     for _ in range(steps):
    ...         value, gradient = derivative(x, 1.0)
    ...         x = x - 0.005 * gradient
    ...     return x
    >>> descend(np.array([0.5, 0.5]), 10_000).round(6)
    array([1., 1.])
    """
    single = isinstance(argnums, (int, float, np.integer))
    numbers: tuple[Any, ...] = (argnums,) if isinstance(argnums, (int, float, np.integer)) else tuple(argnums)
    if any(isinstance(k, bool) or not isinstance(k, (int, np.integer)) for k in numbers):
        raise TypeError(f"{NAME}: argnums must be an integer or a sequence of integers, but got {argnums!r}")
    record = recorder(f, numbers)
    names = _names(record)
    places = tuple(_place(record.name, k, len(names)) for k in numbers)
    if not places or len(set(places)) != len(places):
        raise ValueError(f"{NAME}: argnums of {record.name} must name each argument once, and at least one, not {argnums}")
    call = _call(record, names, places, single)
    derivative = _dispatcher(record, call, names)
    refusing = recorded_call(derivative.__name__, derivative, (None,) * len(names), names, REFUSED)
    register(derivative, Registration((None,) * len(names), refusing, stand_in(derivative, refusing, names)))
    return derivative


def _dispatcher(record: Recorder, call: Callable[..., Any], names: list[str]) -> Any:
    """What compiled code calls, with the names and defaults of the function."""
    arguments, space = ", ".join(names), {"__name__": __name__, "call": call}
    # Globals of a recording are known by files and lines, so these are others than those of the form that records.
    exec(compile(f"def of({arguments}):\n    return call({arguments})", f"<tapegrad derivative {record.name}>", "exec"), space)
    made: Any = space["of"]
    made.__name__, made.__defaults__ = f"{record.name}_and_gradient", record.function.__defaults__
    derivative: Any = numba.njit(made)
    derivative._compiler._failed_cache = Failures()
    return derivative


def _names(record: Recorder) -> list[str]:
    parameters = inspect.signature(record.function).parameters.values()
    if any(p.kind is not p.POSITIONAL_OR_KEYWORD for p in parameters):
        raise ValueError(f"{NAME}: {record.name} takes *args or arguments by keyword alone; give it arguments with names")
    return [p.name for p in parameters]


def _place(name: str, number: int, count: int) -> int:
    if not -count <= number < count:
        raise ValueError(f"{NAME}: {name} has no argument {number} to differentiate with respect to: it has {count}")
    return number % count


def _call(record: Recorder, names: list[str], places: tuple[int, ...], single: bool) -> Callable[..., Any]:
    """A function that compiled code calls with any types, and which is compiled for these."""
    arguments = ", ".join(names)
    compiled: dict[Any, Any] = {}

    def implementation(*kinds: Any) -> Any:
        given = tuple(_passed_as(kind, k in places) for k, kind in enumerate(kinds))
        if given not in compiled:
            compiled[given] = _native(record, given, places, single)
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
    overload(space["call"])(space["define"])
    call: Callable[..., Any] = space["call"]
    return call


def _passed_as(kind: Any, is_input: bool) -> Any:
    """The type of an argument; defaults are constants of the compiled function, unless it is differentiated by them."""
    if isinstance(kind, types.Omitted):
        return types.float64 if is_input and isinstance(kind.value, float) else kind
    return types.unliteral(kind)


def _native(record: Recorder, kinds: tuple[Any, ...], places: tuple[int, ...], single: bool) -> Any:
    """The compiled function for some types."""
    native_memory.prepare()
    _check(record, kinds, places)
    passed = [k for k, kind in enumerate(kinds) if not isinstance(kind, types.Omitted)]
    arrays = [found for k in passed for found in native_results.arrays_in(f"a{k}", kinds[k])]
    # A function that does not write into its arguments need not know whether they share memory.
    shared = len(arrays) > 1 or any(kind.layout == "A" for _, kind in arrays)
    failure: Exception | None = None
    for level in (2, 0, 1) if shared else (0, 1):
        try:
            return with_room(_compiled, record, kinds, places, single, level, arrays if shared and level < 2 else [])
        except NumbaError as error:
            failure = error
    assert failure is not None
    raise explained(record.function, failure) from failure


def _check(record: Recorder, kinds: tuple[Any, ...], places: tuple[int, ...]) -> None:
    for k, kind in enumerate(kinds):
        if k in places and not native_results.is_input(kind):
            raise CompileError(
                f"{NAME}: argument {k} of {record.name} is {kind}, but derivatives are taken by float64 and float32 numbers and "
                "arrays, and tuples of these: write float(...) or .astype(np.float64), or leave it out of argnums"
            )
        if not isinstance(kind, types.Omitted) and not native_results.is_plain(kind):
            raise CompileError(
                f"{NAME}: argument {k} of {record.name} is {kind}; compiled code may call its derivative with numbers, text, "
                "functions, arrays of numbers and tuples of these: pass what it holds in these"
            )


def _compiled(
    record: Recorder, kinds: tuple[Any, ...], places: tuple[int, ...], single: bool, level: int, sharing: list[tuple[str, Any]]
) -> Any:
    """A tape is taken, the function recorded and swept, and the tape given back, whatever the function raises."""
    name = record.name
    passed = [k for k, kind in enumerate(kinds) if not isinstance(kind, types.Omitted)]
    types_passed = tuple(kinds[k] for k in passed)
    names = ", ".join(f"a{k}" for k in passed)
    space: dict[str, Any] = {"__name__": conversion.__name__, "twin": record.current_twin(level), "swept": native_memory.swept}
    space |= {made.__name__: made for made in (conversion.input_, conversion.held, conversion.guarded, conversion.constant)}
    space |= {made.__name__: made for made in NEEDED}
    lines = [f"def run(tape, {names}):"]
    lines += _refusals(name, sharing)
    for k, kind in enumerate(kinds):
        if isinstance(kind, types.Omitted):
            space[f"v{k}"] = kind.value
    for k in [*places, *(k for k in passed if k not in places)]:  # rows of inputs are numbered in this order
        text = f"input_(tape, a{k})" if k in places else f"{'constant' if level == 1 else 'held'}(a{k})"
        lines.append(f"    v{k} = {f'guarded({text})' if level == 2 else text}")
    lines.append(f"    value, row = number(twin({', '.join(['tape', *(f'v{k}' for k in range(len(kinds)))])}))")
    lines += ["    bars = swept(tape, row)", "    start = 1"]
    for k in places:
        lines += [f"    g{k} = gathered(a{k}, bars, start)", f"    start += size(a{k})"]
    lines.append(f"    return value, {f'g{places[0]}' if single else '(' + ''.join(f'g{k}, ' for k in places) + ')'}")
    exec(compile("\n".join(lines), f"<tapegrad {name}>", "exec"), space)
    run = part(space["run"])
    run.compile((types.int64, *types_passed))
    space = {"borrow": native_memory.borrow, "lent": _lent(run.overloads[types.int64, *types_passed])}
    text = f"def native({names}):\n    return lent(borrow(), ({names},))"
    exec(compile(text, f"<tapegrad {name}>", "exec"), space)
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
