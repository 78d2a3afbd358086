"""Channels that become pixels, pixels that become channels, and channels in another order."""

from __future__ import annotations

from functools import lru_cache

from tapegrad.errors import ShapeError
from tapegrad.ops.shaping import reshape
from tapegrad.ops.transposing import permute
from tapegrad.recording.mapped_copies import KEPT_MAPS, copied, rearrangement
from tapegrad.tensors.tensor import Tensor, array_of

__all__ = ["channel_shuffle", "pixel_shuffle", "pixel_unshuffle"]

Shape = tuple[int, ...]


def pixel_shuffle(input: Tensor, upscale_factor: int) -> Tensor:
    """A larger image, each block of which is made of the channels of one pixel.

    Parameters
    ----------
    input : Tensor, shape (..., c * r * r, h, w)
    upscale_factor : int
        The side `r` of a block.

    Returns
    -------
    Tensor, shape (..., c, h * r, w * r)

    Raises
    ------
    RuntimeError
        If there are fewer than three dimensions, the factor is not positive, or the channels do not fit.

    Examples
    --------
    >>> tg.nn.functional.pixel_shuffle(tg.tensor([[[1.0]], [[2.0]], [[3.0]], [[4.0]]]), 2)
    tensor([[[1., 2.],
             [3., 4.]]])
    """
    *batch, channels, height, width = _image("pixel_shuffle", input)
    r = _factor("pixel_shuffle", "upscale_factor", upscale_factor)
    if channels % (r * r):
        raise ShapeError(
            "pixel_shuffle expects its input's 'channel' dimension to be divisible by the square of upscale_factor, but "
            f"input.size(-3)={channels} is not divisible by {r * r}"
        )
    n = len(batch)
    apart, target = (*batch, channels // (r * r), r, r, height, width), (*batch, channels // (r * r), height * r, width * r)
    return _rearranged("PixelShuffleBackward0", input, apart, (*range(n), n, n + 3, n + 1, n + 4, n + 2), target)


def pixel_unshuffle(input: Tensor, downscale_factor: int) -> Tensor:
    """The inverse of `pixel_shuffle`: a smaller image, each pixel of which has the pixels of a block as channels.

    Parameters
    ----------
    input : Tensor, shape (..., c, h * r, w * r)
    downscale_factor : int
        The side `r` of a block.

    Returns
    -------
    Tensor, shape (..., c * r * r, h, w)

    Raises
    ------
    RuntimeError
        If there are fewer than three dimensions, the factor is not positive, or height or width do not fit.
    """
    *batch, channels, height, width = _image("pixel_unshuffle", input)
    r = _factor("pixel_unshuffle", "downscale_factor", downscale_factor)
    for name, dim, extent in (("height", -2, height), ("width", -1, width)):
        if extent % r:
            raise ShapeError(
                f"pixel_unshuffle expects {name} to be divisible by downscale_factor, but input.size({dim})={extent} is not "
                f"divisible by {r}"
            )
    n = len(batch)
    apart, target = (*batch, channels, height // r, r, width // r, r), (*batch, channels * r * r, height // r, width // r)
    return _rearranged("PixelUnshuffleBackward0", input, apart, (*range(n), n, n + 2, n + 4, n + 1, n + 3), target)


def channel_shuffle(input: Tensor, groups: int) -> Tensor:
    """The first channel of each group, then the second of each, and so on.

    Parameters
    ----------
    input : Tensor, shape (n, c, ...), with at least one dimension behind the channels
    groups : int
        How many groups the channels are in.

    Raises
    ------
    RuntimeError
        If there are fewer than three dimensions, or the channels do not fit.

    Examples
    --------
    >>> tg.nn.functional.channel_shuffle(tg.arange(4).reshape(1, 4, 1), 2)
    tensor([[[0],
             [2],
             [1],
             [3]]])
    """
    shape = array_of(input).shape
    if len(shape) < 3:
        raise ShapeError(f"channel_shuffle expects input with > 2 dims, but got input with sizes {list(shape)}")
    if groups < 1:
        raise ShapeError(f"Number of groups to divide channels in must be positive. Value of groups:{groups}")
    if shape[1] % groups:
        raise ShapeError(f"Number of channels must be divisible by groups. Got {shape[1]} channels and {groups} groups.")
    apart = shape[0], groups, shape[1] // groups, *shape[2:]
    return _rearranged("ChannelShuffleBackward0", input, apart, (0, 2, 1, *range(3, len(shape) + 1)), shape)


_kept_rearrangement = lru_cache(KEPT_MAPS)(rearrangement)


def _rearranged(name: str, x: Tensor, apart: Shape, order: Shape, target: Shape) -> Tensor:
    """A copy with dimensions taken apart, exchanged and put together, or a view where the elements stay in their places."""
    if {*map(type, target)} == {int} == {*map(type, apart)}:
        by = _kept_rearrangement(name, array_of(x).shape, apart, order, target)
        if by is not None:
            return copied(x, by)
    return reshape(permute(reshape(x, apart), order), target)


def _image(name: str, input: Tensor) -> tuple[int, ...]:
    shape = array_of(input).shape
    if len(shape) < 3:
        raise ShapeError(f"{name} expects input to have at least 3 dimensions, but got input with {len(shape)} dimension(s)")
    return shape


def _factor(name: str, argument: str, factor: int) -> int:
    if factor < 1:
        raise ShapeError(f"{name} expects a positive {argument}, but got {factor}")
    return factor
