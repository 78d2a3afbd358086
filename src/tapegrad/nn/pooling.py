"""Pooling as modules."""

from __future__ import annotations

from typing import Any

from tapegrad.nn import functional
from tapegrad.nn.dimensions import Spatial
from tapegrad.nn.module import Module

__all__ = [
    "AdaptiveAvgPool1d",
    "AdaptiveAvgPool2d",
    "AdaptiveAvgPool3d",
    "AdaptiveMaxPool1d",
    "AdaptiveMaxPool2d",
    "AdaptiveMaxPool3d",
    "AvgPool1d",
    "AvgPool2d",
    "AvgPool3d",
    "MaxPool1d",
    "MaxPool2d",
    "MaxPool3d",
]

Numbers = int | tuple[int, ...]


class _MaxPool(Spatial):
    """The largest elements of windows of {thing}: `functional.max_pool{n}d` as a module.

    Parameters
    ----------
    kernel_size : {number}
        Elements in a window.
    stride : {number}, optional
        Step from one window to the next; the kernel size if not given.
    padding : {number}
        Places in front and behind that no element is larger than; at most half of the window.
    dilation : {number}
        Step from one element of a window to the next.
    return_indices : bool
        Whether calls return the places of the elements as well.
    ceil_mode : bool
        Whether a last window may reach beyond the end.
    """

    def __init__(
        self,
        kernel_size: Numbers,
        stride: Numbers | None = None,
        padding: Numbers = 0,
        dilation: Numbers = 1,
        return_indices: bool = False,
        ceil_mode: bool = False,
    ) -> None:
        super().__init__()
        self.kernel_size, self.stride = kernel_size, kernel_size if stride is None else stride
        self.padding, self.dilation = padding, dilation
        self.return_indices, self.ceil_mode = return_indices, ceil_mode

    def forward(self, input: Any) -> Any:
        """The largest elements, and their places if asked for."""
        pool = getattr(functional, f"max_pool{self._dimensions}d")
        return pool(input, self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode, self.return_indices)

    def extra_repr(self) -> str:
        """The window."""
        return (
            f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}, dilation={self.dilation}, "
            f"ceil_mode={self.ceil_mode}"
        )


class MaxPool1d(_MaxPool, dimensions=1):
    """Of signals.

    Examples
    --------
    >>> tg.nn.MaxPool1d(2)(tg.tensor([[1.0, 5.0, 2.0, 3.0]]))
    tensor([[5., 3.]])
    """


class MaxPool2d(_MaxPool, dimensions=2):
    """Of images.

    Examples
    --------
    >>> tg.nn.MaxPool2d(2)(tg.ones(1, 1, 4, 6)).shape
    tapegrad.Size([1, 1, 2, 3])
    """


class MaxPool3d(_MaxPool, dimensions=3):
    """Of volumes.

    Examples
    --------
    >>> tg.nn.MaxPool3d((1, 2, 2))(tg.ones(1, 1, 4, 4, 6)).shape
    tapegrad.Size([1, 1, 4, 2, 3])
    """


class AvgPool1d(Module):
    """The means of windows of a signal: `functional.avg_pool1d` as a module.

    Parameters
    ----------
    kernel_size : int
        Elements in a window.
    stride : int, optional
        Step from one window to the next; the kernel size if not given.
    padding : int
        Zeros in front and behind; at most half of the window.
    ceil_mode : bool
        Whether a last window may reach beyond the end.
    count_include_pad : bool
        Whether the padding counts in the means.

    Examples
    --------
    >>> tg.nn.AvgPool1d(2)(tg.tensor([[1.0, 5.0, 2.0, 4.0]]))
    tensor([[3., 3.]])
    """

    def __init__(
        self,
        kernel_size: Numbers,
        stride: Numbers | None = None,
        padding: Numbers = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
    ) -> None:
        super().__init__()
        single = [n[0] if isinstance(n, tuple) else n for n in (kernel_size, kernel_size if stride is None else stride, padding)]
        self.kernel_size, self.stride, self.padding = ((n,) for n in single)
        self.ceil_mode, self.count_include_pad = ceil_mode, count_include_pad

    def forward(self, input: Any) -> Any:
        """The means."""
        return functional.avg_pool1d(input, self.kernel_size, self.stride, self.padding, self.ceil_mode, self.count_include_pad)

    def extra_repr(self) -> str:
        """The window."""
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class _AvgPool(Spatial):
    """The means of windows of {thing}: `functional.avg_pool{n}d` as a module.

    Parameters
    ----------
    kernel_size : {number}
        Elements in a window.
    stride : {number}, optional
        Step from one window to the next; the kernel size if not given.
    padding : {number}
        Zeros in front and behind; at most half of the window.
    ceil_mode : bool
        Whether a last window may reach beyond the end.
    count_include_pad : bool
        Whether the padding counts in the means.
    divisor_override : int, optional
        What the sums are divided by, instead of the number of elements.
    """

    def __init__(
        self,
        kernel_size: Numbers,
        stride: Numbers | None = None,
        padding: Numbers = 0,
        ceil_mode: bool = False,
        count_include_pad: bool = True,
        divisor_override: int | None = None,
    ) -> None:
        super().__init__()
        self.kernel_size, self.stride, self.padding = kernel_size, kernel_size if stride is None else stride, padding
        self.ceil_mode, self.count_include_pad, self.divisor_override = ceil_mode, count_include_pad, divisor_override

    def forward(self, input: Any) -> Any:
        """The means."""
        pool = getattr(functional, f"avg_pool{self._dimensions}d")
        return pool(
            input,
            self.kernel_size,
            self.stride,
            self.padding,
            self.ceil_mode,
            self.count_include_pad,
            self.divisor_override,
        )

    def extra_repr(self) -> str:
        """The window."""
        return f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}"


