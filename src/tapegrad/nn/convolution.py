"""Convolutions with learned weights, over one, two or three spatial dimensions."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from tapegrad.nn import functional, init
from tapegrad.nn.dimensions import Spatial
from tapegrad.nn.functional.spatial_sizes import Sizes, per_dimension
from tapegrad.nn.parameter import Parameter
from tapegrad.tensors.factories import empty
from tapegrad.tensors.tensor import Tensor, array_of, wrap

__all__ = ["Conv1d", "Conv2d", "Conv3d", "ConvTranspose1d", "ConvTranspose2d", "ConvTranspose3d"]

Numbers = int | tuple[int, ...]

# How NumPy names the ways to continue an array.
_MODES = {"reflect": "reflect", "replicate": "edge", "circular": "wrap"}


class _Convolution(Spatial):
    """What convolutions and transposed ones have in common."""

    weight: Parameter
    bias: Parameter | None

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Numbers,
        stride: Numbers,
        padding: Numbers | str,
        dilation: Numbers,
        output_padding: Numbers,
        groups: int,
        bias: bool,
        padding_mode: str,
        dtype: Any,
        transposed: bool,
    ) -> None:
        super().__init__()
        if groups <= 0:
            raise ValueError("groups must be a positive integer")
        for what, count in (("in_channels", in_channels), ("out_channels", out_channels)):
            if count % groups:
                raise ValueError(f"{what} must be divisible by groups, but got {count} and {groups}")
        modes = ("zeros",) if transposed else ("zeros", *_MODES)
        if padding_mode not in modes:
            raise ValueError(f"padding_mode must be one of {modes}, but got padding_mode='{padding_mode}'")
        if isinstance(padding, str):
            if padding not in ("same", "valid"):
                raise ValueError(f"Invalid padding string '{padding}', should be one of 'valid', 'same'")
            if padding == "same" and any(step != 1 for step in self._numbers("stride", stride)):
                raise ValueError("padding='same' is not supported for strided convolutions")
        self.in_channels, self.out_channels, self.groups = in_channels, out_channels, groups
        self.kernel_size = self._numbers("kernel_size", kernel_size)
        self.stride = self._numbers("stride", stride)
        self.padding = padding if isinstance(padding, str) else self._numbers("padding", padding)
        self.dilation = self._numbers("dilation", dilation)
        self.output_padding = self._numbers("output_padding", output_padding)
        self.padding_mode = padding_mode
        outer, inner = (in_channels, out_channels) if transposed else (out_channels, in_channels)
        self.weight = Parameter(empty(outer, inner // groups, *self.kernel_size, dtype=dtype))
        if bias:
            self.bias = Parameter(empty(out_channels, dtype=dtype))
        else:
            self.register_parameter("bias", None)
        self.reset_parameters()

    def _numbers(self, what: str, value: Numbers) -> Sizes:
        return per_dimension(value, self._dimensions, f"{what} must be one int or a tuple of {self._dimensions}")

    def reset_parameters(self) -> None:
        """Draw the parameters anew."""
        shape = array_of(self.weight).shape
        fan = shape[1] * math.prod(shape[2:])
        bound = 1.0 / math.sqrt(fan) if fan else 0.0
        init.uniform_(self.weight, -bound, bound)
        if self.bias is not None:
            init.uniform_(self.bias, -bound, bound)

    def extra_repr(self) -> str:
        """Channels, window, and what is not usual."""
        parts = [f"{self.in_channels}, {self.out_channels}", f"kernel_size={self.kernel_size}", f"stride={self.stride}"]
        if self.padding != (0,) * self._dimensions:
            parts.append(f"padding={self.padding}")
        if self.dilation != (1,) * self._dimensions:
            parts.append(f"dilation={self.dilation}")
        if self.output_padding != (0,) * self._dimensions:
            parts.append(f"output_padding={self.output_padding}")
        if self.groups != 1:
            parts.append(f"groups={self.groups}")
        if self.bias is None:
            parts.append("bias=False")
        if self.padding_mode != "zeros":
            parts.append(f"padding_mode={self.padding_mode}")
        return ", ".join(parts)


class _Forward(_Convolution):
    """A convolution of {thing} with a learned weight; see `functional.conv{n}d`.

    Parameters
    ----------
    in_channels, out_channels : int
    kernel_size : {number}
        Elements in a window.
    stride, padding, dilation, groups
        As for the function.
    bias : bool
        Whether there is a bias.
    padding_mode : "zeros", "reflect", "replicate" or "circular"
        What the padding is made of.
    dtype : dtype, optional
        Floating dtype of the parameters; the default float if not given.

    Attributes
    ----------
    weight : Parameter, shape ``(out_channels, in_channels / groups, *kernel_size)``
    bias : Parameter, shape (out_channels,), or None

    Notes
    -----
    Both start uniform in ``(-b, b)`` with ``b = 1 / sqrt(fan_in)``, the fan being the elements of a window.
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Numbers,
        stride: Numbers = 1,
        padding: Numbers | str = 0,
        dilation: Numbers = 1,
        groups: int = 1,
        bias: bool = True,
        padding_mode: str = "zeros",
        dtype: Any = None,
    ) -> None:
        super().__init__(
            in_channels, out_channels, kernel_size, stride, padding, dilation, 0, groups, bias, padding_mode, dtype, False
        )

    def forward(self, input: Tensor) -> Tensor:
        """The convolution of ``input`` of shape ``(n, in_channels, ...)`` or ``(in_channels, ...)``."""
        padding = self.padding
        if self.padding_mode != "zeros":
            input, padding = self._continued(input), (0,) * self._dimensions
        convolve = getattr(functional, f"conv{self._dimensions}d")
        return convolve(input, self.weight, self.bias, self.stride, padding, self.dilation, self.groups)

    def _continued(self, input: Tensor) -> Tensor:
        """`input` with elements from elsewhere in it around it."""
        for k in range(self._dimensions):
            if isinstance(self.padding, str):
                both = self.dilation[k] * (self.kernel_size[k] - 1) if self.padding == "same" else 0
                around = both // 2, both - both // 2
            else:
                around = self.padding[k], self.padding[k]
            position = array_of(input).ndim - self._dimensions + k
            extent = array_of(input).shape[position]
            if max(around) > extent - (self.padding_mode == "reflect") and self.padding_mode != "replicate":
                raise RuntimeError(
                    f"padding {around} is too large for {self.padding_mode} padding of dimension {position} of input of size "
                    f"{list(array_of(input).shape)}"
                )
            places: Any = np.pad(np.arange(extent), around, mode=_MODES[self.padding_mode])  # type: ignore[call-overload]
            input = input.index_select(position, wrap(places))
        return input


