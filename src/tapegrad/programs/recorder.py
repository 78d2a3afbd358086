"""Following one call of a function: every row it writes and every value that NumPy computes beside them, as steps.

Nothing is believed to be constant because it looks so. What a step reads is the result of an earlier one, an input, or a number or
an array that NumPy's own functions gave (`Recorder.constant`); anything else refuses the trace, and with it every result that
crosses from the package into the user's code and is none of these. A function whose trace is refused is called each time.
"""

from __future__ import annotations

import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import numpy as np

from tapegrad.frames import PACKAGE
from tapegrad.numpy_arrays.untracked import PAIRS
from tapegrad.programs.crossings import Crossings
from tapegrad.programs.given_again import is_rule_given_again
from tapegrad.programs.known_values import FLOAT64
from tapegrad.programs.provenance import (
    FACTORIES,
    FACTORY_DATA,
    HANDING_ON,
    is_converted,
    is_elementwise,
    maker_of,
    named,
    parts_of,
    tensors_in,
    values_in,
)
from tapegrad.programs.rows_as_steps import AS_STEPS
from tapegrad.programs.steps import Computed, Copied, Ruled, Value, Written
from tapegrad.rules.table import RULES
from tapegrad.tape.tape import TAPE
from tapegrad.tensors.tensor import FLOATS, Tensor
from tapegrad.tensors.tracers import OF_SHAPES, WRITING

__all__ = ["Recorder"]

OF_MEMORY = frozenset([np.shares_memory, np.may_share_memory])


