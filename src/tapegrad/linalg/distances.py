"""Distances between rows, and slices that are shortened to a largest norm."""

from __future__ import annotations

import functools

import numpy as np

from tapegrad.arrays.memory_pool import SMALL
from tapegrad.errors import ShapeError
from tapegrad.linalg.matrix_norms import vector_norm
from tapegrad.linalg.row_distances import between_rows, between_rows_of_one, has_row
from tapegrad.ops.elementwise import FUNCTIONS
from tapegrad.ops.flat_places import Places, take_at
from tapegrad.ops.shaping import unsqueeze
from tapegrad.recording.axes import axis
from tapegrad.tensors.tensor import Tensor, array_of

__all__ = ["cdist", "pdist", "renorm"]


def _check_order(name: str, p: float) -> None:
    if p < 0:
        raise RuntimeError(f"{name} only supports non-negative p values, got {p}")


_WAYS = ("use_mm_for_euclid_dist_if_necessary", "use_mm_for_euclid_dist", "donot_use_mm_for_euclid_dist")


def cdist(x1: Tensor, x2: Tensor, p: float = 2.0, compute_mode: str | None = _WAYS[0]) -> Tensor:
    """Distances between the rows of two matrices, or of two batches of them.

    Parameters
    ----------
    x1 : Tensor, shape (..., n, d)
    x2 : Tensor, shape (..., m, d)
    p : float
        Order of the norm, not negative.
    compute_mode : str, optional
        PyTorch's ways to compute Euclidean distances. All give the same here: those of differences, which cancel nothing.

    Returns
    -------
    Tensor, shape (..., n, m)
        Where two rows are the same, the gradient is zero.

    Raises
    ------
    RuntimeError
        If the shapes do not fit together, or `p` is negative.
    ValueError
        If there is no such `compute_mode`.

    Examples
    --------
    >>> tg.cdist(tg.tensor([[0.0, 0.0]]), tg.tensor([[3.0, 4.0], [0.0, 1.0]]))
    tensor([[5., 1.]])
    """
    if compute_mode is not None and compute_mode not in _WAYS:
        raise ValueError(f"{compute_mode} is not a valid value for compute_mode")
    _check_order("cdist", p)
    a, b = array_of(x1), array_of(x2)
    if a.ndim < 2 or b.ndim < 2:
        raise ShapeError(f"cdist only supports at least 2D tensors, X1 got: {a.ndim}D and X2 got: {b.ndim}D")
    if a.shape[-1] != b.shape[-1]:
        raise ShapeError(f"X1 and X2 must have the same number of columns. X1: {a.shape[-1]} X2: {b.shape[-1]}")
    if has_row(p, a, b):
        return between_rows(x1, x2, p)
    return _norm_of_rows(unsqueeze(x1, -2) - unsqueeze(x2, -3), p)


def pdist(x: Tensor, p: float = 2.0) -> Tensor:
    """Distances between all pairs of different rows of a matrix, the pairs in the order of the upper triangle.

    Parameters
    ----------
    x : Tensor, shape (n, d)
    p : float
        Order of the norm, not negative.

    Returns
    -------
    Tensor, shape (n (n - 1) / 2,)

    Raises
    ------
    RuntimeError
        If `x` is no matrix, or `p` is negative.

    Examples
    --------
    >>> tg.pdist(tg.tensor([[0.0], [1.0], [3.0]]))
    tensor([1., 3., 2.])
    """
    _check_order("pdist", p)
    a = array_of(x)
    if a.ndim != 2:
        raise ShapeError(f"pdist only supports 2D tensors, got: {a.ndim}D")
    if has_row(p, a):
        return between_rows_of_one(x, p)
    n, d = a.shape
    pairs = _small_pairs(n) if n * n <= SMALL else np.triu_indices(n, 1)
    first, second = (Places(rows, d, (rows.size, d)) for rows in pairs)
    return _norm_of_rows(take_at(x, first) - take_at(x, second), p)


def _norm_of_rows(away: Tensor, p: float) -> Tensor:
    """Their norms: of rows without coordinates, of which there is no largest one, zeros."""
    return vector_norm(away, p if array_of(away).shape[-1] else 1.0, -1)


@functools.lru_cache(maxsize=16)
def _small_pairs(n: int) -> tuple[np.ndarray, ...]:
    return np.triu_indices(n, 1)


def renorm(x: Tensor, p: float, dim: int, maxnorm: float) -> Tensor:
    """Slices along a dimension, shortened to `maxnorm` where their norm is larger.

    Parameters
    ----------
    x : Tensor, with at least two dimensions
    p : float
        Order of the norm, positive.
    dim : int
        Along which the slices lie.
    maxnorm : float
        Not negative.

    Raises
    ------
    RuntimeError
        If there are fewer than two dimensions, or `p` or `maxnorm` is out of range.

    Examples
    --------
    >>> tg.renorm(tg.tensor([[3.0, 4.0], [0.3, 0.4]]), 2, 0, 1.0)
    tensor([[0.6000, 0.8000],
            [0.3000, 0.4000]])
    """
    rank = array_of(x).ndim
    if p <= 0:
        raise RuntimeError("renorm: non-positive-norm not supported")
    if rank < 2:
        raise ShapeError(f"renorm: input needs at least 2 dimensions, got {rank} dimensions")
    if maxnorm < 0:
        raise RuntimeError(f"renorm: expected maxnorm to be >= 0 but got {maxnorm}")
    across = tuple(k for k in range(rank) if k != axis(dim, rank))
    size = vector_norm(x, p, across, True)
    # PyTorch adds this to the norm, so the result is a little shorter.
    factor = FUNCTIONS["where"](size > maxnorm, maxnorm / (size + 1e-7), 1.0)
    return x * factor
