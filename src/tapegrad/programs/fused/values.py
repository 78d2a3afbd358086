"""The values of a recorded path as expressions."""

from __future__ import annotations

import math
from collections.abc import Callable, Collection, Sequence
from typing import Any

import numpy as np

from tapegrad.ops.products import product_again
from tapegrad.programs.fused.data_steps import operands_of, results_of
from tapegrad.programs.fused.exponential_sums import ExponentialSums, sums_exponentials
from tapegrad.programs.fused.expressions import NUMBERS, Axis, Expressions, Shape, contiguous
from tapegrad.programs.fused.extremes import chooses_extremes
from tapegrad.programs.fused.gathers import Run, runs_of
from tapegrad.programs.fused.geometry import (
    Part,
    axes_of_strides,
    axes_of_view,
    broadcast_axes,
    order_of_reshaped,
    places_of_view,
    sum_strides,
)
from tapegrad.programs.fused.hosted_steps import is_single, may_be_hosted
from tapegrad.programs.fused.replaced_parts import Replaced
from tapegrad.programs.fused.rule_text import Unfused
from tapegrad.programs.steps import (
    Computed,
    Copied,
    Gathered,
    Guard,
    Joined,
    Ruled,
    Step,
    Structured,
    Summed,
    Value,
    Viewed,
)
from tapegrad.recording.strided_maps import strided
from tapegrad.tensors.tensor import FLOATS

__all__ = ["PathValues", "Place", "is_reshaped"]

Place = tuple[int, int]  # a buffer, and the place in it of a number
NOWHERE: Place = (-1, -1)


