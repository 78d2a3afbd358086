"""The value of a recorded path and its gradient as expressions, with the operations of the eager sweep in its order."""

from __future__ import annotations

import math
from collections.abc import Collection, Sequence

import numpy as np

from tapegrad.programs.fused.axis_derivatives import goes_along_axes
from tapegrad.programs.fused.chosen_places import HostedReturn, is_choice
from tapegrad.programs.fused.data_steps import steps_before
from tapegrad.programs.fused.expressions import NUMBERS, Axis, Shape, contiguous
from tapegrad.programs.fused.extremes import chooses_extremes
from tapegrad.programs.fused.geometry import (
    Part,
    axes_of_view,
    broadcast_axes,
    is_whole,
    order_of_reshaped,
    places_of_view,
    sum_strides,
)
from tapegrad.programs.fused.hosted_steps import is_single
from tapegrad.programs.fused.replaced_parts import Replaced
from tapegrad.programs.fused.rule_text import Unfused
from tapegrad.programs.fused.values import PathValues, Place, is_reshaped
from tapegrad.programs.fused.versions import versions_of
from tapegrad.programs.steps import Cast, Copied, Gathered, Joined, Ruled, Step, Structured, Summed, Value, Viewed, Written
from tapegrad.rules.table import RULES

__all__ = ["PathExpressions"]

MOST = 40_000_000  # elements of the buffers together


