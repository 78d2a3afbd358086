"""Copies and writes in place: values that are others, and how a derivative goes back from them."""

from __future__ import annotations

import numpy as np

from tapegrad.programs.fused.expressions import Expressions, Shape
from tapegrad.programs.fused.geometry import broadcast_axes, sum_strides
from tapegrad.programs.fused.hosted_steps import HostedSteps, is_single
from tapegrad.programs.fused.replaced_parts import Replaced
from tapegrad.programs.fused.rule_text import Unfused
from tapegrad.programs.steps import Cast, Copied, Value, Written

__all__ = ["Copies"]


class Copies(HostedSteps):
    """Expressions of copies."""

    def __init__(self, graph: Expressions, points: Shape = ()) -> None:
        super().__init__(graph, points)
        self._same: dict[int, Value] = {}  # values that are copies of others
        self._sources: dict[int, Value] = {}  # what is copied on its way to a write, whose row knows whether it is tracked

    def _canonical(self, value: Value) -> Value:
        while id(value) in self._same:
            value = self._same[id(value)]
        return value

    def _copy(self, step: Copied) -> None:
        source, result = step.source, step.result
        if step.shape is not None or result.of is not None:
            raise Unfused("a copy in another shape")
        if result.number < 0:
            if not result.array.dtype == source.array.dtype == np.bool_:
                self._floats_of(result)
            self._claim(result.array)
        own, shape = self._shape(source), self._shape(result)
        converts = is_single(source) != is_single(result)
        if isinstance(step, Cast) or (converts and not isinstance(step, Written)):
            if own != shape:
                raise Unfused("a copy in another type that broadcasts")
            self._nodes[id(result)] = self._in_type_of(self._node(source), result)
            return
        if converts and (source.tracked or not source.constant):
            raise Unfused("a write of values of another type")
        if own == shape and source.of is None and not converts and not (isinstance(step, Written) and step.link != "same"):
            self._same[id(result)] = source
            return
        node, graph = self._in_type_of(self._node(source), result), self.graph
        if own != shape:
            if self.points or result.tracked or source.array.size > result.array.size:
                raise Unfused("a copy that broadcasts")
            node = node if node in graph.constants else graph.at(node, broadcast_axes(own, shape), shape)
        self._sources[id(result)] = source
        self._nodes[id(result)] = node

    def _through_write(self, step: Written) -> None:
        """From a row of the write itself to what was written."""
        g = self._adjoint(step.result)
        if g is None or not step.link:
            return
        source, graph, shape = self.written_source(step), self.graph, self._shape(step.result)
        if not source.tracked:
            raise Unfused("a write of what is not followed")
        own = self._shape(source)
        if own != shape:
            g = graph.total(self._filled(g, shape) if g in graph.constants else g, sum_strides(own, shape), own)
        self._contribute(source, g)

    def written_source(self, step: Written) -> Value:
        """What is written, or what that is a copy of if only that is tracked."""
        source = self._canonical(step.source)
        if not source.tracked and id(source) in self._sources:
            source = self._canonical(self._sources[id(source)])
        return source

    def _through_part(self, step: Replaced) -> None:
        """From an array to what it was before a write, and to what was written into a part of it."""
        g = self._adjoint(step.result)
        if g is None:
            return
        graph = self.graph
        if step.before.tracked:
            self._contribute(step.before, self._with_part(step, g, graph.constant(0.0)))
        if step.part.tracked:
            self._contribute(step.part, graph.at(g, self._part_of(step), self._shape(step.part)))