class AvgPool2d(_AvgPool, dimensions=2):
    """Of images.

    Examples
    --------
    >>> tg.nn.AvgPool2d(2)(tg.tensor([[[1.0, 5.0], [2.0, 4.0]]]))
    tensor([[[3.]]])
    """


class AvgPool3d(_AvgPool, dimensions=3):
    """Of volumes.

    Examples
    --------
    >>> tg.nn.AvgPool3d((1, 2, 2))(tg.ones(1, 1, 4, 4, 6)).shape
    tapegrad.Size([1, 1, 4, 2, 3])
    """


class _AdaptiveAvgPool(Spatial):
    """Means over as many windows of {thing} as the result has places: `functional.adaptive_avg_pool{n}d` as a module.

    Parameters
    ----------
    output_size : {number}
        The windows cover {thing} and are as even as can be. None keeps a size.
    """

    def __init__(self, output_size: Any) -> None:
        super().__init__()
        self.output_size = output_size

    def forward(self, input: Any) -> Any:
        """The means."""
        return getattr(functional, f"adaptive_avg_pool{self._dimensions}d")(input, self.output_size)

    def extra_repr(self) -> str:
        """The size of the result."""
        return f"output_size={self.output_size}"


class AdaptiveAvgPool1d(_AdaptiveAvgPool, dimensions=1):
    """Of signals.

    Examples
    --------
    >>> tg.nn.AdaptiveAvgPool1d(2)(tg.tensor([[1.0, 3.0, 5.0, 7.0]]))
    tensor([[2., 6.]])
    """


class AdaptiveAvgPool2d(_AdaptiveAvgPool, dimensions=2):
    """Of images.

    Examples
    --------
    >>> tg.nn.AdaptiveAvgPool2d(1)(tg.ones(2, 3, 5, 7)).shape
    tapegrad.Size([2, 3, 1, 1])
    """


class AdaptiveAvgPool3d(_AdaptiveAvgPool, dimensions=3):
    """Of volumes.

    Examples
    --------
    >>> tg.nn.AdaptiveAvgPool3d((4, 2, None))(tg.ones(1, 1, 4, 4, 6)).shape
    tapegrad.Size([1, 1, 4, 2, 6])
    """


class _AdaptiveMaxPool(Spatial):
    """The largest elements of as many windows of {thing} as the result has places: `functional.adaptive_max_pool{n}d` as a module.

    Parameters
    ----------
    output_size : {number}
        The windows cover {thing} and are as even as can be. None keeps a size.
    return_indices : bool
        Whether calls return the places of the elements as well.
    """

    def __init__(self, output_size: Any, return_indices: bool = False) -> None:
        super().__init__()
        self.output_size, self.return_indices = output_size, return_indices

    def forward(self, input: Any) -> Any:
        """The largest elements, and their places if asked for."""
        return getattr(functional, f"adaptive_max_pool{self._dimensions}d")(input, self.output_size, self.return_indices)

    def extra_repr(self) -> str:
        """The size of the result."""
        return f"output_size={self.output_size}"


class AdaptiveMaxPool1d(_AdaptiveMaxPool, dimensions=1):
    """Of signals.

    Examples
    --------
    >>> tg.nn.AdaptiveMaxPool1d(2)(tg.ones(1, 1, 4)).shape
    tapegrad.Size([1, 1, 2])
    """


class AdaptiveMaxPool2d(_AdaptiveMaxPool, dimensions=2):
    """Of images.

    Examples
    --------
    >>> tg.nn.AdaptiveMaxPool2d((None, 1))(tg.ones(1, 1, 4, 6)).shape
    tapegrad.Size([1, 1, 4, 1])
    """


class AdaptiveMaxPool3d(_AdaptiveMaxPool, dimensions=3):
    """Of volumes.

    Examples
    --------
    >>> tg.nn.AdaptiveMaxPool3d((4, 2, None))(tg.ones(1, 1, 4, 4, 6)).shape
    tapegrad.Size([1, 1, 4, 2, 6])
    """
