"""Products of many matrices: in the best order, or of one with itself."""

from __future__ import annotations

import functools
from collections.abc import Sequence

import numpy as np

from tapegrad.arrays.dtypes import type_name
from tapegrad.errors import ShapeError
from tapegrad.linalg.matrices import Array
from tapegrad.linalg.solving import inv
from tapegrad.ops import elementwise, products
from tapegrad.ops.cloning import clone
from tapegrad.ops.shaping import reshape, unsqueeze
from tapegrad.tensors.tensor import Tensor, array_of, wrap

__all__ = ["chain_matmul", "matmul", "matrix_power", "multi_dot"]


def matmul(A: Tensor, B: Tensor) -> Tensor:
    """Matrix product; the same as `tapegrad.matmul`."""
    if not isinstance(A, Tensor):
        raise TypeError(f"linalg.matmul(): argument 'A' must be Tensor, not {type(A).__name__}. Use tg.tensor(...).")
    return products.matmul(A, B)


def matrix_power(A: Tensor, n: int) -> Tensor:
    """Integer power of a square matrix, by repeated squaring.

    Parameters
    ----------
    A : Tensor, shape (..., m, m)
    n : int
        Negative powers are those of the inverse.

    Returns
    -------
    Tensor, shape (..., m, m)

    Raises
    ------
    RuntimeError
        If the matrices are not square, or `n` is negative and one is singular (`LinAlgError`).

    Examples
    --------
    >>> tg.linalg.matrix_power(tg.tensor([[1.0, 1.0], [0.0, 1.0]]), 5)
    tensor([[1., 5.],
            [0., 1.]])
    """
    if not isinstance(A, Tensor):
        raise TypeError(f"linalg.matrix_power(): argument 'A' must be Tensor, not {type(A).__name__}. Use tg.tensor(...).")
    if isinstance(n, bool) or not hasattr(n, "__index__"):
        raise TypeError(f"linalg_matrix_power(): argument 'n' (position 2) must be int, not {type(n).__name__}")
    data = array_of(A)
    if data.ndim < 2:
        raise ShapeError("linalg.matrix_power: The input tensor A must have at least 2 dimensions.")
    if data.shape[-1] != data.shape[-2]:
        raise ShapeError(
            f"linalg.matrix_power: A must be batches of square matrices, but they are {data.shape[-2]} by {data.shape[-1]} matrices"
        )
    exponent = n.__index__()
    if exponent == 0:
        nothing = elementwise._mul0(A, wrap(np.zeros((), data.dtype)))
        return nothing + wrap(np.eye(data.shape[-1], dtype=data.dtype))
    square = inv(A) if exponent < 0 else A
    exponent = abs(exponent)
    if exponent == 1:
        return square if square is not A else clone(A)
    result = None
    while exponent:
        if exponent & 1:
            result = square if result is None else products.matmul(result, square)
        exponent >>= 1
        if exponent:
            square = products.matmul(square, square)
    assert result is not None
    return result


def multi_dot(tensors: Sequence[Tensor]) -> Tensor:
    """Product of several matrices in the order of multiplication that takes the fewest operations.

    Parameters
    ----------
    tensors : sequence of Tensor
        Two matrices or more, of one dtype. The first and the last may be vectors: a row and a column.

    Returns
    -------
    Tensor

    Raises
    ------
    RuntimeError
        If there are fewer than two, or they do not fit together.

    Examples
    --------
    >>> tg.linalg.multi_dot([tg.ones(2, 3), tg.ones(3, 4), tg.ones(4)])
    tensor([12., 12.])
    """
    tensors = list(tensors)
    if len(tensors) < 2:
        raise RuntimeError(f"multi_dot(): expected at least 2 tensors but got {len(tensors)}")
    arrays = [_checked(t, k, len(tensors)) for k, t in enumerate(tensors)]
    row, column = arrays[0].ndim == 1, arrays[-1].ndim == 1
    factors = list(tensors)
    if row:
        factors[0] = unsqueeze(factors[0], 0)
    if column:
        factors[-1] = unsqueeze(factors[-1], 1)
    _check_chain("multi_dot()", arrays, [array_of(t).shape for t in factors])
    product = _multiplied(factors)
    shape = array_of(product).shape
    return reshape(product, shape[row : 2 - column]) if row or column else product


