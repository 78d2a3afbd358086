"""Polynomials by their coefficients. Numba leaves last ones that are zero away; the results depend on them as well."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import numpy.polynomial.polynomial as poly
from numba.core import types
from numba.core.errors import TypingError

from tapegrad.nopython.functions.allocation import array, asarray
from tapegrad.nopython.numba_interface.linking import overload, part
from tapegrad.nopython.tape.row_writing import primals, row, with_row
from tapegrad.nopython.twins.recording_twin import twin
from tapegrad.nopython.types.variable import REAL, Variable, has_variables, variable

__all__ = ["POLYNOMIALS"]


@part
def sums(a, b):
    out = np.zeros(max(a.size, b.size))
    out[: a.size] += a
    out[: b.size] += b
    return out


@part
def differences(a, b):
    out = np.zeros(max(a.size, b.size))
    out[: a.size] += a
    out[: b.size] -= b
    return out


@part
def products(a, b):
    return np.convolve(a, b)


@part(error_model="numpy")
def divided(a, b):
    """Quotient and remainder, by a divisor whose last coefficient is not zero."""
    rest = a.copy()
    quotient = np.zeros(max(a.size - b.size + 1, 1))
    for k in range(a.size - b.size, -1, -1):
        quotient[k] = rest[k + b.size - 1] / b[b.size - 1]
        for j in range(b.size):
            rest[k + j] -= quotient[k] * b[j]
    return quotient, rest


def placed(values, found):
    """Values with the rows of what was found; there may be more of the latter, and they are zero."""
    raise NotImplementedError


@overload(placed)
def _placed(values, found):
    def impl(values, found):
        out = np.empty(values.size, variable)
        for k in range(values.size):
            out[k] = with_row(values[k], row(found[k]) if k < found.size else np.int32(0))
        return out

    return impl


def coefficients(a):
    """An array of coefficients."""
    raise NotImplementedError


@overload(coefficients)
def _coefficients(a):
    if isinstance(a, (Variable, *REAL)):
        return lambda a: array([a])
    if isinstance(a, types.Array) and a.ndim == 0:
        return lambda a: array([a[()]])
    if isinstance(a, types.Array) and a.ndim != 1:
        raise TypingError("[tapegrad] coefficients of polynomials are arrays of one dimension")
    return lambda a: asarray(a)


def _combined(function: Callable[..., Any], recorded: Any) -> Any:
    def call(tape, c1, c2):
        raise NotImplementedError

    @overload(call)
    def define(tape, c1, c2):
        if not has_variables(types.Tuple((c1, c2))):
            return lambda tape, c1, c2: function(c1, c2)
        whole = twin(recorded, 1)

        def impl(tape, c1, c2):
            a, b = coefficients(c1), coefficients(c2)
            return placed(function(primals(a), primals(b)), whole(tape, a, b))

        return impl

    return call


def polydiv(tape, c1, c2):
    raise NotImplementedError


@overload(polydiv)
def _polydiv(tape, c1, c2):
    if not has_variables(types.Tuple((c1, c2))):
        return lambda tape, c1, c2: poly.polydiv(c1, c2)
    whole = twin(divided, 1)

    def impl(tape, c1, c2):
        a, b = coefficients(c1), coefficients(c2)
        quotient, rest = poly.polydiv(primals(a), primals(b))
        values, size = primals(b), b.size
        while size > 1 and values[size - 1] == 0.0:
            size -= 1
        found = whole(tape, a, b[:size])
        return placed(quotient, found[0]), placed(rest, found[1])

    return impl


POLYNOMIALS: dict[Any, Any] = {
    poly.polyadd: _combined(poly.polyadd, sums), poly.polysub: _combined(poly.polysub, differences),
    poly.polymul: _combined(poly.polymul, products), poly.polydiv: polydiv,
}  # fmt: skip
