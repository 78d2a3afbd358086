"""Calls of functions whose derivative a user has said: one row, with a pair for each number that they depend on.

Second partials come from recording the partials, half way.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numba
from numba.core import types
from numba.core.errors import TypingError
from numba.core.types import WrapperAddressProtocol

from tapegrad.nopython.functions.half_way import half_way
from tapegrad.nopython.numba_interface.linking import overload
from tapegrad.nopython.tape.row_writing import end_row, primal, primals, put, put_second, row, start_row, with_row
from tapegrad.nopython.twins.recording_twin import twin
from tapegrad.nopython.twins.registrations import address_of
from tapegrad.nopython.types.curved_tape import CurvedTape, StraightTape, straight
from tapegrad.nopython.types.variable import REAL, Variable, has_variables

__all__ = ["compiled_callback", "name_of", "recorded_call", "unregistered_call"]


def size(x):
    """How many numbers there are in a number or an array."""
    raise NotImplementedError


@overload(size)
def _size(x):
    return (lambda x: x.size) if isinstance(x, types.Array) else (lambda x: 1)


def pairs(tape, end, x, slope):
    """Pairs of an argument and its partial; where they end."""
    raise NotImplementedError


@overload(pairs)
def _pairs(tape, end, x, slope):
    def number(tape, end, x, slope):
        if row(x) != 0:
            put(tape, end, row(x), primal(slope))
            end += 1
        return end

    def array(tape, end, x, slope):
        if x.shape != slope.shape:
            raise ValueError("a partial by an array, in tg.register_derivative, must return an array of its shape")
        for k in range(len(x)):
            end = pairs(tape, end, x[k], slope[k])
        return end

    return _of_kind(x, slope, number, array)


def second_pairs(tape, end, x, slope):
    """Second partials of an argument; where the row ends."""
    raise NotImplementedError


@overload(second_pairs)
def _second_pairs(tape, end, x, slope):
    def number(tape, end, x, slope):
        if row(x) != 0 and row(slope) != 0:
            end = put_second(tape, end, row(x), row(slope), 1.0)
        return end

    def array(tape, end, x, slope):
        for k in range(len(x)):
            end = second_pairs(tape, end, x[k], slope[k])
        return end

    if not has_variables(slope):
        return lambda tape, end, x, slope: end
    return _of_kind(x, slope, number, array)


def _of_kind(x: Any, slope: Any, number: Any, array: Any) -> Any:
    if isinstance(x, Variable) and isinstance(slope, (Variable, *REAL)):
        return number
    if isinstance(x, types.Array) and isinstance(slope, types.Array) and x.ndim == slope.ndim:
        return array
    raise TypingError(
        "[tapegrad] a partial in tg.register_derivative must return a number for an argument that is one, and an array of its "
        f"shape for an array; this one returns {slope} for {x}"
    )


def unwritten(x, given):
    """That a function has left its argument as it was."""
    raise NotImplementedError


@overload(unwritten)
def _unwritten(x, given):
    def array(x, given):
        for k in range(len(x)):
            unwritten(x[k], given[k])

    def number(x, given):
        value = primal(x)
        if value != given and (value == value or given == given):
            raise ValueError("a function with a derivative by tg.register_derivative has written into an array of variables")

    return array if isinstance(x, types.Array) else number


def checked(z):
    """The result, which is a number."""
    raise NotImplementedError


@overload(checked)
def _checked(z):
    if isinstance(z, types.Float):
        return lambda z: z
    if isinstance(z, types.Integer):
        return lambda z: float(z)
    raise TypingError(f"[tapegrad] tg.register_derivative is for functions whose result is a number, not {z}")


UNKNOWN = "of which no derivative is known; say what it is by tg.register_derivative"


def recorded_call(
    name: str, function: Any, partials: Sequence[Any], names: Sequence[str], unknown: str = UNKNOWN
) -> Callable[..., Any]:
    """A function of the tape and the arguments that calls `function` and records one row.

    Parameters
    ----------
    name : str
        For messages.
    function : object
        What compiled code can call.
    partials : sequence
        A compiled function of the same arguments for each of them, or None.
    names : sequence of str
        Of the arguments.
    unknown : str
        What is said of a variable as an argument that has no partial.
    """
    arguments = ", ".join(names)
    space: dict[str, Any] = {"__name__": __name__}
    exec(_text(name, f"def call(tape, {arguments}):\n    raise NotImplementedError"), space)
    call: Callable[..., Any] = space["call"]
    space = {"implementation": lambda tape, *kinds: _implementation(name, function, partials, names, unknown, tape, kinds)}
    exec(_text(name, f"def define(tape, {arguments}):\n    return implementation(tape, {arguments})"), space)
    overload(call)(space["define"])
    return call


USED = checked, end_row, half_way, pairs, primals, second_pairs, size, start_row, straight, unwritten, with_row


@functools.cache
def _refusing(address: int) -> Callable[..., Any]:
    function, count = _pointers[address]
    return recorded_call(f"{name_of(function)} of C", function, (None,) * count, [f"x{k}" for k in range(count)])


_pointers: dict[int, tuple[Any, int]] = {}


def unregistered_call(function: Any) -> Callable[..., Any]:
    """What is called in the place of a C function without a derivative: it takes constants."""
    address = address_of(function)
    known = isinstance(function, WrapperAddressProtocol)
    _pointers[address] = function, len(function.signature().args if known else function.argtypes or ())
    return _refusing(address)


def name_of(function: Any) -> str:
    """A function's name for messages."""
    if isinstance(function, WrapperAddressProtocol):
        return type(function).__name__
    named = getattr(function, "_pyfunc", function)  # of what `numba.cfunc` made
    return str(getattr(named, "__name__", "the function at an address"))


