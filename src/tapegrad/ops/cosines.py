"""Cosines of the angles between vectors.

Those between the rows of large matrices are one row of the tape, which stores no quotients of all elements. Values and cotangents
have the bits of norms, quotients, products and sums one after the other.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from tapegrad.arrays.memory_pool import SMALL, large_empty
from tapegrad.ops import elementwise
from tapegrad.ops.exponential_shares import SUM_START, numpys_loops
from tapegrad.ops.namespaces import PLAIN
from tapegrad.ops.norms import norm_of_elements, without_zeros
from tapegrad.ops.run_reductions import NEAR, adds_along_runs
from tapegrad.ops.shaping import unsqueeze
from tapegrad.recording.structural import Context, Structural, apply
from tapegrad.tape.array_kernels import ARRAY_KERNELS
from tapegrad.tensors.tensor import Tensor, array_of, make

__all__ = ["cosines"]

Array = np.ndarray[Any, Any]
FLOAT64 = np.dtype(np.float64)


def cosines(x: Tensor, y: Tensor, dim: int, least: float) -> Tensor:
    """Of the vectors along a dimension of two tensors of one shape and dtype; shorter ones than `least` count as that long."""
    a, b = array_of(x), array_of(y)
    if _are_rows(a, b, dim) and least == least and (x._row != y._row or not x._row):
        found = _by_loop(a, b, least)
        if found is not None:
            return apply(_COSINES, (x, y), found, least)
    return _composed(x, y, dim, least)


def _are_rows(a: Array, b: Array, dim: int) -> bool:
    """Whether these are rows of large contiguous float64 arrays, and NumPy's sums of them are known."""
    if a.size <= SMALL or a.ndim < 2 or dim not in (-1, a.ndim - 1) or not 1 < a.shape[-1] <= NEAR:
        return False
    if not type(a) is type(b) is np.ndarray or not (a.dtype is b.dtype is FLOAT64 and a.shape == b.shape):
        return False
    return a.flags.c_contiguous and b.flags.c_contiguous and adds_along_runs()


def _composed(x: Tensor, y: Tensor, dim: int, least: float) -> Tensor:
    (_, _, first), (_, _, second) = _unit(x, dim, least), _unit(y, dim, least)
    return (first * second).sum(dim)


def _unit(x: Tensor, dim: int, least: float) -> tuple[Tensor, Tensor, Tensor]:
    """Lengths, what vectors are divided by, and the quotients."""
    length = norm_of_elements(x, 2, dim, True)
    # As in PyTorch, the derivative is that of the length also where the length is below the least one.
    divisor = length + (least - length.detach()).clamp(min=0.0)
    return length, divisor, x / divisor


@lru_cache(maxsize=64)
def _numbers(least: float) -> Array:
    return np.array([least, SUM_START])


def _by_loop(a: Array, b: Array, least: float) -> Array | None:
    """None if some length is not found by squares."""
    z, d, numbers = np.empty(a.shape[:-1]), a.shape[-1], _numbers(least)
    room = np.empty(d + 1)
    fine = ARRAY_KERNELS.cosines_of_rows(id(z), id(a), id(b), id(numbers), id(room), d, numpys_loops())
    return z if fine else None


def _again(arrays: Sequence[Any], least: float) -> Any:
    a, b = arrays
    found = _by_loop(a, b, least) if _are_rows(a, b, -1) else None
    return array_of(_composed(make(a, 0), make(b, 0), -1, least)) if found is None else found


def _vjp(g: Tensor, ctx: Context) -> Sequence[Tensor | None]:
    (x, y), least = ctx.inputs, ctx.attrs
    if ctx.on is PLAIN:
        found = _cotangents_by_loop(array_of(g), array_of(x), array_of(y), least, ctx.needs)
        if found is not None:
            return found
    g, first, second = unsqueeze(g, -1), _unit(x, -1, least), _unit(y, -1, least)
    return (
        _cotangent(g, x, first, second[2], ctx.on) if ctx.needs[0] else None,
        _cotangent(g, y, second, first[2], ctx.on) if ctx.needs[1] else None,
    )


def _cotangent(g: Tensor, x: Tensor, parts: tuple[Tensor, Tensor, Tensor], other: Tensor, on: Any) -> Tensor:
    """What comes to x by the quotient and by the length."""
    length, divisor, unit = parts
    bar = elementwise._mul0(g, other)
    shares = on.sum(elementwise._mul0(bar, -(unit / divisor)), (array_of(x).ndim - 1,), True)
    shares, length = without_zeros(shares, length)
    return elementwise._mul0(bar, 1.0 / divisor) + elementwise._mul0(shares / length, x)


def _cotangents_by_loop(g: Array, a: Array, b: Array, least: float, needs: Sequence[bool]) -> Sequence[Tensor | None] | None:
    """Without quotients and products of all elements; None if operations are to compute them."""
    if not _are_rows(a, b, -1) or g.dtype is not FLOAT64:
        return None
    is_number = not any(g.strides)
    g = g if is_number or g.flags.c_contiguous else np.ascontiguousarray(g)
    first, second = (large_empty(a.shape, FLOAT64) if need else None for need in needs)
    made = 0 if first is None else id(first), 0 if second is None else id(second)
    d, numbers = a.shape[-1], _numbers(least)
    room = np.empty(3 * d + 1)
    fine = ARRAY_KERNELS.cotangents_of_cosines(
        *made, id(g), id(a), id(b), id(numbers), id(room), d, int(not is_number), numpys_loops()
    )
    if not fine:
        return None
    return None if first is None else make(first, 0), None if second is None else make(second, 0)


_COSINES = Structural("SumBackward1", ((0, 1),), _vjp, forward=_again, takes_stretched=True)