def _checked(t: Tensor, k: int, count: int) -> Array:
    if not isinstance(t, Tensor):
        raise TypeError(f"multi_dot(): expected Tensor as element {k} in argument 0, but got {type(t).__name__}")
    data = array_of(t)
    if k in (0, count - 1):
        if data.ndim not in (1, 2):
            place = "first" if k == 0 else "last"
            raise ShapeError(f"multi_dot(): the {place} tensor must be 1D or 2D but got {data.ndim}D")
    elif data.ndim != 2:
        raise ShapeError(f"multi_dot(): tensor {k} must be 2D but got {data.ndim}D")
    return data


def _check_chain(name: str, arrays: Sequence[Array], shapes: Sequence[tuple[int, ...]]) -> None:
    for k in range(len(arrays) - 1):
        if arrays[k].dtype != arrays[k + 1].dtype:
            raise RuntimeError(
                f"{name}: all tensors must have the same dtype but tensor {k} is {type_name(arrays[k].dtype)} and tensor {k + 1} "
                f"is {type_name(arrays[k + 1].dtype)}"
            )
        if shapes[k][1] != shapes[k + 1][0]:
            raise ShapeError(
                f"{name}: tensors {k} and {k + 1} with shapes {list(arrays[k].shape)} and {list(arrays[k + 1].shape)} cannot be "
                "multiplied"
            )


def _multiplied(factors: Sequence[Tensor]) -> Tensor:
    terms = list(factors)
    for first, second in _order((array_of(factors[0]).shape[0], *(array_of(t).shape[1] for t in factors))):
        terms.append(products.matmul(terms[first], terms[second]))
    return terms[-1]


@functools.lru_cache(maxsize=256)
def _order(sizes: tuple[int, ...]) -> tuple[tuple[int, int], ...]:
    """Which terms are multiplied, one pair after the other, for the fewest operations; each product stands behind all terms."""
    count = len(sizes) - 1
    cost = [[0] * count for _ in range(count)]
    cut = [[0] * count for _ in range(count)]
    for length in range(1, count):
        for i in range(count - length):
            j = i + length
            cost[i][j], cut[i][j] = min(
                (cost[i][k] + cost[k + 1][j] + sizes[i] * sizes[k + 1] * sizes[j + 1], k) for k in range(i, j)
            )
    pairs: list[tuple[int, int]] = []

    def product(i: int, j: int) -> int:
        if i == j:
            return i
        first, second = product(i, cut[i][j]), product(cut[i][j] + 1, j)
        pairs.append((first, second))
        return count + len(pairs) - 1

    product(0, count - 1)
    return tuple(pairs)


def chain_matmul(*matrices: Tensor) -> Tensor:
    """Product of several matrices in the order of multiplication that takes the fewest operations.

    Parameters
    ----------
    *matrices : Tensor
        One or more, of two dimensions.

    Returns
    -------
    Tensor

    Raises
    ------
    RuntimeError
        If one is not a matrix, or they do not fit together.

    See Also
    --------
    tapegrad.linalg.multi_dot : The same, for a sequence and with vectors at the ends.

    Examples
    --------
    >>> tg.chain_matmul(tg.ones(2, 3), tg.ones(3, 4), tg.ones(4, 1))
    tensor([[12.],
            [12.]])
    """
    for t in matrices:
        if not isinstance(t, Tensor):
            raise TypeError(f"chain_matmul(): expected Tensor operands, but got {type(t).__name__}")
        if array_of(t).ndim != 2:
            raise ShapeError(f"Tensor dimension is {array_of(t).ndim}, expected 2 instead.")
    if len(matrices) == 1:
        return matrices[0]
    return multi_dot(matrices)
