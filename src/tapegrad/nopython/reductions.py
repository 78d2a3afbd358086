"""Sums and products of arrays that are one row each, instead of one a step.

Values are those of Numba's own functions, called on the primals.
"""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
from numba.core import types
from numba.core.errors import TypingError

from tapegrad.nopython.cardinal_sine import sinc
from tapegrad.nopython.curved_tape import CurvedTape
from tapegrad.nopython.extremes import EXTREME_METHODS, EXTREMES
from tapegrad.nopython.interpolation import interp
from tapegrad.nopython.linear_algebra import LINEAR_ALGEBRA
from tapegrad.nopython.linking import overload
from tapegrad.nopython.norms import norm
from tapegrad.nopython.phases import unwrap
from tapegrad.nopython.pieces import end_row, primal, primals, put, put_second, row, start_row, with_row
from tapegrad.nopython.polynomials import POLYNOMIALS
from tapegrad.nopython.quotients import QUOTIENTS
from tapegrad.nopython.ranks import RANKS
from tapegrad.nopython.rows import combined, left_away
from tapegrad.nopython.running import cumprod, cumsum
from tapegrad.nopython.variable import has_variables, variable

__all__ = ["FUNCTIONS", "METHODS"]


def sum_(tape, a, axis=None):
    raise NotImplementedError


@overload(sum_)
def _sum(tape, a, axis=None):
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
    if a.ndim == 2:

        def two(tape, a, axis=None):
            values = np.sum(primals(a), axis)
            out = np.empty(values.shape, variable)
            for k in range(values.size):
                piece = a[:, k] if axis % 2 == 0 else a[k, :]
                out[k] = with_row(values[k], combined(tape, piece, 1.0))
            return out

        return two
    if a.ndim == 3:

        def three(tape, a, axis=None):
            values = np.sum(primals(a), axis)
            out = np.empty(values.shape, variable)
            for j in range(values.shape[0]):
                for k in range(values.shape[1]):
                    which = axis % 3
                    piece = a[:, j, k] if which == 0 else a[j, :, k] if which == 1 else a[j, k, :]
                    out[j, k] = with_row(values[j, k], combined(tape, piece, 1.0))
            return out

        return three
    raise TypingError("[tapegrad] np.sum along an axis takes arrays of at most three dimensions")


def mean(tape, a):
    raise NotImplementedError


@overload(mean)
def _mean(tape, a):
    if not isinstance(a, types.Array) or not has_variables(a):
        return lambda tape, a: np.mean(a)
    return lambda tape, a: with_row(np.mean(primals(a)), combined(tape, a, 1.0 / a.size))


def product_row(tape, a, b):
    """The row of the inner product of two vectors."""
    raise NotImplementedError


@overload(product_row)
def _product_row(tape, a, b):
    curved = isinstance(tape, CurvedTape)

    def impl(tape, a, b):
        start = start_row(tape, 2 * a.size, a.size)
        end = start
        for k in range(a.size):
            r = row(a[k])
            if r != 0:
                put(tape, end, r, primal(b[k]))
                end += 1
            r = row(b[k])
            if r != 0:
                put(tape, end, r, primal(a[k]))
                end += 1
            if curved and row(a[k]) != 0 and row(b[k]) != 0:
                end = put_second(tape, end, row(a[k]), row(b[k]), 1.0)
        return end_row(tape, start, end)

    return impl


def _product(name):
    """`np.dot` or ``@``, of vectors and matrices."""

    def call(tape, a, b):
        raise NotImplementedError

    function = np.dot if name == "dot" else operator.matmul

    @overload(call)
    def define(tape, a, b):
        if not isinstance(a, types.Array) or not isinstance(b, types.Array) or not has_variables(types.Tuple((a, b))):
            return lambda tape, a, b: function(a, b)
        if (a.ndim, b.ndim) == (1, 1):
            return lambda tape, a, b: with_row(function(primals(a), primals(b)), product_row(tape, a, b))
        if (a.ndim, b.ndim) == (2, 1):

            def matrix_vector(tape, a, b):
                values = function(primals(a), primals(b))
                out = np.empty(values.shape, variable)
                for i in range(values.size):
                    out[i] = with_row(values[i], product_row(tape, a[i, :], b))
                return out

            return matrix_vector
        if (a.ndim, b.ndim) == (1, 2):

            def vector_matrix(tape, a, b):
                values = function(primals(a), primals(b))
                out = np.empty(values.shape, variable)
                for j in range(values.size):
                    out[j] = with_row(values[j], product_row(tape, a, b[:, j]))
                return out

            return vector_matrix
        if (a.ndim, b.ndim) == (2, 2):

            def matrices(tape, a, b):
                values = function(primals(a), primals(b))
                out = np.empty(values.shape, variable)
                for i in range(values.shape[0]):
                    for j in range(values.shape[1]):
                        out[i, j] = with_row(values[i, j], product_row(tape, a[i, :], b[:, j]))
                return out

            return matrices
        return None

    return call


dot = _product("dot")
matmul = _product("matmul")


def vdot(tape, a, b):
    raise NotImplementedError


@overload(vdot)
def _vdot(tape, a, b):
    if not has_variables(types.Tuple((a, b))):
        return lambda tape, a, b: np.vdot(a, b)
    return lambda tape, a, b: with_row(np.vdot(primals(a), primals(b)), product_row(tape, a, b))


def item(tape, a):
    raise NotImplementedError


@overload(item)
def _item(tape, a):
    if a is variable:
        return lambda tape, a: a
    return lambda tape, a: a.item()


FUNCTIONS: dict[Any, Any] = {
    np.sum: sum_, np.mean: mean, np.dot: dot, np.vdot: vdot, operator.matmul: matmul, np.linalg.norm: norm, np.cumsum: cumsum,
    np.cumprod: cumprod, np.sinc: sinc, np.interp: interp, np.unwrap: unwrap,
} | EXTREMES | LINEAR_ALGEBRA | POLYNOMIALS | QUOTIENTS | RANKS  # fmt: skip

# Methods of arrays that compute with items; the others move them, and are Numba's own.
METHODS: dict[str, Any] = (
    dict.fromkeys(["all", "any", "argmax", "argmin", "clip", "prod", "ptp", "round", "std", "trace", "var"])
    | EXTREME_METHODS
    | {"sum": sum_, "mean": mean, "dot": dot, "item": item, "cumsum": cumsum, "cumprod": cumprod}
)
