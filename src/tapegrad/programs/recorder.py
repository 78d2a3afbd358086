"""Following one call of a function: every row it writes and every value that NumPy computes beside them, as steps.

Nothing is believed to be constant because it looks so. What a step reads is the result of an earlier one, an input, or a number or
an array that NumPy's own functions gave (`Recorder.constant`); anything else refuses the trace, and with it every result that
crosses from the package into the user's code and is none of these. A function whose trace is refused is called each time.
"""

from __future__ import annotations

import ctypes
import gc
import math
import os
import random
import sys
from collections.abc import Callable
from types import FrameType
from typing import Any

import numpy as np

from tapegrad.frames import PACKAGE, calling_frame
from tapegrad.numpy_arrays import attributes as attributes_of_arrays
from tapegrad.programs.forward_values import forward_of
from tapegrad.programs.steps import (
    Computed,
    Copied,
    Gathered,
    Guard,
    Joined,
    Ruled,
    Scattered,
    Step,
    Structured,
    Summed,
    Value,
)
from tapegrad.recording.strided_maps import scattered, strided
from tapegrad.recording.structural import Payload
from tapegrad.rules.table import RULES
from tapegrad.surface import attributes
from tapegrad.tape.tape import TAPE
from tapegrad.tensors import untracked_values
from tapegrad.tensors.tensor import Tensor, make
from tapegrad.tensors.tracers import Tracer
from tapegrad.tensors.tracing import followed

__all__ = ["Recorder"]

Array = np.ndarray[Any, Any]
FLOAT64 = np.dtype(np.float64)
# What is asked of an array without looking at its values.
STATIC = "shape ndim size itemsize nbytes strides dtype device length numel stride is_contiguous get_requires_grad is_leaf"
STATIC_CODE = frozenset(
    getattr(module, name).__code__
    for module in (attributes, attributes_of_arrays)
    for name in STATIC.split()
    if hasattr(getattr(module, name, None), "__code__")
)
_NUMBERS = (bool, int, float, complex, str, bytes)


def object_at(address: int) -> Any:
    """The object of an address."""
    return ctypes.cast(address, ctypes.py_object).value


def words_at(address: int, count: int) -> list[int]:
    """So many words from an address on."""
    return list((ctypes.c_int64 * count).from_address(address))