class Conv1d(_Forward, dimensions=1):
    """Of signals.

    Examples
    --------
    >>> layer = tg.nn.Conv1d(2, 3, 3, padding="same")
    >>> layer
    Conv1d(2, 3, kernel_size=(3,), stride=(1,), padding=same)
    >>> layer(tg.ones(1, 2, 5)).shape
    tapegrad.Size([1, 3, 5])
    """


class Conv2d(_Forward, dimensions=2):
    """Of images.

    Examples
    --------
    >>> tg.nn.Conv2d(1, 4, 3, stride=2)(tg.ones(1, 1, 9, 7)).shape
    tapegrad.Size([1, 4, 4, 3])
    """


class Conv3d(_Forward, dimensions=3):
    """Of volumes.

    Examples
    --------
    >>> tg.nn.Conv3d(1, 4, (1, 3, 3))(tg.ones(1, 1, 4, 5, 6)).shape
    tapegrad.Size([1, 4, 4, 3, 4])
    """


class _Transposed(_Convolution):
    """The transpose of a convolution of {thing}; see `functional.conv_transpose{n}d`.

    Parameters
    ----------
    in_channels, out_channels : int
    kernel_size : {number}
        Elements in a window.
    stride, padding, output_padding, groups
        As for the function.
    bias : bool
        Whether there is a bias.
    dilation : int
        As for the function.
    padding_mode : "zeros"
    dtype : dtype, optional
        Floating dtype of the parameters; the default float if not given.

    Attributes
    ----------
    weight : Parameter, shape ``(in_channels, out_channels / groups, *kernel_size)``
    bias : Parameter, shape (out_channels,), or None
    """

    def __init__(
        self,
        in_channels: int,
        out_channels: int,
        kernel_size: Numbers,
        stride: Numbers = 1,
        padding: Numbers = 0,
        output_padding: Numbers = 0,
        groups: int = 1,
        bias: bool = True,
        dilation: Numbers = 1,
        padding_mode: str = "zeros",
        dtype: Any = None,
    ) -> None:
        super().__init__(
            in_channels,
            out_channels,
            kernel_size,
            stride,
            padding,
            dilation,
            output_padding,
            groups,
            bias,
            padding_mode,
            dtype,
            True,
        )

    def forward(self, input: Tensor, output_size: Any = None) -> Tensor:
        """The transposed convolution; `output_size` chooses among the sizes that a stride leaves open."""
        spread = getattr(functional, f"conv_transpose{self._dimensions}d")
        more = self.output_padding if output_size is None else self._output_padding(input, tuple(output_size))
        return spread(input, self.weight, self.bias, self.stride, self.padding, more, self.groups, self.dilation)

    def _output_padding(self, input: Tensor, wanted: Sizes) -> Sizes:
        wanted = wanted[-self._dimensions :] if len(wanted) in (self._dimensions + 1, self._dimensions + 2) else wanted
        if len(wanted) != self._dimensions or isinstance(self.padding, str):
            raise ValueError(f"output_size must have {self._dimensions} or {self._dimensions + 2} elements (got {len(wanted)})")
        extents = array_of(input).shape[-self._dimensions :]
        numbers = zip(extents, self.stride, self.padding, self.dilation, self.kernel_size, strict=True)
        least = tuple((n - 1) * s - 2 * p + d * (k - 1) + 1 for n, s, p, d, k in numbers)
        most = tuple(n + s - 1 for n, s in zip(least, self.stride, strict=True))
        if any(not low <= size <= high for low, size, high in zip(least, wanted, most, strict=True)):
            raise ValueError(
                f"requested an output size of {list(wanted)}, but valid sizes range from {list(least)} to {list(most)} (for an "
                f"input of {list(extents)})"
            )
        return tuple(size - low for size, low in zip(wanted, least, strict=True))


class ConvTranspose1d(_Transposed, dimensions=1):
    """Of signals.

    Examples
    --------
    >>> tg.nn.ConvTranspose1d(2, 3, 3, stride=2)(tg.ones(1, 2, 5)).shape
    tapegrad.Size([1, 3, 11])
    """


class ConvTranspose2d(_Transposed, dimensions=2):
    """Of images.

    Examples
    --------
    >>> tg.nn.ConvTranspose2d(1, 4, 2, stride=2)(tg.ones(1, 1, 3, 5)).shape
    tapegrad.Size([1, 4, 6, 10])
    """


class ConvTranspose3d(_Transposed, dimensions=3):
    """Of volumes.

    Examples
    --------
    >>> tg.nn.ConvTranspose3d(1, 4, (1, 2, 2))(tg.ones(1, 1, 4, 3, 5)).shape
    tapegrad.Size([1, 4, 4, 4, 6])
    """
