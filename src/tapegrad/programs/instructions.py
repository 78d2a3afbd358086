"""Steps as instructions for the compiled entry `replay`; what has none is done in Python."""

from __future__ import annotations

import functools
import operator
from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np

from tapegrad.arrays.addresses import address_of
from tapegrad.arrays.numpy_api import inner_loop
from tapegrad.engine import layout as at
from tapegrad.engine.layout import MANY
from tapegrad.kernels.opcodes import HAS_SCALAR, LOOPS, OPCODES, compiled_forms
from tapegrad.programs.memory_of_values import reshaped
from tapegrad.programs.steps import (
    Cast,
    Computed,
    Copied,
    Gathered,
    Guard,
    Joined,
    Ruled,
    Step,
    Summed,
    Value,
    Viewed,
    Written,
)  # fmt: skip
from tapegrad.recording.primal_values import BY_LOOP, BY_POWER, EXPONENTS, forward
from tapegrad.rules.table import COMMON, RULES
from tapegrad.tape.library_loops import loop_of
from tapegrad.tape.tape import TAPE

__all__ = ["Instructions"]

Array = np.ndarray[Any, Any]
Words = tuple[int, ...]
FLOAT64 = np.dtype(np.float64)
COMPARISONS = {
    operator.lt: 0, operator.le: 1, operator.gt: 2, operator.ge: 3, operator.eq: 4, operator.ne: 5,
}  # fmt: skip
MOST_ROWS = 64  # that one step copies, each by an instruction of its own
_PYTHON: list[Words] = [(at.PYTHON_STEP, *[0] * (at.STEP_WORDS - 1))]


class Instructions:
    """The instructions of a trace, whose numbers stand one after the other.

    Attributes
    ----------
    steps : sequence of Step
    """

    __slots__ = ("_address", "_code", "_count", "_first", "_kept", "_numbers", "_of", "steps")

    def __init__(self, steps: Sequence[Step], numbers: Array) -> None:
        self.steps, self._numbers = steps, address_of(numbers)
        self._kept: list[Any] = []  # memory of constants
        code: list[Words] = []
        self._of: list[int] = []  # the step of each instruction
        self._first: list[int] = []  # the first instruction of each step, and where the last one ends
        for k, step in enumerate(steps):
            self._first.append(len(code))
            found = _LOWERED[type(step)](self, step) if type(step) in _LOWERED else None
            code += _PYTHON if found is None else found
            self._of += [k] * (len(code) - len(self._of))
        self._first.append(len(code))
        self._code = np.array(code, np.int64).reshape(-1, at.STEP_WORDS)
        self._address, self._count = self._code.ctypes.data, len(code)

    def run(self) -> int:
        """Do all steps; the number of the one at which the function would go another way, -1 if there is none."""
        count, address, here = self._count, self._address, 0
        while (here := TAPE.replay(TAPE.address, address, here, count)) < count:
            k = self._of[here]
            if not self.steps[k].run():
                return k
            here = self._first[k + 1]
        return -1

    def in_python(self) -> int:
        """How many steps are done in Python."""
        return int(np.count_nonzero(self._code[:, 0] == at.PYTHON_STEP))

    # One method for each kind of step: its instructions, None if it has none.

    def ruled(self, step: Ruled) -> list[Words] | None:
        """A rule: by its compiled value on numbers, or by NumPy's loop."""
        opcode, result = step.opcode, step.result.array
        if step.result.number >= 0:
            for value in step.operands:
                if value.number < 0 and (value.array.dtype != FLOAT64 or value.array.size != 1):
                    return None
            x, y, z = (self._number(value) for value in (step.operands[0], step.operands[-1], step.result))
            if step.way == BY_LOOP:
                loop, data = inner_loop(forward[opcode])
                binary = int(len(step.operands) == 2)
                return [_words(at.LOOP_STEP, loop, data, 1, x, 0, y, 0, z, 8, binary)] if loop else None
            if step.way == BY_POWER:
                opcode, y = OPCODES["pow"], address_of(self._constant(EXPONENTS[opcode]))
            loaded = opcode < COMMON or TAPE.kernel_table[LOOPS[f"loops_of_{RULES[opcode].name}"]]
            if not (_forms(opcode) & HAS_SCALAR and loaded and TAPE.header[at.PRIMAL]):
                return None
            return [_words(at.NUMBER_STEP, opcode, x=x, y=y, z=z)]
        function = forward[opcode]
        if not isinstance(function, np.ufunc) or len(step.operands) > 2:
            return None
        loop, data = loop_of(function)
        strides = [_stride(value.array, result.shape) for value in step.operands]
        x_stride, y_stride = strides[0], strides[-1]
        if not loop or x_stride is None or y_stride is None or not result.flags.c_contiguous:
            return None
        x, y, z = (address_of(value.array) for value in (step.operands[0], step.operands[-1], step.result))
        return [_words(at.LOOP_STEP, loop, data, result.size, x, x_stride, y, y_stride, z, 8, int(len(step.operands) == 2))]

    def copied(self, step: Copied) -> list[Words] | None:
        """A copy."""
        source = step.source.array if step.shape is None else None
        return None if source is None else _copies(source, step.result.array)

    def viewed(self, step: Viewed) -> list[Words]:
        """Nothing."""
        return []

    def gathered(self, step: Gathered) -> list[Words] | None:
        """A strided view."""
        source, result = step.source.array, step.result.array
        if not source.flags.c_contiguous or source.dtype != FLOAT64:
            return None
        view = step.view()
        if step.scale == 1.0:
            return _copies(view, reshaped(result, view.shape))
        stride = _stride(view, view.shape)
        loop, data = inner_loop(np.multiply)
        if not loop or stride is None or not result.flags.c_contiguous:
            return None
        scale = self._constant(step.scale)
        x, y, z = address_of(view), address_of(scale), address_of(result)
        return [_words(at.LOOP_STEP, loop, data, view.size, x, stride, y, 0, z, 8, 1)]

    def summed(self, step: Summed) -> list[Words] | None:
        """A sum of all elements."""
        source = step.source.array
        whole = step.axes is None and step.divisor >= 1 and TAPE.header[at.SUM_LOOP]
        if not whole or not source.flags.c_contiguous or source.dtype != FLOAT64 or source.size >= MANY or not source.ndim:
            return None
        return [_words(at.SUM_STEP, step.divisor, count=source.size, x=address_of(source), z=address_of(step.result.array))]

    def joined(self, step: Joined) -> list[Words] | None:
        """A concatenation, piece by piece."""
        whole = reshaped(step.result.array, (-1, sum(step.widths)))
        found: list[Words] = []
        start = 0
        for source, width in zip(step.sources, step.widths, strict=True):
            rows = source.array.reshape(-1, width) if source.array.flags.c_contiguous else None
            copies = None if rows is None else _copies(rows, whole[:, start : start + width])
            if copies is None:
                return None
            found += copies
            start += width
        return found

    def computed(self, step: Computed) -> list[Words] | None:
        """A comparison of two numbers."""
        how = COMPARISONS.get(step.function)
        if how is None or len(step.args) != 2:
            return None
        places = []
        for operand in step.args:
            if isinstance(operand, Value):
                array = operand.array
            elif type(operand) in (float, int):
                array = self._constant(float(operand))
            else:
                return None
            if array.ndim or array.dtype != FLOAT64:
                return None
            places.append(address_of(array))
        ((_, result),) = step.results
        if not isinstance(result, Value) or result.array.ndim or result.array.dtype != np.bool_:
            return None
        return [_words(at.COMPARE_STEP, how, x=places[0], y=places[1], z=address_of(result.array))]

    def guard(self, step: Guard) -> list[Words] | None:
        """Whether a comparison came out as before."""
        array = step.value.array
        if array.ndim or array.dtype != np.bool_:
            return None
        expected = step.expected if step.as_truth else step.expected != b"\0"
        return [_words(at.GUARD_STEP, x=address_of(array), extra=int(expected))]

    def _number(self, value: Value) -> int:
        """Address of a number, or of the only element of an array."""
        return self._numbers + 8 * value.number if value.number >= 0 else address_of(value.array)

    def _constant(self, value: float) -> Array:
        self._kept.append(np.array(value))
        made: Array = self._kept[-1]
        return made