class PathExpressions(PathValues):
    """Value and gradient of a path.

    Attributes
    ----------
    gradients : list of Place
        Of the gradients by the leaves.
    value, guards : Place
        Of the value, and of how many guards failed.
    has_guards : bool
    adjoints : dict of int
        Those of the results of rules and products, by the identities of their steps.
    is_linear : bool
        Whether adjoints of float32 are as the sweeps of a linear tape have them, which round nothing on the way.
    """

    is_linear = False

    def __init__(
        self,
        steps: Sequence[Step],
        inputs: Sequence[Value],
        leaves: Sequence[Value],
        outputs: Sequence[Value],
        points: int = 0,
        shared: Collection[int] = (),
        fast: bool = False,
    ) -> None:
        steps, outputs = versions_of(steps, inputs, outputs)
        before = [] if points else steps_before(steps, inputs, leaves)
        super().__init__(steps, inputs, points, shared, before, fast)
        self.has_guards = self.failed not in self.graph.constants
        self.adjoints: dict[int, int] = {}
        self.value, self.guards = self._seed(outputs), self._written(self.failed)
        for step in self.steps_backward():
            self._backward(step)
        self.gradients: list[Place] = []
        for leaf in leaves:
            self.gradients.append(self._gradient(leaf))
        if sum(self.graph.sizes) > MOST:
            raise Unfused("it takes too much memory")

    def _seed(self, outputs: Sequence[Value]) -> Place:
        """Begin with the adjoints of the outputs; where the value goes."""
        (output,) = outputs
        if output.number < 0 and (output.array.ndim or not is_single(output)):
            raise Unfused("its value is no number")
        self._contribute(output, self.graph.constant(1.0))
        return self._written(self._node(output))

    def _written(self, node: int) -> Place:
        graph = self.graph
        if self.points:
            buffer = graph.buffer(self.points[0])
            node = self._filled(node, self.points) if node in graph.constants else self._spread(node, self.points)
            graph.write(node, buffer, 0, (1,))
            return buffer, -1
        slot = graph.slot()
        graph.write(node, NUMBERS, slot, ())
        return NUMBERS, slot

    def _contribute(self, value: Value, node: int) -> None:
        if value.tracked:
            value = self._canonical(value)
            shape = self._shape(value)
            self._contribute_at(value, node, tuple(Axis(0, d, 1) for d in range(len(shape))), shape, True)

    def _adjoint(self, value: Value) -> int | None:
        """What was contributed to a value, in the order of the sweep; None if nothing was."""
        parts = self._parts.get(id(value))
        if parts is None:
            return None
        shape = self._shape(value)
        if all(is_whole(axes, own, shape) for _, axes, own, _ in parts):
            found = self._adjoint_of(self._spread(parts[0][0], shape), value)
            for node, *_ in parts[1:]:
                found = self._adjoint_of(self.graph.node("add", found, self._spread(node, shape)), value)
            return self._spread(found, shape)
        return self._assembled(parts, shape, single=self._has_rounded_adjoint(value))

    def _has_rounded_adjoint(self, value: Value) -> bool:
        return is_single(value) and not self.is_linear

    def _adjoint_of(self, node: int, value: Value) -> int:
        return self._in_type_of(node, value) if self._has_rounded_adjoint(value) else node

    def _spread(self, node: int, shape: Shape) -> int:
        return self.graph.at(node, broadcast_axes(self.graph.spaces[node], shape), shape)

    def _backward(self, step: Step) -> None:
        graph = self.graph
        if id(step) in self.hosted and not isinstance(step, Ruled):
            if self.is_linear and isinstance(step, Structured) and is_choice(step) and (self.points or not is_single(step.result)):
                self._through_choice(step)
            elif isinstance(step, Structured):
                if not is_choice(step):
                    self._need_doubles(step)
                self._through_host(step)
            elif isinstance(step, Gathered):
                self._through_map(step)
        elif isinstance(step, Replaced):
            self._through_part(step)
        elif isinstance(step, Written) and step.link != "same":
            self._through_write(step)
        elif isinstance(step, Cast):
            g = self._adjoint(step.result)
            if g is not None and step.source.tracked:
                self._contribute(step.source, g)
        elif isinstance(step, Viewed) or (isinstance(step, Copied) and step.source.of is not None):
            view = step.result if isinstance(step, Viewed) else step.source
            g = self._adjoint(step.result)
            if g is not None and view.of is not None and view.of.tracked:
                self._to_whole(view, g)
        elif isinstance(step, Ruled):
            self._through_rule(step)
        elif isinstance(step, Summed):
            g = self._adjoint(step.result)
            if g is not None:
                own, kept = self._shape(self._canonical(step.source)), self._summed_shape(step)
                scale = 1.0 / step.divisor if step.divisor >= 1 else step.scale
                g = graph.product(g, graph.constant(scale)) if scale != 1.0 else g
                if graph.spaces[g]:
                    g = graph.at(graph.reshaped(g, kept), broadcast_axes(kept, own), own)
                self._contribute(step.source, g)
        elif isinstance(step, Gathered):
            g = self._adjoint(step.result)
            if g is not None:
                dims = self._of_points(tuple(step.dims))
                g = graph.reshaped(g, dims) if g not in graph.constants else g
                g = graph.product(g, graph.constant(step.scale)) if step.scale != 1.0 else g
                axes = self._gathered_axes(step)
                if step.source.tracked and axes is not None:
                    self._contribute_at(self._canonical(step.source), g, axes, dims, False)
                elif step.source.tracked and is_reshaped(step):
                    self._contribute(step.source, g if g in graph.constants else graph.reshaped(g, self._shape(step.source)))
                elif step.source.tracked:
                    for part in self._taken_back(step, g, step.result.array.size):
                        self._contribute_at(self._canonical(step.source), *part)
        elif isinstance(step, Joined):
            self._through_join(step)
        elif isinstance(step, Structured) and goes_along_axes(step):
            self._need_doubles(step)
            if step.operands[0].tracked:
                self._through_axes(step)
        elif isinstance(step, Structured) and id(step) in self.runs:
            self._through_gather(step)
        elif isinstance(step, Structured):
            self._through_product(step)

    def _through_axes(self, step: Structured) -> None:
        g = self._adjoint(step.result)
        if g is not None:
            self.adjoints[id(step)] = g
            back = self._back_from_extremes if chooses_extremes(step) else self._back_from_exponentials
            self._contribute(step.operands[0], back(step, g))

    def _through_choice(self, step: Structured) -> None:
        """From elements that index arrays choose to the array."""
        (x,), g = step.operands, self._adjoint(step.result)
        if g is None or not x.tracked:
            return
        shape, own = self._shape(x), self._shape(step.result)
        whole, elements = np.zeros(shape), np.zeros(own)
        reads = [self._written_to(self._spread(g, own), elements, own), *self.places_of(step)]
        number = self.graph.host(HostedReturn(step, whole, elements, math.prod(self.points)))
        self._contribute(x, self._given_by(number, 0, reads, self._buffer_of(whole), shape))

    def _need_doubles(self, step: Structured) -> None:
        """Refuse derivatives of float32 that are rounded on the way, where a linear tape has its own."""
        if self.is_linear and any(map(is_single, (*step.operands, step.result))):
            raise Unfused(f"a linear tape of {step.describe()} of dtype float32")

    def _to_whole(self, view: Value, g: int) -> None:
        assert view.of is not None
        whole = self._canonical(view.of)
        axes = axes_of_view(view.of.array, view.array)
        shape = self._shape(whole)
        if axes is not None:
            own = self._of_points(view.array.shape)
            axes = self._axes_of_points(axes, view.array.ndim)
            self._contribute_at(whole, self._spread(g, own), axes, own, view.array.flags.c_contiguous)
            return
        if view.array.flags.c_contiguous and view.of.array.flags.c_contiguous and view.array.size == view.of.array.size:
            self._contribute(whole, g if g in self.graph.constants else self.graph.reshaped(g, shape))
            return
        order = order_of_reshaped(view.of.array, view.array)
        if order is not None:
            own = self._of_points(view.array.shape)
            g = self._filled(g, own) if g in self.graph.constants else self._spread(g, own)
            self._contribute(whole, self._back_from_reshaped(g, view.array, order, shape))
            return
        places = places_of_view(view.of.array, view.array)
        if places is None:
            raise Unfused("a view of an array in another order")
        self._add_at(whole, g, view.array.shape, places)

    def _contribute_at(self, whole: Value, g: int, axes: tuple[Axis, ...], shape: Shape, dense: bool) -> None:
        self._parts.setdefault(id(whole), []).append((g, axes, shape, dense))

    def _through_rule(self, step: Ruled) -> None:
        z = step.result
        g = self._adjoint(z)
        if g is None:
            return
        graph, shape = self.graph, self._shape(z)
        names = self.names_of(step)
        if shape and g not in graph.constants:
            g = graph.at(g, broadcast_axes(graph.spaces[g], shape), shape)
        self.adjoints[id(step)] = g
        for x, text in zip(step.operands, RULES[step.opcode].partials, strict=True):
            if text is None or not x.tracked:
                continue
            term = graph.contribution(g, text, z.number >= 0, names)
            own = self._shape(self._canonical(x))
            if own != shape:
                if not graph.spaces[term]:
                    term = graph.at(term, (), shape) if term not in graph.constants else self._filled(term, shape)
                term = graph.total(term, sum_strides(own, shape), own)
            self._contribute(x, term)

    def _through_gather(self, step: Structured) -> None:
        (x,) = step.operands
        g = self._adjoint(step.result)
        if g is None or not x.tracked:
            return
        g = self._of_host(g, x)
        whole = self._assembled(self._taken_back(step, g, step.result.array.size), self._of_points((x.array.size,)))
        whole = self._of_host(whole, x)
        self._contribute(x, self.graph.reshaped(whole, self._shape(x)))

    def _of_host(self, node: int, value: Value) -> int:
        """An adjoint as rows have it whose derivative is Python's, also on a linear tape: in the dtype of a value."""
        return self._in_type_of(node, value) if self.is_linear and not self.points else node

    def _taken_back(self, step: Step, g: int, count: int) -> list[Part]:
        """Parts of an adjoint at the places that its elements were taken from."""
        graph = self.graph
        g = g if g in graph.constants else graph.reshaped(g, self._of_points((count,)))
        parts: list[Part] = []
        for start, first, length, by in self.runs[id(step)]:
            own = self._of_points((length,))
            piece = graph.at(g, self._axes_of_points((Axis(start, 0, 1),), 1), own)
            parts.append((piece, self._axes_of_points((Axis(first, 0, by),), 1), own, False))
        return parts

    def _through_product(self, step: Structured) -> None:
        g = self._adjoint(step.result)
        if g is None:
            return
        graph, shape = self.graph, self._shape(step.result)
        if g in graph.constants and shape:
            g = self._filled(g, shape)
        self.adjoints[id(step)] = g
        x, y = step.operands
        first, second = (graph.in_memory(self._node(value), is_single(value)) for value in (x, y))  # where the product has them
        if x.tracked:
            if not shape or y.array.ndim == 1:  # g times y, for each row
                term = self._outer(g, second, self._shape(x), 0)
            else:
                factors = (g, self._transposed(second)) if x.array.ndim == 2 else (second, g)
                term = graph.matmul(*factors, self._has_rounded_adjoint(x))
            self._contribute(x, term)
        if y.tracked:
            if not shape or x.array.ndim == 1:  # x times g, for each column
                term = self._outer(g, first, self._shape(y), 1)
            else:
                term = graph.matmul(self._transposed(first), g, self._has_rounded_adjoint(y))
            self._contribute(y, term)

    def _transposed(self, node: int) -> int:
        rows, columns = self.graph.spaces[node]
        return self.graph.at(node, (Axis(0, 1, 1), Axis(0, 0, 1)), (columns, rows))

    def _outer(self, g: int, other: int, shape: Shape, along: int) -> int:
        """Products of a vector or number, which varies along one dimension, and the other operand, over the shape of one."""
        graph = self.graph
        if len(shape) == 2:
            g = graph.at(g, (Axis(0, along, 1),), shape)
            other = graph.at(other, (Axis(0, 1 - along, 1),), shape)
        else:
            g = self._spread(g, shape)
        return graph.product(g, other)

    def _through_join(self, step: Joined) -> None:
        g = self._adjoint(step.result)
        if g is None:
            return
        graph, start = self.graph, 0
        rows = step.result.array.size // sum(step.widths)
        if g not in graph.constants:
            g = graph.reshaped(g, self._of_points((rows, sum(step.widths))))
        for source, width in zip(step.sources, step.widths, strict=True):
            axes = self._axes_of_points((Axis(0, 0, 1), Axis(start, 1, 1)), 2)
            part = graph.at(g, axes, self._of_points((rows, width)))
            own = self._shape(self._canonical(source))
            if part in graph.constants:
                self._contribute(source, part)
            elif source.number < 0:
                self._contribute(source, graph.reshaped(part, own))
            else:
                axes = (Axis(0, None, 0), Axis(0, None, 0), *(Axis(0, 0, 1) for _ in self.points))
                self._contribute(source, graph.at(part, axes, own))
            start += width

    def _gradient(self, leaf: Value) -> Place:
        if leaf.number < 0:
            self._floats_of(leaf)  # a gradient has the dtype of its leaf, also where nothing depends on that
        graph, shape, single = self.graph, self._shape(leaf), self._has_rounded_adjoint(leaf)
        parts = self._parts.get(id(leaf))
        if is_single(leaf) and not shape:
            raise Unfused("a gradient by a number of float32")
        if not shape:
            g = self._adjoint(leaf)
            return self._written(graph.constant(0.0) if g is None else g)
        if parts is not None and not all(is_whole(axes, own, shape) for _, axes, own, _ in parts):
            buffer = graph.buffer(int(np.prod(shape)), single)
            self._assembled(parts, shape, buffer, single=single)
            return buffer, -1
        g = self._adjoint(leaf)
        g = graph.constant(0.0) if g is None else g
        if (place := self._whole_buffer(g)) is not None and (place[0] in graph.singles) == single:
            return place
        buffer = graph.buffer(int(np.prod(shape)), single)
        graph.write(self._filled(g, shape) if g in graph.constants else g, buffer, 0, contiguous(shape))
        return buffer, -1

    def _whole_buffer(self, node: int) -> Place | None:
        """Where a node stands already if it is all of a buffer that the code writes, and no gradient stands there."""
        operation, *own = self.graph.nodes[node]
        if operation != "load" or own[1] or own[2] != contiguous(self.graph.spaces[node]):
            return None
        place: Place = (own[0], -1)
        is_whole_one = math.prod(self.graph.spaces[node]) == self.graph.sizes[own[0]] and own[0] != NUMBERS
        taken = {buffer for buffer, _ in (*self.inputs, *self.gradients, *self.arrays)}
        return place if is_whole_one and own[0] not in taken else None
