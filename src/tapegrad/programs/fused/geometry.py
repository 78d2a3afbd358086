"""Views as axes: which indices of an array the elements of a view of it have, and the places of several views in one array."""

from __future__ import annotations

import bisect
import itertools
import math
import operator
from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from tapegrad.programs.fused.expressions import Axis, Shape

__all__ = [
    "Part", "axes_of_strides", "axes_of_view", "boxes_of_steps", "broadcast_axes", "is_whole",
    "order_of_reshaped", "places_of_view", "regions", "sum_strides",
]  # fmt: skip

Part = tuple[int, tuple[Axis, ...], Shape, bool]  # node, where its elements are, its shape, whether they are next to each other


def axes_of_view(whole: np.ndarray[Any, Any], view: np.ndarray[Any, Any]) -> tuple[Axis, ...] | None:
    """The axes of an array in terms of the indices of a view of it; None if there are none, as of most reshapes."""
    if whole.dtype != view.dtype or any(stride % whole.itemsize for stride in (*whole.strides, *view.strides)):
        return None
    offset = view.__array_interface__["data"][0] - whole.__array_interface__["data"][0]
    item = whole.itemsize
    strides = tuple(stride // item for stride in whole.strides)
    return axes_of_strides(whole.shape, strides, offset // item, view.shape, tuple(stride // item for stride in view.strides))


def axes_of_strides(
    whole: Shape, strides: Sequence[int], offset: int, shape: Shape, steps: Sequence[int]
) -> tuple[Axis, ...] | None:
    """The same for strides in elements."""
    if 0 in whole or 0 in shape:
        return None
    # Along dimensions that go backwards, indices are counted from the other end first.
    turned = {d for d in range(len(whole)) if strides[d] < 0}
    offset -= sum(strides[d] * (whole[d] - 1) for d in turned)
    strides = [abs(stride) for stride in strides]
    order = sorted((d for d in range(len(whole)) if whole[d] > 1), key=lambda d: -strides[d])
    if any(not strides[d] for d in order):
        return None
    starts = dict.fromkeys(range(len(whole)), 0)
    for d in order:
        starts[d], offset = divmod(offset, strides[d])
        if not 0 <= starts[d] < whole[d]:
            return None
    if offset:
        return None
    sources: dict[int, tuple[int, int]] = {}
    for k, (extent, step) in enumerate(zip(shape, steps, strict=True)):
        if extent == 1:
            continue
        fitting = [d for d in order if d not in sources and step % strides[d] == 0 and step]
        found = next((d for d in fitting if 0 <= starts[d] + step // strides[d] * (extent - 1) < whole[d]), None)
        if found is None:
            return None
        sources[found] = (k, step // strides[found])
    axes = [Axis(starts[d], *sources.get(d, (None, 0))) for d in range(len(whole))]
    return tuple(Axis(whole[d] - 1 - axis.start, axis.source, -axis.step) if d in turned else axis for d, axis in enumerate(axes))


def places_of_view(whole: np.ndarray[Any, Any], view: np.ndarray[Any, Any]) -> tuple[Shape, Shape, int] | None:
    """Shape, strides and offset of a view in an array in C order, in elements; None if it is no part of such an array."""
    item = whole.itemsize
    offset = view.__array_interface__["data"][0] - whole.__array_interface__["data"][0]
    if not whole.flags.c_contiguous or view.dtype != whole.dtype or any(step % item for step in (offset, *view.strides)):
        return None
    strides = tuple(stride // item for stride in view.strides)
    ends = [stride * (extent - 1) for stride, extent in zip(strides, view.shape, strict=True)]
    low, high = offset // item + sum(e for e in ends if e < 0), offset // item + sum(e for e in ends if e > 0)
    return (view.shape, strides, offset // item) if low >= 0 and high < whole.size else None


def order_of_reshaped(whole: np.ndarray[Any, Any], view: np.ndarray[Any, Any]) -> list[int] | None:
    """The dimensions of a view in the order in which they make the array in C order; None if they are not that."""
    if view.size != whole.size or not whole.flags.c_contiguous or view.dtype != whole.dtype:
        return None
    if view.__array_interface__["data"][0] != whole.__array_interface__["data"][0]:
        return None
    order = sorted(range(view.ndim), key=lambda d: (-view.strides[d], view.shape[d] == 1))
    step = view.itemsize
    for d in reversed(order):
        if view.shape[d] > 1 and view.strides[d] != step:
            return None
        step *= view.shape[d]
    return order


def broadcast_axes(shape: Shape, result: Shape) -> tuple[Axis, ...]:
    """The axes of an operand along a result that it is broadcast to."""
    before = len(result) - len(shape)
    return tuple(
        Axis(0, before + d, 1) if extent != 1 or result[before + d] == 1 else Axis(0, None, 0) for d, extent in enumerate(shape)
    )


def sum_strides(shape: Shape, result: Shape) -> Shape:
    """Strides in an operand, in C order, along a result that it was broadcast to: zero where elements are added up."""
    strides, step = [], 1
    for d in range(1, len(result) + 1):
        extent = shape[-d] if d <= len(shape) else 1
        strides.append(step if extent > 1 else 0)
        step *= extent
    return tuple(reversed(strides))


def is_whole(axes: tuple[Axis, ...], shape: Shape, whole: Shape) -> bool:
    """Whether a view is all of an array, as it is."""
    return shape == whole and all(axis == Axis(0, d, 1) or (whole[d] == 1 and not axis.start) for d, axis in enumerate(axes))


def regions(whole: Shape, parts: Sequence[Part]) -> Iterator[tuple[Shape, Shape, list[int]]]:
    """Boxes into which an array falls so that each is in a part or not: their corners, shapes, and the parts that they are in."""
    spans = [[_span(axis, shape) for axis in axes] for _, axes, shape, _ in parts]
    cuts = [sorted({0, extent, *(edge for span in spans for edge in span[d])}) for d, extent in enumerate(whole)]
    owners: dict[Shape, list[int]] = {}
    for number, span in enumerate(spans):
        ranges = [range(bisect.bisect_left(cuts[d], low), bisect.bisect_left(cuts[d], high)) for d, (low, high) in enumerate(span)]
        for box in itertools.product(*ranges):
            owners.setdefault(box, []).append(number)
    if math.prod(len(edges) - 1 for edges in cuts) > 4 * len(owners) + 64:
        raise OverflowError("too many regions")
    for box in itertools.product(*(range(len(edges) - 1) for edges in cuts)):
        corner = tuple(cuts[d][k] for d, k in enumerate(box))
        yield corner, tuple(cuts[d][k + 1] - cuts[d][k] for d, k in enumerate(box)), owners.get(box, [])


def boxes_of_steps(
    boxes: Iterable[tuple[Shape, Shape, list[int]]], parts: Sequence[Part], steps: Sequence[int]
) -> Iterator[tuple[Shape, Shape, list[int]]]:
    """The same boxes, each in as many as there are remainders of its indices by the steps: parts have all of one or nothing of it.

    Indices in a box go by these steps; its shape says how many there are.
    """
    for corner, extents, numbers in boxes:
        if all(step == 1 for step in steps):
            yield corner, extents, numbers
            continue
        for rest in itertools.product(*(range(min(step, extent)) for step, extent in zip(steps, extents, strict=True))):
            first = tuple(map(operator.add, corner, rest))
            counts = tuple(-(-(extent - r) // step) for extent, r, step in zip(extents, rest, steps, strict=True))
            yield first, counts, [number for number in numbers if _starts_at(parts[number], first)]


def _starts_at(part: Part, corner: Shape) -> bool:
    """Whether an index is one that a part has, where it lies between the part's first and last ones."""
    return all(axis.source is None or (k - axis.start) % axis.step == 0 for k, axis in zip(corner, part[1], strict=True))


def _span(axis: Axis, shape: Shape) -> tuple[int, int]:
    if axis.source is None:
        return axis.start, axis.start + 1
    last = axis.start + axis.step * (shape[axis.source] - 1)
    return min(axis.start, last), max(axis.start, last) + 1
