"""Whether a run gives the bits of a recorded value: where it is of float32, it is computed once more and looked at."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tapegrad.programs.memory_of_values import in_dtype_of
from tapegrad.programs.steps import Value
from tapegrad.recording.primal_values import forward
from tapegrad.tensors.tensor import FLOATS

__all__ = ["is_operation_given_again", "is_rule_given_again"]

Array = np.ndarray[Any, Any]
FLOAT64 = np.dtype(np.float64)


def is_rule_given_again(opcode: int, data: Sequence[Any], z: Array, operands: Sequence[Value]) -> bool:
    """Whether the value of a rule on arrays is what a run of it gives, which is to be looked at where it is of float32.

    Powers of and by numbers of float32 have ways of their own for some exponents.
    """
    if forward[opcode] is np.power and any(np.ndim(a) == 0 and not v.constant for a, v in zip(data, operands, strict=True)):
        return False
    with np.errstate(all="ignore"):
        found = np.asarray(forward[opcode](*(in_dtype_of(np.asarray(a), z.dtype) for a in data)))
    return found.dtype == z.dtype and found.tobytes() == z.tobytes()


def is_operation_given_again(forward: Callable[[list[Any]], Any], data: list[Any], z: Any) -> bool:
    """Whether a run gives the value of an operation: where float32 is among them, it may be computed in float64."""
    arrays = [np.asarray(a) for a in data]
    kinds = {array.dtype for array in (*arrays, np.asarray(z))}
    if kinds == {FLOAT64}:
        return True
    if not kinds <= FLOATS:
        return np.asarray(z).dtype == FLOAT64
    with np.errstate(all="ignore"):
        found = np.asarray(forward(arrays)).astype(np.asarray(z).dtype)
    return found.shape == np.shape(z) and found.tobytes() == np.asarray(z).tobytes()
