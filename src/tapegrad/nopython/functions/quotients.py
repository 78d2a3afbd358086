"""Numbers taken apart: quotient and remainder, mantissa and exponent, rounded. The integer parts are constants."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numba.core import types

from tapegrad.nopython.numba_interface.linking import overload
from tapegrad.nopython.tape.row_writing import end_row, primal, primals, put, row, start_row, with_row
from tapegrad.nopython.types.variable import REAL, Variable, has_variables

__all__ = ["QUOTIENTS"]

SCALAR = (Variable, *REAL)


def scaled(tape, a, factor):
    """A row with one pair."""
    raise NotImplementedError


@overload(scaled)
def _scaled(tape, a, factor):
    def impl(tape, a, factor):
        start = start_row(tape, 1, 0)
        end = start
        if row(a) != 0:
            put(tape, end, row(a), factor)
            end += 1
        return end_row(tape, start, end)

    return impl


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

        def impl(tape, a, b):
            quotient, remainder = function(primal(a), primal(b))
            start = start_row(tape, 2, 0)
            end = start
            if row(a) != 0:
                put(tape, end, row(a), 1.0)
                end += 1
            if row(b) != 0:
                put(tape, end, row(b), -quotient)
                end += 1
            return with_row(quotient, 0), with_row(remainder, end_row(tape, start, end))

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
        return lambda tape, a, exponent: with_row(function(primal(a), exponent), scaled(tape, a, math.ldexp(1.0, exponent)))

    return call


def frexp(tape, a):
    raise NotImplementedError


@overload(frexp)
def _frexp(tape, a):
    if not isinstance(a, Variable):
        return lambda tape, a: math.frexp(a)

    def impl(tape, a):
        mantissa, exponent = math.frexp(primal(a))
        return with_row(mantissa, scaled(tape, a, math.ldexp(1.0, -exponent))), exponent

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
