"""Modules that change the shape of their input, or nothing."""

from __future__ import annotations

from typing import Any

from tapegrad.nn import functional
from tapegrad.nn.module import Module
from tapegrad.ops.shaping import flatten
from tapegrad.recording.axes import axis
from tapegrad.tensors.tensor import Tensor, array_of

__all__ = ["ChannelShuffle", "Flatten", "Fold", "Identity", "PixelShuffle", "PixelUnshuffle", "Unflatten", "Unfold"]


class Identity(Module):
    """The input itself; arguments are ignored."""

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()

    def forward(self, input: Any) -> Any:
        """``input``."""
        return input


class Flatten(Module):
    """Several dimensions merged into one.

    Parameters
    ----------
    start_dim, end_dim : int
        The first and the last of them; by default all but the batch.

    Examples
    --------
    >>> tg.nn.Flatten()(tg.ones(2, 3, 4)).shape
    tapegrad.Size([2, 12])
    """

    def __init__(self, start_dim: int = 1, end_dim: int = -1) -> None:
        super().__init__()
        self.start_dim, self.end_dim = start_dim, end_dim

    def forward(self, input: Tensor) -> Tensor:
        """The same elements."""
        return flatten(input, self.start_dim, self.end_dim)

    def extra_repr(self) -> str:
        """The dimensions."""
        return f"start_dim={self.start_dim}, end_dim={self.end_dim}"


class Unflatten(Module):
    """One dimension split into several.

    Parameters
    ----------
    dim : int
    unflattened_size : sequence of int
        Their sizes; one may be -1, which is then inferred.

    Examples
    --------
    >>> tg.nn.Unflatten(1, (3, -1))(tg.ones(2, 12)).shape
    tapegrad.Size([2, 3, 4])
    """

    def __init__(self, dim: int, unflattened_size: Any) -> None:
        super().__init__()
        if not isinstance(unflattened_size, (tuple, list)) or not all(isinstance(size, int) for size in unflattened_size):
            raise TypeError(f"unflattened_size must be a tuple of ints, but found {unflattened_size!r}")
        self.dim, self.unflattened_size = dim, tuple(unflattened_size)

    def forward(self, input: Tensor) -> Tensor:
        """The same elements."""
        shape = array_of(input).shape
        position = axis(self.dim, len(shape))
        return input.reshape((*shape[:position], *self.unflattened_size, *shape[position + 1 :]))

    def extra_repr(self) -> str:
        """The dimension and the sizes."""
        return f"dim={self.dim}, unflattened_size={self.unflattened_size}"


class PixelShuffle(Module):
    """Channels that become the pixels of blocks: `functional.pixel_shuffle` as a module.

    Parameters
    ----------
    upscale_factor : int
        The side of a block.

    Examples
    --------
    >>> tg.nn.PixelShuffle(2)(tg.ones(1, 8, 3, 3)).shape
    tapegrad.Size([1, 2, 6, 6])
    """

    def __init__(self, upscale_factor: int) -> None:
        super().__init__()
        self.upscale_factor = upscale_factor

    def forward(self, input: Tensor) -> Tensor:
        """The larger image."""
        return functional.pixel_shuffle(input, self.upscale_factor)

    def extra_repr(self) -> str:
        """The factor."""
        return f"upscale_factor={self.upscale_factor}"


class PixelUnshuffle(Module):
    """The pixels of blocks that become channels: `functional.pixel_unshuffle` as a module.

    Parameters
    ----------
    downscale_factor : int
        The side of a block.

    Examples
    --------
    >>> tg.nn.PixelUnshuffle(2)(tg.ones(1, 2, 6, 6)).shape
    tapegrad.Size([1, 8, 3, 3])
    """

    def __init__(self, downscale_factor: int) -> None:
        super().__init__()
        self.downscale_factor = downscale_factor

    def forward(self, input: Tensor) -> Tensor:
        """The smaller image."""
        return functional.pixel_unshuffle(input, self.downscale_factor)

    def extra_repr(self) -> str:
        """The factor."""
        return f"downscale_factor={self.downscale_factor}"


class ChannelShuffle(Module):
    """Channels in another order: `functional.channel_shuffle` as a module.

    Parameters
    ----------
    groups : int
        How many groups the channels are in.

    Examples
    --------
    >>> tg.nn.ChannelShuffle(2)(tg.arange(4).reshape(1, 4, 1)).reshape(4)
    tensor([0, 2, 1, 3])
    """

    def __init__(self, groups: int) -> None:
        super().__init__()
        self.groups = groups

    def forward(self, input: Tensor) -> Tensor:
        """The same channels."""
        return functional.channel_shuffle(input, self.groups)

    def extra_repr(self) -> str:
        """The number of groups."""
        return f"groups={self.groups}"


class Unfold(Module):
    """The elements under every window as columns: `functional.unfold` as a module.

    Parameters
    ----------
    kernel_size, dilation, padding, stride : int or pair of int
        As for the function.

    Examples
    --------
    >>> tg.nn.Unfold(2)(tg.ones(1, 3, 4, 4)).shape
    tapegrad.Size([1, 12, 9])
    """

    def __init__(self, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> None:
        super().__init__()
        self.kernel_size, self.dilation, self.padding, self.stride = kernel_size, dilation, padding, stride

    def forward(self, input: Tensor) -> Tensor:
        """The columns."""
        return functional.unfold(input, self.kernel_size, self.dilation, self.padding, self.stride)

    def extra_repr(self) -> str:
        """The windows."""
        return f"kernel_size={self.kernel_size}, dilation={self.dilation}, padding={self.padding}, stride={self.stride}"


class Fold(Module):
    """Columns added back into the places of their windows: `functional.fold` as a module.

    Parameters
    ----------
    output_size, kernel_size, dilation, padding, stride : int or pair of int
        As for the function.

    Examples
    --------
    >>> tg.nn.Fold(4, 2)(tg.ones(1, 12, 9)).shape
    tapegrad.Size([1, 3, 4, 4])
    """

    def __init__(self, output_size: Any, kernel_size: Any, dilation: Any = 1, padding: Any = 0, stride: Any = 1) -> None:
        super().__init__()
        self.output_size = output_size
        self.kernel_size, self.dilation, self.padding, self.stride = kernel_size, dilation, padding, stride

    def forward(self, input: Tensor) -> Tensor:
        """The image."""
        return functional.fold(input, self.output_size, self.kernel_size, self.dilation, self.padding, self.stride)

    def extra_repr(self) -> str:
        """The image and the windows."""
        return (
            f"output_size={self.output_size}, kernel_size={self.kernel_size}, dilation={self.dilation}, padding={self.padding}, "
            f"stride={self.stride}"
        )
