"""Sums of exponentials as expressions: logsumexp, softmax and its logarithm, as `tapegrad.ops.normalisation` computes them."""

from __future__ import annotations

import math

from tapegrad.ops.normalisation import log_softmax_again, logsumexp_again, softmax_again
from tapegrad.programs.fused.extremes import Extremes
from tapegrad.programs.fused.geometry import sum_strides
from tapegrad.programs.fused.hosted_steps import is_single
from tapegrad.programs.steps import Step, Structured

__all__ = ["ExponentialSums", "sums_exponentials"]

KINDS = (logsumexp_again, softmax_again, log_softmax_again)
INFINITE = math.inf


def sums_exponentials(step: Step) -> bool:
    """Whether a step is one of these."""
    return isinstance(step, Structured) and step.operation.forward in KINDS


class ExponentialSums(Extremes):
    """Expressions of sums of exponentials along axes."""

    def _sum_exponentials(self, step: Structured) -> int:
        """The value, over the shape of the result."""
        graph, forward = self.graph, step.operation.forward
        x = self._stored(self._node(step.operands[0]))
        own, kept = graph.spaces[x], self._kept_shape(step)
        top = self._extreme_of(x, kept, "maximum")
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
        own, kept = self._shape(step.operands[0]), self._kept_shape(step)
        if forward is logsumexp_again:
            return self._scaled(self._along(self._with_ones(g, step, kept), own), self.exponential_of(step), step)
        if forward is softmax_again:
            z = self._stored(self._node(step.result))
            weighted = self._stored(self._scaled(g, z, step))
            total = self._along(self._typed(graph.total(weighted, sum_strides(kept, own), kept), step), own)
            return self._typed(graph.node("sub", weighted, self._scaled(z, total, step)), step)
        g = self._stored(self._filled(g, own) if g in graph.constants else g)
        total = self._along(self._typed(graph.total(g, sum_strides(kept, own), kept), step), own)
        return self._typed(graph.node("sub", g, self._scaled(self.exponential_of(step), total, step)), step)

    def exponential_of(self, step: Structured) -> int:
        """What the derivative of a logarithm multiplies with: each element's part of the sum."""
        graph, own = self.graph, self._shape(step.operands[0])
        z = self._stored(self._node(step.result))
        if step.operation.forward is log_softmax_again:
            return self._by_loop("exp", z, step)
        x, z = self._stored(self._node(step.operands[0])), self._along(self._with_ones(z, step, self._kept_shape(step)), own)
        power = self._by_loop("exp", self._stored(self._typed(graph.node("sub", x, z), step)), step)
        return graph.node("where", graph.node("oeq", z, graph.constant(-INFINITE)), graph.constant(0.0), power)

    def _by_loop(self, name: str, node: int, step: Structured) -> int:
        graph, text = self.graph, f"{name}(x)"
        return graph.rounded_text(text, {"x": node}) if is_single(step.result) else graph.text(text, {"x": node}, by_loops=True)

    def _fail_where_infinite(self, node: int) -> None:
        """Leave it to the steps to share a derivative between infinite elements."""
        self._fail_where(self.graph.node("oeq", node, self.graph.constant(INFINITE)), self.graph.spaces[node])
