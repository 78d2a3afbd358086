"""Resizing by PyTorch's arguments."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

from tapegrad.arrays.dtypes import type_name
from tapegrad.nn.functional.adaptive_pooling import adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d
from tapegrad.nn.functional.resampling import Taps, cubic_taps, linear_taps, nearest_taps, resample
from tapegrad.tensors.tensor import Tensor, array_of

__all__ = ["interpolate"]

INTERPOLATING = {"linear": 1, "bilinear": 2, "bicubic": 2, "trilinear": 3}  # modes and the spatial dimensions that they are for
AREA = (adaptive_avg_pool1d, adaptive_avg_pool2d, adaptive_avg_pool3d)


def interpolate(
    input: Tensor,
    size: Any = None,
    scale_factor: Any = None,
    mode: str = "nearest",
    align_corners: bool | None = None,
    recompute_scale_factor: bool | None = None,
    antialias: bool = False,
) -> Tensor:
    """A signal, an image or a volume at another size.

    Parameters
    ----------
    input : Tensor, shape (n, c, l), (n, c, h, w) or (n, c, d, h, w)
    size : int or sequence of int, optional
        Spatial size of the result.
    scale_factor : float or sequence of float, optional
        In its place, the factor by which the size is multiplied.
    mode : {'nearest', 'nearest-exact', 'linear', 'bilinear', 'bicubic', 'trilinear', 'area'}
    align_corners : bool, optional
        Of the linear and cubic modes: whether the centres of the corner elements lie on one another, and not the corners' edges.
    recompute_scale_factor : bool, optional
        Whether distances are computed from the sizes, where `scale_factor` is given.
    antialias : bool
        Not covered.

    Returns
    -------
    Tensor, shape ``(n, c, *size)``

    Raises
    ------
    ValueError
        If neither or both of `size` and `scale_factor` are given, or they do not fit to the dimensions.
    NotImplementedError
        If the mode is not one of these, or not for these dimensions.

    Notes
    -----
    ``area`` is `adaptive_avg_pool1d` and its neighbours. With a factor that gives no whole size, ``nearest`` takes the element at
    the place divided by the factor; PyTorch does so for some sizes, and takes the quotient of the sizes for others.

    Examples
    --------
    >>> F = tg.nn.functional
    >>> F.interpolate(tg.tensor([[[1.0, 2.0, 4.0]]]), 6)
    tensor([[[1., 1., 2., 2., 4., 4.]]])
    >>> F.interpolate(tg.tensor([[[1.0, 2.0, 4.0]]]), size=5, mode="linear", align_corners=True)
    tensor([[[1.0000, 1.5000, 2.0000, 3.0000, 4.0000]]])
    """
    data = array_of(input)
    switches = {type(align_corners), type(recompute_scale_factor), type(antialias)}
    plan = _kept_plan if type(mode) is str and switches <= SWITCHES and _are_plain(size, scale_factor) else _plan
    name, found = plan(data.shape, data.dtype, size, scale_factor, mode, align_corners, recompute_scale_factor, antialias)
    return resample(name, input, found) if name else AREA[len(data.shape) - 3](input, found)


PLAIN, SWITCHES = frozenset({int, float, type(None)}), frozenset({bool, type(None)})


def _are_plain(*given: Any) -> bool:
    """Whether these are numbers and tuples of numbers, which stay what they are."""
    return all(type(one) in PLAIN or (type(one) is tuple and {*map(type, one)} <= PLAIN) for one in given)


def _plan(
    shape: tuple[int, ...], dtype: Any, size: Any, scale_factor: Any, mode: str, align_corners: Any, recomputed: Any, antialias: Any
) -> tuple[str, tuple[Any, ...]]:
    """The name of the node and what the elements along each dimension are made of; without a name, sizes of means over areas."""
    rank = len(shape) - 2
    if mode in INTERPOLATING:
        align_corners = bool(align_corners)
    elif align_corners is not None:
        raise ValueError(
            "align_corners option can only be set with the interpolating modes: linear | bilinear | bicubic | trilinear"
        )
    if antialias:
        raise NotImplementedError("interpolate: antialias=True is not covered; smooth the input before, by a convolution")
    if recomputed and size is not None:
        raise ValueError("recompute_scale_factor is not meaningful with an explicit size.")
    counts, factors = _counts(shape[2:], size, scale_factor, bool(recomputed) or mode == "area")
    if mode not in (*INTERPOLATING, "nearest", "nearest-exact", "area") or not 1 <= rank <= 3:
        raise NotImplementedError(
            "Input Error: Only 3D, 4D and 5D input Tensors supported (got "
            f"{len(shape)}D) for the modes: nearest | linear | bilinear | bicubic | trilinear | area | nearest-exact (got {mode})"
        )
    if INTERPOLATING.get(mode, rank) != rank:
        raise NotImplementedError(f"Got {len(shape)}D input, but {mode} mode needs {INTERPOLATING[mode] + 2}D input")
    if dtype.kind != "f":
        raise NotImplementedError(f"\"interpolate\" not implemented for '{type_name(dtype)}'; convert to a floating point dtype")
    if mode == "area":
        return "", tuple(counts)
    if min((*counts, *shape[2:])) < 1 or not shape[1]:
        raise RuntimeError(f"Input and output sizes should be greater than 0, but got input {list(shape)} and output {counts}")
    taps = tuple(_taps(mode, *along, bool(align_corners)) for along in zip(shape[2:], counts, factors, strict=True))
    name = mode.title().replace("-", "") + (f"{rank}D" if mode in ("nearest", "nearest-exact") else f"{INTERPOLATING[mode]}D")
    return f"Upsample{name}Backward0", taps


_kept_plan = lru_cache(maxsize=256)(_plan)


def _taps(mode: str, extent: int, count: int, factor: float | None, align_corners: bool) -> Taps:
    if mode.startswith("nearest"):
        return nearest_taps(extent, count, factor, mode == "nearest-exact")
    return (cubic_taps if mode == "bicubic" else linear_taps)(extent, count, align_corners, factor)


def _counts(extents: tuple[int, ...], size: Any, scale_factor: Any, recomputed: bool) -> tuple[list[int], list[float | None]]:
    """Sizes of the result, and the factors that distances are taken from, None for those of the sizes."""
    rank = len(extents)
    if size is not None and scale_factor is not None:
        raise ValueError("only one of size or scale_factor should be defined")
    if size is not None:
        sizes = list(size) if isinstance(size, (list, tuple)) else [size] * rank
        if len(sizes) != rank:
            raise ValueError(
                "Input and output must have the same number of spatial dimensions, but got input with spatial dimensions of "
                f"{list(extents)} and output size of {size}. Please provide input tensor in (N, C, d1, d2, ...,dK) format and "
                "output size in (o1, o2, ...,oK) format."
            )
        return [int(count) for count in sizes], [None] * rank
    if scale_factor is None:
        raise ValueError("either size or scale_factor should be defined")
    factors = list(scale_factor) if isinstance(scale_factor, (list, tuple)) else [scale_factor] * rank
    if len(factors) != rank:
        raise ValueError(
            "Input and scale_factor must have the same number of spatial dimensions, but got input with spatial dimensions of "
            f"{list(extents)} and scale_factor of shape {scale_factor}. Please provide input tensor in (N, C, d1, d2, ...,dK) "
            "format and scale_factor in (s1, s2, ...,sK) format."
        )
    counts = [math.floor(float(extent) * factor) for extent, factor in zip(extents, factors, strict=True)]
    return counts, [None if recomputed else float(factor) for factor in factors]
