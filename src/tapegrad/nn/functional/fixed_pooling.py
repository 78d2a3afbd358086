"""Pooling over windows of one size."""

from __future__ import annotations

from typing import Any, cast

import numpy as np

from tapegrad.arrays.dtypes import type_name
from tapegrad.errors import ShapeError
from tapegrad.nn.functional.bins import Bins, lengths, outer, sliding_bins
from tapegrad.nn.functional.dimensions import in_dimensions
from tapegrad.nn.functional.pooling import largest, means, operations
from tapegrad.nn.functional.sizes import Sizes, per_dimension
from tapegrad.tensors.tensor import Tensor, array_of

__all__ = ["avg_pool1d", "avg_pool2d", "avg_pool3d", "max_pool1d", "max_pool2d", "max_pool3d"]

Numbers = int | tuple[int, ...]
Pooled = Tensor | tuple[Tensor, Tensor]

# In PyTorch a pooling over one dimension is one over two of which one is removed again.
_LARGEST, _MEANS = zip(
    operations("SqueezeBackward1", "SqueezeBackward1"),
    operations("MaxPool2DWithIndicesBackward0", "AvgPool2DBackward0"),
    operations("MaxPool3DWithIndicesBackward0", "AvgPool3DBackward0"),
    strict=True,
)


def _max_pool(
    rank: int,
    input: Tensor,
    kernel_size: Numbers,
    stride: Numbers | None = None,
    padding: Numbers = 0,
    dilation: Numbers = 1,
    ceil_mode: bool = False,
    return_indices: bool = False,
) -> Pooled:
    """The largest element of every window of {thing}; the first one where several tie.

    Parameters
    ----------
    input : Tensor, shape (n, c, {sizes}) or (c, {sizes})
    kernel_size : {number}
        Elements in a window.
    stride : {number}, optional
        Step from one window to the next; the kernel size if not given.
    padding : {number}
        Places in front and behind that no element is larger than; at most half of the window.
    dilation : {number}
        Step from one element of a window to the next.
    ceil_mode : bool
        Whether a last window may reach beyond the end.
    return_indices : bool
        Whether to return the places of the elements as well.

    Returns
    -------
    Tensor, or (Tensor, Tensor of int64)
        The places count in the flattened spatial dimensions of `input`.

    Raises
    ------
    RuntimeError
        If the rank is wrong, a number makes no sense, or no window fits.

    Examples
    --------
    {example}
    """
    sizes = _arguments(f"max_pool{rank}d", rank, input, kernel_size, stride, padding, dilation)
    bins = _bins(array_of(input).shape[-rank:], *sizes, _places(array_of(input).shape, *sizes, ceil_mode))
    values, indices = largest(_LARGEST[rank - 1], input, bins)
    return (values, indices) if return_indices else values


max_pool1d, max_pool2d, max_pool3d = in_dimensions(
    _max_pool,
    """>>> tg.nn.functional.max_pool1d(tg.tensor([[1.0, 5.0, 2.0, 3.0]]), 2)
    tensor([[5., 3.]])""",
    """>>> tg.nn.functional.max_pool2d(tg.tensor([[[1.0, 5.0, 2.0], [4.0, 3.0, 6.0]]]), 2, stride=1)
    tensor([[[5., 6.]]])""",
    """>>> tg.nn.functional.max_pool3d(tg.ones(1, 4, 4, 6), (1, 2, 2)).shape
    tapegrad.Size([1, 4, 2, 3])""",
)


def _avg_pool(
    rank: int,
    input: Tensor,
    kernel_size: Numbers,
    stride: Numbers | None = None,
    padding: Numbers = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
    divisor_override: int | None = None,
) -> Tensor:
    """The mean of every window of {thing}.

    Parameters
    ----------
    input : Tensor, shape (n, c, {sizes}) or (c, {sizes})
    kernel_size : {number}
        Elements in a window.
    stride : {number}, optional
        Step from one window to the next; the kernel size if not given.
    padding : {number}
        Zeros in front and behind; at most half of the window.
    ceil_mode : bool
        Whether a last window may reach beyond the end.
    count_include_pad : bool
        Whether the padding counts in the mean.
    divisor_override : int, optional
        What the sums are divided by, instead of the number of elements.

    Returns
    -------
    Tensor

    Raises
    ------
    RuntimeError
        If the rank is wrong, a number makes no sense, or no window fits.

    Examples
    --------
    {example}
    """
    name = f"avg_pool{rank}d"
    sizes = _arguments(name, rank, input, kernel_size, stride, padding, 1)
    if array_of(input).dtype.kind != "f":
        raise NotImplementedError(
            f"\"{name}\" not implemented for '{type_name(array_of(input).dtype)}'; convert to a floating point dtype"
        )
    extents = array_of(input).shape[-rank:]
    places = _places(array_of(input).shape, *sizes, ceil_mode)
    bins = _bins(extents, *sizes, places)
    if divisor_override is not None:
        if divisor_override == 0:
            raise RuntimeError("divisor must be not zero")
        divisors = np.full(places, divisor_override)
    elif count_include_pad:
        divisors = outer([_padded_lengths(*numbers) for numbers in zip(extents, *sizes, places, strict=True)])
    else:
        divisors = lengths(bins)
    return means(_MEANS[rank - 1], input, bins, divisors)


