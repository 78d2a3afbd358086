"""Numbers taken apart: quotient and remainder, mantissa and exponent, rounded. The integer parts are constants.

What is not constant is recorded as a remainder or a product, whose derivatives are those of the table.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numba.core import types

from tapegrad.nopython.numba_interface.linking import overload, part
from tapegrad.nopython.tape.row_writing import primal, primals, row, with_row
from tapegrad.nopython.twins.recording_twin import twin
from tapegrad.nopython.types.variable import REAL, Variable, has_variables

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
        if not isinstance(a, Variable):
            return lambda tape, a, exponent: function(a, exponent)
        if not isinstance(exponent, types.Integer):
            return None
        recording = twin(scaled)

        def impl(tape, a, exponent):
            return with_row(function(primal(a), exponent), row(recording(tape, a, math.ldexp(1.0, exponent))))

        return impl

    return call


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
