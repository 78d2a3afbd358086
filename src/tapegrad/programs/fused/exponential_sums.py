"""Sums of exponentials as expressions: logsumexp, softmax and its logarithm, as `tapegrad.ops.normalisation` computes them."""

from __future__ import annotations

import math

from tapegrad.ops.normalisation import log_softmax_again, logsumexp_again, softmax_again
from tapegrad.programs.fused.asked_values import AskedValues
from tapegrad.programs.fused.expressions import Axis, Shape, contiguous
from tapegrad.programs.fused.geometry import broadcast_axes, sum_strides
from tapegrad.programs.fused.hosted_steps import is_single
from tapegrad.programs.steps import Step, Structured

__all__ = ["ExponentialSums", "sums_exponentials"]

KINDS = (logsumexp_again, softmax_again, log_softmax_again)
INFINITE = math.inf


def sums_exponentials(step: Step) -> bool:
    """Whether a step is one of these."""
    return isinstance(step, Structured) and step.operation.forward in KINDS


class ExponentialSums(AskedValues):
    """Expressions of sums of exponentials along axes."""

    def _sum_exponentials(self, step: Structured) -> int:
        """The value, over the shape of the result."""
        graph, forward = self.graph, step.operation.forward
        x = self._stored(self._node(step.operands[0]))
        own, kept = graph.spaces[x], self._kept_shape(step)
        top = self._largest(x, kept)
        if forward is logsumexp_again:
            zero, infinite = graph.constant(0.0), graph.constant(INFINITE)
            top = graph.node("where", graph.node("oeq", graph.node("abs", top), infinite), zero, top)
        top = self._stored(top)
        shifted = self._stored(self._typed(graph.node("sub", x, self._along(top, own)), step))
        powers = self._stored(self._by_loop("exp", shifted, step))
        total = self._typed(graph.total(powers, sum_strides(kept, own), kept), step)
        if forward is softmax_again:
            return self._typed(graph.node("div", powers, self._along(total, own)), step)
        logarithm = self._by_loop("log", total, step)
        if forward is log_softmax_again:
            return self._typed(graph.node("sub", shifted, self._along(self._stored(logarithm), own)), step)
        found = self._stored(self._typed(graph.node("add", logarithm, top), step))
        self._fail_where_infinite(found)
        return self._without_ones(found, step)

    def _back_from_exponentials(self, step: Structured, g: int) -> int:
        """The adjoint of the operand, after that of the result."""
        graph, forward = self.graph, step.operation.forward
        x, z = self._stored(self._node(step.operands[0])), self._stored(self._node(step.result))
        own, kept = graph.spaces[x], self._kept_shape(step)
        if forward is logsumexp_again:
            g, z = self._along(self._with_ones(g, step, kept), own), self._along(self._with_ones(z, step, kept), own)
            power = self._by_loop("exp", self._stored(self._typed(graph.node("sub", x, z), step)), step)
            zero, below = graph.constant(0.0), graph.constant(-INFINITE)
            return self._scaled(g, graph.node("where", graph.node("oeq", z, below), zero, power), step)
        if forward is softmax_again:
            weighted = self._stored(self._scaled(g, z, step))
            total = self._along(self._typed(graph.total(weighted, sum_strides(kept, own), kept), step), own)
            return self._typed(graph.node("sub", weighted, self._scaled(z, total, step)), step)
        g = self._stored(self._filled(g, own) if g in graph.constants else g)
        total = self._along(self._typed(graph.total(g, sum_strides(kept, own), kept), step), own)
        return self._typed(graph.node("sub", g, self._scaled(self._by_loop("exp", z, step), total, step)), step)

    def _typed(self, node: int, step: Structured) -> int:
        return self._in_type_of(node, step.result)

    def _scaled(self, x: int, y: int, step: Structured) -> int:
        """A product that is zero where a factor is."""
        return self._typed(self.graph.text("mul0(x, y)", {"x": x, "y": y}), step)

    def _kept_shape(self, step: Structured) -> Shape:
        """Shape of the operand with ones in the place of what is summed over."""
        removed = self._removed(step)
        return self._of_points(tuple(1 if d in removed else n for d, n in enumerate(step.operands[0].array.shape)))

    def _removed(self, step: Structured) -> tuple[int, ...]:
        """Axes that are summed over."""
        attrs = step.payload.attrs
        found: tuple[int, ...] = attrs[0] if step.operation.forward is logsumexp_again else attrs
        return found

    def _largest(self, node: int, kept: Shape) -> int:
        """The largest elements, nan if there is one: halves of an axis beside each other, until one is left."""
        for d, extent in enumerate(kept):
            if extent == 1:
                node = self._largest_along(node, d)
        return node

    def _largest_along(self, node: int, d: int) -> int:
        graph = self.graph
        count = graph.spaces[node][d]
        rest = None
        while count > 1:
            half = count // 2
            if count % 2:
                last = self._piece_along(node, d, count - 1, 1)
                rest = last if rest is None else graph.text("maximum(x, y)", {"x": rest, "y": last})
            first, second = self._piece_along(node, d, 0, half), self._piece_along(node, d, half, half)
            node = graph.text("maximum(x, y)", {"x": first, "y": second})
            count = half
        return node if rest is None else graph.text("maximum(x, y)", {"x": node, "y": rest})

    def _piece_along(self, node: int, d: int, start: int, count: int) -> int:
        space = self.graph.spaces[node]
        axes = tuple(Axis(start if k == d else 0, k, 1) for k in range(len(space)))
        return self.graph.at(node, axes, (*space[:d], count, *space[d + 1 :]))

    def _by_loop(self, name: str, node: int, step: Structured) -> int:
        graph, text = self.graph, f"{name}(x)"
        return graph.rounded_text(text, {"x": node}) if is_single(step.result) else graph.text(text, {"x": node}, by_loops=True)

    def _stored(self, node: int) -> int:
        """A node that reads what a node is: it is computed once."""
        graph = self.graph
        if node in graph.constants or graph.nodes[node][0] == "load":
            return node
        return graph.load(*graph.kept(node), contiguous(graph.spaces[node]), graph.spaces[node])

    def _along(self, node: int, shape: Shape) -> int:
        return self.graph.at(node, broadcast_axes(self.graph.spaces[node], shape), shape)

    def _without_ones(self, node: int, step: Structured) -> int:
        """Over the shape of a result, which may lack the axes that are summed over."""
        shape = self._shape(step.result)
        if self.graph.spaces[node] == shape:
            return node
        removed, sources = self._removed(step), iter(range(len(shape)))
        axes = (Axis(0, None, 0) if d in removed else Axis(0, next(sources), 1) for d in range(len(self.graph.spaces[node])))
        return self.graph.at(node, tuple(axes), shape)

    def _with_ones(self, node: int, step: Structured, kept: Shape) -> int:
        """The other way."""
        removed, space = self._removed(step), self.graph.spaces[node]
        if node in self.graph.constants or space == kept:
            return node
        left = [d for d in range(len(kept)) if d not in removed]
        return self.graph.at(node, tuple(Axis(0, d, 1) for d in left) if space else (), kept)

    def _fail_where_infinite(self, node: int) -> None:
        """Leave it to the steps to share a derivative between infinite elements."""
        graph = self.graph
        infinite = graph.node("oeq", node, graph.constant(INFINITE))
        ones = graph.node("where", infinite, graph.constant(1.0), graph.constant(0.0))
        space = graph.spaces[node]
        count = graph.total(ones, sum_strides((1,) * (len(space) - len(self.points)) + self.points, space), self.points)
        self.failed = count if self.failed in graph.constants else graph.node("add", self.failed, count)
