"""Convolutions and transposed convolutions over one, two or three spatial dimensions."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapegrad.arrays.dtypes import type_name
from tapegrad.errors import ShapeError
from tapegrad.nn.functional.dimensions import in_dimensions
from tapegrad.nn.functional.sliding import places_of, sliding
from tapegrad.nn.functional.spatial_sizes import Sizes, per_dimension, remembered
from tapegrad.nn.functional.trilinear import Geometry, convolve, spread
from tapegrad.tensors.tensor import Tensor, array_of

__all__ = ["conv1d", "conv2d", "conv3d", "conv_transpose1d", "conv_transpose2d", "conv_transpose3d"]

Numbers = int | tuple[int, ...]
_FLOAT64 = np.dtype(np.float64)


def _conv(
    rank: int,
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Numbers = 1,
    padding: Numbers | str = 0,
    dilation: Numbers = 1,
    groups: int = 1,
) -> Tensor:
    """Every window of {thing} times a weight (the weight is not reversed).

    Parameters
    ----------
    input : Tensor, shape (n, c, {sizes}) or (c, {sizes})
    weight : Tensor, shape (m, c / groups, {window})
    bias : Tensor, shape (m,), optional
        Added to each channel of the result.
    stride : {number}
        Step from one window to the next.
    padding : {number}, "valid" or "same"
        Zeros on both sides; ``"same"`` keeps the size, with the odd zero behind.
    dilation : {number}
        Step from one element of a window to the next.
    groups : int
        Parts of the channels that do not see each other.

    Returns
    -------
    Tensor, shape (n, m, ...)
        Of size ``(l + 2 * padding - dilation * (k - 1) - 1) // stride + 1`` for a size ``l`` and a window of ``k``.

    Raises
    ------
    RuntimeError
        If shapes or dtypes do not fit together, the window is longer than the padded input, or a number makes no sense.

    Examples
    --------
    {example}
    """
    batched = _check_ranks(f"conv{rank}d", rank, input, weight, bias)
    x = input if batched else input.unsqueeze(0)
    shapes = array_of(x).shape, array_of(weight).shape, None if bias is None else array_of(bias).shape
    geometry = _windows(rank, *shapes, stride, padding, dilation, groups)
    _check_dtypes(f"conv{rank}d", x, weight, bias)
    result = convolve(x, weight, bias, geometry)
    return result if batched else result.squeeze(0)


@remembered
def _windows(
    rank: int, x: Sizes, weight: Sizes, bias: Sizes | None, stride: Numbers, padding: Numbers | str, dilation: Numbers, groups: int
) -> Geometry:
    """Where the windows lie, for operands of these shapes."""
    extents, kernel = x[2:], weight[2:]
    steps, gaps = _steps("stride", stride, rank), _steps("dilation", dilation, rank)
    around = _around(padding, rank, kernel, steps, gaps)
    _check(weight, bias, groups, False)
    inside, channels = weight[1] * groups, x[1]
    if channels != inside:
        raise ShapeError(
            f"Given groups={groups}, weight of size {list(weight)}, expected input{list(x)} to have {inside} channels, but got "
            f"{channels} channels instead"
        )
    padded = [n + p for n, p in zip(extents, around, strict=True)]
    window = [(k - 1) * d + 1 for k, d in zip(kernel, gaps, strict=True)]
    if any(n < k for n, k in zip(padded, window, strict=True)):
        raise ShapeError(
            f"Calculated padded input size per channel: ({_times(padded)}). Kernel size: ({_times(window)}). Kernel size can't be "
            "greater than actual input size"
        )
    before = tuple([p // 2 for p in around])
    return Geometry(sliding(extents, kernel, steps, gaps, before, places_of(extents, kernel, steps, gaps, around)), groups)


conv1d, conv2d, conv3d = in_dimensions(
    _conv,
    """>>> x = tg.tensor([[[1.0, 2.0, 4.0, 8.0]]])
    >>> tg.nn.functional.conv1d(x, tg.tensor([[[1.0, -1.0]]]))
    tensor([[[-1., -2., -4.]]])""",
    """>>> tg.nn.functional.conv2d(tg.ones(1, 1, 3, 3), tg.ones(1, 1, 2, 2), padding="same")
    tensor([[[[4., 4., 2.],
              [4., 4., 2.],
              [2., 2., 1.]]]])""",
    """>>> tg.nn.functional.conv3d(tg.ones(1, 2, 4, 5, 6), tg.ones(3, 2, 1, 2, 3)).shape
    tapegrad.Size([1, 3, 4, 4, 4])""",
)


def _conv_transpose(
    rank: int,
    input: Tensor,
    weight: Tensor,
    bias: Tensor | None = None,
    stride: Numbers = 1,
    padding: Numbers = 0,
    output_padding: Numbers = 0,
    groups: int = 1,
    dilation: Numbers = 1,
) -> Tensor:
    """The transpose of `conv{n}d` as a linear map: every element spread over its window.

    Parameters
    ----------
    input : Tensor, shape (n, m, {sizes}) or (m, {sizes})
    weight : Tensor, shape (m, c / groups, {window})
    bias : Tensor, shape (c,), optional
    stride, padding, dilation : {number}
    groups : int
        Those of the convolution.
    output_padding : {number}
        How much longer the result is: convolutions with a stride map inputs of several sizes to one size.

    Returns
    -------
    Tensor, shape (n, c, ...)
        Of size ``(l - 1) * stride - 2 * padding + dilation * (k - 1) + output_padding + 1`` for a size ``l`` and a window of ``k``.

    Raises
    ------
    RuntimeError
        If shapes or dtypes do not fit together, the result would be empty, or a number makes no sense.

    Examples
    --------
    {example}
    """
    name = f"conv_transpose{rank}d"
    batched = _check_ranks(name, rank, input, weight, bias)
    y = input if batched else input.unsqueeze(0)
    given: Any = padding
    if isinstance(given, str):
        raise TypeError(f"{name}(): argument 'padding' must be tuple of ints, not str")
    shapes = array_of(y).shape, array_of(weight).shape, None if bias is None else array_of(bias).shape
    geometry = _transposed_windows(rank, *shapes, stride, padding, output_padding, groups, dilation)
    _check_dtypes(name, y, weight, bias)
    result = spread(y, weight, bias, geometry)
    return result if batched else result.squeeze(0)


@remembered
def _transposed_windows(
    rank: int,
    y: Sizes,
    weight: Sizes,
    bias: Sizes | None,
    stride: Numbers,
    padding: Numbers,
    output_padding: Numbers,
    groups: int,
    dilation: Numbers,
) -> Geometry:
    """Where the windows lie in the result, for operands of these shapes."""
    places, kernel = y[2:], weight[2:]
    steps, gaps = _steps("stride", stride, rank), _steps("dilation", dilation, rank)
    before, more = _paddings("padding", padding, rank), _paddings("output_padding", output_padding, rank)
    _check(weight, bias, groups, True)
    outside, channels = weight[0], y[1]
    if channels != outside:
        raise ShapeError(
            f"Given transposed=1, weight of size {list(weight)}, expected input{list(y)} to have {outside} channels, but got "
            f"{channels} channels instead"
        )
    if any(p >= s and p >= d for p, s, d in zip(more, steps, gaps, strict=True)):
        raise RuntimeError(
            f"output padding must be smaller than either stride or dilation, but got output_padding: {list(more)} "
            f"stride: {list(steps)} dilation: {list(gaps)}"
        )
    numbers = zip(places, steps, before, gaps, kernel, more, strict=True)
    extents = tuple((n - 1) * s - 2 * p + d * (k - 1) + e + 1 for n, s, p, d, k, e in numbers)
    if any(n <= 0 for n in extents):
        raise ShapeError(
            f"Given input size per channel: ({_times(places)}). Calculated output size per channel: ({_times(extents)}). Output "
            "size is too small"
        )
    return Geometry(sliding(extents, kernel, steps, gaps, before, places), groups)


conv_transpose1d, conv_transpose2d, conv_transpose3d = in_dimensions(
    _conv_transpose,
    """>>> tg.nn.functional.conv_transpose1d(tg.tensor([[[1.0, 10.0]]]), tg.tensor([[[1.0, 2.0]]]), stride=2)
    tensor([[[ 1.,  2., 10., 20.]]])""",
    """>>> tg.nn.functional.conv_transpose2d(tg.ones(1, 1, 2, 2), tg.ones(1, 1, 2, 2))
    tensor([[[[1., 2., 1.],
              [2., 4., 2.],
              [1., 2., 1.]]]])""",
    """>>> tg.nn.functional.conv_transpose3d(tg.ones(1, 3, 4, 4, 4), tg.ones(3, 2, 1, 2, 3)).shape
    tapegrad.Size([1, 2, 4, 5, 6])""",
)


def _check_ranks(name: str, rank: int, input: Any, weight: Any, bias: Any) -> bool:
    """Whether there is a batch dimension."""
    if isinstance(input, Tensor) and isinstance(weight, Tensor) and (bias is None or isinstance(bias, Tensor)):
        x, w = array_of(input), array_of(weight)
        if x.ndim == w.ndim == rank + 2 and x.size and w.size:
            return True
    for what, tensor in (("input", input), ("weight", weight)) + ((("bias", bias),) if bias is not None else ()):
        if not isinstance(tensor, Tensor):
            raise TypeError(f"{name}(): argument '{what}' must be Tensor, not {type(tensor).__name__}")
    x, w = array_of(input), array_of(weight)
    if x.ndim not in (rank + 1, rank + 2):
        raise ShapeError(
            f"Expected {rank + 1}D (unbatched) or {rank + 2}D (batched) input to {name}, but got input of size: {list(x.shape)}"
        )
    if w.ndim != rank + 2:
        raise ShapeError(f"Expected {rank + 2}D weight for {name}, but got weight of size: {list(w.shape)}")
    if not all(w.shape[2:]):
        raise ShapeError(f"kernel size should be greater than zero, but got weight of size: {list(w.shape)}")
    if not all(x.shape[x.ndim - rank :]):
        raise ShapeError(f"Only zero batch or zero channel inputs are supported, but got input shape: {list(x.shape)}")
    return x.ndim == rank + 2


def _check(shape: Sizes, bias: Sizes | None, groups: int, transposed: bool) -> None:
    if groups <= 0:
        raise RuntimeError(f"non-positive groups is not supported, but got groups={groups}")
    if shape[0] < groups:
        raise ShapeError(
            f"Given groups={groups}, expected weight to be at least {groups} at dimension 0, but got weight of size "
            f"{list(shape)} instead"
        )
    if shape[0] % groups:
        raise ShapeError(
            f"Given groups={groups}, expected weight to be divisible by {groups} at dimension 0, but got weight of size "
            f"{list(shape)} instead"
        )
    channels = shape[1] * groups if transposed else shape[0]
    if bias is not None and bias != (channels,):
        raise ShapeError(
            f"Given {'transposed=1, ' if transposed else ''}weight of size {list(shape)}, expected bias to be 1-dimensional with "
            f"{channels} elements, but got bias of size {list(bias)} instead"
        )


def _check_dtypes(name: str, input: Tensor, weight: Tensor, bias: Tensor | None) -> None:
    own = array_of(input).dtype
    if own is _FLOAT64 and array_of(weight).dtype is own and (bias is None or array_of(bias).dtype is own):
        return
    for what, tensor in (("weight", weight), ("bias", bias)):
        if tensor is not None and array_of(tensor).dtype != own:
            raise RuntimeError(
                f"Input type ({type_name(own).lower()}) and {what} type ({type_name(array_of(tensor).dtype).lower()}) should be "
                "the same; convert one"
            )
    if own.kind == "b":
        raise NotImplementedError(f"\"{name}\" not implemented for 'Bool'; convert the tensors first")


def _steps(what: str, value: Numbers, rank: int) -> Sizes:
    steps = per_dimension(value, rank, _count(what, rank))
    if any(step <= 0 for step in steps):
        wrong = "non-positive stride is not supported" if what == "stride" else "dilation should be greater than zero"
        raise RuntimeError(f"{wrong}, but got {what}={list(steps)}")
    return steps


def _paddings(what: str, value: Numbers, rank: int) -> Sizes:
    numbers = per_dimension(value, rank, _count(what, rank))
    if any(number < 0 for number in numbers):
        raise RuntimeError(f"negative {what} is not supported, but got {what}={list(numbers)}")
    return numbers


def _count(what: str, rank: int) -> str:
    return f"expected {what} to be a single integer value or a list of {rank} values to match the convolution dimensions"


def _around(padding: Numbers | str, rank: int, kernel: Sizes, stride: Sizes, dilation: Sizes) -> Sizes:
    """Zeros in front of and behind each dimension, together."""
    if not isinstance(padding, str):
        return tuple(2 * p for p in _paddings("padding", padding, rank))
    if padding == "valid":
        return (0,) * rank
    if padding != "same":
        raise RuntimeError(f"Invalid padding string: '{padding}'; use 'valid', 'same' or numbers")
    if any(step != 1 for step in stride):
        raise RuntimeError("padding='same' is not supported for strided convolutions")
    return tuple(d * (k - 1) for d, k in zip(dilation, kernel, strict=True))


def _times(sizes: Any) -> str:
    return " x ".join(map(str, sizes))
