"""Tensors with a margin: of a constant, or of elements reflected, repeated or wrapped around."""

from __future__ import annotations

import math
from collections.abc import Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from tapegrad.arrays.sizes import sizes
from tapegrad.errors import ShapeError
from tapegrad.ops.flat_places import Places, take_at, taking
from tapegrad.ops.index_keys import FULL
from tapegrad.ops.indexing import getitem
from tapegrad.recording.mapped_copies import KEPT_MAPS, CopyMap, placed
from tapegrad.tensors.tensor import Tensor, array_of

__all__ = ["pad"]

Array = np.ndarray[Any, Any]
Margins = list[tuple[int, int]]

_REFLECT = [taking(f"ReflectionPad{k}DBackward0") for k in (1, 2, 3)]
_REPLICATE = [taking(f"ReplicationPad{k}DBackward0") for k in (1, 2, 3)]
_CIRCULAR = [taking("CircularPadBackward0")] * 3
_MODES = {"reflect": _REFLECT, "replicate": _REPLICATE, "circular": _CIRCULAR}


def pad(input: Tensor, pad: Sequence[int], mode: str = "constant", value: float | None = None) -> Tensor:
    """A copy with a margin in the last dimensions.

    Parameters
    ----------
    input : Tensor
    pad : sequence of int
        Numbers of elements before and after in the last dimension, then in the one before it, and so on. Negative ones cut off.
    mode : {"constant", "reflect", "replicate", "circular"}
        What the margin is made of. All but the first are for the last one to three dimensions, with one or two before them.
    value : number, optional
        The constant, zero by default.

    Returns
    -------
    Tensor

    Raises
    ------
    RuntimeError
        If the number of margins is odd or does not fit the tensor, more is cut off than there is, or a margin is wider than
        its mode allows.
    NotImplementedError
        For another mode or number of dimensions.

    Examples
    --------
    >>> tg.nn.functional.pad(tg.tensor([[1.0, 2.0]]), (1, 2))
    tensor([[0., 1., 2., 0., 0.]])
    >>> tg.nn.functional.pad(tg.tensor([[1.0, 2.0, 3.0]]), (2, 0), mode="reflect")
    tensor([[3., 2., 1., 2., 3.]])
    """
    numbers = sizes((pad,), "pad")
    shape = array_of(input).shape
    if len(numbers) % 2:
        raise ShapeError(f"Padding length must be divisible by 2, got {list(numbers)}")
    if len(numbers) > 2 * len(shape):
        raise ShapeError(
            "Padding length should be less than or equal to two times the input dimension but got padding length "
            f"{len(numbers)} and input of dimension {len(shape)}"
        )
    margins = [(numbers[2 * k], numbers[2 * k + 1]) for k in reversed(range(len(numbers) // 2))]
    if mode == "constant":
        return _constant(input, margins, 0.0 if value is None else value)
    if value is not None and value != 0:
        raise RuntimeError(f'Padding mode "{mode}" doesn\'t take in value argument')
    if mode not in _MODES:
        raise NotImplementedError(f"Unrecognised padding mode {mode}")
    if not margins or not len(margins) < len(shape) <= len(margins) + 2 or len(margins) > 3:
        raise NotImplementedError(f"Padding size {len(numbers)} is not supported for {len(shape)}D input tensor.")
    return _by_index(input, margins, mode)


def _constant(x: Tensor, margins: Margins, value: float) -> Tensor:
    ahead = (FULL,) * (array_of(x).ndim - len(margins))
    if any(before < 0 or after < 0 for before, after in margins):
        extents = array_of(x).shape[len(ahead) :]
        for (before, after), extent in zip(margins, extents, strict=True):
            if extent + min(before, 0) + min(after, 0) < 0:
                raise ShapeError(
                    f"pad cuts off more than there is: {before} and {after} of {extent} (narrow(): length must be non-negative)"
                )
        kept = (slice(max(-before, 0), extent + min(after, 0)) for (before, after), extent in zip(margins, extents, strict=True))
        x = getitem(x, (*ahead, *kept))
        margins = [(max(before, 0), max(after, 0)) for before, after in margins]
    data = array_of(x)
    by = _placing(data.shape, tuple(margins))
    return placed(x, by, np.full(by.shape, value, data.dtype))


@lru_cache(KEPT_MAPS)
def _placing(shape: tuple[int, ...], margins: tuple[tuple[int, int], ...]) -> CopyMap:
    """Where the elements of a tensor stand within its margins."""
    count = len(shape) - len(margins)
    inner = shape[count:]
    target = shape[:count] + tuple(before + n + after for (before, after), n in zip(margins, inner, strict=True))
    within: Any = (FULL,) * count + tuple(slice(before, before + n) for (before, _), n in zip(margins, inner, strict=True))
    return CopyMap("ConstantPadNdBackward0", target, lambda array: array[(*within, Ellipsis)], target)


def _by_index(x: Tensor, margins: Margins, mode: str) -> Tensor:
    data = array_of(x)
    found = _kept_places if data.size <= KEPT else _kept_large_places if data.size <= KEPT_LARGE else _places
    return take_at(x, found(data.shape, tuple(margins), mode), _MODES[mode][len(margins) - 1])


# Elements of the largest tensor whose places are kept for the next time: those of many, and those of the last two.
KEPT, KEPT_LARGE = 4096, 1 << 18


def _places(shape: tuple[int, ...], margins: tuple[tuple[int, int], ...], mode: str) -> Places:
    first = len(shape) - len(margins)
    at: Any = np.arange(math.prod(shape[:first])).reshape(shape[:first])
    for k, (before, after) in enumerate(margins):
        extent = shape[first + k]
        _check_margin(before, after, extent, first + k, shape, mode)
        if mode == "circular":  # what is cut off does not come in at the other end
            kept = np.arange(max(-before, 0), extent + min(after, 0))
            index = kept[np.arange(-max(before, 0), len(kept) + max(after, 0)) % max(len(kept), 1)]
        else:
            index = np.arange(-before, extent + after)
            index = np.clip(index, 0, extent - 1) if mode == "replicate" else extent - 1 - np.abs(extent - 1 - np.abs(index))
        at = at[..., None] * extent + index
    return Places(at.reshape(-1), 1, at.shape)


_kept_places, _kept_large_places = lru_cache(maxsize=64)(_places), lru_cache(maxsize=2)(_places)


def _check_margin(before: int, after: int, extent: int, dim: int, shape: tuple[int, ...], mode: str) -> None:
    widest = max(before, after)
    if mode == "circular" and widest > extent:
        raise ShapeError(
            f"Padding value causes wrapping around more than once: {before} and {after} of {extent} in dimension {dim}"
        )
    if mode == "reflect" and widest >= extent:
        raise ShapeError(
            "Padding size should be less than the corresponding input dimension, but got: padding "
            f"({before}, {after}) at dimension {dim} of input {list(shape)}"
        )
    if (before or after) and (extent + before + after <= 0 or extent == 0):
        raise ShapeError(f"input of size {list(shape)} is too small for padding ({before}, {after}) in dimension {dim}")
