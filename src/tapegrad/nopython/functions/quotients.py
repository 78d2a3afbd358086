"""Numbers taken apart: quotient and remainder, mantissa and exponent, rounded. The integer parts are constants.

What is not constant is recorded as a remainder or a product, whose derivatives are those of the table.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numba.core import types
from numba.core.errors import TypingError

from tapegrad.nopython.numba_interface.linking import overload, part
from tapegrad.nopython.tape.row_writing import primal, primals, row, with_row
from tapegrad.nopython.twins.recording_twin import twin
from tapegrad.nopython.types.variable import REAL, Variable, has_variables, variable_of

__all__ = ["QUOTIENTS"]

SCALAR = (Variable, *REAL)


@part
def scaled(a, factor):
    return a * factor


@part(error_model="numpy")
def remainder(a, b):
    return np.remainder(a, b)


def _divmod(function: Callable[..., Any]) -> Any:
    """`divmod` of Python or of NumPy: they differ in what division by zero does."""

    def call(tape, a, b):
        raise NotImplementedError

    @overload(call)
    def define(tape, a, b):
        if not has_variables(types.Tuple((a, b))):
            return lambda tape, a, b: function(a, b)
        if not isinstance(a, SCALAR) or not isinstance(b, SCALAR):
            return None

        recording = twin(remainder)

        def impl(tape, a, b):
            quotient, rest = function(primal(a), primal(b))
            return with_row(quotient, 0), with_row(rest, row(recording(tape, a, b)))

        return impl

    return call


def _ldexp(function: Callable[..., Any]) -> Any:
    def call(tape, a, exponent):
        raise NotImplementedError

    @overload(call)
    def define(tape, a, exponent):
        if not has_variables(types.Tuple((a, exponent))):
            return lambda tape, a, exponent: function(a, exponent)
        if isinstance(a, types.Array) or isinstance(exponent, types.Array):
            return _ldexp_of_arrays(call, a, exponent)
        if not isinstance(exponent, types.Integer):
            raise TypingError("[tapegrad] the exponent of ldexp must be an integer; write x * 2.0 ** y for others")
        recording = twin(scaled)

        def impl(tape, a, exponent):
            return with_row(function(primal(a), exponent), row(recording(tape, a, math.ldexp(1.0, exponent))))

        return impl

    return call


def _ldexp_of_arrays(call: Any, a: Any, exponent: Any) -> Any:
    if has_variables(exponent):
        raise TypingError("[tapegrad] the exponent of ldexp must be an integer; write x * 2.0 ** y for others")
    space = {"np": np, "call": call, "kind": variable_of(getattr(a, "dtype", a))}
    arrays = [name for name, given in (("a", a), ("exponent", exponent)) if isinstance(given, types.Array)]
    items = [f"every_{name}[place]" if name in arrays else name for name in ("a", "exponent")]
    lines = ["def impl(tape, a, exponent):", f"    shape = np.broadcast_shapes({', '.join(f'{name}.shape' for name in arrays)})"]
    lines += [f"    every_{name} = np.broadcast_to({name}, shape)" for name in arrays]
    lines += ["    out = np.empty(shape, kind)", "    for place in np.ndindex(shape):"]
    lines += [f"        out[place] = call(tape, {', '.join(items)})", "    return out"]
    exec("\n".join(lines), space)
    return space["impl"]


def frexp(tape, a):
    raise NotImplementedError


@overload(frexp)
def _frexp(tape, a):
    if not isinstance(a, Variable):
        return lambda tape, a: math.frexp(a)

    recording = twin(scaled)

    def impl(tape, a):
        mantissa, exponent = math.frexp(primal(a))
        return with_row(mantissa, row(recording(tape, a, math.ldexp(1.0, -exponent)))), exponent

    return impl


def rounded(tape, a, decimals=0):
    raise NotImplementedError


@overload(rounded)
def _rounded(tape, a, decimals=0):
    return lambda tape, a, decimals=0: np.round(primals(a), decimals)


QUOTIENTS: dict[Any, Any] = {
    divmod: _divmod(divmod), np.divmod: _divmod(np.divmod), math.ldexp: _ldexp(math.ldexp), np.ldexp: _ldexp(np.ldexp),
    math.frexp: frexp, np.round: rounded, np.around: rounded,
}  # fmt: skip