class Recorder(Tracer):
    """The steps of one call.

    Attributes
    ----------
    steps : list of Step
    numbers : int
        How many values are numbers.
    refused : str
        Why the call cannot be run again from its steps; empty if it can.
    draws : bool
        Whether random numbers were drawn.
    """

    __slots__ = (
        "_by_data",
        "_by_slot",
        "_entry",
        "_explained",
        "_given",
        "_kept",
        "_places_are_given",
        "_tensors",
        "draws",
        "handles",
        "numbers",
        "refused",
        "steps",
        "values",
    )  # fmt: skip

    def __init__(self) -> None:
        self.steps: list[Step] = []
        self.values: list[Value] = []  # those that are numbers
        self.handles: list[tuple[int, Tensor]] = []  # numbers that rows have, each with a handle on the row
        self.refused, self.draws = "", False
        self._by_slot: dict[int, Value] = {}
        self._by_data: dict[int, Value] = {}
        self._kept: list[Any] = []
        self._given: list[Any] = []
        self._tensors: list[Any] = []
        self._entry: FrameType | None = None
        self._explained, self._places_are_given = 0, False

    def call(self, function: Callable[..., Any], *arguments: Any) -> Any:
        """Call a function and follow it; its result."""
        writes = untracked_values.writes
        with TAPE.claim():
            before, collects = sys.getprofile(), gc.isenabled()
            try:
                gc.disable()  # destructors of others are none of the function's calls
                sys.setprofile(self._crossing)
                result = followed(self, function, *arguments)
            finally:
                _profile_again(before)
                if collects:
                    gc.enable()
        if untracked_values.writes != writes:
            self.refuse("it writes into an array")
        return result

    def refuse(self, why: str) -> None:
        """Say why the call cannot be run again; the first reason is kept."""
        if not self.refused:
            self.refused = f"{why}, at {self._line()}"

    def _line(self) -> str:
        frame = calling_frame()
        return f"{frame.f_code.co_filename}, line {frame.f_lineno}"

    # Values.

    def number(self) -> Value:
        """A new number."""
        value = Value(number=len(self.values))
        self.values.append(value)
        return value

    def know(self, data: Any, value: Value, slot: int = -1) -> Value:
        """Note what stands in a tensor's data, and in its row if it has one."""
        self._kept.append(data)
        self._by_data[id(data)] = value
        if slot >= 0:
            self._by_slot[slot] = value
            number = value
            if value.number < 0 and type(data) is np.ndarray and not data.ndim and data.dtype == FLOAT64:
                number = self.number()  # rows of numbers read it in the column of values
                self._step(Copied(value, number))
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
        if value.number >= 0 and type(data) is np.ndarray:  # a number that somebody looks at as an array
            return self._also_in(data, value)
        if value.array is not None and type(data) is np.ndarray and not _is_same_memory(data, value.array):
            if data.shape != value.array.shape:
                self.refuse("an operation keeps its operand in another form")
                return None
            return self._also_in(data, value)
        return value

    def _also_in(self, data: Array, value: Value) -> Value:
        """A value that also stands in other memory, which a row may have saved."""
        other = Value(data, constant=value.constant)
        self._kept.append(data)
        self._step(Copied(value, other))
        return other

    def result_of(self, t: Any) -> Value | None:
        """The same for what a function returned."""
        return self.value_of(t)

    def _known(self, t: Any) -> bool:
        return TAPE.slot(t._row) in self._by_slot if t._row > 0 else id(t._data) in self._by_data

    def _step(self, step: Step) -> None:
        step.line = self._line()
        self.steps.append(step)

    # What the package tells.

    def constant(self, t: Any, value: Any) -> None:
        """Note an operand that the user gave; one that the package made refuses the trace, unless it is made of shapes alone."""
        made_by = self._maker(value)
        if made_by and made_by not in MAKERS:
            self.refuse(f"{made_by} makes a constant, perhaps of values")
        if type(t._data) is float:
            t._data = t._data * 1.0  # an object of its own
            self.know(t._data, Value(np.array(t._data), constant=True))
        else:
            self.know(t._data, Value(t._data, constant=True))

    def made(self, t: Any) -> None:
        """Note what a factory gave the user."""
        frame: FrameType | None = sys._getframe(1)
        while frame is not None and frame.f_code.co_filename == FACTORIES:
            if any(x is not t for x in _tensors({name: x for name, x in frame.f_locals.items() if name in FACTORY_DATA})):
                return  # nobody knows what it is then
            frame = frame.f_back
        if frame is None or not frame.f_code.co_filename.startswith(PACKAGE) or _named(frame) in MAKERS:
            self.know(t._data, Value(np.asarray(t._data), constant=True))

    def rule(self, opcode: int, operands: tuple[Any, ...], data: tuple[Any, ...], result: Any) -> None:
        """Note an elementwise operation."""
        values: list[Value] = []
        for t, own in zip(operands, data, strict=True):
            value = self.value_of(t)
            if value is None:
                return
            if type(own) is np.ndarray and own is not t._data:
                converted = Value(own)
                self._kept.append(own)
                self._step(Copied(value, converted))
                value = converted
            elif type(own) is float and value.constant:
                value = Value(np.array(own), constant=True)
            elif type(own) is float and not t._row and result._row:
                self.left(t, False)  # the row has the number itself
            values.append(value)
        z = result._data
        if type(z) is float:
            z = result._data = z * 1.0
            found = self.number()
        elif z.dtype != FLOAT64 or any(np.may_share_memory(z, value.array) for value in values if value.array is not None):
            self.refuse(f"{RULES[opcode].name} of dtype {z.dtype}")
            return
        else:
            found = Value(z)
        self._step(Ruled(opcode, values, found))
        self.know(z, found, TAPE.slot(result._row) if result._row > 0 else -1)

    def row(self, entry: str, arguments: tuple[Any, ...], handle: int) -> None:
        """Note what an entry wrote."""
        getattr(self, f"_{entry}")(TAPE.slot(handle), *arguments[1:])

    def _source(self, handle: int, data: Any) -> Value | None:
        return self.value_of(_Operand(handle, data))

    def _out(self, z: Any) -> Value:
        return self.number() if type(z) is float else Value(z)

    def _view_row(self, slot: int, name: int, x_row: int, px: int, base: int, taken: int, pz: int) -> None:
        a, view, z = object_at(px), object_at(taken), object_at(pz)
        source = self._source(x_row, a)
        if source is None:
            return
        if type(z) is float:
            found = self.number()
            if view.base is None or not np.may_share_memory(view, a):
                self.refuse("an element of a strided array")
            self._step(Copied(Value(view), found))
        elif np.may_share_memory(z, a) or not z.size:
            found = Value(z)
        else:
            self.refuse("a view of other memory")
            return
        self.know(z, found, slot)

    def _map_row(self, slot: int, scatters: int, name: int, x_row: int, px: int, geometry: int, scale: float, pz: int) -> None:
        a, z = object_at(px), object_at(pz)
        source = self._source(x_row, a)
        rank, offset = words_at(geometry, 2)
        words = words_at(geometry + 16, 2 * rank)
        dims, strides = words[:rank], words[rank:]
        if source is None:
            return
        if np.asarray(z).dtype != FLOAT64 or not np.asarray(z).flags.c_contiguous:
            self.refuse("a map of another dtype or order of elements")
            return
        found = self._out(z)
        if scatters:
            shape = np.shape(z)
            if TAPE.names[name] in PLACING:
                self._step(Copied(source, Value(strided(z.reshape(-1), dims, strides, offset)), dims))
            elif np.any(np.asarray(z) != scattered(np.asarray(a), dims, strides, offset, scale, shape)):
                self.refuse("values among constants")
                return
            else:
                self._step(Scattered(source, lambda x: scattered(x, dims, strides, offset, scale, shape), found))
        else:
            self._step(Gathered(source, dims, strides, offset, scale, found))
        self.know(z, found, slot)

    def _reduce_row(self, slot: int, name: int, x_row: int, px: int, bits: int, scale: float, pz: int) -> None:
        a, z = object_at(px), object_at(pz)
        source = self._source(x_row, a)
        if source is None:
            return
        rank = np.ndim(a)
        axes = tuple(d for d in range(rank) if bits == -1 or bits >> min(d, 63) & 1)
        count = math.prod(np.shape(a)[d] for d in axes)
        found = self._out(z)
        divisor = 1 if scale == 1.0 else count if count and scale == 1.0 / count else 0
        self._step(Summed(source, None if bits == -1 else axes, divisor, scale, found))
        self.know(z, found, slot)

    def _join_row(self, slot: int, name: int, inputs: int, data: int, at: int, pz: int) -> None:
        z, arrays = object_at(pz), object_at(data)
        sources = [self._source(t._row, a) for t, a in zip(object_at(inputs), arrays, strict=True)]
        if None in sources or z.dtype != FLOAT64 or not z.flags.c_contiguous or not z.size:
            self.refuse("a concatenation of another dtype or order of elements, or of nothing")
            return
        found, outer = Value(z), math.prod(z.shape[:at])
        widths = [1 if type(a) is float else a.size // outer for a in arrays]
        self._step(Joined([value for value in sources if value is not None], widths, found))
        self.know(z, found, slot)

    def _host_row(
        self, slot: int, name: int, count: int, handles: int, objects: int, save: int, payload_at: int, saves: int, pz: int
    ) -> None:
        payload, z = object_at(payload_at), object_at(pz)
        data = [object_at(o) for o in words_at(objects, count)]
        forward = forward_of(payload, data[payload.inputs :], np.shape(z)) if type(payload) is Payload else None
        if len(data) > payload.inputs and not self._places_are_given:
            self.refuse(f"{TAPE.names[name]} at places that may depend on values")
            return
        if forward is None or any(type(a) is float for a in data) or np.asarray(z).dtype != FLOAT64:
            self.refuse(f"{TAPE.names[name]} is not run again by programs yet")
            return
        operands = [self._source(h, a) for h, a in zip(words_at(handles, payload.inputs), data, strict=False)]
        if None in operands:
            return
        found = self._out(z)
        step = Structured(TAPE.names[name], forward, [value for value in operands if value is not None], found)
        self._step(step)
        self._kept.append(data)
        self.know(z, found, slot)

    def computed(self, function: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any], result: Any) -> None:
        """Note a function of values, and values of arguments that went another way than as operands."""
        self._explained += 1
        parts: list[tuple[tuple[int, ...], Any]] = []
        _parts(result, (), parts)
        wanted: list[tuple[tuple[int, ...], Any]] = []
        for place, part in parts:
            if isinstance(part, Tensor):
                if not self._known(part):
                    if part._row:
                        self.refuse(f"{getattr(function, '__name__', function)} is not followed by programs")
                        return
                    wanted.append((place, part))
            elif isinstance(part, np.ndarray):
                self.refuse("an array of NumPy's was made of values")
                return
            elif part is not None:
                wanted.append((place, part))
        if any(isinstance(part, Tensor) and part._row for _, part in parts) and not _is_elementwise(function):
            self._fix(args)
            self._fix(tuple(kwargs.values()))
        if not wanted:
            return
        template = self._template(args), self._template(kwargs)
        if self.refused:
            return
        results = []
        for place, part in wanted:
            value = part
            if isinstance(part, Tensor):
                if type(part._data) is float:
                    part._data = part._data * 1.0
                value = self._out(part._data)
            results.append((place, value))
        own = not _is_elementwise(function) and any(t._row for t in _tensors({"args": args, "kwargs": kwargs}))
        self._step(Computed(function, *template, results, own))
        for (_, part), (_, value) in zip(wanted, results, strict=True):
            if isinstance(part, Tensor):
                self.know(part._data, value)

    def _maker(self, value: Any) -> str:
        """Which function of the package made an operand; empty if it is an argument of the operation that the user asked for."""
        frame: FrameType | None = sys._getframe(2)
        candidates = [value]
        while frame is not None and frame.f_code.co_filename.startswith(HANDING_ON):
            if frame.f_code.co_filename.startswith(CONVERTING):
                candidates += frame.f_locals.values()
            frame = frame.f_back
        if any(own is given for own in candidates for given in self._given):
            return ""
        return "the package" if frame is None else _named(frame)

    def _fix(self, values: Any) -> None:
        """Values of arguments that went into an operation in another way than as its operands must be the same again."""
        for x in values:
            if isinstance(x, Tensor):
                if not x._row:
                    self.left(x, False)
            elif isinstance(x, (tuple, list)):
                self._fix(x)

    def _template(self, values: Any) -> Any:
        if isinstance(values, Tensor):
            return self.value_of(values)
        if isinstance(values, (tuple, list)):
            parts = list(map(self._template, values))
            return type(values)(parts) if type(values) in (tuple, list) else type(values)(*parts)
        if isinstance(values, np.ndarray):
            return values.copy()  # the function may write into it afterwards
        return {name: self._template(part) for name, part in values.items()} if values.__class__ is dict else values

    def left(self, t: Any, as_truth: bool) -> None:
        """Let the value be the same in each run, or in another path."""
        self._explained += 1
        value = self.value_of(t)
        if value is None or value.constant:
            return
        guard = Guard(value, as_truth)
        array = np.asarray(t._data)
        guard.expected = bool(array.item()) if as_truth else array.tobytes()
        self._step(guard)

    # What crosses from the package into the user's code.

    def _crossing(self, frame: FrameType, event: str, argument: Any) -> None:
        if event == "c_call":
            self._look_at_c(frame, argument)
        elif event == "call":
            if frame.f_code.co_filename.endswith(THREADS):
                self.refuse("it starts threads")
            if self._entry is None and frame.f_code.co_filename.startswith(PACKAGE):
                around = frame.f_back
                if around is not None and not around.f_code.co_filename.startswith(PACKAGE):
                    self._tensors = _tensors(frame.f_locals) if not frame.f_code.co_filename.startswith(HANDING_ON) else []
                    self._entry, self._explained, self._given = frame, 0, _given(frame.f_locals)
                    asked = frame.f_locals.get("function")
                    if asked is not None and asked in LOOKING:
                        self.refuse(f"{asked.__name__} looks at values")
                    self._places_are_given = frame.f_code.co_name == "getitem" or asked in AT_GIVEN_PLACES
        elif event == "return" and frame is self._entry:
            self._entry = None
            if not self.refused and argument is not None:
                self._check(frame, argument)

    def _look_at_c(self, frame: FrameType, function: Any) -> None:
        """What draws random numbers, or tells the time, is another each time."""
        if frame.f_code.co_filename.startswith((PACKAGE, "<frozen")):
            return
        owner = getattr(function, "__self__", None)
        if isinstance(owner, random.Random) or type(owner).__module__.startswith("numpy.random"):
            self.draws = True
        elif getattr(owner, "__name__", "") == "time" or function in (input, open, os.urandom):
            self.refuse(f"it calls {function.__name__}")

    def _check(self, frame: FrameType, result: Any) -> None:
        code = frame.f_code
        parts: list[tuple[tuple[int, ...], Any]] = []
        _parts(result, (), parts)
        if any(isinstance(part, Tensor) and part._row for _, part in parts):
            self._fix(self._tensors)  # index arrays, masks and the like
        for _, part in parts:
            if isinstance(part, Tensor):
                if not self._known(part):
                    self.refuse(f"{code.co_qualname} gives what programs do not follow")
            elif isinstance(part, (*_NUMBERS, np.ndarray, np.generic)) and code not in STATIC_CODE and not self._explained:
                self.refuse(f"{code.co_qualname} gives {type(part).__name__}")