@functools.cache
def _forms(opcode: int) -> int:
    """How a rule is compiled."""
    return int(compiled_forms(RULES[opcode]))


_LOWERED: dict[type, Callable[[Instructions, Any], list[Words] | None]] = {
    Ruled: Instructions.ruled, Copied: Instructions.copied, Cast: Instructions.copied,
    Written: Instructions.copied, Viewed: Instructions.viewed,
    Gathered: Instructions.gathered,
    Summed: Instructions.summed, Joined: Instructions.joined, Computed: Instructions.computed, Guard: Instructions.guard,
}  # fmt: skip


def _words(
    kind: int, function: int = 0, data: int = 0, count: int = 1, x: int = 0, x_stride: int = 0, y: int = 0, y_stride: int = 0,
    z: int = 0, z_stride: int = 0, extra: int = 0,
) -> Words:  # fmt: skip
    return kind, function, data, count, x, x_stride, y, y_stride, z, z_stride, extra


def _stride(array: Array, shape: tuple[int, ...]) -> int | None:
    """Bytes from one element to the next where an operand is read along a result of a shape; None if that is no one stride."""
    if array.dtype != FLOAT64:
        return None
    if array.size == 1:
        return 0
    if array.shape != shape:
        return None
    if array.flags.c_contiguous:
        return 8
    return array.strides[0] if array.ndim == 1 else None


def _copies(source: Array, result: Array) -> list[Words] | None:
    """Instructions that copy an array into another one of the same shape."""
    if source.dtype != FLOAT64 or result.dtype != FLOAT64 or source.shape != result.shape:
        return None
    if source.flags.c_contiguous and result.flags.c_contiguous:
        return [_words(at.COPY_STEP, count=source.size, x=address_of(source), x_stride=8, z=address_of(result), z_stride=8)]
    rows = 1
    for n in source.shape[:-1]:
        rows *= n
    if rows > MOST_ROWS or not source.size:
        return None
    return [
        _words(at.COPY_STEP, count=n, x=x, x_stride=x_stride, z=z, z_stride=z_stride)
        for (x, n, x_stride), (z, _, z_stride) in zip(_rows(source), _rows(result), strict=True)
    ]


def _rows(array: Array) -> Iterator[tuple[int, int, int]]:
    """Address, length and stride of each row along the last dimension."""
    for place in np.ndindex(array.shape[:-1]):
        row = array[place]
        yield address_of(row), row.size, row.strides[0] if row.ndim else 8
