"""Rows of a table chosen by numbers."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tapegrad.arrays.dtypes import type_name
from tapegrad.errors import ShapeError
from tapegrad.ops.flat_places import Places, add_at
from tapegrad.recording.structural import Context, Structural, apply
from tapegrad.tensors.grad_mode import no_grad
from tapegrad.tensors.tensor import Tensor, array_of, wrap

__all__ = ["embedding"]


def embedding(
    input: Tensor,
    weight: Tensor,
    padding_idx: int | None = None,
    max_norm: float | None = None,
    norm_type: float = 2.0,
    scale_grad_by_freq: bool = False,
    sparse: bool = False,
) -> Tensor:
    """The rows of `weight` that `input` numbers.

    Parameters
    ----------
    input : Tensor of int32 or int64, shape (...)
    weight : Tensor, shape (v, d)
    padding_idx : int, optional
        A row that gets no gradient.
    max_norm : float, optional
        Rows that are used and longer than this are shortened to it, in `weight` itself, before they are taken.
    norm_type : float
        Order of that norm.
    scale_grad_by_freq : bool
        Whether the gradient of a row is divided by how often it was used.
    sparse : bool
        Not supported: gradients are dense.

    Returns
    -------
    Tensor, shape (..., d)
        The gradient of a row that occurs several times is the sum.

    Raises
    ------
    IndexError
        If a number is negative or not less than ``v``.
    RuntimeError
        If `input` has another dtype or `weight` another rank.
    AssertionError
        If there is no row `padding_idx`.

    Examples
    --------
    >>> table = tg.tensor([[1.0, 2.0], [3.0, 4.0]], requires_grad=True)
    >>> tg.nn.functional.embedding(tg.tensor([1, 1]), table).sum().backward()
    >>> table.grad
    tensor([[0., 0.],
            [2., 2.]])
    """
    if not isinstance(input, Tensor):
        raise TypeError(f"embedding(): argument 'indices' (position 2) must be Tensor, not {type(input).__name__}")
    numbers, table = array_of(input), array_of(weight)
    if sparse:
        raise NotImplementedError("embedding(): sparse gradients are not supported; leave sparse=True away")
    if numbers.dtype not in (np.int32, np.int64):
        raise RuntimeError(
            "Expected tensor for argument #1 'indices' to have one of the following scalar types: Long, Int; but got "
            f"{type_name(numbers.dtype)} instead (while checking arguments for embedding)"
        )
    if table.ndim != 2:
        raise ShapeError(f"'weight' must be 2-D, but it is {table.ndim}-D")
    count = table.shape[0]
    if padding_idx is not None:
        if not -count <= padding_idx < count:
            raise AssertionError(f"Padding_idx must be within num_embeddings, but got {padding_idx} for {count} rows")
        padding_idx %= count
    if numbers.size and (numbers.min() < 0 or numbers.max() >= count):
        wrong = numbers[(numbers < 0) | (numbers >= count)].reshape(-1)[0]
        raise IndexError(f"index out of range in self: {wrong} with {count} rows")
    kept = numbers.astype(np.int64)  # a copy: the caller may write into theirs
    if max_norm is not None:
        _shorten(weight, kept, max_norm, norm_type)
        table = array_of(weight)
    return apply(_EMBEDDING, (weight,), np.take(table, kept, 0), (padding_idx, scale_grad_by_freq), (wrap(kept),))


def _shorten(weight: Tensor, numbers: np.ndarray[tuple[int, ...], np.dtype[np.int64]], max_norm: float, order: float) -> None:
    used = np.unique(numbers)
    with no_grad():
        rows = array_of(weight)[used]
        lengths = np.linalg.norm(rows, order, axis=1, keepdims=True)
        factors = np.where(lengths > max_norm, max_norm / (lengths + 1e-7), 1.0)
        weight[wrap(used)] = wrap((rows * factors).astype(rows.dtype))


def _embedding_vjp(g: Tensor, ctx: Context) -> Sequence[Tensor | None]:
    padding_idx, by_frequency = ctx.attrs
    numbers = array_of(ctx.extra[0])
    if padding_idx is not None:
        g = g.masked_fill(wrap((numbers == padding_idx)[..., None]), 0.0)
    if by_frequency:
        often = np.bincount(numbers.reshape(-1), minlength=1)[numbers]
        g = g / wrap(often[..., None].astype(array_of(g).dtype))
    shape = ctx.shapes[0]
    return (add_at(g, Places(numbers.reshape(-1), shape[1], (*numbers.shape, shape[1])), shape),)


_EMBEDDING = Structural("EmbeddingBackward0", ((),), _embedding_vjp)
