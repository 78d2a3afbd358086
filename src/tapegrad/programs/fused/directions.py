"""Tangents of the values of a path along many directions at once, which are the last axis of each of them."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tapegrad.ops.products import product_again
from tapegrad.programs.fused.asked_values import AskedValues
from tapegrad.programs.fused.axis_derivatives import AxisDerivatives, goes_along_axes
from tapegrad.programs.fused.chosen_places import HostedChoice, is_choice
from tapegrad.programs.fused.expressions import Shape, contiguous
from tapegrad.programs.fused.geometry import broadcast_axes, sum_strides
from tapegrad.programs.fused.hosted_tangents import HostedTangent, is_linear_step
from tapegrad.programs.fused.lane_products import LaneProducts
from tapegrad.programs.fused.replaced_parts import Replaced
from tapegrad.programs.fused.rule_text import Unfused
from tapegrad.programs.fused.values import PathValues
from tapegrad.programs.steps import Cast, Copied, Gathered, Joined, Ruled, Step, Structured, Summed, Value, Written
from tapegrad.rules.table import RULES

__all__ = ["Directions", "lanes_of"]

LANES = 8
MOST_DIRECTIONS = 256
MOST_NUMBERS = 1500  # rules on numbers: they become one walk over the directions, and compilation is superlinear


def lanes_of(count: int) -> int:
    """How many directions are taken side by side: as many as fill registers.

    Raises
    ------
    Unfused
        If there are too many.
    """
    if count > MOST_DIRECTIONS:
        raise Unfused("derivatives along too many directions")
    return count if count == 1 else -(-count // LANES) * LANES


class Directions(PathValues):
    """Expressions of tangents, forwards over the steps.

    Parameters
    ----------
    path : PathValues
    leaves : sequence of Value
        What is differentiated by.
    seeds : int
        Buffer of the tangents of all their elements, one after the other.
    lanes : int
        How many directions there are.
    """

    def __init__(self, path: PathValues, leaves: Sequence[Value], seeds: int, lanes: int) -> None:
        AskedValues.__init__(self, path.graph, (lanes,))
        self.path, self.steps, self.before, self.hosted = path, path.steps, path.before, path.hosted
        self.runs, self.arrays = path.runs, path.arrays
        self.products = LaneProducts(path.graph, lanes)
        self._zero = self.graph.constant(0.0)
        self._numbers = place = 0
        for leaf in leaves:
            shape = self._shape(leaf)
            self._nodes[id(leaf)] = self.graph.load(seeds, place, contiguous(shape), shape)
            place += int(np.prod(shape))
        for step in reversed(self.steps_backward()):
            self._push(step)
        if self._numbers > MOST_NUMBERS:
            raise Unfused("derivatives of too many numbers along several directions")

    def tangent(self, value: Value) -> int:
        """The node of a tangent; the constant zero if there is none."""
        return self._node(value)

    def is_zero(self, value: Value) -> bool:
        """Whether a value has none."""
        return self.tangent(value) == self._zero

    def _canonical(self, value: Value) -> Value:
        return self.path._canonical(value)

    def _claim(self, array: np.ndarray) -> None:
        """Tangents have memory of their own."""

    def _floats_of(self, value: Value) -> np.ndarray:
        return self.path._floats_of(value)  # tangents are of float64 where values are of float32

    def _is_single(self, value: Value) -> bool:
        """Tangents are of float64, as those of a linear tape are."""
        return False

    def _other(self, value: Value) -> int:
        """The tangent of a view."""
        return super()._other(value) if value.of is not None and not self.is_zero(value.of) and not value.constant else self._zero

    def _push(self, step: Step) -> None:
        result = step.results_in
        if result is None:
            return
        if id(step) in self.hosted and is_choice(step):
            if not self.is_zero(step.operands[0]):  # type: ignore[attr-defined]
                self._set(result, self._chosen(step))  # type: ignore[arg-type]
        elif id(step) in self.hosted and not isinstance(step, Ruled):
            if not all(map(self.is_zero, _sources(step))):
                if not is_linear_step(step):
                    raise Unfused(f"no tangent of {step.describe()}")
                self._set(result, self._of_host_along(step))  # type: ignore[arg-type]
        elif isinstance(step, Replaced):
            before, part = self.tangent(step.before), self.tangent(step.part)
            self._set(result, self._zero if before == part == self._zero else self._with_part(step, before, part))
        elif isinstance(step, Written) and step.link != "same":
            self._set(result, self._of_write(step))
        elif isinstance(step, Cast):
            self._set(result, self.tangent(step.source))
        elif isinstance(step, Copied):
            if step.source.of is not None:
                self._set(result, self._spread(self._other(step.source), self._shape(result)))
        elif isinstance(step, Ruled):
            self._through(step)
        elif isinstance(step, Structured) and step.operation.forward is product_again:
            self._set(result, self._product(step))
        elif isinstance(step, Structured) and goes_along_axes(step):
            (x,) = step.operands
            if not self.is_zero(x):
                tangent = self._spread(self.tangent(x), self._shape(x))
                self._set(result, AxisDerivatives(self.path, self, self.products, step).tangent(tangent))
        elif isinstance(step, Summed):
            self._set(result, self._zero if self.is_zero(step.source) else self._total(step))
        elif isinstance(step, (Gathered, Joined, Structured)) and not all(map(self.is_zero, _sources(step))):
            if isinstance(step, Structured) and id(step) not in self.runs:
                raise Unfused(f"no tangent of {step.describe()}")
            self._forward(step)

    def _set(self, value: Value, node: int) -> None:
        self._nodes[id(value)] = node

    def _node(self, value: Value) -> int:
        return super()._node(value) if value.tracked else self._zero

    def _spread(self, node: int, shape: Shape) -> int:
        return self.graph.at(node, broadcast_axes(self.graph.spaces[node], shape), shape)

    def _of_write(self, step: Written) -> int:
        if not step.link:
            return self._zero
        return self._spread(self.tangent(self.path.written_source(step)), self._shape(step.result))

    def _through(self, step: Ruled) -> None:
        """By the chain rule: a sum of partials times tangents, in the order of the operands."""
        graph, own, shape = self.graph, self.path._shape(step.result), self._shape(step.result)
        found, names = self._zero, None
        for x, text in zip(step.operands, RULES[step.opcode].partials, strict=True):
            if text is None or self.is_zero(x):
                continue
            names = names or self.path.names_of(step)
            term = self.products.scaled(graph.partial(text, not own, names), self._spread(self.tangent(x), shape), own)
            found = term if found == self._zero else graph.node("add", found, term) if term != self._zero else found
        self._numbers += not own and found != self._zero
        self._set(step.result, found)

    def _total(self, step: Summed) -> int:
        graph = self.graph
        node, shape = self.tangent(step.source), self._shape(step.result)
        scale = 1.0 / step.divisor if step.divisor >= 1 else step.scale
        node = graph.product(node, graph.constant(scale))
        if step.source.number >= 0:
            return node
        return graph.total(node, sum_strides(self._summed_shape(step), graph.spaces[node]), shape)

    def _chosen(self, step: Structured) -> int:
        """The tangents of elements that index arrays choose."""
        (x,) = step.operands
        shape, own = self._shape(x), self._shape(step.result)
        whole, elements = np.zeros(shape), np.zeros(own)
        reads = [self._written_to(self._spread(self.tangent(x), shape), whole, shape), *self.path.places_of(step)]
        number = self.graph.host(HostedChoice(step, whole, elements, self.points[0]))
        return self._given_by(number, 0, reads, self._buffer_of(elements), own)

    def _of_host_along(self, step: Structured) -> int:
        """The tangents of what Python does."""
        reads, tangents = [], {}
        for k, value in enumerate(step.operands):
            if value.tracked:
                shape = self._shape(value)
                tangents[k] = np.zeros(shape)
                reads.append(self._written_to(self._spread(self.tangent(value), shape), tangents[k], shape))
        own = np.zeros(self._shape(step.result))
        number = self.graph.host(HostedTangent(step, tangents, own))
        return self._given_by(number, 0, reads + self.path.kept_of(step), self._buffer_of(own), own.shape)

    def _product(self, step: Structured) -> int:
        """``dx @ y + x @ dy``."""
        x, y = step.operands
        terms = []
        if not self.is_zero(x):
            terms.append(self.products.before(self.tangent(x), self.path._node(y)))
        if not self.is_zero(y):
            terms.append(self.products.after(self.path._node(x), self.tangent(y)))
        return self.graph.node("add", *terms) if len(terms) == 2 else terms[0] if terms else self._zero


def _sources(step: Step) -> Sequence[Value]:
    """What a step makes its result of."""
    if isinstance(step, Structured):
        return step.operands
    return step.sources if isinstance(step, Joined) else [step.source]  # type: ignore[attr-defined]
