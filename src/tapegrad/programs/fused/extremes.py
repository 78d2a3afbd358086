"""Largest and smallest elements along axes as expressions, and what else is computed along axes."""

from __future__ import annotations

from tapegrad.ops.extremes import largest_again, smallest_again
from tapegrad.programs.fused.asked_values import AskedValues
from tapegrad.programs.fused.expressions import Axis, Shape, contiguous
from tapegrad.programs.fused.geometry import broadcast_axes, sum_strides
from tapegrad.programs.steps import Step, Structured

__all__ = ["Extremes", "chooses_extremes"]

CHOICES = {largest_again: "maximum", smallest_again: "minimum"}


def chooses_extremes(step: Step) -> bool:
    """Whether the value of a step is the largest or smallest element, or those along axes."""
    return isinstance(step, Structured) and step.operation.forward in CHOICES


class Extremes(AskedValues):
    """Expressions of extremes, and of what is computed along axes."""

    def _choose_extremes(self, step: Structured) -> int:
        """The value, over the shape of the result."""
        x = self._stored(self._node(step.operands[0]))
        found = self._stored(self._extreme_of(x, self._kept_shape(step), CHOICES[step.operation.forward]))
        self._fail_at_zeros(x, found)
        return self._without_ones(found, step)

    def _back_from_extremes(self, step: Structured, g: int) -> int:
        """The adjoint of the operand, after that of the result."""
        own, kept = self._shape(step.operands[0]), self._kept_shape(step)
        return self._scaled(self._along(self._with_ones(g, step, kept), own), self.share_of(step), step)

    def share_of(self, step: Structured) -> int:
        """What part of the result's adjoint each element gets: all that are the extreme have the same share."""
        graph = self.graph
        x, z = self._stored(self._node(step.operands[0])), self._stored(self._node(step.result))
        own, kept = graph.spaces[x], self._kept_shape(step)
        one, zero = graph.constant(1.0), graph.constant(0.0)
        z = self._along(self._with_ones(z, step, kept), own)
        undefined = graph.node("where", graph.node("une", x, x), one, zero)  # nan ties with nan
        same = graph.node("where", graph.node("oeq", x, z), one, zero)
        chosen = self._stored(graph.node("where", graph.node("une", z, z), undefined, same))
        count = graph.total(chosen, sum_strides(kept, own), kept)
        return self._typed(graph.node("div", chosen, self._along(count, own)), step)

    def _fail_at_zeros(self, x: int, found: int) -> None:
        """Leave it to the steps which one of zeros with different signs NumPy chooses."""
        graph = self.graph
        z, one = self._along(found, graph.spaces[x]), graph.constant(1.0)
        differs = graph.node(
            "where", graph.node("une", *(graph.node("copysign", one, k) for k in (x, z))), one, graph.constant(0.0)
        )
        both = graph.node("where", graph.node("oeq", x, z), differs, graph.constant(0.0))
        self._fail_where(graph.node("oeq", both, one), graph.spaces[x])

    def _fail_where(self, asked: int, space: Shape) -> None:
        """Leave it to the steps where a comparison over a space holds."""
        graph = self.graph
        ones = graph.node("where", asked, graph.constant(1.0), graph.constant(0.0))
        count = graph.total(ones, sum_strides((1,) * (len(space) - len(self.points)) + self.points, space), self.points)
        self.failed = count if self.failed in graph.constants else graph.node("add", self.failed, count)

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
        """Axes that are left out, or have one element afterwards."""
        attrs = step.payload.attrs
        found: tuple[int, ...] = attrs[0] if attrs and type(attrs[0]) is tuple else attrs
        return found

    def _extreme_of(self, node: int, kept: Shape, choose: str) -> int:
        """The largest or smallest elements, nan if there is one: halves of an axis beside each other, until one is left."""
        for d, extent in enumerate(kept):
            if extent == 1:
                node = self._extreme_along(node, d, f"{choose}(x, y)")
        return node

    def _extreme_along(self, node: int, d: int, choice: str) -> int:
        graph = self.graph
        count = graph.spaces[node][d]
        rest = None
        while count > 1:
            half = count // 2
            if count % 2:
                last = self._piece_along(node, d, count - 1, 1)
                rest = last if rest is None else graph.text(choice, {"x": rest, "y": last})
            first, second = self._piece_along(node, d, 0, half), self._piece_along(node, d, half, half)
            node = graph.text(choice, {"x": first, "y": second})
            count = half
        return node if rest is None else graph.text(choice, {"x": node, "y": rest})

    def _piece_along(self, node: int, d: int, start: int, count: int) -> int:
        space = self.graph.spaces[node]
        axes = tuple(Axis(start if k == d else 0, k, 1) for k in range(len(space)))
        return self.graph.at(node, axes, (*space[:d], count, *space[d + 1 :]))

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
