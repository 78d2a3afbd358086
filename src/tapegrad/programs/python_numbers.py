"""Numbers of Python's among a function's arguments: beside values of fewer digits NumPy takes them for one of these.

A recording has numbers in their places that are of float64 anywhere. Where one of Python's, or what is computed of nothing else,
meets float32, it would have another dtype, other digits, and perhaps another outcome of a comparison than the function itself.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from tapegrad.deferred import look_up
from tapegrad.programs.steps import Step, Value
from tapegrad.tensors.tensor import Tensor

__all__ = ["PythonNumbers"]

DIGITS = {"f": 8, "c": 16}  # bytes of numbers that have those of Python's


class PythonNumbers:
    """The numbers, and those that are computed of them alone."""

    __slots__ = ("_known", "_looked_at")

    def __init__(self) -> None:
        self._known: set[int] = set()
        self._looked_at = 0

    def __bool__(self) -> bool:
        return bool(self._known)

    def add(self, value: Value) -> None:
        """Note an argument."""
        self._known.add(id(value))

    def meet_fewer_digits(self, operands: Iterator[Any], steps: Sequence[Step], find: Callable[[Any], Value | None]) -> bool:
        """Whether one of them is an operand beside what has fewer digits.

        Parameters
        ----------
        operands : iterator
        steps : sequence of Step
            Of the recording so far.
        find : callable
            What is known of a tensor.
        """
        values = list(operands)
        if not any(map(_has_fewer_digits, values)):
            return False
        self._look_at(steps)
        return any(isinstance(x, Tensor) and id(find(x)) in self._known for x in values)

    def _look_at(self, steps: Sequence[Step]) -> None:
        operands_of, results_of = (look_up(f"programs.fused.data_steps:{name}_of") for name in ("operands", "results"))
        for step in steps[self._looked_at :]:
            operands = [value for value in operands_of(step) if not value.constant]
            if operands and all(id(value) in self._known for value in operands):
                self._known.update(id(value) for value in results_of(step) if _is_float(value))
        self._looked_at = len(steps)


def _is_float(value: Value) -> bool:
    return value.number >= 0 or (not value.array.ndim and value.array.dtype.kind == "f")


def _has_fewer_digits(x: Any) -> bool:
    data = x._data if isinstance(x, Tensor) else x
    if not issubclass(type(data), (np.ndarray, np.generic)):
        return False
    return bool(data.dtype.itemsize < DIGITS.get(data.dtype.kind, 0))