class PathValues(ExponentialSums):
    """Expressions of the values of a path, and of whether its guards hold.

    Parameters
    ----------
    steps : sequence of Step
    inputs : sequence of Value
    points : int
        For how many points at once, 0 for one: all values have an axis of them then, the last one.
    shared : collection of int
        Inputs that are the same at all points.
    before : list of Step
        Steps that are done before, so that what they give stands in memory.
    fast : bool
        Whether last digits may be others than NumPy's.

    Attributes
    ----------
    graph : Expressions
    inputs : list of Place
        Of each input; `NOWHERE` of those that only steps read which are done before.
    arrays : list of (int, ndarray)
        Buffers of constant arrays, and of what is computed before.
    """

    def __init__(
        self,
        steps: Sequence[Step],
        inputs: Sequence[Value],
        points: int = 0,
        shared: Collection[int] = (),
        before: list[Step] | None = None,
        fast: bool = False,
    ) -> None:
        super().__init__(Expressions(fast), (points,) if points else ())
        self.steps = steps
        self._memory: list[tuple[int, int]] = []
        self.runs: dict[int, list[Run]] = {}
        self.inputs = [self._input(value, k, k in shared) for k, value in enumerate(inputs)]
        self.before = before or []
        read = {id(value) for step in self.before for value in operands_of(step)}
        self.before_inputs = [(k, value) for k, value in enumerate(inputs) if id(value) in read]
        done = set(map(id, self.before))
        for step in steps:
            if id(step) in done:
                self._known(step)
            else:
                self._express(step)

    def steps_backward(self) -> list[Step]:
        """The steps from the last one to the first, but for those that are done before."""
        done = set(map(id, self.before))
        return [step for step in reversed(self.steps) if id(step) not in done]

    def _express(self, step: Step) -> None:
        """The expressions of a step; if it has none, Python does it, but not for many points at once."""
        claimed = len(self._memory)
        try:
            self._forward(step)
        except Unfused:
            if self.points or not may_be_hosted(step):
                raise
            del self._memory[claimed:]
            self._host(step)
        else:
            self._producers.update((id(value), step) for value in results_of(step) if value.number < 0)

    def _shape(self, value: Value) -> Shape:
        return self._of_points(() if value.number >= 0 else value.array.shape)

    def _input(self, value: Value, number: int, is_shared: bool) -> Place:
        graph, shape = self.graph, self._shape(value)
        if value.number < 0:
            array = value.array
            if array.dtype not in FLOATS or not array.flags.c_contiguous or not array.size:
                if self.points:
                    raise Unfused("an argument that is not of floats in C order")
                self._foreign[id(value)] = number
                return NOWHERE
            self._claim(self._floats_of(value))
        if value.number >= 0 and (is_shared or not self.points):
            place = NUMBERS, graph.slot()
        else:
            own = shape[:-1] if is_shared else shape
            place = graph.buffer(math.prod(own), is_single(value)), -1
        self._nodes[id(value)] = self._load(place, shape, is_shared)
        return place

    def _known(self, step: Step) -> None:
        """What a step gives that was done before."""
        for value in results_of(step):
            array = value.array
            self._standing[id(value)] = None
            if value.of is not None or array.dtype not in FLOATS:
                continue
            self._claim(array)
            if array.flags.c_contiguous:
                buffer = self.graph.buffer(array.size, is_single(value))
                self.arrays.append((buffer, array))
                self._nodes[id(value)] = self._load((buffer, -1), self._shape(value), False)

    def _scale(self, step: Gathered | Summed) -> int:
        """The factor of a step, as its loop has it."""
        return self._in_type_of(self.graph.constant(step.scale), step.result)

    def _load(self, place: Place, shape: Shape, is_shared: bool) -> int:
        strides = (*contiguous(shape[:-1]), *(0 for _ in self.points)) if is_shared and self.points else contiguous(shape)
        return self.graph.load(place[0], max(place[1], 0), strides, shape)

    def _claim(self, array: np.ndarray[Any, Any]) -> None:
        if not array.size:
            raise Unfused("an array without elements")
        low, high = np.lib.array_utils.byte_bounds(array)
        if any(low < other_high and other_low < high for other_low, other_high in self._memory):
            raise Unfused("it writes over values")
        self._memory.append((low, high))

    def _node(self, value: Value) -> int:
        value = self._canonical(value)
        if id(value) not in self._nodes:
            self._nodes[id(value)] = self._other(value)
        return self._nodes[id(value)]

    def _other(self, value: Value) -> int:
        if value.constant:
            array = np.asarray(value.array)
            if not array.ndim:
                return self.graph.constant(float(array))
            if array.dtype.kind not in "fiub":
                raise Unfused(f"a constant of dtype {array.dtype}")
            # Contents never change: outside arrays are compared, and others belong to the path.
            own = np.ascontiguousarray(array, array.dtype if array.dtype in FLOATS else np.float64)
            buffer = self.graph.buffer(own.size, is_single(value))
            self.arrays.append((buffer, own.copy() if own is array else own))
            return self._load((buffer, -1), self._of_points(own.shape), True)
        if value.of is not None:
            whole = value.of  # not what it is a copy of, which has other memory
            axes = axes_of_view(self._floats_of(whole), self._floats_of(value))
            if axes is not None:
                axes = self._axes_of_points(axes, value.array.ndim)
                return self.graph.at(self._node(whole), axes, self._of_points(value.array.shape))
            if whole.array.flags.c_contiguous and value.array.flags.c_contiguous and whole.array.size == value.array.size:
                return self.graph.reshaped(self._node(whole), self._of_points(value.array.shape))
            order = order_of_reshaped(whole.array, value.array)
            if order is not None:
                return self._view_of_reshaped(self._node(whole), value.array, order)
            places = places_of_view(whole.array, value.array)
            if places is not None:
                return self._at_places(self._node(whole), *places)
        raise Unfused(
            "an argument that is not of floats in C order" if id(value) in self._foreign else "a value that no step gives"
        )

    def _at_places(self, node: int, shape: Shape, strides: Shape, offset: int) -> int:
        """Elements of an array by strides and an offset."""
        if node in self.graph.constants:
            return node
        buffer, first = self.graph.kept(node)
        by = math.prod(self.points)
        steps = (*(by * stride for stride in strides), *(1 for _ in self.points))
        return self.graph.load(buffer, first + by * offset, steps, self._of_points(shape))

    def _forward(self, step: Step) -> None:
        graph = self.graph
        if isinstance(step, Viewed):
            return
        if isinstance(step, Copied):
            self._copy(step)
        elif isinstance(step, Ruled):
            z = step.result
            if z.number < 0:
                self._claim(self._floats_of(z))
                if not z.array.ndim and not is_single(z):
                    raise Unfused("an array without dimensions")
            shape = self._shape(z)
            operands = [self._operand(x, shape) for x in step.operands]
            if is_single(z):
                self._nodes[id(z)] = graph.rounded_value(step.opcode, operands)
            else:
                self._nodes[id(z)] = graph.value(step.opcode, operands, z.number >= 0, step.way)
        elif isinstance(step, Summed):
            self._sum(step)
        elif isinstance(step, Gathered):
            x = self._canonical(step.source)
            axes = self._gathered_axes(step)
            self._claim(self._floats_of(step.result))
            if axes is None and is_reshaped(step):
                node = graph.reshaped(self._node(x), self._of_points(tuple(step.dims)))
            elif axes is None:
                node = self._taken(step, x, step.result, lambda a: strided(a, step.dims, step.strides, step.offset))
            else:
                node = graph.at(self._node(x), axes, self._of_points(tuple(step.dims)))
            if step.scale != 1.0:
                node = self._in_type_of(graph.product(node, self._scale(step)), step.result)
            self._nodes[id(step.result)] = graph.reshaped(node, self._shape(step.result))
        elif isinstance(step, Joined):
            self._join(step)
        elif isinstance(step, Replaced):
            whole, part = self._node(step.before), self._node(step.part)
            self._nodes[id(step.result)] = self._with_part(step, whole, part)
        elif isinstance(step, Computed):
            self._compute(step)
        elif isinstance(step, Guard):
            self._guard(step)
        elif isinstance(step, Structured) and step.operation.forward is product_again:
            self._multiply(step)
        elif isinstance(step, Structured) and (chooses_extremes(step) or sums_exponentials(step)):
            if step.operands[0].number >= 0 or not step.operands[0].array.ndim:
                raise Unfused(f"{step.describe()} of a number")
            if step.result.number < 0:
                self._claim(self._floats_of(step.result))
            self._nodes[id(step.result)] = (self._choose_extremes if chooses_extremes(step) else self._sum_exponentials)(step)
        elif isinstance(step, Structured) and step.name == "IndexBackward0":
            self._gather(step)
        else:
            raise Unfused(f"no code for {step.describe()}")

    def _operand(self, value: Value, shape: Shape) -> int:
        node = self._node(value)
        own = self.graph.spaces[node]
        if own == shape or node in self.graph.constants:
            return node
        return self.graph.at(node, broadcast_axes(own, shape), shape)

    def names_of(self, step: Ruled) -> dict[str, int]:
        """What the text of a rule's partials calls its operands and its result."""
        shape = self._shape(step.result)
        nodes = [self._operand(x, shape) for x in step.operands]
        names = dict(zip("xyw", self.graph.level([*nodes, self._node(step.result)]) if shape else nodes, strict=False))
        names["z"] = self._node(step.result)
        return names

    def _sum(self, step: Summed) -> None:
        source = self._node(step.source)
        own, shape = self._shape(step.source), self._shape(step.result)
        if step.result.number < 0:
            self._claim(self._floats_of(step.result))
        if source in self.graph.constants:
            raise Unfused("a sum of constants")
        kept = self._summed_shape(step)
        if own == self.points:  # of a number, which starts from zero
            found = self.graph.node("add", *self.graph.level((source, self.graph.constant(0.0))))
        else:
            found = self.graph.total(source, sum_strides(kept, own), shape)
        found = self._in_type_of(found, step.result)
        if step.divisor > 1:
            divisor = self._in_type_of(self.graph.constant(float(step.divisor)), step.result)
            found = self.graph.node("div", found, divisor)
        elif step.divisor == 0:
            found = self.graph.product(found, self._scale(step))
        self._nodes[id(step.result)] = self._in_type_of(found, step.result)

    def _summed_shape(self, step: Summed) -> Shape:
        """Shape of the sum with extents of one in the place of what was summed over."""
        own = self._shape(self._canonical(step.source))
        rank = len(own) - len(self.points)
        axes = range(rank) if step.axes is None else step.axes
        return tuple(1 if d in axes else extent for d, extent in enumerate(own))

    def _join(self, step: Joined) -> None:
        graph = self.graph
        parts: list[Part] = []
        self._claim(self._floats_of(step.result))
        rows, start = step.result.array.size // sum(step.widths), 0
        for source, width in zip(step.sources, step.widths, strict=True):
            shape = self._of_points((rows, width))
            node = self._node(source)
            node = node if node in graph.constants else graph.reshaped(node, shape)
            parts.append((node, self._axes_of_points((Axis(0, 0, 1), Axis(start, 1, 1)), 2), shape, True))
            start += width
        whole = self._assembled(parts, self._of_points((rows, sum(step.widths))), apart=True, single=self._is_single(step.result))
        self._nodes[id(step.result)] = graph.reshaped(whole, self._shape(step.result))

    def _gather(self, step: Structured) -> None:
        """Elements at places that are the same in each run."""
        (x,) = step.operands
        self._claim(self._floats_of(step.result))
        if not step.fixed or x.number >= 0:
            raise Unfused("an index array")
        node = self._taken(step, x, step.result, lambda a: np.asarray(step.forward([a.reshape(x.array.shape)])))
        self._nodes[id(step.result)] = self.graph.reshaped(node, self._shape(step.result))

    def _taken(self, step: Step, x: Value, result: Value, take: Callable[[np.ndarray[Any, Any]], Any]) -> int:
        """Elements of an array as a few pieces with steps."""
        runs = self.runs.get(id(step)) or runs_of(take, x.array.size, result.array.size)
        if runs is None:
            raise Unfused("an index array")
        self.runs[id(step)] = runs
        flat = self.graph.reshaped(self._node(x), self._of_points((x.array.size,)))
        parts: list[Part] = []
        for start, first, length, by in runs:
            own = self._of_points((length,))
            piece = self.graph.at(flat, self._axes_of_points((Axis(first, 0, by),), 1), own)
            parts.append((piece, self._axes_of_points((Axis(start, 0, 1),), 1), own, True))
        return self._assembled(parts, self._of_points((result.array.size,)), apart=True, single=self._is_single(result))

    def _multiply(self, step: Structured) -> None:
        if step.result.number < 0:
            self._claim(self._floats_of(step.result))
        if (
            self.points
            or len({*map(is_single, (*step.operands, step.result))}) > 1
            or any(value.number >= 0 or value.array.ndim > 2 for value in step.operands)
        ):
            raise Unfused("a product of many matrices")
        x, y = (self._node(value) for value in step.operands)
        self._nodes[id(step.result)] = self.graph.matmul(x, y, is_single(step.result))

    def _gathered_axes(self, step: Gathered) -> tuple[Axis, ...] | None:
        """The axes of the operand; None for a map of a vector that is no view of it."""
        shape = step.source.array.shape
        axes = axes_of_strides(shape, contiguous(shape), step.offset, tuple(step.dims), tuple(step.strides))
        if axes is None and len(shape) != 1 and not is_reshaped(step):
            raise Unfused("a strided map")
        return None if axes is None else self._axes_of_points(axes, len(step.dims))


def is_reshaped(step: Gathered) -> bool:
    """Whether a strided map gives all elements in their order."""
    dims = tuple(step.dims)
    return math.prod(dims) == step.source.array.size and not step.offset and tuple(step.strides) == contiguous(dims)
