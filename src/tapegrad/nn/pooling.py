"""Pooling as modules."""

from __future__ import annotations

from typing import Any

from tapegrad.nn import functional
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


class _MaxPool(Module):
    rank = 0

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
        pool = getattr(functional, f"max_pool{self.rank}d")
        return pool(input, self.kernel_size, self.stride, self.padding, self.dilation, self.ceil_mode, self.return_indices)

    def extra_repr(self) -> str:
        """The window."""
        return (
            f"kernel_size={self.kernel_size}, stride={self.stride}, padding={self.padding}, dilation={self.dilation}, "
            f"ceil_mode={self.ceil_mode}"
        )


class MaxPool1d(_MaxPool):
    """`functional.max_pool1d` as a module."""

    rank = 1


class MaxPool2d(_MaxPool):
    """`functional.max_pool2d` as a module.

    Examples
    --------
    >>> tg.nn.MaxPool2d(2)(tg.ones(1, 1, 4, 6)).shape
    tapegrad.Size([1, 1, 2, 3])
    """

    rank = 2


class MaxPool3d(_MaxPool):
    """`functional.max_pool3d` as a module."""

    rank = 3


class AvgPool1d(Module):
    """`functional.avg_pool1d` as a module."""

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


class _AvgPool(Module):
    rank = 0

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
        pool = getattr(functional, f"avg_pool{self.rank}d")
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


class AvgPool2d(_AvgPool):
    """`functional.avg_pool2d` as a module."""

    rank = 2


class AvgPool3d(_AvgPool):
    """`functional.avg_pool3d` as a module."""

    rank = 3


class _AdaptiveAvgPool(Module):
    rank = 0

    def __init__(self, output_size: Any) -> None:
        super().__init__()
        self.output_size = output_size

    def forward(self, input: Any) -> Any:
        """The means."""
        return getattr(functional, f"adaptive_avg_pool{self.rank}d")(input, self.output_size)

    def extra_repr(self) -> str:
        """The size of the result."""
        return f"output_size={self.output_size}"


class AdaptiveAvgPool1d(_AdaptiveAvgPool):
    """`functional.adaptive_avg_pool1d` as a module."""

    rank = 1


class AdaptiveAvgPool2d(_AdaptiveAvgPool):
    """`functional.adaptive_avg_pool2d` as a module.

    Examples
    --------
    >>> tg.nn.AdaptiveAvgPool2d(1)(tg.ones(2, 3, 5, 7)).shape
    tapegrad.Size([2, 3, 1, 1])
    """

    rank = 2


class AdaptiveAvgPool3d(_AdaptiveAvgPool):
    """`functional.adaptive_avg_pool3d` as a module."""

    rank = 3


class _AdaptiveMaxPool(Module):
    rank = 0

    def __init__(self, output_size: Any, return_indices: bool = False) -> None:
        super().__init__()
        self.output_size, self.return_indices = output_size, return_indices

    def forward(self, input: Any) -> Any:
        """The largest elements, and their places if asked for."""
        return getattr(functional, f"adaptive_max_pool{self.rank}d")(input, self.output_size, self.return_indices)

    def extra_repr(self) -> str:
        """The size of the result."""
        return f"output_size={self.output_size}"


class AdaptiveMaxPool1d(_AdaptiveMaxPool):
    """`functional.adaptive_max_pool1d` as a module."""

    rank = 1


class AdaptiveMaxPool2d(_AdaptiveMaxPool):
    """`functional.adaptive_max_pool2d` as a module."""

    rank = 2


class AdaptiveMaxPool3d(_AdaptiveMaxPool):
    """`functional.adaptive_max_pool3d` as a module."""

    rank = 3