class Recorder(Crossings):
    """The steps of one call.

    Attributes
    ----------
    given_arrays : list of Value
        Where the arrays among the arguments stand, which nothing may be written into.
    """

    __slots__ = ("given_arrays",)

    def __init__(self) -> None:
        super().__init__()
        self.given_arrays: list[Value] = []

    def constant(self, t: Any, value: Any) -> None:
        """Note an operand that the user gave; one that the package made refuses the trace, unless it is made of shapes alone."""
        maker = maker_of(value, self.given, sys._getframe(1))
        if maker is not None and maker.f_code not in OF_SHAPES:
            self.refuse(f"{named(maker)} makes a constant, perhaps of values")
        if type(t._data) is float:
            t._data = t._data * 1.0  # an object of its own
            self.know(t._data, Value(np.array(t._data), constant=True))
        else:
            self.know(t._data, Value(t._data, constant=True))

    def made(self, t: Any) -> None:
        """Note what a factory gave the user."""
        frame: FrameType | None = sys._getframe(1)
        while frame is not None and frame.f_code.co_filename == FACTORIES:
            if any(x is not t for x in tensors_in({name: x for name, x in frame.f_locals.items() if name in FACTORY_DATA})):
                return  # nobody knows what it is then
            frame = frame.f_back
        if frame is None or not frame.f_code.co_filename.startswith(PACKAGE) or frame.f_code in OF_SHAPES:
            self.know(t._data, Value(np.asarray(t._data), constant=True))

    def operands(self, opcode: int, operands: tuple[Any, ...]) -> tuple[Any, ...]:
        """Untracked numbers beside what is tracked are leaves: rows hold numbers themselves, and these are others in each run."""
        if len({t._row != 0 for t in operands}) < 2:
            return operands
        partials = RULES[opcode].partials
        return tuple([self.as_leaf(t) if partials[k] is not None else t for k, t in enumerate(operands)])

    def rule(self, opcode: int, operands: tuple[Any, ...], data: tuple[Any, ...], result: Any, way: int = 0) -> None:
        """Note an elementwise operation."""
        values: list[Value] = []
        for t, own in zip(operands, data, strict=True):
            value = self.value_of(t)
            if value is None:
                return
            if type(own) is np.ndarray and own is not t._data:
                converted = Value(own)
                converted.tracked = value.tracked
                self.kept.append(own)
                self.note(Copied(value, converted))
                value = converted
            elif type(own) is float and value.constant and own is not t._data:
                value = Value(np.array(own), constant=True)
            elif type(own) is float and not t._row and result._row:  # the row has the number itself
                self.left(t, False)
            values.append(value)
        z = result._data
        if not result._row and all(value.constant for value in values):
            z = result._data = z * 1.0 if type(z) is float else z
            self.know(z, Value(np.asarray(z), constant=True))
            return
        if type(z) is float:
            z = result._data = z * 1.0
            found = self.number()
        elif (
            z.dtype not in FLOATS
            or any(np.may_share_memory(z, value.array) for value in values if value.array is not None)
            or (z.dtype != FLOAT64 and not is_rule_given_again(opcode, data, z, values))
        ):
            self.refuse(f"{RULES[opcode].name} of dtype {z.dtype}")
            return
        else:
            found = Value(z)
        self.note(Ruled(opcode, values, found, way))
        self.know(z, found, TAPE.slot(result._row) if result._row > 0 else -1)

    def row(self, entry: str, arguments: tuple[Any, ...], handle: int) -> None:
        """Note what an entry wrote."""
        look = AS_STEPS[entry]
        if entry == "host_row":  # which may compute the value once more, by anybody's code
            look(self, TAPE.slot(handle), *arguments[1:])
        else:
            self.unwatched(look, self, TAPE.slot(handle), *arguments[1:])

    def computed(self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None:
        """Note a function of values, and values of arguments that went another way than as operands."""
        self._explained += 1
        if function in OF_MEMORY:  # which runs have other than arguments
            self.refuse(f"it asks by {function.__name__} whose memory arrays have")
            return
        parts: list[tuple[tuple[int, ...], Any]] = []
        parts_of(result, (), parts)
        wanted: list[tuple[tuple[int, ...], Any]] = []
        for place, part in parts:
            if isinstance(part, Tensor):
                if not self.knows(part):
                    if part._row:
                        self.refuse(f"{getattr(function, '__name__', function)} is not followed by programs")
                        return
                    wanted.append((place, part))
            elif issubclass(type(part), np.ndarray):
                self.refuse("an array of NumPy's was made of values")
                return
            elif type(part) in PAIRS:
                pair: Any = part
                if not (self.knows(pair.real) and self.knows(pair.imag)):
                    self.refuse(f"{getattr(function, '__name__', function)} of complex numbers is not followed by programs")
                    return
            elif part is not None:
                wanted.append((place, part))
        if any(isinstance(part, Tensor) and part._row for _, part in parts) and not is_elementwise(function):
            self._fix(args)
            self._fix(tuple(kwargs.values()))
        if not wanted:
            return
        template = self._template(args), self._template(kwargs)
        if self.refused:
            return
        operands = values_in(template)
        wanted = [(place, part) for place, part in wanted if not self.is_view(part, operands)]
        if all(value.constant for value in operands):
            for _, part in wanted:
                if isinstance(part, Tensor):
                    self.know(part._data, Value(np.asarray(part._data), constant=True))
            return
        if not wanted:
            return
        results = []
        for place, part in wanted:
            value = part
            if isinstance(part, Tensor):
                if type(part._data) is float:
                    part._data = part._data * 1.0
                value = self.place_of(part._data)
            results.append((place, value))
        own = not is_elementwise(function) and any(t._row for t in tensors_in({"args": args, "kwargs": kwargs}))
        self.note(Computed(function, *template, results, own))
        for (_, part), (_, value) in zip(wanted, results, strict=True):
            if isinstance(part, Tensor):
                self.know(part._data, value)

    def written(self, t: Any, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> None:
        """Note the function that has the last word on a value."""
        value = self.value_of(t)
        template = self._template(args), self._template(kwargs)
        if value is not None and not self.refused:
            self.note(Computed(function, *template, [((), value)], False))

    def spread(self, source: Any, result: Any) -> None:
        """Note a copy, which broadcasts."""
        value = self.value_of(source) if isinstance(source, Tensor) else Value(result, constant=True)
        if value is None:
            return
        if value.constant:
            self.know(result, Value(result, constant=True))
        else:
            found = Value(result)
            self.note(Copied(value, found))
            self.know(result, found)

    def overwriting(self, t: Any, z: Any, row: int) -> None:
        """Note a write into memory that the function made; what stood there first is put there again by each run."""
        value, base = self.value_at(z), t if t._meta is None or t._meta.base is None else t._meta.base
        entry = self._entry
        if entry is None or (entry.f_code not in WRITING and not entry.f_code.co_filename.startswith(HANDING_ON)):
            self.refuse("it writes into an array")
        memory = base._data
        if value is None or type(z) is float or not self.knows(base) or type(memory) is float:
            self.refuse("it writes what programs do not follow, or into what they do not know")
            return
        before = self.value_of(base)
        if before is None or any(np.may_share_memory(memory, given.array) for given in self.given_arrays):
            self.refuse("it writes into an argument")
            return
        if before.constant:
            first = Copied(Value(memory.copy(), constant=True), Value(memory))
            first.asked_at = self._place()
            self.steps.insert(0, first)
        for other in self.known_values():
            if other.constant and np.may_share_memory(other.array, memory):
                other.constant = False
        written = Value(t._data)
        self.note(Written(value, written, before, row > 0, self.link if row > 0 else ""))
        self.link = "same"
        self.know(t._data, written, TAPE.slot(row) if row > 0 else -1)
        self._written += 1

    def _template(self, values: Any) -> Any:
        if isinstance(values, Tensor):
            return self.value_of(values)
        if isinstance(values, (tuple, list)):
            parts = list(map(self._template, values))
            return type(values)(parts) if type(values) in (tuple, list) else type(values)(*parts)
        if issubclass(type(values), np.ndarray):
            if not any(values is given or is_converted(values, given) for given in self.given):
                self.refuse("an array of NumPy's is an operand, perhaps made of values")
            return values.copy()  # the function may write into it afterwards
        return {name: self._template(part) for name, part in values.items()} if type(values) is dict else values
