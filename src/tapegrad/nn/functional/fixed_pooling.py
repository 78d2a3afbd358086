"""Pooling over windows of one size."""

from __future__ import annotations

from typing import Any, cast

from tapegrad.arrays.dtypes import type_name
from tapegrad.errors import ShapeError
from tapegrad.nn.functional.bins import sliding_averages, sliding_bins
from tapegrad.nn.functional.dimensions import in_dimensions
from tapegrad.nn.functional.pooling import largest, means, operations
from tapegrad.nn.functional.spatial_sizes import Sizes, per_dimension, remembered
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
    geometry = sliding_bins(*_windows(f"max_pool{rank}d", rank, input, kernel_size, stride, padding, dilation, ceil_mode))
    values, indices = largest(_LARGEST[rank - 1], input, geometry, return_indices)
    return values if indices is None else (values, indices)


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
    windows = _windows(name, rank, input, kernel_size, stride, padding, 1, ceil_mode)
    if array_of(input).dtype.kind != "f":
        raise NotImplementedError(
            f"\"{name}\" not implemented for '{type_name(array_of(input).dtype)}'; convert to a floating point dtype"
        )
    if divisor_override is not None and divisor_override == 0:
        raise RuntimeError("divisor must be not zero")
    extents, window, steps, pad, _, places = windows
    averages = sliding_averages(extents, window, steps, pad, places, bool(count_include_pad), divisor_override)
    return means(_MEANS[rank - 1], input, averages)


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


def _windows(
    name: str, rank: int, input: Any, kernel: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool
) -> tuple[Sizes, Sizes, Sizes, Sizes, Sizes, Sizes]:
    """Extents, kernel, stride, padding, dilation and number of places, one number for each dimension."""
    if not isinstance(input, Tensor):
        raise TypeError(f"{name}(): argument 'input' (position 1) must be Tensor, not {type(input).__name__}")
    return _windows_in(name, rank, array_of(input).shape, kernel, stride, padding, dilation, bool(ceil_mode))


@remembered
def _windows_in(
    name: str, rank: int, shape: Sizes, kernel: Any, stride: Any, padding: Any, dilation: Any, ceil_mode: bool
) -> tuple[Sizes, Sizes, Sizes, Sizes, Sizes, Sizes]:
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
    return shape[-rank:], window, steps, pad, gaps, _places(shape, window, steps, pad, gaps, ceil_mode)


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