# PyTorch's function of signals has no divisor_override.
_, avg_pool2d, avg_pool3d = in_dimensions(
    _avg_pool,
    "",
    """>>> tg.nn.functional.avg_pool2d(tg.tensor([[[1.0, 5.0, 2.0], [4.0, 2.0, 6.0]]]), 2, stride=1)
    tensor([[[3.0000, 3.7500]]])""",
    """>>> tg.nn.functional.avg_pool3d(tg.ones(1, 4, 4, 6), (1, 2, 2)).shape
    tapegrad.Size([1, 4, 2, 3])""",
)


def avg_pool1d(
    input: Tensor,
    kernel_size: Numbers,
    stride: Numbers | None = None,
    padding: Numbers = 0,
    ceil_mode: bool = False,
    count_include_pad: bool = True,
) -> Tensor:
    """The mean of every window.

    Parameters
    ----------
    input : Tensor, shape (n, c, l) or (c, l)
    kernel_size : int
        Elements in a window.
    stride : int, optional
        Step from one window to the next; the kernel size if not given.
    padding : int
        Zeros in front and behind; at most half of the window.
    ceil_mode : bool
        Whether a last window may reach beyond the end.
    count_include_pad : bool
        Whether the padding counts in the mean.

    Returns
    -------
    Tensor

    Raises
    ------
    RuntimeError
        If the rank is wrong, a number makes no sense, or no window fits.

    Examples
    --------
    >>> tg.nn.functional.avg_pool1d(tg.tensor([[1.0, 5.0, 2.0, 4.0]]), 2)
    tensor([[3., 3.]])
    """
    return _avg_pool(1, input, kernel_size, stride, padding, ceil_mode, count_include_pad, None)


def _padded_lengths(extent: int, kernel: int, stride: int, padding: int, dilation: int, count: int) -> np.ndarray[Any, Any]:
    """Elements of each window with the padding, without what a last window has beyond it."""
    starts = np.arange(count) * stride - padding
    return np.minimum(starts + kernel, extent + padding) - starts


def _bins(extents: Sizes, kernel: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes, places: Sizes) -> list[Bins]:
    return [sliding_bins(*numbers) for numbers in zip(extents, kernel, stride, padding, dilation, places, strict=True)]


def _arguments(
    name: str, rank: int, input: Any, kernel: Any, stride: Any, padding: Any, dilation: Any
) -> tuple[Sizes, Sizes, Sizes, Sizes]:
    """Kernel, stride, padding and dilation, one number for each dimension."""
    if not isinstance(input, Tensor):
        raise TypeError(f"{name}(): argument 'input' (position 1) must be Tensor, not {type(input).__name__}")
    shape = array_of(input).shape
    if len(shape) not in (rank + 1, rank + 2) or not all(shape[len(shape) - rank - 1 :]):
        raise ShapeError(
            f"{name}: Expected {rank + 1}D or {rank + 2}D (batch mode) tensor with optional 0 dim batch size for input, but "
            f"got: {list(shape)}"
        )
    if stride is None or (isinstance(stride, (tuple, list)) and not stride):
        stride = kernel

    def numbers(what: str, value: Any) -> Sizes:
        return per_dimension(value, rank, f"{name}: {what} must be one int or a tuple of {rank}")

    window, steps, pad, gaps = (
        numbers(what, value)
        for what, value in (("kernel_size", kernel), ("stride", stride), ("padding", padding), ("dilation", dilation))
    )
    for what, values in (("kernel size", window), ("stride", steps), ("dilation", gaps)):
        if min(values) <= 0:
            raise RuntimeError(f"{name}: {what} should be greater than zero, but got {list(values)}")
    for p, k, d in zip(pad, window, gaps, strict=True):
        if p < 0:
            raise RuntimeError(f"pad must be non-negative, but got pad: {p}")
        if p > ((k - 1) * d + 1) // 2:
            raise RuntimeError(
                f"pad should be at most half of effective kernel size, but got pad={p}, kernel_size={k} and dilation={d}"
            )
        if p > k // 2:
            raise RuntimeError(f"pad should be smaller than or equal to half of kernel size, but got pad={p}, kernel_size={k}")
    return window, steps, pad, gaps


def _places(shape: Sizes, kernel: Sizes, stride: Sizes, padding: Sizes, dilation: Sizes, ceil_mode: bool) -> Sizes:
    rank = len(kernel)
    found = []
    for n, k, s, p, d in zip(shape[-rank:], kernel, stride, padding, dilation, strict=True):
        span = n + 2 * p - d * (k - 1) - 1
        count = (-(-span // s) if ceil_mode else span // s) + 1
        if ceil_mode and (count - 1) * s >= n + p:
            count -= 1  # every window starts in the array or in the padding before it
        found.append(count)
    if min(found) < 1:
        sizes = ["x".join(map(str, (shape[-rank - 1], *part))) for part in (shape[-rank:], found)]
        raise ShapeError(f"Given input size: ({sizes[0]}). Calculated output size: ({sizes[1]}). Output size is too small")
    return cast(Sizes, tuple(found))
