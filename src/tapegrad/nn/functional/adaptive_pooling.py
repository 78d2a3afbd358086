"""Pooling to a result of a given size."""

from __future__ import annotations

import operator
from typing import Any

from tapegrad.arrays.dtypes import type_name
from tapegrad.errors import ShapeError
from tapegrad.nn.functional.bins import adaptive_averages, adaptive_bins
from tapegrad.nn.functional.dimensions import in_dimensions
from tapegrad.nn.functional.pooling import largest, means, operations
from tapegrad.nn.functional.spatial_sizes import Sizes
from tapegrad.tensors.tensor import Tensor, array_of

__all__ = [
    "adaptive_avg_pool1d",
    "adaptive_avg_pool2d",
    "adaptive_avg_pool3d",
    "adaptive_max_pool1d",
    "adaptive_max_pool2d",
    "adaptive_max_pool3d",
]

Numbers = int | tuple[int | None, ...] | None
Pooled = Tensor | tuple[Tensor, Tensor]

# In PyTorch a pooling over one dimension is one over two of which one is removed again, and one to a single place a mean.
_LARGEST, _MEANS = zip(
    operations("SqueezeBackward1", "SqueezeBackward1"),
    operations("AdaptiveMaxPool2DBackward0", "AdaptiveAvgPool2DBackward0"),
    operations("AdaptiveMaxPool3DBackward0", "AdaptiveAvgPool3DBackward0"),
    strict=True,
)
_, _MEAN = operations("", "MeanBackward1")


def _adaptive_avg_pool(rank: int, input: Tensor, output_size: Numbers) -> Tensor:
    """Means over as many windows of {thing} as the result has places.

    Parameters
    ----------
    input : Tensor, shape (n, c, {sizes}) or (c, {sizes})
    output_size : {number}
        The windows cover {thing} and are as even as can be; neighbours may share an element. None keeps a size.

    Returns
    -------
    Tensor, shape ``(n, c, *output_size)``

    Raises
    ------
    RuntimeError
        If the rank or the output size is wrong, or there is nothing to take means of.

    Examples
    --------
    {example}
    """
    name = f"adaptive_avg_pool{rank}d"
    extents, counts = _sizes(name, rank, input, output_size)
    dtype = array_of(input).dtype
    if dtype.kind != "f":
        raise NotImplementedError(f"\"{name}\" not implemented for '{type_name(dtype)}'; convert to a floating point dtype")
    single = rank > 1 and counts == (1,) * rank
    return means(_MEAN if single else _MEANS[rank - 1], input, adaptive_averages(extents, counts))


adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d = in_dimensions(
    _adaptive_avg_pool,
    """>>> tg.nn.functional.adaptive_avg_pool1d(tg.tensor([[1.0, 3.0, 5.0, 7.0]]), 2)
    tensor([[2., 6.]])""",
    """>>> tg.nn.functional.adaptive_avg_pool2d(tg.tensor([[[1.0, 3.0], [5.0, 7.0]]]), (None, 1))
    tensor([[[2.],
             [6.]]])""",
    """>>> tg.nn.functional.adaptive_avg_pool3d(tg.ones(1, 4, 4, 6), (4, 2, 1)).shape
    tapegrad.Size([1, 4, 2, 1])""",
)


def _adaptive_max_pool(rank: int, input: Tensor, output_size: Numbers, return_indices: bool = False) -> Pooled:
    """The largest elements of as many windows of {thing} as the result has places.

    Parameters
    ----------
    input : Tensor, shape (n, c, {sizes}) or (c, {sizes})
    output_size : {number}
        The windows cover {thing} and are as even as can be; neighbours may share an element. None keeps a size.
    return_indices : bool
        Whether to return the places of the elements as well.

    Returns
    -------
    Tensor, or (Tensor, Tensor of int64)
        The places count in the flattened spatial dimensions of `input`.

    Raises
    ------
    RuntimeError
        If the rank or the output size is wrong, or there is nothing to choose from.

    Examples
    --------
    {example}
    """
    geometry = adaptive_bins(*_sizes(f"adaptive_max_pool{rank}d", rank, input, output_size))
    values, indices = largest(_LARGEST[rank - 1], input, geometry, return_indices)
    return values if indices is None else (values, indices)


adaptive_max_pool1d, adaptive_max_pool2d, adaptive_max_pool3d = in_dimensions(
    _adaptive_max_pool,
    """>>> tg.nn.functional.adaptive_max_pool1d(tg.tensor([[1.0, 3.0, 5.0, 7.0]]), 2)
    tensor([[3., 7.]])""",
    """>>> tg.nn.functional.adaptive_max_pool2d(tg.tensor([[[1.0, 3.0], [5.0, 7.0]]]), (None, 1))
    tensor([[[3.],
             [7.]]])""",
    """>>> tg.nn.functional.adaptive_max_pool3d(tg.ones(1, 4, 4, 6), (4, 2, 1)).shape
    tapegrad.Size([1, 4, 2, 1])""",
)


def _sizes(name: str, rank: int, input: Any, output_size: Any) -> tuple[Sizes, Sizes]:
    if not isinstance(input, Tensor):
        raise TypeError(f"{name}(): argument 'input' (position 1) must be Tensor, not {type(input).__name__}")
    shape = array_of(input).shape
    if len(shape) not in (rank + 1, rank + 2):
        error = ShapeError if rank == 1 else ValueError
        raise error(f"{name}(): Expected {rank + 1}D or {rank + 2}D tensor, but got {list(shape)}")
    if not all(shape[len(shape) - rank :]):
        raise ShapeError(
            f"{name}(): Expected input to have non-zero size for non-batch dimensions, but input has sizes {list(shape)}"
        )
    wanted = tuple(output_size) if isinstance(output_size, (tuple, list)) else (output_size,) * rank
    if len(wanted) != rank:
        raise ShapeError(f"{name}: output_size must be {rank} numbers, but got {list(wanted)}")
    extents = shape[-rank:]
    counts = tuple([extent if size is None else operator.index(size) for size, extent in zip(wanted, extents, strict=True)])
    if min(counts) < 0:
        raise ShapeError(f"{name}: elements of output_size must be greater than or equal to 0 but received {list(counts)}")
    return extents, counts
