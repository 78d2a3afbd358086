"""Values, Jacobians and Hessians of a path as machine code."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

import numpy as np

from tapegrad.arrays.floating_point_warnings import IGNORING, enter, leave
from tapegrad.programs.fused.adjoints import MOST, PathExpressions
from tapegrad.programs.fused.curvature import Curvature
from tapegrad.programs.fused.data_steps import steps_before
from tapegrad.programs.fused.directions import Directions, lanes_of
from tapegrad.programs.fused.expressions import NUMBERS, Shape, contiguous
from tapegrad.programs.fused.hosted_steps import is_single
from tapegrad.programs.fused.kinds import split_kind
from tapegrad.programs.fused.machine_code import MachineCode
from tapegrad.programs.fused.rule_text import Unfused
from tapegrad.programs.fused.values import PathValues, Place
from tapegrad.programs.fused.versions import versions_of
from tapegrad.programs.steps import Step, Structured, Value

__all__ = ["MatrixCode", "code_of", "is_finite"]


MOST_REPEATED = 5000  # steps times directions, each of which has expressions of its own: about a second


class Matrices:
    """What Jacobians and Hessians have in common: the directions, those of all elements of the leaves."""

    def __init__(self, path: PathValues, leaves: Sequence[Value]) -> None:
        self.count = sum(map(_size, leaves))
        self.lanes = lanes_of(self.count)
        seeds = path.graph.buffer(self.count * self.lanes)
        path.arrays.append((seeds, np.eye(self.count, self.lanes).reshape(-1)))
        self.directions = Directions(path, leaves, seeds, self.lanes)


def _given_directions(path: PathValues, leaves: Sequence[Value], count: int) -> list[Directions]:
    """Directions that are given behind the inputs, each by itself: a few of long arrays would leave lanes empty."""
    if count > 1 and count * len(path.steps) > MOST_REPEATED:
        raise Unfused("derivatives of so many steps along several directions")
    found = []
    for _ in range(count):
        seeds = path.graph.buffer(sum(map(_size, leaves)))
        path.inputs.append((seeds, -1))
        found.append(Directions(path, leaves, seeds, 1))
    return found


class ValueExpressions(PathValues):
    """Values of a path's outputs.

    Attributes
    ----------
    outputs : sequence of Value
    gradients : list of Place
        Of the outputs.
    shapes : list of Shape
        Of these.
    count : int
        Columns of a matrix beside them.
    """

    def __init__(
        self, steps: Sequence[Step], inputs: Sequence[Value], leaves: Sequence[Value], outputs: Sequence[Value], fast: bool
    ) -> None:
        steps, self.outputs = versions_of(steps, inputs, outputs)
        super().__init__(steps, inputs, before=steps_before(steps, inputs, leaves), fast=fast)
        graph = self.graph
        self.has_guards = self.failed not in graph.constants
        self.value, self.guards = self._number(graph.constant(0.0)), self._number(self.failed)
        self.gradients = [self._output(value) for value in self.outputs]
        self.shapes: list[Shape] = [*map(self._shape, self.outputs)]
        self.count = 0
        self._limit()

    def _limit(self) -> None:
        if sum(self.graph.sizes) > MOST:
            raise Unfused("it takes too much memory")

    def _number(self, node: int) -> Place:
        slot = self.graph.slot()
        self.graph.write(node, NUMBERS, slot, ())
        return NUMBERS, slot

    def _output(self, value: Value) -> Place:
        shape, node = self._shape(value), self._node(value)
        if not shape:
            return self._number(node)
        buffer = self.graph.buffer(math.prod(shape), is_single(value))
        self._write(node, buffer, 0, shape)
        return buffer, -1

    def _write(self, node: int, buffer: int, offset: int, shape: Shape) -> None:
        """Write a node, which may be a number, to all of an array."""
        node = self._filled(node, shape) if node in self.graph.constants else node
        self.graph.write(node, buffer, offset, contiguous(shape))


class JacobianExpressions(ValueExpressions):
    """The same, and the derivatives of all their elements along all directions.

    Attributes
    ----------
    gradients : list of Place
        Of the outputs, and of a matrix with a row for each of their elements.
    """

    def __init__(
        self, steps: Sequence[Step], inputs: Sequence[Value], leaves: Sequence[Value], outputs: Sequence[Value], fast: bool
    ) -> None:
        super().__init__(steps, inputs, leaves, outputs, fast)
        graph, made = self.graph, Matrices(self, leaves)
        self.count, rows = made.count, sum(map(_size, outputs))
        self.shapes.append((rows, made.lanes))
        matrix, place = graph.buffer(rows * made.lanes), 0
        for value in self.outputs:
            shape = (*self._shape(value), made.lanes)
            self._write(made.directions.tangent(value), matrix, place, shape)
            place += math.prod(shape)
        self.gradients.append((matrix, -1))
        self._limit()


class TangentExpressions(ValueExpressions):
    """Products of the Jacobian with directions that are given behind the inputs, with or without the values.

    Attributes
    ----------
    gradients : list of Place
        Of the outputs, if they are wanted, and of the products: a row for each direction.
    """

    def __init__(
        self,
        steps: Sequence[Step],
        inputs: Sequence[Value],
        leaves: Sequence[Value],
        outputs: Sequence[Value],
        fast: bool,
        count: int,
        has_values: bool,
    ) -> None:
        super().__init__(steps, inputs, leaves, outputs, fast)
        rows, place = sum(map(_size, outputs)), 0
        matrix = self.graph.buffer(count * rows)
        for directions in _given_directions(self, leaves, count):
            for value in self.outputs:
                shape = (*self._shape(value), 1)
                self._write(directions.tangent(value), matrix, place, shape)
                place += math.prod(shape)
        if not has_values:
            self.gradients, self.shapes = [], []
        self.gradients.append((matrix, -1))
        self.shapes.append((count, rows))
        self._limit()


class CotangentExpressions(PathExpressions):
    """Products of the transposed Jacobian with one vector over all outputs, which is given behind the inputs.

    Attributes
    ----------
    shapes : list of Shape
        Of the products, for each leaf.

    Notes
    -----
    Adjoints of float32 are rounded as those of gradients are, and the vector is where it belongs to a result of float32.
    """

    def __init__(
        self, steps: Sequence[Step], inputs: Sequence[Value], leaves: Sequence[Value], outputs: Sequence[Value], fast: bool
    ) -> None:
        super().__init__(steps, inputs, leaves, outputs, fast=fast)
        self.count, self.shapes = 0, [*map(self._shape, leaves)]

    def _seed(self, outputs: Sequence[Value]) -> Place:
        graph, place = self.graph, 0
        seeds = graph.buffer(sum(map(_size, outputs)))
        self.inputs.append((seeds, -1))
        for value in outputs:
            shape = self._shape(value)
            self._contribute(value, self._in_type_of(graph.load(seeds, place, contiguous(shape), shape), value))
            place += math.prod(shape)
        return self._written(graph.constant(0.0))


class HessianExpressions(PathExpressions):
    """The value of a path and products of its Hessian with all directions, or with some that are given behind the inputs.

    Whoever gives directions does not ask for the value, which takes a fifth of a product.

    Attributes
    ----------
    gradients : list of Place
        Of the products, for each leaf; direction after direction, if they are given.
    shapes : list of Shape
        Of these.
    """

    is_linear = True

    def __init__(
        self,
        steps: Sequence[Step],
        inputs: Sequence[Value],
        leaves: Sequence[Value],
        output: Value,
        fast: bool,
        given: int = 0,
    ) -> None:
        super().__init__(steps, inputs, leaves, [output], fast=fast)
        self.count, lanes = 0, 1
        if given:
            self.value = self._written(self.graph.constant(0.0))
            if any(isinstance(step, Structured) and any(map(is_single, step.operands)) for step in self.steps):
                raise Unfused("single products of float32 that calls take of the recorded gradient")
            directions = _given_directions(self, leaves, given)
        else:
            made = Matrices(self, leaves)
            self.count, lanes, directions = made.count, made.lanes, [made.directions]
        self.gradients = [place for one in directions for place in Curvature(self, one, leaves).products]
        self.shapes = [(*self._shape(leaf), *(() if given else (lanes,))) for leaf in leaves] * len(directions)
        if sum(self.graph.sizes) > MOST:
            raise Unfused("it takes too much memory")


class MatrixCode:
    """Compiled values and matrix.

    Attributes
    ----------
    seconds : float
        What its making took.
    has_products : bool
        Whether results that are not finite may be wrong, since products of matrices know no absolute zeros.
    before, before_inputs
        As of `MachineCode`.
    is_pure : bool
        Whether it leaves the memory of the path's steps alone.
    is_finite : bool
        Whether the latest matrix was, where it has to be.
    """

    __slots__ = (
        "_code", "_count", "_given", "_outputs", "before", "before_inputs", "has_products", "is_finite", "is_pure", "seconds",
    )  # fmt: skip

    def __init__(self, path: ValueExpressions | HessianExpressions | CotangentExpressions, outputs: int, given: int = 0) -> None:
        self._code = MachineCode(path, path.shapes)
        self._outputs, self._count, self._given, self.seconds = outputs, path.count, given, self._code.seconds
        self.is_finite = True
        self.has_products = path.graph.has_products
        self.before, self.before_inputs = path.before, path.before_inputs
        self.is_pure = not path.before and not path.before_inputs and not path.graph.hosts

    def gradient(self, values: Sequence[Any]) -> tuple[float, list[Any]] | None:
        """The value, if there is one, and the outputs and the matrix; None if the steps have to give them.

        Of "vjp" there is an array or a number for each leaf.
        The matrix has a row for each direction that was given, or else a column for each input.
        """
        return self._arranged(self._code.gradient(values))

    def run(self) -> tuple[float, list[Any]] | None:
        """The same for inputs that are in their places."""
        return self._arranged(self._code.run())

    def places(self) -> list[tuple[int, int]]:
        """Where each input goes; see `MachineCode.places`."""
        return self._code.places()

    def alone(self) -> MachineCode | None:
        """The code itself, if Python does nothing while it runs."""
        return self._code.alone()

    def _arranged(self, found: tuple[float, list[Any]] | None) -> tuple[float, list[Any]] | None:
        if found is None:
            return None
        value, parts = found
        outputs, bands = parts[: self._outputs], parts[self._outputs :]
        if self._given:
            matrix = (bands[0] if len(bands) == 1 else np.concatenate([band.reshape(-1) for band in bands])).reshape(
                self._given, -1
            )
        elif self._count:
            bands = [part.reshape(-1, part.shape[-1]) for part in bands]
            matrix = bands[0] if len(bands) == 1 else np.concatenate(bands)
            matrix = np.ascontiguousarray(matrix[:, : self._count])
        else:
            return found
        self.is_finite = not self.has_products or is_finite(matrix)
        if not self.is_finite:
            return None
        return value, [*outputs, matrix]


def is_finite(matrix: Any) -> bool:
    """Whether all elements are finite, or a number is."""
    token = enter(IGNORING)
    try:
        return math.isfinite(np.add.reduce(matrix, None))
    finally:
        leave(token)


def code_of(
    kind: str, steps: Sequence[Step], inputs: Sequence[Value], leaves: Sequence[Value], outputs: Sequence[Value], fast: bool
) -> MatrixCode:
    """Machine code of the outputs alone, with their Jacobian, of the value and the Hessian, or of products of either.

    The kind is "value", "jacobian", "hessian" or "vjp", of a vector that is given, or "jvp", "value_jvp" or "hvp" with the number
    of directions that are given.

    Raises
    ------
    Unfused
        If there is none.
    """
    kind, given = split_kind(kind)
    if kind == "vjp":
        return MatrixCode(CotangentExpressions(steps, inputs, leaves, outputs, fast), 0)
    if kind in ("hessian", "hvp"):
        (output,) = outputs
        return MatrixCode(HessianExpressions(steps, inputs, leaves, output, fast, given), 0, given)
    if given:
        has_values = kind == "value_jvp"
        made_of = TangentExpressions(steps, inputs, leaves, outputs, fast, given, has_values)
        return MatrixCode(made_of, len(outputs) if has_values else 0, given)
    made = ValueExpressions if kind == "value" else JacobianExpressions
    return MatrixCode(made(steps, inputs, leaves, outputs, fast), len(outputs))


def _size(value: Value) -> int:
    return 1 if value.number >= 0 else int(value.array.size)
