"""Tangents and second derivatives, along many directions at once, of extremes and of sums of exponentials along axes."""

from __future__ import annotations

from typing import Any

from tapegrad.ops.normalisation import log_softmax_again, logsumexp_again, softmax_again
from tapegrad.programs.fused.exponential_sums import ExponentialSums, sums_exponentials
from tapegrad.programs.fused.extremes import chooses_extremes
from tapegrad.programs.fused.geometry import sum_strides
from tapegrad.programs.fused.lane_products import LaneProducts
from tapegrad.programs.steps import Step, Structured

__all__ = ["AxisDerivatives", "goes_along_axes"]


def goes_along_axes(step: Step) -> bool:
    """Whether a step is one of these."""
    return chooses_extremes(step) or sums_exponentials(step)


class AxisDerivatives:
    """Expressions of derivatives of one step.

    Parameters
    ----------
    path : ExponentialSums
        Whose values these are.
    own : ExponentialSums
        Expressions with the directions in the last axis.
    products : LaneProducts
    step : Structured
    """

    def __init__(self, path: ExponentialSums, own: Any, products: LaneProducts, step: Structured) -> None:
        self._path, self._own, self._products, self._step, self._graph = path, own, products, step, path.graph
        self._shape = path._shape(step.operands[0])

    def tangent(self, x_dot: int) -> int:
        """Of the result, in the order of the transposed vjp, which a linear tape has."""
        graph, own, step = self._graph, self._own, self._step
        forward = step.operation.forward
        if forward is softmax_again:
            total = self._total(self._scaled(self._path._node(step.result), x_dot))
            return self._scaled(self._path._node(step.result), graph.node("sub", x_dot, total))
        if forward is log_softmax_again:
            return graph.node("sub", x_dot, self._total(self._scaled(self._weights(), x_dot)))
        return own._without_ones(self._sum(self._scaled(self._weights(), x_dot)), step)

    def second(self, g: int, g_dot: int | None, z_dot: int, x_dot: int) -> int | None:
        """Tangent of the adjoint of the operand, after the adjoint of the result, its tangent, and the tangents of both.

        None if there is none.
        """
        graph, own, step = self._graph, self._own, self._step
        forward = step.operation.forward
        g = self._path._filled(g, self._path._shape(step.result)) if g in graph.constants and self._path._shape(step.result) else g
        if forward is softmax_again:
            z = self._path._node(step.result)
            weighted = self._scaled(g, z_dot)
            if g_dot is not None:
                weighted = graph.node("add", self._scaled(z, g_dot), weighted)
            rest = graph.node("sub", self._scaled(g, z_dot), self._scaled(self._path_total(self._path._scaled(g, z, step)), z_dot))
            inner = graph.node("sub", g_dot, self._total(weighted)) if g_dot is not None else None
            mean = self._scaled(z, inner) if inner is not None else self._negative(self._scaled(z, self._total(weighted)))
            return graph.node("add", mean, rest)
        if forward is log_softmax_again:
            p = self._weights()
            rest = self._negative(self._scaled(self._path._scaled(p, self._path_total(g), step), z_dot))
            if g_dot is None:
                return rest
            return graph.node("add", graph.node("sub", g_dot, self._scaled(p, self._total(g_dot))), rest)
        first = None
        if g_dot is not None:
            first = self._scaled(self._weights(), self._wide(own._with_ones(g_dot, step, own._kept_shape(step))))
        if forward is not logsumexp_again:
            return first
        wide = self._path._along(self._path._with_ones(g, step, self._path._kept_shape(step)), self._shape)
        weight = self._path._scaled(wide, self._weights(), step)
        z_dot = self._wide(own._with_ones(z_dot, step, own._kept_shape(step)))
        second = self._scaled(weight, graph.node("sub", x_dot, z_dot))
        return second if first is None else graph.node("add", first, second)

    def _weights(self) -> int:
        """What elements of the operand count for: their share, or the exponential."""
        if chooses_extremes(self._step):
            return self._path.share_of(self._step)
        return self._path.exponential_of(self._step)

    def _scaled(self, factor: int, node: int) -> int:
        return self._products.scaled(factor, node, self._shape)

    def _negative(self, node: int) -> int:
        return self._graph.product(node, self._graph.constant(-1.0))

    def _sum(self, node: int) -> int:
        """Along the axes, which keep one element."""
        kept = self._own._kept_shape(self._step)
        return self._graph.total(node, sum_strides(kept, self._wide_shape), kept)

    def _total(self, node: int) -> int:
        """The same beside each element."""
        return self._wide(self._own._stored(self._sum(node)))

    def _path_total(self, node: int) -> int:
        """Of what has no directions."""
        path, kept = self._path, self._path._kept_shape(self._step)
        return path._along(path._stored(self._graph.total(node, sum_strides(kept, self._shape), kept)), self._shape)

    @property
    def _wide_shape(self) -> tuple[int, ...]:
        return (*self._shape, self._products.lanes)

    def _wide(self, node: int) -> int:
        """Over the shape of the operand, with directions."""
        return self._own._along(node, self._wide_shape)
