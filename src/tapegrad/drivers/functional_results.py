"""Matrices and columns of derivatives as the tensors that `torch.autograd.functional` gives, and tensors as columns."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tapegrad.drivers.derivatives import cut, joined, sizes_of
from tapegrad.tensors.tensor import Tensor, array_of, wrap

__all__ = ["as_tensor", "blocks_of", "column_of", "pieces_of"]


def blocks_of(matrix: np.ndarray, outputs: Sequence[Tensor], leaves: Sequence[Tensor]) -> list[list[Tensor]]:
    """A matrix cut into one tensor for each output and leaf, of the leaf's dtype."""
    bands = zip(cut(matrix, sizes_of(outputs)), outputs, strict=True)
    return [
        [as_tensor(block, (*y.shape, *x.shape), x) for block, x in zip(cut(band, sizes_of(leaves), axis=1), leaves, strict=True)]
        for band, y in bands
    ]


def as_tensor(values: np.ndarray, shape: tuple[int, ...], like: Tensor) -> Tensor:
    """Values copied, of the dtype of another tensor."""
    return wrap(np.array(values, array_of(like).dtype).reshape(shape))


def column_of(vectors: Sequence[Tensor]) -> np.ndarray:
    """The elements of tensors one after the other as a matrix of one column, which may be their memory."""
    arrays = [array_of(v) for v in vectors]
    whole = arrays[0].reshape(-1) if len(arrays) == 1 else joined(arrays)
    return whole[:, None]


def pieces_of(column: np.ndarray, like: Sequence[Tensor]) -> list[Tensor]:
    """A matrix of one column cut into tensors of the shapes and dtypes of others."""
    parts = zip(cut(column[:, 0], sizes_of(like)), like, strict=True)
    if len(like) == 1:  # then there is nobody to share memory with
        return [wrap(part.astype(array_of(x).dtype, copy=False).reshape(x.shape)) for part, x in parts]
    return [as_tensor(part, x.shape, x) for part, x in parts]
