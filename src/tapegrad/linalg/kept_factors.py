"""Solutions of linear equations whose factors are kept, so that derivatives need not factor the same matrix again."""

from __future__ import annotations

import functools
import math
from typing import Any

import numpy as np

from tapegrad.arrays.memory_pool import large_empty
from tapegrad.linalg.blas import address_of
from tapegrad.tape.array_kernels import ARRAY_KERNELS

__all__ = [
    "Factors",
    "addresses",
    "determinants",
    "exchanges",
    "factored_solution",
    "integers",
    "inverses",
    "solved_again",
]

Array = np.ndarray[Any, Any]
FLOAT64 = np.dtype(np.float64)
BLOCK_OF_COLUMNS = 64  # of an inverse, which LAPACK makes at once
Factors = tuple[Array, Array]  # both triangles in one matrix as Fortran has it, and with which row each row was exchanged


def factored_solution(a: Array, b: Array, vector: bool, left: bool) -> tuple[Array, Factors] | None:
    """What `numpy.linalg.solve` gives, to the bit, and the factors of the matrices, or for ``left=False`` of their transposes.

    None where a matrix is singular, where this NumPy has no LAPACK under a known name, and for what is not float64 or has a batch
    of matrices that must be stretched.
    """
    gesv, getrs = address_of("dgesv"), address_of("dgetrs")
    if not (gesv and getrs) or a.dtype != np.float64 or not (a.size and b.size):
        return None
    if a.ndim > 2:
        stretched = _along(b, a.shape[:-2], 1 if vector else 2)
        if stretched is None:
            return None
        b = stretched
    matrices = np.ascontiguousarray(a)
    matrices = matrices[None] if a.ndim == 2 else matrices.reshape(-1, *a.shape[-2:])
    sides = _sides(b, vector)
    found, x, columns = _room(b, sides, left)
    lu, pivots = np.empty_like(matrices), np.empty(matrices.shape[:-1], np.int64)
    words = np.empty(4, np.int64)
    done = ARRAY_KERNELS.factor_and_solve(
        gesv, getrs, id(x), id(columns), id(lu), id(pivots), id(matrices), id(sides), id(words), int(not left)
    )
    return (found, (lu, pivots)) if done else None


def solved_again(factors: Factors, b: Array, vector: bool, left: bool, transposed: bool) -> Array:
    """Solutions for other right sides, of the matrices that were factored, or `transposed`; with one matrix, of any batch."""
    lu, pivots = factors
    sides = _sides(b, vector)
    found, x, columns = _room(b, sides, left)
    words = np.empty(4, np.int64)
    given = id(addresses()), id(x), id(columns), id(lu), id(pivots), id(sides), id(words)
    ARRAY_KERNELS.solve_again(*given, int(transposed), int(not left))
    return found


@functools.cache
def addresses() -> Array:
    """Of LAPACK's function that solves by factors, and of those by which large systems are solved in blocks."""
    return np.array([address_of(name) for name in ("dgetrs", "dtrsm", "dgemm", "dlaswp")], np.int64)


def _along(b: Array, batch: tuple[int, ...], own: int) -> Array | None:
    """Right sides of `own` dimensions each, stretched along a batch of matrices; None if they have a longer batch."""
    whole = batch + b.shape[b.ndim - own :]
    if b.shape == whole:
        return b
    return np.broadcast_to(b, whole) if np.broadcast_shapes(b.shape, whole) == whole else None


def determinants(a: Array, with_signs: bool) -> tuple[Array | None, Array, Factors, bool] | None:
    """Signs and logarithms of determinants, or no signs and the determinants, with NumPy's bits; factors; and if all are regular.

    None where this NumPy has no LAPACK under a known name, and for what is not float64.
    """
    getrf = address_of("dgetrf")
    if not (getrf and address_of("dgetri")) or a.dtype != np.float64 or not a.size:
        return None
    matrices = np.ascontiguousarray(a).reshape(-1, *a.shape[-2:])
    signs, values = (np.empty(a.shape[:-2]) if wanted else None for wanted in (with_signs, True))
    assert values is not None
    lu, pivots, words = np.empty(matrices.shape), np.empty(matrices.shape[:-1], np.int64), np.empty(4, np.int64)
    signs_at, wide = 0 if signs is None else id(signs), int(integers() == np.int64)
    given = getrf, signs_at, id(values), id(lu), id(pivots), id(matrices), id(words), wide
    regular = ARRAY_KERNELS.factored_determinants(*given)
    return signs, values, (lu, pivots), bool(regular)


def inverses(factors: Factors, shape: tuple[int, ...]) -> Array | None:
    """The inverses of matrices of a shape that were factored; None if one is singular."""
    lu, pivots = factors
    found, room, words = lu.copy(), np.empty(BLOCK_OF_COLUMNS * lu.shape[-1]), np.empty(4, np.int64)
    if not ARRAY_KERNELS.invert_factored(address_of("dgetri"), id(found), id(pivots), id(room), room.size, id(words)):
        return None
    return found.reshape(shape).swapaxes(-1, -2)


def exchanges(pivots: Array, n: int) -> int:
    """How many rows of a matrix were exchanged with another one."""
    return int(np.count_nonzero(pivots.reshape(-1).view(integers())[:n] != np.arange(1, n + 1)))


@functools.cache
def integers() -> np.dtype[Any]:
    """LAPACK's integers, of 64 or of 32 bits: pivots are written in these from the beginning of their memory on."""
    found = factored_solution(np.eye(2), np.ones(2), True, True)
    is_wide = found is None or found[1][1][0, 0] == 1
    return np.dtype(np.int64 if is_wide else np.int32)


def _sides(b: Array, vector: bool) -> Array:
    """Right sides as a batch of matrices."""
    if vector and b.ndim == 1:
        return np.ascontiguousarray(b)[None, :, None]  # half of the time
    n, k = (b.shape[-1], 1) if vector else b.shape[-2:]
    return np.ascontiguousarray(b).reshape(math.prod(b.shape) // (n * k), n, k)


def _room(b: Array, sides: Array, left: bool) -> tuple[Array, Array, Array]:
    """Where the solutions go, the same as a batch of matrices, and where they are made column by column: there, if they lie so."""
    found = large_empty(b.shape, FLOAT64)  # a gradient may be this very array
    x = found.reshape(sides.shape)
    return found, x, x if not left or sides.shape[2] == 1 else np.empty_like(sides)
