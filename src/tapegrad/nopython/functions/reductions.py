"""Sums and products of arrays that are one row each, instead of one a step.

Values are those of Numba's own functions, called on the primals.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
from numba.core import types
from numba.core.errors import TypingError

from tapegrad.nopython.functions.complex_numbers import COMPLEX, conjugate, product_of_complex, sum_along, sum_of_complex
from tapegrad.nopython.functions.distributions import DISTRIBUTIONS
from tapegrad.nopython.functions.extremes import EXTREME_METHODS, EXTREMES
from tapegrad.nopython.functions.filling import FILLING
from tapegrad.nopython.functions.interpolation import interp
from tapegrad.nopython.functions.linear_algebra import LINEAR_ALGEBRA
from tapegrad.nopython.functions.norms import norm
from tapegrad.nopython.functions.phases import unwrap
from tapegrad.nopython.functions.places import PLACES, nonzero
from tapegrad.nopython.functions.polynomials import POLYNOMIALS
from tapegrad.nopython.functions.quotients import QUOTIENTS
from tapegrad.nopython.functions.ranks import RANKS
from tapegrad.nopython.functions.running import cumprod, cumsum
from tapegrad.nopython.numba_interface.linking import overload, part
from tapegrad.nopython.numba_interface.optional_arguments import left_away
from tapegrad.nopython.tape.array_rows import combined, sum_rows
from tapegrad.nopython.tape.matrix_rows import product_row, product_rows
from tapegrad.nopython.tape.row_writing import primals, row, with_row
from tapegrad.nopython.twins.recording_twin import twin
from tapegrad.nopython.types.variable import ComplexVariable, Variable, has_complex, has_variables

__all__ = ["FUNCTIONS", "METHODS", "dot_into"]


def sum_(tape, a, axis=None):
    raise NotImplementedError


@overload(sum_, complex_too=True)
def _sum(tape, a, axis=None):
    if has_complex(a):
        if not left_away(axis) and a.ndim > 1:
            return sum_along(a, axis)
        return sum_of_complex(np.sum, a)
    if isinstance(a, Variable):
        return lambda tape, a, axis=None: a
    if not isinstance(a, types.Array) or not has_variables(a):
        if left_away(axis):
            return lambda tape, a, axis=None: np.sum(a)
        return lambda tape, a, axis=None: np.sum(a, axis)
    if left_away(axis) or a.ndim == 1:

        def everything(tape, a, axis=None):
            return with_row(np.sum(primals(a)), combined(tape, a, 1.0))

        return everything
    if not isinstance(axis, types.Integer):
        raise TypingError("[tapegrad] np.sum of variables takes one axis; call it once for each axis")

    def along(tape, a, axis=None):
        return sum_rows(tape, a, axis, np.sum(primals(a), axis))

    return along


def mean(tape, a):
    raise NotImplementedError


@overload(mean, complex_too=True)
def _mean(tape, a):
    if has_complex(a):
        return sum_of_complex(np.mean, a)
    if not isinstance(a, types.Array) or not has_variables(a):
        return lambda tape, a: np.mean(a)
    return lambda tape, a: with_row(np.mean(primals(a)), combined(tape, a, 1.0 / a.size))


@part
def root(variance):
    """Zero is a constant, as for norms."""
    return np.sqrt(variance) if variance != 0.0 else 0.0


def _deviation(deviation: Any, variance: Any) -> Any:
    def call(tape, a):
        raise NotImplementedError

    @overload(call)
    def define(tape, a):
        if not isinstance(a, types.Array) or not has_variables(a):
            return lambda tape, a: deviation(a)
        squares, recording = twin(part(lambda a: variance(a))), twin(root)
        return lambda tape, a: with_row(deviation(primals(a)), row(recording(tape, squares(tape, a))))

    return call


std = _deviation(np.std, np.var)


def _product(name):
    """`np.dot` or ``@``, of vectors and matrices."""

    def call(tape, a, b):
        raise NotImplementedError

    function = np.dot if name == "dot" else operator.matmul

    @overload(call, complex_too=True)
    def define(tape, a, b):
        if not isinstance(a, types.Array) or not isinstance(b, types.Array) or not has_variables(types.Tuple((a, b))):
            return lambda tape, a, b: function(a, b)
        if has_complex(types.Tuple((a, b))):
            return product_of_complex(function, a, b)
        if (a.ndim, b.ndim) == (1, 1):
            return lambda tape, a, b: with_row(function(primals(a), primals(b)), product_row(tape, a, b))
        if a.ndim in (1, 2) and b.ndim in (1, 2):
            return lambda tape, a, b: product_rows(tape, a, b, function(primals(a), primals(b)))
        return None

    return call


dot = _product("dot")
matmul = _product("matmul")


def dot_into(tape, a, b, out):
    """`np.dot` with an array for the result."""
    raise NotImplementedError


@overload(dot_into)
def _dot_into(tape, a, b, out):
    if not has_variables(types.Tuple((a, b, out))):
        return lambda tape, a, b, out: np.dot(a, b, out)

    def impl(tape, a, b, out):
        found = dot(tape, a, b)
        if found.shape != out.shape:
            raise ValueError("incompatible output array size for np.dot()")
        out[...] = found
        return out

    return impl


def vdot(tape, a, b):
    raise NotImplementedError


@overload(vdot, complex_too=True)
def _vdot(tape, a, b):
    if not has_variables(types.Tuple((a, b))):
        return lambda tape, a, b: np.vdot(a, b)
    if has_complex(types.Tuple((a, b))):
        return product_of_complex(np.vdot, a, b)
    return lambda tape, a, b: with_row(np.vdot(primals(a), primals(b)), product_row(tape, a, b))


def item(tape, a):
    raise NotImplementedError


@overload(item, complex_too=True)
def _item(tape, a):
    if isinstance(a, (ComplexVariable, Variable)):
        return lambda tape, a: a
    return lambda tape, a: a.item()


FUNCTIONS: dict[Any, Any] = {
    np.sum: sum_, np.mean: mean, np.dot: dot, np.vdot: vdot, operator.matmul: matmul, np.linalg.norm: norm, np.cumsum: cumsum,
    np.cumprod: cumprod, np.interp: interp, np.unwrap: unwrap,
    np.std: std, np.nanstd: _deviation(np.nanstd, np.nanvar),
} | COMPLEX | DISTRIBUTIONS | EXTREMES | FILLING | LINEAR_ALGEBRA | PLACES | POLYNOMIALS | QUOTIENTS | RANKS  # fmt: skip

# Methods of arrays that compute with items; the others move them, and are Numba's own.
METHODS: dict[str, Any] = (
    dict.fromkeys(["all", "any", "argmax", "argmin", "clip", "prod", "var"])
    | EXTREME_METHODS
    | {
        "sum": sum_,
        "mean": mean,
        "dot": dot,
        "item": item,
        "conj": conjugate,
        "conjugate": conjugate,
        "cumsum": cumsum,
        "cumprod": cumprod,
        "nonzero": nonzero,
        "std": std,
    }
)