PLACING = frozenset(["ConstantPadNdBackward0"])


# Files that hand operands on as they are, and functions that make constants of shapes alone.
_HANDING_ON = """
tensors/tensor recording/apply_rule ops/elementwise ops/operators numpy_arrays/array numpy_arrays/operators numpy_arrays/promotion
numpy_arrays/protocols numpy_protocol/protocols numpy_protocol/operands
"""
HANDING_ON = (PACKAGE + "programs", *(PACKAGE + file.replace("/", os.sep) + ".py" for file in _HANDING_ON.split()))
FACTORY_DATA = ("data", "fill_value", "value", "size")  # arguments of factories of which values are made
FACTORIES = PACKAGE + os.path.join("tensors", "factories.py")
# Where lists and numbers become arrays, and arrays ones of another dtype.
CONVERTING = tuple(PACKAGE + os.path.join(*file) for file in (("numpy_protocol", "operands.py"), ("numpy_arrays", "promotion.py")))
_MAKERS = """
numpy_protocol.functions:_round numpy_protocol.functions:_take numpy_protocol.functions:_inside
numpy_protocol.sampled_functions:_trapezoid numpy_protocol.statistics:_cov numpy_protocol.reductions:_average
numpy_protocol.rearranging:_pad numpy_protocol.rearranging:_taken numpy_protocol.ranges:_linspace
numpy_protocol.polynomials:_polyder ops.arithmetic:clamp numpy_arrays.operators:matmul
"""
MAKERS = frozenset(_MAKERS.split())


