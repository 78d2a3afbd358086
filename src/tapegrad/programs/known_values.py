"""What a recording knows of values: where each stands, by the rows and the memory of tensors, and the steps that put it there."""

from __future__ import annotations

from types import CodeType
from typing import Any

import numpy as np

from tapegrad.drivers.leaves import tensor_like
from tapegrad.frames import calling_frame, line_of
from tapegrad.programs.provenance import inside
from tapegrad.programs.python_numbers import PythonNumbers
from tapegrad.programs.steps import Copied, Place, Step, Value
from tapegrad.tape.tape import TAPE
from tapegrad.tensors.tensor import FLOATS, Tensor, make, meta_of, register_new_leaf

__all__ = ["FLOAT64", "KnownValues"]

Array = np.ndarray[Any, Any]
FLOAT64 = np.dtype(np.float64)
CONVERTING = frozenset(["setitem", "fill_", "copy_"])  # what is written has the dtype of what it is written into


class KnownValues:
    """Steps, and where the values stand that they read and write.

    Attributes
    ----------
    steps : list of Step
    values : list of Value
        Those that are numbers.
    handles : list of (int, Tensor)
        Numbers that rows have, each with a handle on its row.
    refused : str
        Why the call cannot be run again from its steps; empty if it can.
    kept : list
        What must live as long as the steps.
    link : str
        How the row of the write that is told next goes on with what is written.
    places_are_given : bool
        Whether the operation that the user asked for takes elements at places that its arguments name.
    fixes_numbers : bool
        Whether all that is in the way is that such a number is none of float64.
    python_numbers : PythonNumbers
        Which of the numbers are Python's own.
    all_python_numbers : PythonNumbers
        The same with those that are differentiated by, which drivers take for numbers of float64.
    has_other_value : bool
        Whether one of these meets float32, where the function itself gives another value than under a driver.
    """

    __slots__ = (
        "__weakref__", "_by_data", "_by_slot", "all_python_numbers", "fixes_numbers", "handles", "has_other_value", "kept", "link",
        "places_are_given", "python_numbers", "refused", "steps", "values",
    )  # fmt: skip

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self.values: list[Value] = []
        self.handles: list[tuple[int, Tensor]] = []
        self.kept: list[Any] = []
        self.refused, self.places_are_given, self.link = "", False, "same"
        self._by_slot: dict[int, Value] = {}
        self._by_data: dict[int, Value] = {}
        self.python_numbers, self.all_python_numbers = PythonNumbers(), PythonNumbers()
        self.fixes_numbers = self.has_other_value = False

    def refuse(self, why: str) -> None:
        """Say why the call cannot be run again; the first reason is kept."""
        if not self.refused:
            self.refused = f"{why}, at {line_of(*self._place())}"

    def _place(self) -> Place:
        """Which instruction of the user's code is asking."""
        frame = calling_frame()
        return frame.f_code, frame.f_lasti

    def number(self) -> Value:
        """A new number."""
        value = Value(number=len(self.values))
        self.values.append(value)
        return value

    def know(self, data: Any, value: Value, slot: int = -1) -> Value:
        """Note what stands in a tensor's data, and in its row if it has one."""
        self.kept.append(data)
        self._by_data[id(data)] = value
        if slot >= 0:
            value.tracked = True
            self._by_slot[slot] = value
            number = value
            if value.number < 0 and type(data) is np.ndarray and not data.ndim and data.dtype == FLOAT64:
                number = self.number()  # rows of numbers read it in the column of values
                self.note(Copied(value, number))
            if number.number >= 0:
                self.handles.append((number.number, make(0.0, TAPE.new_handle(slot))))
        return value

    def value_of(self, t: Any) -> Value | None:
        """What is known of a tensor; None, with the trace refused, if nothing is."""
        data = t._data
        if t._row > 0:
            value = self._by_slot.get(TAPE.slot(t._row))
        else:
            value = self._by_data.get(id(data))
        if value is None:
            self.refuse("a tensor comes from an operation that programs do not follow, or was tracked before the call")
            return None
        if value.tracked and not t._row:  # detached
            value = self.untracked(value)
        if value.number >= 0 and type(data) is np.ndarray:  # a number that somebody looks at as an array
            return self.also_in(data, value)
        if value.array is not None and type(data) is np.ndarray and not is_same_memory(data, value.array):
            if data.shape != value.array.shape:
                self.refuse("an operation keeps its operand in another form")
                return None
            return self.also_in(data, value)
        return value

    def also_in(self, data: Array, value: Value) -> Value:
        """A value that also stands in other memory, which a row may have saved."""
        other = Value(data, constant=value.constant)
        other.tracked = value.tracked
        self.kept.append(data)
        self.note(Copied(value, other))
        return other

    def untracked(self, value: Value) -> Value:
        """The same value without its row."""
        if value.number < 0:
            return Value(value.array, of=value)
        other = self.number()
        self.note(Copied(value, other))
        return other

    def look_at_operands(self, code: CodeType, values: dict[str, Any]) -> None:
        """Refuse an operation in whose dtype a number of Python's has no say."""
        numbers, all_numbers = self.python_numbers, self.all_python_numbers
        if all_numbers and not self.has_other_value and code.co_name not in CONVERTING:
            self.has_other_value = all_numbers.meet_fewer_digits(inside(values), self.steps, self._known_of)
        if numbers and code.co_name not in CONVERTING and numbers.meet_fewer_digits(inside(values), self.steps, self._known_of):
            self.fixes_numbers |= not self.refused
            self.refuse(
                "a number of Python's meets float32, which NumPy takes it for: each value of it is another path. Pass what changes "
                "as an array of float32"
            )

    def _known_of(self, t: Any) -> Value | None:
        return self._by_slot.get(TAPE.slot(t._row)) if t._row > 0 else self._by_data.get(id(t._data))

    def value_at(self, data: Any) -> Value | None:
        """What stands in memory that some tensor had, if that is known."""
        return self._by_data.get(id(data))

    def knows(self, t: Any) -> bool:
        """Whether anything is known of a tensor."""
        return TAPE.slot(t._row) in self._by_slot if t._row > 0 else id(t._data) in self._by_data

    def known_values(self) -> list[Value]:
        """All values that are in memory of their own or of others."""
        return [value for value in (*self._by_data.values(), *self._by_slot.values()) if value.array is not None]

    def note(self, step: Step) -> None:
        """Write a step down."""
        step.asked_at = self._place()
        self.steps.append(step)

    def place_of(self, z: Any) -> Value:
        """Where a new result is to stand."""
        return self.number() if type(z) is float else Value(z)

    def as_leaf(self, t: Any) -> Any:
        """An untracked number as a leaf with a row, which holds its present value; others as they are."""
        value = None if t._row else self.value_at(t._data)
        if value is None or value.constant or np.ndim(t._data) or np.asarray(t._data).dtype not in FLOATS:
            return t
        is_single = np.asarray(t._data).dtype != FLOAT64
        leaf, _ = tensor_like(t._data.copy() if is_single else float(t._data), "program", "a number", False)
        register_new_leaf(leaf, meta_of(leaf)).of_call = True
        number = self.place_of(leaf._data)
        self.note(Copied(value, number))
        self.know(leaf._data, number, TAPE.slot(leaf._row))
        self.kept.append(leaf)
        return leaf

    def is_view(self, part: Any, operands: list[Value]) -> bool:
        """Note a view of memory that is known, which needs no step."""
        if not isinstance(part, Tensor) or type(part._data) is float:
            return False
        if any(value.array is not None and np.may_share_memory(part._data, value.array) for value in operands):
            if len(operands) > 1:
                self.refuse("a view at places that may depend on values")
            self.know(part._data, Value(part._data, constant=operands[0].constant, of=operands[0]))
            return True
        return False


def is_same_memory(a: Array, b: Array) -> bool:
    """Whether two arrays are one to whoever writes into them."""
    return a is b or (
        a.__array_interface__["data"] == b.__array_interface__["data"] and a.strides == b.strides and a.shape == b.shape
    )
