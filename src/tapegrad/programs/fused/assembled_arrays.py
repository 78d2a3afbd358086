"""Arrays that are put together of parts of others, box by box, in memory of their own."""

from __future__ import annotations

import math
from collections.abc import Sequence

import numpy as np

from tapegrad.programs.fused.expressions import Axis, Expressions, Shape, Unfused, contiguous
from tapegrad.programs.fused.geometry import Part, boxes_of_steps, regions

__all__ = ["AssembledArrays"]


class AssembledArrays:
    """Expressions, and how arrays of parts come into them.

    Attributes
    ----------
    graph : Expressions
    """

    def __init__(self, graph: Expressions) -> None:
        self.graph = graph

    def _assembled(self, parts: list[Part], shape: Shape, buffer: int | None = None, apart: bool = False) -> int:
        """An array of parts, added up where they overlap: to zeros, but for the first one and for parts that never do."""
        graph = self.graph
        if buffer is None:
            buffer = graph.buffer(int(np.prod(shape)))
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
            for place, number in enumerate(numbers):
                term = self._piece(parts[number], corner, kept, space, steps)
                is_first = place == 0 and (apart or (number == 0 and parts[0][3]))
                node = term if is_first else graph.node("add", *graph.level((node, term)))
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
