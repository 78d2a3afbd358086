"""Products of tensors over whole dimensions: tensordot, inner, kron."""

from __future__ import annotations

import functools
from typing import Any, NamedTuple

from tapegrad.arrays.subscripts import Labels
from tapegrad.errors import ShapeError
from tapegrad.ops.contractions import contract
from tapegrad.ops.products import matmul
from tapegrad.ops.shaping import reshape
from tapegrad.recording.axes import axes, axis
from tapegrad.tensors.tensor import Tensor, array_of, as_operand

__all__ = ["inner", "kron", "tensordot"]


def tensordot(a: Tensor, b: Tensor, dims: Any = 2) -> Tensor:
    """Sum of products over several dimensions of two tensors.

    Parameters
    ----------
    a, b : Tensor
        Of one dtype.
    dims : int, or pair of sequences of int
        How many of the last dimensions of `a` go together with the first of `b`; or which ones of each. Sizes of one
        broadcast.

    Returns
    -------
    Tensor
        With the other dimensions of `a` and then those of `b`.

    Raises
    ------
    RuntimeError
        If the dimensions do not go together, or the dtypes differ.

    Examples
    --------
    >>> tg.tensordot(tg.ones(2, 3), tg.ones(3, 4), dims=1).shape
    tapegrad.Size([2, 4])
    """
    b = as_operand(b, a)
    x, y = array_of(a), array_of(b)
    first, second, labels, output = _paired_dims(dims, x.ndim, y.ndim)
    if x.dtype != y.dtype:
        raise RuntimeError("both inputs should have same dtype; convert one")
    for p, q in zip(first, second, strict=True):
        m, n = x.shape[p], y.shape[q]
        if m != n and 1 not in (m, n):
            raise ShapeError(
                f"contracted dimensions need to match, but first has size {m} in dim {p} and second has size {n} in dim {q}"
            )
    return contract((a, b), labels, output)


class _Pairing(NamedTuple):
    """Which dimensions of two operands go together, and what that makes of them: labels of all, and of the result's."""

    first: tuple[int, ...]
    second: tuple[int, ...]
    labels: tuple[Labels, Labels]
    output: Labels


@functools.lru_cache(maxsize=1024)
def _pairing(first: tuple[int, ...], second: tuple[int, ...], rank: int, other: int) -> _Pairing:
    xs = list(range(rank))
    ys = list(range(rank, rank + other))
    for p, q in zip(first, second, strict=True):
        ys[q] = xs[p]
    output = [k for p, k in enumerate(xs) if p not in first] + [k for q, k in enumerate(ys) if q not in second]
    return _Pairing(first, second, (tuple(xs), tuple(ys)), tuple(output))


def _paired_dims(dims: Any, rank: int, other: int) -> _Pairing:
    if isinstance(dims, Tensor):
        dims = dims.tolist()
    if isinstance(dims, int):
        if dims < 0:
            raise RuntimeError(f"tensordot expects dims >= 0, but got dims={dims}")
        if dims > min(rank, other):
            raise RuntimeError(f"tensordot expects dims < ndim_a or ndim_b, but got dims={dims}")
        return _pairing(tuple(range(rank - dims, rank)), tuple(range(dims)), rank, other)
    try:
        one, two = ([d] if isinstance(d, int) else list(d) for d in dims)
    except (TypeError, ValueError):
        raise RuntimeError(f"tensordot expects dims to be int or a pair of lists of int, but got dims={dims!r}") from None
    if len(one) != len(two):
        raise RuntimeError(f"both dimension lists should have same length, got {one} and {two}")
    if len(one) > 1:
        for given, ndim in ((one, rank), (two, other)):
            axes(given, ndim)  # raises for dimensions that appear twice
    return _pairing(tuple([axis(d, rank) for d in one]), tuple([axis(d, other) for d in two]), rank, other)


def inner(x: Tensor, other: Tensor) -> Tensor:
    """Sum of products over the last dimensions of two tensors; with a 0-d tensor, the product.

    Parameters
    ----------
    x : Tensor, shape (..., k)
    other : Tensor, shape (..., k)
        Of the same dtype.

    Returns
    -------
    Tensor
        With the other dimensions of `x` and then those of `other`.

    Raises
    ------
    RuntimeError
        If the last sizes or the dtypes differ.

    Examples
    --------
    >>> tg.inner(tg.tensor([1.0, 2.0]), tg.tensor([[1.0, 0.0], [1.0, 1.0]]))
    tensor([1., 3.])
    """
    other = as_operand(other, x)
    a, b = array_of(x), array_of(other)
    if not a.ndim or not b.ndim:
        return x * other
    if a.shape[-1] != b.shape[-1]:
        raise ShapeError(
            f"inner() the last dimension must match on both input tensors but got shapes {list(a.shape)} and {list(b.shape)}"
        )
    if a.dtype != b.dtype:
        raise RuntimeError("both inputs should have same dtype; convert one")
    if a.ndim == b.ndim == 1 and a.dtype.kind == "f":
        return matmul(x, other)
    return tensordot(x, other, dims=([-1], [-1]))


def kron(x: Tensor, other: Tensor) -> Tensor:
    """Kronecker product: every element of `x` times the whole of `other`, as blocks of one tensor.

    Parameters
    ----------
    x, other : Tensor
        The one with fewer dimensions gets leading dimensions of size one.

    Returns
    -------
    Tensor
        Each size is the product of the two sizes.

    Examples
    --------
    >>> tg.kron(tg.tensor([1.0, 2.0]), tg.tensor([1.0, 10.0]))
    tensor([ 1., 10.,  2., 20.])
    """
    other = as_operand(other, x)
    rows, columns = array_of(x).shape, array_of(other).shape
    extra = len(rows) - len(columns)
    pairs = zip((1,) * -extra + rows, (1,) * extra + columns, strict=True)
    outer, block, whole = [], [], []
    for n, m in pairs:
        outer += [n, 1]
        block += [1, m]
        whole.append(n * m)
    return reshape(reshape(x, outer) * reshape(other, block), whole)
