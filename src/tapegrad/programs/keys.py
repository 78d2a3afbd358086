"""What is the same in each run: a key of the arguments, and under it the recorded paths."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tapegrad.arrays.dtypes import get_default_dtype
from tapegrad.drivers.containers import flatten
from tapegrad.programs.quick_calls import QuickCall
from tapegrad.programs.snapshots import UNKNOWN, Snapshot, same_bits
from tapegrad.programs.surroundings import PLAIN, Arrays
from tapegrad.programs.traces import Trace
from tapegrad.tape.tape import TAPE
from tapegrad.tensors.tensor import FLOATS, Tensor

__all__ = ["Paths", "Usual", "describe", "is_differentiable", "repeated"]


class Paths:
    """The recorded paths for one key, while the arrays that the function sees have the contents that they had."""

    __slots__ = ("changes", "contents", "count", "first", "needs", "objects", "raised", "refused", "stopped", "warned")

    def __init__(self, objects: list[Any], arrays: Arrays) -> None:
        self.first: Trace | None = None
        self.objects = objects  # whose identity is in the key
        self.needs = {""}  # what drivers have asked for
        self.contents = [array.copy() for _, array in arrays]
        self.changes = 0  # how many recordings changed what the function sees
        self.count, self.raised, self.refused, self.stopped, self.warned = 0, 0, "", "", False

    def sees(self, arrays: Arrays) -> bool:
        """Whether arrays have these contents."""
        return all(same_bits(array, kept) for (_, array), kept in zip(arrays, self.contents, strict=True))


class Usual:
    """The arguments of the latest call, where all are numbers and arrays: the next one's are mostly like them."""

    __slots__ = ("arrays", "direct", "dtype", "has_looked", "kinds", "many", "paths", "quick", "snapshot")

    def __init__(self, kinds: list[tuple[Any, ...]], snapshot: Snapshot, paths: Paths, many: bool) -> None:
        self.many = many  # whether gradients are asked for in a tuple
        self.kinds, self.snapshot, self.paths, self.dtype = kinds, snapshot, paths, get_default_dtype()
        self.quick: QuickCall | None = None
        self.direct: Callable[[tuple[Any, ...]], tuple[float, Any] | None] | None = None
        self.has_looked = False  # whether there is one
        self.arrays = sum(shape is not None for _, shape, _ in kinds) + len(snapshot.arrays)

    def holds(self, args: tuple[Any, ...]) -> bool:
        """Whether a call with these arguments has the same key."""
        if len(args) != len(self.kinds):
            return False
        for value, (kind, shape, dtype) in zip(args, self.kinds, strict=True):
            if type(value) is not kind:
                return False
            if shape is not None and (value.shape != shape or value.dtype is not dtype or not value.flags.c_contiguous):
                return False
        return self.has_same_surroundings(args)

    def has_same_surroundings(self, args: tuple[Any, ...]) -> bool:
        """Whether what else is part of the key is the same."""
        if self.arrays > 1 and repeated([*args, *(array for array, _ in self.snapshot.arrays)]):
            return False
        return get_default_dtype() is self.dtype and self.snapshot.holds()

    def gradient(self, trace: Trace, args: tuple[Any, ...]) -> bool:
        """Whether machine code gave value and gradient for arguments that have the same key."""
        if self.quick is None:
            code = trace.fused.code
            if (
                code is None
                or code.before
                or code.before_inputs
                or any(dtype is not None and dtype not in FLOATS for _, _, dtype in self.kinds)
            ):
                return False  # other bytes than those that the code reads
            self.quick = QuickCall(code, self.kinds)
        if not self.has_same_surroundings(args):
            return False
        found = self.quick.gradient(args)
        if found is None:
            return False
        value, trace.made.gradients = found
        output = trace.made.output
        if type(output._data) is float:
            output._data = value
        else:
            output._data[...] = value
        return True

    def prepare_direct(self, trace: Trace) -> None:
        """Make what gives value and gradient for arguments without anything in between, if that is possible.

        It is where the only argument that is differentiated by is an array, of whose function nothing else is asked.
        """
        made, quick = trace.made, self.quick
        self.has_looked = True
        if quick is None or quick.only is None or self.many or made.structure is not None or made.kinds != [np.ndarray]:
            return
        take, place, run, same = TAPE.take_inputs, quick.place, quick.only, self.has_same_surroundings
        dtype, check, is_single = self.dtype, self.snapshot.check, self.arrays <= 1

        def direct(args: tuple[Any, ...]) -> tuple[float, Any] | None:
            if trace.is_running:
                return None
            trace.is_running = True
            try:
                if take(place, id(args)) and (get_default_dtype() is dtype and check() if is_single else same(args)):
                    return run()
                return None
            except UNKNOWN:
                return None
            finally:
                trace.is_running = False

        self.direct = direct


def is_differentiable(value: Any) -> bool:
    """Whether a value consists of numbers of float64, and arrays of that or of float32."""
    found: list[Any] = []
    flatten(value, found, [], "")
    return bool(found) and all(type(x) in (float, np.float64) or (isinstance(x, np.ndarray) and x.dtype in FLOATS) for x in found)


def repeated(values: list[Any]) -> tuple[tuple[int, int], ...]:
    """Which values are one array: a function may ask whether ``x is y``."""
    arrays = [id(value) for value in values if type(value) is np.ndarray]
    if len(set(arrays)) == len(arrays):
        return ()
    return tuple((k, arrays.index(one)) for k, one in enumerate(arrays))


def memory_order(array: Any) -> tuple[Any, ...]:
    """What a copy of an array keeps of its strides."""
    flags = array.flags
    if flags.forc or array.ndim < 2:
        return flags.c_contiguous, flags.f_contiguous
    return tuple(sorted(range(array.ndim), key=lambda k: -abs(array.strides[k])))


def describe(value: Any, parts: list[Any], values: list[Any], others: list[Any]) -> bool:
    """Append the key of a value to a list, and inputs in it and objects to be looked into to others; False if a tensor is in it."""
    kind = type(value)
    parts.append(kind)
    if kind is np.ndarray:
        if value.dtype.kind not in "fiub":
            return False
        parts.append((value.shape, value.dtype, memory_order(value)))
        values.append(value)
    elif kind is float or kind is np.float64:
        values.append(value)
    elif kind in PLAIN or isinstance(value, np.generic):
        parts.append(repr(value))
    elif kind in (tuple, list):
        parts.append(len(value))
        return all(describe(part, parts, values, others) for part in value)
    elif kind is dict:
        parts.append(tuple((type(name), repr(name)) if type(name) in PLAIN else name for name in value))
        return all(describe(part, parts, values, others) for part in value.values())
    elif isinstance(value, (Tensor, np.ndarray)):
        return False
    else:
        others.append(value)
    return True
