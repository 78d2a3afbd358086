"""What a function asks of values: comparisons, and guards on what it was told."""

from __future__ import annotations

import math

import numpy as np

from tapegrad.programs.fused.copies import Copies
from tapegrad.programs.fused.data_steps import COMPARISONS, OF_SHAPES
from tapegrad.programs.fused.expressions import Expressions, Shape
from tapegrad.programs.fused.hosted_steps import is_single
from tapegrad.programs.fused.rule_text import Unfused
from tapegrad.programs.steps import Computed, Guard, Value
from tapegrad.recording.casting import in_dtype
from tapegrad.tensors.tensor import FLOATS

__all__ = ["AskedValues"]


class AskedValues(Copies):
    """Expressions of comparisons, and of whether guards hold.

    Attributes
    ----------
    failed : int
        How many guards failed.
    """

    def __init__(self, graph: Expressions, points: Shape = ()) -> None:
        super().__init__(graph, points)
        self.failed = graph.constant(0.0)

    def _operand(self, value: Value, shape: Shape) -> int:
        raise NotImplementedError

    def _compute(self, step: Computed) -> None:
        if step.function in OF_SHAPES:
            return
        ((_, result),) = step.results if len(step.results) == 1 else ((None, None),)
        if step.function is in_dtype and isinstance(result, Value) and isinstance(step.args[0], Value):
            for value in (result, step.args[0]):
                if value is result or value.array.dtype != np.bool_:
                    self._floats_of(value)
            if is_single(result) != is_single(step.args[0]):
                self._nodes[id(result)] = self._in_type_of(self._node(step.args[0]), result)
            else:
                self._same[id(result)] = step.args[0]
        else:
            self._compare(step)

    def _compare(self, step: Computed) -> None:
        if step.function not in COMPARISONS or len(step.args) != 2 or len(step.results) != 1:
            raise Unfused(f"no code for {step.describe()}")
        ((_, result),) = step.results
        if not isinstance(result, Value) or result.array.dtype != np.bool_:
            raise Unfused(f"no code for {step.describe()}")
        shape = self._of_points(result.array.shape)
        places = []
        others = [x for x in step.args if isinstance(x, Value)]
        for x in step.args:
            if isinstance(x, Value):
                places.append(self._operand(x, shape))
            elif type(x) in (float, int):
                number = self.graph.constant(float(x))
                places.append(self._in_type_of(number, others[0]) if others else number)
            else:
                raise Unfused("a comparison with something else than numbers")
        if result.number < 0 and result.array.ndim:
            self._claim(result.array)
        holds = self.graph.node(COMPARISONS[step.function], *self.graph.level(places))
        one, zero = self.graph.constant(1.0), self.graph.constant(0.0)
        self._nodes[id(result)] = self.graph.node("where", holds, one, zero)

    def _guard(self, step: Guard) -> None:
        node, array = self._node(step.value), step.value.array
        graph = self.graph
        zero, one = graph.constant(0.0), graph.constant(1.0)
        if array.ndim or (array.dtype not in FLOATS and array.dtype != np.bool_):
            raise Unfused("a guard on more than a number")
        if step.as_truth or array.dtype == np.bool_:
            expected = step.expected if step.as_truth else step.expected != b"\0"
            is_true = graph.node("une", node, zero)
            failed = graph.node("where", is_true, *((zero, one) if expected else (one, zero)))
        else:
            value = float(np.frombuffer(step.expected, array.dtype)[0])
            if value != value:
                raise Unfused("a guard on nan")
            known = graph.constant(value)
            # Zeros of different signs are equal.
            other = graph.node("copysign", one, node), graph.constant(math.copysign(1.0, value))
            signs = graph.node("where", graph.node("oeq", *other), zero, one)
            failed = graph.node("where", graph.node("oeq", node, known), signs, one)
        self.failed = failed if self.failed in self.graph.constants else self.graph.node("add", self.failed, failed)
