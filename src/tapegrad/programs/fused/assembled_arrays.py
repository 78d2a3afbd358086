"""Arrays that are put together of parts of others, box by box, in memory of their own."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tapegrad.programs.fused.expressions import Axis, Expressions, Shape, contiguous
from tapegrad.programs.fused.geometry import Part, axes_of_view, boxes_of_steps, regions
from tapegrad.programs.fused.replaced_parts import Replaced
from tapegrad.programs.fused.rule_text import Unfused

__all__ = ["AssembledArrays"]

Array = np.ndarray[Any, Any]


class AssembledArrays:
    """Expressions, and how arrays of parts come into them.

    Attributes
    ----------
    graph : Expressions
    points : Shape
        How many points there are at once: the last axis of all values; empty for one.
    """

    def __init__(self, graph: Expressions, points: Shape = ()) -> None:
        self.graph, self.points = graph, points

    def _assembled(
        self,
        parts: list[Part],
        shape: Shape,
        buffer: int | None = None,
        apart: bool = False,
        last: bool = False,
        single: bool = False,
    ) -> int:
        """An array of parts, added up where they overlap: to zeros, but for the first one and for parts that never do.

        With `last` the last one is there instead. If it is `single`, of float32, it is rounded after each addition.
        """
        graph = self.graph
        if buffer is None:
            buffer = graph.buffer(int(np.prod(shape)), single)
        strides = contiguous(shape)
        try:
            boxes = list(regions(shape, parts))
        except OverflowError:
            raise Unfused("an array of too many parts") from None
        steps = [math.lcm(*(axes[d].step or 1 for _, axes, _, _ in parts)) for d in range(len(shape))]
        for corner, extents, numbers in boxes_of_steps(boxes, parts, steps):
            kept = [d for d, extent in enumerate(extents) if extent > 1]
            space = tuple(extents[d] for d in kept)
            node = graph.constant(0.0)
            for place, number in enumerate(numbers[-1:] if last else numbers):
                term = self._piece(parts[number], corner, kept, space, steps)
                is_first = place == 0 and (apart or last or (number == 0 and parts[0][3]))
                node = term if is_first else graph.node("add", *graph.level((node, term)))
                node = graph.rounded(node) if single else node
            offset = sum(start * stride for start, stride in zip(corner, strides, strict=True))
            if not self.graph.spaces[node] and space:
                node = graph.at(node, (), space) if node not in graph.constants else self._filled(node, space)
            graph.write(node, buffer, offset, tuple(steps[d] * strides[d] for d in kept))
        return graph.load(buffer, 0, strides, shape)

    def _filled(self, constant: int, space: Shape) -> int:
        return self.graph.node("fill", constant, space=space)

    def _piece(self, part: Part, corner: Shape, kept: list[int], space: Shape, steps: Sequence[int]) -> int:
        node, axes, shape, _ = part
        if node in self.graph.constants or not self.graph.spaces[node]:
            return node
        found: list[Axis] = [Axis(0, None, 0)] * len(shape)
        for d, axis in enumerate(axes):
            if axis.source is not None:
                start = (corner[d] - axis.start) // axis.step
                found[axis.source] = Axis(start, kept.index(d), steps[d] // axis.step) if d in kept else Axis(start, None, 0)
        return self.graph.at(node, tuple(found), space)

    def _with_part(self, step: Replaced, whole: int, part: int) -> int:
        """An array of a shape, but for the part that a write goes into."""
        shape = self._of_points(step.result.array.shape)
        axes = self._part_of(step)
        every = tuple(Axis(0, d, 1) for d in range(len(shape)))
        own = self._of_points(step.part.array.shape)
        return self._assembled([(whole, every, shape, True), (part, axes, own, True)], shape, last=True)

    def _part_of(self, step: Replaced) -> tuple[Axis, ...]:
        """The axes of an array in terms of the part that a write goes into."""
        axes = axes_of_view(step.result.array, step.where.array)
        if axes is None:
            raise Unfused("a write into what is no part of an array")
        return self._axes_of_points(axes, step.where.array.ndim)

    def _of_points(self, shape: Shape) -> Shape:
        """A shape with an axis of points, if there are many."""
        return (*shape, *self.points)

    def _axes_of_points(self, axes: tuple[Axis, ...], rank: int) -> tuple[Axis, ...]:
        return (*axes, Axis(0, rank, 1)) if self.points else axes

    def _view_of_reshaped(self, node: int, view: Array, order: Sequence[int]) -> int:
        """A view that has the dimensions of an array in another order, once it has another shape."""
        dims = self._of_points(tuple(view.shape[d] for d in order))
        node = node if node in self.graph.constants else self.graph.reshaped(node, dims)
        axes = self._axes_of_points(tuple(Axis(0, d, 1) for d in order), view.ndim)
        return self.graph.at(node, axes, self._of_points(view.shape))

    def _back_from_reshaped(self, g: int, view: Array, order: Sequence[int], shape: Shape) -> int:
        """The other way."""
        axes = self._axes_of_points(tuple(Axis(0, order.index(d), 1) for d in range(view.ndim)), view.ndim)
        return self.graph.reshaped(self.graph.at(g, axes, self._of_points(tuple(view.shape[d] for d in order))), shape)
