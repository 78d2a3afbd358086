"""Second derivatives of a path: tangents of its gradient along many directions at once, backwards over the steps."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tapegrad.kernels.second_partials import PAIRS, second_partials
from tapegrad.programs.fused.adjoints import PathExpressions
from tapegrad.programs.fused.asked_values import AskedValues
from tapegrad.programs.fused.axis_derivatives import AxisDerivatives
from tapegrad.programs.fused.directions import Directions
from tapegrad.programs.fused.expressions import Shape
from tapegrad.programs.fused.geometry import sum_strides
from tapegrad.programs.fused.hosted_tangents import HostedLanes, is_linear_step
from tapegrad.programs.fused.rule_text import Unfused
from tapegrad.programs.steps import Cast, Gathered, Ruled, Step, Structured, Value
from tapegrad.rules.table import RULES

__all__ = ["Curvature"]


class Curvature(PathExpressions):
    """Expressions of tangents of adjoints, in the order of the sweep over a linear tape with second partials.

    Parameters
    ----------
    path : PathExpressions
        Whose adjoints these are.
    directions : Directions
    leaves : sequence of Value

    Attributes
    ----------
    products : list of Place
        Of the Hessian with the directions, for each leaf.
    """

    is_linear = True

    def __init__(self, path: PathExpressions, directions: Directions, leaves: Sequence[Value]) -> None:
        AskedValues.__init__(self, path.graph, directions.points)
        self.path, self.directions = path, directions
        self.steps, self.before, self.hosted, self.runs = path.steps, path.before, path.hosted, path.runs
        self.inputs, self.arrays, self.gradients = path.inputs, path.arrays, []
        self._lanes = directions.products
        for step in self.steps_backward():
            self._backward(step)
        for leaf in leaves:
            self.gradients.append(self._gradient(leaf))
        self.products = self.gradients

    def _backward(self, step: Step) -> None:
        if isinstance(step, Cast) and step.source.tracked:
            raise Unfused("second derivatives through another type, which are those of the recorded gradient")
        super()._backward(step)

    def _canonical(self, value: Value) -> Value:
        return self.path._canonical(value)

    def _floats_of(self, value: Value) -> np.ndarray[Any, Any]:
        return self.path._floats_of(value)  # tangents are of float64 where values are of float32

    def _claim(self, array: object) -> None:
        """Adjoints have memory of their own."""

    def written_source(self, step: object) -> Value:
        """What is written."""
        return self.path.written_source(step)  # type: ignore[arg-type]

    def _through_host(self, step: Structured) -> None:
        tracked = [k for k, value in enumerate(step.operands) if value.tracked]
        if not tracked:
            return
        if not is_linear_step(step, together=True):
            raise Unfused(f"no second derivative of {step.describe()}")
        g = self._adjoint(step.result)
        if g is None or g in self.graph.constants:
            return
        shape = self._shape(step.result)
        own = np.zeros(shape)
        reads = [self._written_to(self._spread(g, shape), own, shape), *self.path.kept_of(step)]
        cotangents = {k: np.zeros(self._shape(step.operands[k])) for k in tracked}
        number = self.graph.host(HostedLanes(step, own, cotangents))
        for k, array in cotangents.items():
            self._contribute(step.operands[k], self._given_by(number, k, reads, self._buffer_of(array), array.shape))

    def places_of(self, step: Structured) -> list[int]:
        """What has to be there before the places are looked at that index arrays name."""
        return self.path.places_of(step)

    def _through_map(self, step: Gathered) -> None:
        if step.source.tracked:
            raise Unfused("a strided map")

    def _through_rule(self, step: Ruled) -> None:
        adjoint = self.path.adjoints.get(id(step))
        if adjoint is None:
            return
        own, shape = self.path._shape(step.result), self._shape(step.result)
        names = self.path.names_of(step)
        firsts = self._first_terms(step, own, shape, names)
        seconds = self._second_terms(step, adjoint, own, shape, names)
        # Rows of numbers and of arrays have their entries in another order.
        for x, term in [*firsts, *seconds] if not own else [*reversed(seconds), *reversed(firsts)]:
            of_x = self._shape(self._canonical(x))
            self._contribute(x, term if of_x == shape else self.graph.total(term, sum_strides(of_x, shape), of_x))

    def _first_terms(self, step: Ruled, own: Shape, shape: Shape, names: dict[str, int]) -> list[tuple[Value, int]]:
        """Partials times the tangent of the adjoint."""
        g = self._adjoint(step.result)
        found: list[tuple[Value, int]] = []
        if g is None or g in self.graph.constants:
            return found
        g = self._spread(g, shape)
        for x, text in zip(step.operands, RULES[step.opcode].partials, strict=True):
            if text is not None and x.tracked:
                found.append((x, self._lanes.scaled(self.graph.partial(text, not own, names), g, own)))
        return [(x, term) for x, term in found if term not in self.graph.constants]

    def _second_terms(self, step: Ruled, adjoint: int, own: Shape, shape: Shape, names: dict[str, int]) -> list[tuple[Value, int]]:
        """Second partials times the adjoint and the tangents of operands."""
        graph = self.graph
        found: list[tuple[Value, int]] = []
        for number, (i, j) in enumerate(PAIRS):
            text = second_partials().get((step.opcode, number))
            if text is None or not (step.operands[i].tracked and step.operands[j].tracked):
                continue
            weight = graph.contribution(adjoint, text, True, names)
            for a, b in ((i, j),) if i == j else ((i, j), (j, i)):
                tangent = self.directions.tangent(step.operands[b])
                if tangent not in graph.constants:
                    term = self._lanes.scaled(weight, self._spread(tangent, shape), own)
                    if term not in graph.constants:
                        found.append((step.operands[a], term))
        return found

    def _through_axes(self, step: Structured) -> None:
        adjoint = self.path.adjoints.get(id(step))
        if adjoint is None:
            return
        (x,), graph = step.operands, self.graph
        g = self._adjoint(step.result)
        g = None if g is None or g in graph.constants else self._spread(g, self._shape(step.result))
        tangents = [self.directions.tangent(value) for value in (step.result, x)]
        if any(tangent in graph.constants for tangent in tangents):  # of what is tracked, and depends on nothing
            tangents = [self._filled(graph.constant(0.0), self._shape(value)) for value in (step.result, x)]
        wide = [self._spread(tangent, self._shape(value)) for tangent, value in zip(tangents, (step.result, x), strict=True)]
        term = AxisDerivatives(self.path, self, self._lanes, step).second(adjoint, g, *wide)
        if term is not None:
            self._contribute(x, term)

    def _through_product(self, step: Structured) -> None:
        adjoint = self.path.adjoints.get(id(step))
        if adjoint is None:
            return
        g = self._adjoint(step.result)
        x, y = step.operands
        if x.tracked:
            self._to_first(step, adjoint, g)
        if y.tracked:
            self._to_second(step, adjoint, g)

    def _to_first(self, step: Structured, adjoint: int, g: int | None) -> None:
        """To `x` of ``x @ y``: ``dg @ y.T + g @ dy.T``."""
        x, y = step.operands
        shape, other, tangent = self.path._shape(x), self.path._node(y), self.directions.tangent(y)
        is_outer, lanes = not self.path._shape(step.result) or y.array.ndim == 1, self._lanes
        if g is not None:
            g = self._spread(g, self._shape(step.result))
            if is_outer:
                self._contribute(x, lanes.outer((g, True), (other, False), shape, 0))
            elif x.array.ndim == 2:
                self._contribute(x, lanes.before(g, self.path._transposed(other)))
            else:
                self._contribute(x, lanes.after(other, g))
        if tangent not in self.graph.constants:
            if is_outer:
                self._contribute(x, lanes.outer((adjoint, False), (tangent, True), shape, 0))
            elif x.array.ndim == 2:
                self._contribute(x, lanes.after(adjoint, lanes.transposed(tangent)))
            else:
                self._contribute(x, lanes.before(tangent, adjoint))

    def _to_second(self, step: Structured, adjoint: int, g: int | None) -> None:
        """To `y`: ``x.T @ dg + dx.T @ g``."""
        x, y = step.operands
        shape, other, tangent = self.path._shape(y), self.path._node(x), self.directions.tangent(x)
        is_outer, lanes = not self.path._shape(step.result) or x.array.ndim == 1, self._lanes
        if g is not None:
            g = self._spread(g, self._shape(step.result))
            term = lanes.outer((g, True), (other, False), shape, 1) if is_outer else lanes.after(self.path._transposed(other), g)
            self._contribute(y, term)
        if tangent not in self.graph.constants:
            term = (
                lanes.outer((adjoint, False), (tangent, True), shape, 1)
                if is_outer
                else lanes.before(lanes.transposed(tangent), adjoint)
            )
            self._contribute(y, term)
