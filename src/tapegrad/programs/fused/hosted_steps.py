"""Steps without expressions, and their derivatives: Python does them between pieces of machine code, in the memory of the path."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tapegrad.arrays.floating_point_warnings import quiet
from tapegrad.ops.namespaces import PLAIN
from tapegrad.programs.fused.assembled_arrays import AssembledArrays
from tapegrad.programs.fused.data_steps import operands_of, results_of
from tapegrad.programs.fused.expressions import Expressions, Shape
from tapegrad.programs.fused.geometry import Part, broadcast_axes
from tapegrad.programs.fused.rule_text import Unfused
from tapegrad.programs.fused.single_precision import FLOAT32
from tapegrad.programs.steps import Computed, Gathered, Guard, Ruled, Step, Structured, Value
from tapegrad.recording.strided_maps import strided
from tapegrad.tensors.tensor import FLOATS, Tensor, make

__all__ = ["HostedDerivative", "HostedSteps", "is_single", "may_be_hosted", "saved_by"]

Array = np.ndarray[Any, Any]


class HostedDerivative:
    """The vjp of a structural operation, with what its row saves.

    Parameters
    ----------
    step : Structured
    g : ndarray
        Where the adjoint of its result stands.
    cotangents : dict
        Where that of each operand that has one is to stand.
    """

    __slots__ = ("_g", "_needs", "_saved", "_saves_result", "_step", "cotangents")

    def __init__(self, step: Structured, g: Array, cotangents: dict[int, Array]) -> None:
        self._step, self._g, self.cotangents = step, g, cotangents
        self._needs = tuple(k in cotangents for k in range(len(step.operands)))
        self._saved, self._saves_result = saved_by(step)

    def run(self) -> bool:
        """Do it; False if it gives something else than cotangents of these shapes."""
        found = self._found()
        for k, own in self.cotangents.items():
            data = None if k >= len(found) or found[k] is None else found[k]._data  # type: ignore[union-attr]
            if data is None or np.shape(data) != self._step.operands[k].array.shape:
                return False
            own[...] = data
        return not any(c is not None and self._needs[k] for k, c in enumerate(found) if k not in self.cotangents)

    def look(self) -> None:
        """Leave out cotangents that there are none of, whatever the values are."""
        with quiet():
            found = self._found()
        self.cotangents = {k: own for k, own in self.cotangents.items() if k < len(found) and found[k] is not None}

    def _found(self) -> Sequence[Tensor | None]:
        step = self._step
        values = [make(value.array, 0) if k in self._saved else None for k, value in enumerate(step.operands)]
        values += [make(array, 0) for array in step.extra]
        is_number = step.result.number >= 0
        result = make(step.result.array.item() if is_number else step.result.array, 0)
        context = step.payload.context(values, result if self._saves_result or is_number else None, self._needs, PLAIN)
        g = make(self._g.item() if is_number else self._g, 0)
        found: Sequence[Tensor | None] = step.payload.op.vjp(g, context)
        return found


class HostedMap:
    """The adjoint of an array after that of elements of it, each of which has a place of its own."""

    __slots__ = ("_before", "_elements", "_g", "_whole")

    def __init__(self, g: Array, before: Array, whole: Array, elements: Array) -> None:
        self._g, self._before, self._whole, self._elements = g, before, whole, elements

    def run(self) -> bool:
        """Do it."""
        np.copyto(self._whole, self._before)
        self._elements += self._g.reshape(self._elements.shape)
        return True


def is_single(value: Value) -> bool:
    """Whether a value is of float32."""
    return value.number < 0 and value.array.dtype == FLOAT32


def saved_by(step: Structured) -> tuple[frozenset[int], bool]:
    """Which operands the row of a step saves, and whether it saves the result."""
    found: tuple[frozenset[int], bool] = step.payload.op.saves(
        sum(1 << k for k, value in enumerate(step.operands) if value.tracked)
    )
    return found


class HostedSteps(AssembledArrays):
    """Expressions of what steps give that are done by Python.

    Attributes
    ----------
    arrays : list of (int, ndarray)
        Buffers and the memory that they are.
    before_inputs : list of (int, Value)
        Inputs whose memory is written before the code runs.
    hosted : set of int
        Steps that are done so.
    """

    def __init__(self, graph: Expressions, points: Shape = ()) -> None:
        super().__init__(graph, points)
        self.arrays: list[tuple[int, Array]] = []
        self.before_inputs: list[tuple[int, Value]] = []
        self.hosted: set[int] = set()
        self._nodes: dict[int, int] = {}
        self._foreign: dict[int, int] = {}  # inputs of which there are no expressions, by their numbers
        self._standing: dict[int, int | None] = {}  # what reads a value where the path has it
        self._parts: dict[int, list[Part]] = {}  # what was contributed to the adjoint of each value
        self._producers: dict[int, Step] = {}  # of values that have another dtype

    def _canonical(self, value: Value) -> Value:
        raise NotImplementedError

    def _node(self, value: Value) -> int:
        raise NotImplementedError

    def _shape(self, value: Value) -> Shape:
        raise NotImplementedError

    def _claim(self, array: Array) -> None:
        raise NotImplementedError

    def _adjoint(self, value: Value) -> int | None:
        raise NotImplementedError

    def _contribute(self, value: Value, node: int) -> None:
        raise NotImplementedError

    def _buffer_of(self, array: Array) -> tuple[int, Shape]:
        """A buffer that is the memory of an array, and the strides of its elements there."""
        strides, reach = tuple(stride // array.itemsize for stride in array.strides), 1
        for stride, extent in sorted(zip(strides, array.shape, strict=True)):
            if extent > 1 and stride < reach:
                raise Unfused("values in another order of elements")
            reach += stride * (extent - 1)
        buffer = self.graph.buffer(reach, array.dtype == FLOAT32)
        self.arrays.append((buffer, array))
        return buffer, strides

    def _floats_of(self, value: Value) -> Array:
        """The memory of a value of floats: for many points of float64."""
        array: Array = value.array
        if array.dtype not in FLOATS or (self.points and array.dtype == FLOAT32):
            raise Unfused(f"values of dtype {array.dtype}")
        return array

    def _in_type_of(self, node: int, value: Value) -> int:
        """A node as a value has it, which may be of float32."""
        return self.graph.rounded(node) if self._is_single(value) else node

    def _is_single(self, value: Value) -> bool:
        """Whether what belongs to a value is of float32."""
        return is_single(value)

    def _written_to(self, node: int, array: Array, shape: Shape) -> int:
        """A node that reads memory into which another one is written."""
        if node in self.graph.constants:
            node = self._filled(node, shape) if shape else node
        elif self.graph.spaces[node] != shape:
            node = self.graph.at(node, broadcast_axes(self.graph.spaces[node], shape), shape)
        buffer, strides = self._buffer_of(array)
        self.graph.write(node, buffer, 0, strides)
        return self.graph.load(buffer, 0, strides, shape)

    def _stands(self, value: Value) -> list[int]:
        """What has to be there before a step reads a value in the memory of the path."""
        while value.of is not None:
            value = value.of
        if value.constant:
            return []
        if id(value) not in self._standing:
            self._standing[id(value)] = self._put(value)
        found = self._standing[id(value)]
        return [] if found is None else [found]

    def places_of(self, step: Structured) -> list[int]:
        """What has to be there before the places are looked at that index arrays name."""
        return [node for value in step.chosen if value is not None for node in self._stands(value)]

    def _put(self, value: Value) -> int | None:
        array = value.array
        if id(value) in self._foreign:
            self.before_inputs.append((self._foreign[id(value)], value))
            return None
        if array.dtype not in FLOATS:
            if id(value) not in self._producers:
                raise Unfused(f"values of dtype {array.dtype}")
            self._host(self._producers[id(value)], False)
            return self._standing[id(value)]
        if not array.size:
            raise Unfused("an array without elements")
        return self._written_to(self._node(value), array, self._shape(value))

    def _host(self, step: Step, is_new: bool = True) -> None:
        """Let Python do a step where it comes; its results are read from memory, if they have no expressions already."""
        graph = self.graph
        reads = [node for value in operands_of(step) for node in self._stands(value)]
        if isinstance(step, Structured):
            reads += self.places_of(step)
        number = graph.host(step)
        done = graph.buffer(1)
        graph.required.append(done)  # also for what it may raise
        token = self._given_by(number, 0, reads, (done, ()), ())
        for place, value in enumerate(results_of(step), 1):
            array = value.array
            if value.of is not None:
                raise Unfused("a view of what it gives")
            if value.number < 0 and is_new:
                self._claim(array)
            if array.dtype not in FLOATS:
                self._standing[id(value)] = token
                continue
            if not array.size:
                raise Unfused("an array without elements")
            found = self._given_by(number, place, reads, self._buffer_of(array), self._shape(value))
            self._standing[id(value)] = found
            if is_new:
                self._nodes[id(value)] = found
        if is_new:
            self.hosted.add(id(step))

    def _given_by(self, number: int, place: int, reads: Sequence[int], memory: tuple[int, Shape], shape: Shape) -> int:
        """What reads one of the results of a step, whose memory is a buffer with strides."""
        buffer, strides = memory
        node = self.graph.node("host", number, place, *reads, space=())
        self.graph.write(node, buffer, 0, ())
        return self.graph.load(buffer, 0, strides, shape)

    def _through_map(self, step: Gathered) -> None:
        """From elements that a strided map has taken out to the array."""
        g = self._adjoint(step.result)
        if g is not None and step.source.tracked:
            if step.scale != 1.0:
                raise Unfused("a strided map")
            self._add_at(step.source, g, step.result.array.shape, (tuple(step.dims), tuple(step.strides), step.offset))

    def _add_at(self, value: Value, g: int, own: Shape, places: tuple[Shape, Shape, int]) -> None:
        """Let Python add the adjoint of elements to that of an array, where their places are no box of indices."""
        value = self._canonical(value)
        shape = self._shape(value)
        if self.points or np.unique(strided(np.arange(math.prod(shape)), *places)).size != math.prod(own):
            raise Unfused("a view of an array in another order")
        known = self._adjoint(value)
        before, whole, of_elements = np.zeros(shape), np.zeros(shape), np.zeros(own)
        reads = [self._written_to(g, of_elements, own)]
        if known is not None:
            reads.append(self._written_to(known, before, shape))
        number = self.graph.host(HostedMap(of_elements, before, whole, strided(whole.reshape(-1), *places)))
        found = self._given_by(number, 0, reads, self._buffer_of(whole), shape)
        self._parts.pop(id(value), None)
        self._contribute(value, found)

    def kept_of(self, step: Structured) -> list[int]:
        """What has to be there before the derivative of a step reads what its row keeps."""
        saved, saves_result = saved_by(step)
        kept = [step.operands[k] for k in sorted(saved)] + [value for value in step.chosen if value is not None]
        # The row is as the step has left it, so the step comes first.
        kept += [step.result] if saves_result or step.result.number >= 0 or id(step) in self.hosted else []
        return [node for value in kept for node in self._stands(value)]

    def _through_host(self, step: Structured) -> None:
        """Let Python do the derivative of a step."""
        g = self._adjoint(step.result)
        tracked = [k for k, value in enumerate(step.operands) if value.tracked]
        if g is None or not tracked:
            return
        saved, _ = saved_by(step)
        if any(step.operands[k].number >= 0 for k in saved):
            raise Unfused("a number that a row keeps")
        own = np.ones(step.result.array.shape, step.result.array.dtype)
        reads = [self._written_to(g, own, self._shape(step.result))]
        reads += self.kept_of(step)
        cotangents = {k: np.zeros(step.operands[k].array.shape, step.operands[k].array.dtype) for k in tracked}
        derivative = HostedDerivative(step, own, cotangents)
        try:
            derivative.look()
        except Exception as error:
            raise Unfused(f"{step.describe()} gives no derivative: {error}") from None
        number = self.graph.host(derivative)
        for k, array in derivative.cotangents.items():
            shape = self._shape(step.operands[k])
            self._contribute(step.operands[k], self._given_by(number, k, reads, self._buffer_of(array), shape))


def may_be_hosted(step: Step) -> bool:
    """Whether Python can do a step between pieces of machine code."""
    if isinstance(step, (Structured, Gathered, Guard, Ruled)):
        return True
    if isinstance(step, Computed):
        return not any(value.tracked for value in results_of(step))
    found = step.results_in
    return found is not None and found.of is None and not found.tracked