# Functions that take elements at places which their arguments name.
_AT_GIVEN_PLACES = """
append block compress delete diag diagonal extract flip fliplr flipud insert pad repeat resize roll rot90 take take_along_axis tile
trace tril triu
"""
AT_GIVEN_PLACES = frozenset(getattr(np, name) for name in _AT_GIVEN_PLACES.split())


# Functions whose results have a shape or places that values decide, without a word to anybody.
_LOOKING = """
nanmax nanmin trim_zeros unique unique_all unique_counts unique_inverse unique_values union1d intersect1d setdiff1d setxor1d
"""
LOOKING = frozenset(getattr(np, name) for name in _LOOKING.split() if hasattr(np, name))


def _named(frame: FrameType) -> str:
    """Which function of the package a frame is of."""
    file = frame.f_code.co_filename[len(PACKAGE) :].removesuffix(".py").replace(os.sep, ".")
    return f"{file}:{frame.f_code.co_qualname}"


def _tensors(values: Any) -> list[Any]:
    """Tensors in the arguments of a call."""
    found: list[Any] = []
    pending = list(values.values())
    while pending:
        value = pending.pop()
        if isinstance(value, Tensor):
            found.append(value)
        elif isinstance(value, (tuple, list)):
            pending += value
        elif isinstance(value, dict):
            pending += value.values()
    return found


