"""What is the same in each run: a key of the arguments, and under it the recorded paths."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tapegrad.arrays.dtypes import get_default_dtype
from tapegrad.drivers.containers import flatten
from tapegrad.programs.argument_layouts import Layout
from tapegrad.programs.classes import parts_of
from tapegrad.programs.quick_calls import Kind, QuickCall, kind_of_input, quick_call
from tapegrad.programs.snapshots import Snapshot, same_bits
from tapegrad.programs.surroundings import PLAIN, Arrays
from tapegrad.programs.traces import Trace
from tapegrad.tensors.tensor import FLOATS, Tensor

__all__ = ["NOT_USUAL", "Paths", "Usual", "describe", "is_differentiable", "repeated", "shared"]

NOT_USUAL = (list, bool, float)  # types of argnums without a hash, or that are no numbers of arguments but equal to some


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
    """What calls like the latest one are alike in: the next one is mostly like it.

    Attributes
    ----------
    layout : Layout
        Of its arguments.
    kinds : list of Kind
        Of inputs: those among the arguments, and behind them arrays that are read where they are.
    """

    __slots__ = ("arrays", "dtype", "kinds", "layout", "looked", "many", "paths", "quick", "snapshot")

    def __init__(self, layout: Layout, kinds: list[Kind], snapshot: Snapshot, paths: Paths, many: bool) -> None:
        self.many = many  # whether gradients are asked for in a tuple
        self.layout, self.kinds, self.snapshot, self.paths, self.dtype = layout, kinds, snapshot, paths, get_default_dtype()
        self.quick: dict[str, QuickCall] = {}  # by what is asked for
        self.looked: set[str] = set()  # for what there is a direct call, or none
        self.arrays = sum(shape is not None for _, shape, _ in kinds) + len(snapshot.arrays)

    def holds(self, given: tuple[Any, ...]) -> bool:
        """Whether a call with these inputs has the same key."""
        if len(given) != len(self.kinds):
            return False
        for value, (kind, shape, dtype) in zip(given, self.kinds, strict=True):
            if type(value) is not kind:
                return False
            if shape is not None and (value.shape != shape or value.dtype is not dtype or not value.flags.c_contiguous):
                return False
        return self.has_same_surroundings(given)

    def has_same_surroundings(self, args: tuple[Any, ...]) -> bool:
        """Whether what else is part of the key is the same."""
        if self.arrays > 1 and repeated([*args, *(array for array, _ in self.snapshot.arrays)]):
            return False
        return get_default_dtype() is self.dtype and self.snapshot.holds()

    def has_run(self, trace: Trace, what: str, args: tuple[Any, ...], along: Sequence[Any]) -> bool:
        """Whether machine code gave something, and products along vectors, for arguments that have the same key."""
        quick = self.quick.get(what)
        if quick is None:
            quick = quick_call(trace.code_for(what, along), [*self.kinds, *map(kind_of_input, along)])
            if quick is None:
                return False
            self.quick[what] = quick
        if not self.has_same_surroundings(args):
            return False
        found = quick.run((*args, *along))
        if found is None:
            return False
        trace.take(what, found)
        return True


def is_differentiable(value: Any) -> bool:
    """Whether a value consists of numbers of float64, and arrays of that or of float32."""
    found: list[Any] = []
    flatten(value, found)
    return bool(found) and all(type(x) in (float, np.float64) or (isinstance(x, np.ndarray) and x.dtype in FLOATS) for x in found)


def repeated(values: list[Any]) -> tuple[tuple[int, int], ...]:
    """Which values are one array: a function may ask whether ``x is y``."""
    arrays = [id(value) for value in values if type(value) is np.ndarray]
    if len(set(arrays)) == len(arrays):
        return ()
    return tuple((k, arrays.index(one)) for k, one in enumerate(arrays))


def shared(objects: Sequence[Any]) -> tuple[tuple[int, int], ...]:
    """Which objects are one: a function may ask that of lists, dicts and others among its arguments too."""
    places: dict[int, int] = {}
    pairs = [(k, places.setdefault(id(one), k)) for k, one in enumerate(objects)]
    return tuple([pair for pair in pairs if pair[0] != pair[1]])


def memory_order(array: Any) -> tuple[Any, ...]:
    """What a copy of an array keeps of its strides."""
    flags = array.flags
    if flags.forc or array.ndim < 2:
        return flags.c_contiguous, flags.f_contiguous
    return tuple(sorted(range(array.ndim), key=lambda k: -abs(array.strides[k])))


def describe(
    value: Any, parts: list[Any], values: list[Any], others: list[Any], is_taken_apart: bool = False, held: list[Any] | None = None
) -> bool:
    """Append the key of a value to a list, and inputs in it and objects to be looked into to others; False if a tensor is in it.

    Dataclasses and named tuples are objects, but where something is differentiated by them: there they are taken apart.
    Containers other than tuples are appended to `held`; of tuples Python itself decides whether equal ones are one.
    """
    kind = type(value)
    parts.append(kind)
    if held is not None and (kind is list or kind is dict):
        held.append(value)
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
        return all(describe(part, parts, values, others, is_taken_apart, held) for part in value)
    elif kind is dict:
        parts.append(tuple((type(name), repr(name)) if type(name) in PLAIN else name for name in value))
        return all(describe(part, parts, values, others, is_taken_apart, held) for part in value.values())
    elif isinstance(value, (Tensor, np.ndarray)):
        return False
    elif is_taken_apart and (apart := parts_of(value)) is not None:
        others.append(kind)  # whose functions may compute of them
        if held is not None and not isinstance(value, tuple):
            held.append(value)
        parts += (apart[0], tuple(getattr(value, "__dict__", ())))  # whose order a function may ask for
        return all(describe(part, parts, values, others, True, held) for part in apart[1])
    else:
        others.append(value)
    return True