@functools.cache
def compiled_callback(function: Any) -> Any:
    """The text of what `numba.cfunc` made, compiled as a function that can be recorded."""
    return numba.njit(function._sig)(function._pyfunc)


def _text(name: str, text: str) -> Any:
    return compile(text, f"<tapegrad registered {name}>", "exec")


def _implementation(name: str, function: Any, partials: Any, names: Sequence[str], unknown: str, tape: Any, kinds: Any) -> Any:
    tracked = [k for k, kind in enumerate(kinds) if has_variables(kind)]
    for k in tracked:
        kind = types.unliteral(kinds[k])
        if partials[k] is None:
            raise TypingError(f"[tapegrad] {name} is called with a variable as its argument {names[k]}, {unknown}")
        if not isinstance(kind, (Variable, types.Array)):
            raise TypingError(
                f"[tapegrad] {name}, whose derivative is registered, takes numbers and arrays of variables, not {kind}"
            )
    arguments = ", ".join(names)
    plain = ", ".join(f"primals({x})" if k in tracked else x for k, x in enumerate(names))
    space: dict[str, Any] = {"__name__": __name__, "function": function}
    lines = [f"def impl(tape, {arguments}):"]
    if not tracked:
        lines.append(f"    return function({arguments})")
    else:
        space |= {f"partial{k}": twin(partials[k]) for k in tracked}
        space |= {made.__name__: made for made in USED}
        curved = isinstance(tape, CurvedTape) and not isinstance(tape, StraightTape)
        if curved:
            lines += [f"    middle{k} = half_way(tape, {names[k]})" for k in tracked]
        given = ", ".join(f"middle{k}" if k in tracked else x for k, x in enumerate(names)) if curved else plain
        count = " + ".join(f"size({names[k]})" for k in tracked)
        arrays = [k for k in tracked if isinstance(kinds[k], types.Array)]
        called = ", ".join(f"given{k}" if k in arrays else f"primals({x})" if k in tracked else x for k, x in enumerate(names))
        lines += [f"    given{k} = primals({names[k]})" for k in arrays]
        lines.append(f"    z = checked(function({called}))")
        lines += [f"    unwritten({names[k]}, given{k})" for k in arrays]
        lines += [f"    slope{k} = partial{k}(straight(tape), {given})" for k in tracked]
        lines += [f"    start = start_row(tape, {count}, {count if curved else 0})", "    end = start"]
        lines += [f"    end = pairs(tape, end, {names[k]}, slope{k})" for k in tracked]
        if curved:
            lines += [f"    end = second_pairs(tape, end, {names[k]}, slope{k})" for k in tracked]
        lines.append("    return with_row(z, end_row(tape, start, end))")
    exec(_text(name, "\n".join(lines)), space)
    return space["impl"]