def _given(values: Any) -> list[Any]:
    """Numbers, arrays and lists in the arguments of a call."""
    found: list[Any] = []
    pending = list(values.values())
    while pending:
        value = pending.pop()
        if isinstance(value, (tuple, list)):
            pending += value
            found.append(value)
        elif isinstance(value, dict):
            pending += value.values()
        elif isinstance(value, (int, float, np.ndarray, np.generic)):
            found.append(value)
    return found


def _is_same_memory(a: Array, b: Array) -> bool:
    return a is b or (
        a.__array_interface__["data"] == b.__array_interface__["data"] and a.strides == b.strides and a.shape == b.shape
    )


THREADS = ("threading.py", os.path.join("concurrent", "futures", "thread.py"))


def _profile_again(before: Any) -> None:
    """Let whatever profiled this thread go on; profilers in C are objects to be switched on."""
    if before is None or callable(before):
        sys.setprofile(before)
    else:
        sys.setprofile(None)
        before.enable()


class _Operand:
    """Handle and data, as entries that write rows are given them."""

    __slots__ = ("_data", "_row")

    def __init__(self, row: int, data: Any) -> None:
        self._row, self._data = row, data


def _parts(value: Any, place: tuple[int, ...], found: list[tuple[tuple[int, ...], Any]]) -> None:
    if isinstance(value, (tuple, list)):
        for k, part in enumerate(value):
            _parts(part, (*place, k), found)
    else:
        found.append((place, value))


def _is_elementwise(function: Any) -> bool:
    return isinstance(function, np.ufunc) or function is np.where or getattr(function, "__module__", "") == "_operator"
