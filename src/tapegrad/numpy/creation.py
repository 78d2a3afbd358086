"""Arrays that are made inside of a function that is differentiated can hold tracked values."""

from __future__ import annotations

import functools
import itertools
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

from tapegrad.deferred import look_up
from tapegrad.numpy_arrays.array import Array, as_arrays
from tapegrad.numpy_arrays.classes import answering
from tapegrad.numpy_arrays.flat_iteration import FlatElements
from tapegrad.numpy_arrays.promotion import PAIRS
from tapegrad.numpy_protocol.operands import holds_tensors
from tapegrad.ops.views import is_written
from tapegrad.surface.conversions import to
from tapegrad.tape.tape import TAPE
from tapegrad.tensors import untracked_values
from tapegrad.tensors.tensor import Tensor, array_of, make
from tapegrad.tensors.tracers import current_tracer, makes_constants_of_shapes

__all__ = [
    "any_sequence", "as_made_array", "contiguous", "converted", "creating", "enumerated", "from_items", "full", "joined_columns",
    "joined_rows", "made_array",
]  # fmt: skip

KINDS = "fiubc"  # of dtypes that arrays of ours can have
MOST = 16  # bytes of an element


def own(value: Any, given: Any = None) -> Any:
    """An array that NumPy made as one that can hold tracked values, inside of a function that is differentiated; else itself.

    What was not made but given, or is on memory of something else, stays NumPy's: whoever has it may write into it, and rows that
    were recorded with it before would get derivatives at other values.
    """
    if value is given or not (issubclass(type(value), np.ndarray) and value.flags.owndata):
        return value
    if untracked_values.depth() and type(value) is np.ndarray and value.dtype.kind in KINDS and value.dtype.itemsize <= MOST:
        if value.dtype.char in "gG":  # no long doubles
            return value
        return as_arrays(make(value, 0)) if value.ndim else answering(as_arrays(make(value, 0)), np.ndarray)
    return value


def _holds_pairs(values: Any) -> bool:
    if not PAIRS or type(values) not in (list, tuple):
        return False
    for value in values:
        kind = type(value)
        if kind is not int and kind is not float and (kind in PAIRS or _holds_pairs(value)):
            return True
    return False


def _in_complex_dtype(z: Any, dtype: Any) -> Any:
    if dtype is not None and np.dtype(dtype) != z.dtype:
        raise TypeError(f"complex numbers that are being differentiated stay {z.dtype}; write z.real for the real part")
    return z


def any_sequence(values: Iterable[Any]) -> bool:
    """Whether there is a list or tuple among arguments, which are arrays and numbers mostly."""
    for value in values:
        kind = type(value)
        if kind is list or kind is tuple:
            return True
    return False


def converted(value: Any) -> Any:
    """Nested lists and tuples in which there are tensors as arrays."""
    if type(value) in (list, tuple) and (holds_tensors(value) or _holds_pairs(value)):
        return made_array(value)
    return value


def _elements(values: Any) -> Any:
    """What ``x.flat`` gives as an array."""
    return values.copy() if type(values) is FlatElements else values


def _in_dtype(x: Tensor, dtype: Any) -> Any:
    if dtype is None or x.dtype == np.dtype(dtype):
        return x
    return x.astype(dtype) if isinstance(x, Array) else as_arrays(to(x, np.dtype(dtype)))


@functools.wraps(np.array)
def made_array(object: Any, dtype: Any = None, *, copy: Any = True, order: str = "K", ndmin: int = 0, **others: Any) -> Any:
    """`numpy.array`, also of nested lists in which there are tracked numbers and arrays.

    Raises
    ------
    ValueError
        If their shapes differ.
    """
    object = _elements(object)
    if isinstance(object, Tensor):
        found = _in_dtype(object, dtype)
        found = np.copy(found) if copy and found is object else found
    elif type(object) in PAIRS:
        return _in_complex_dtype(np.copy(object), dtype)
    elif holds_tensors(object) or _holds_pairs(object):
        parts = [_in_dtype(part, dtype) if isinstance(part, Tensor) else made_array(part, dtype) for part in object]
        shapes = {np.shape(part._data if isinstance(part, Tensor) else part) for part in parts}
        if len(shapes) > 1:
            raise ValueError(f"setting an array element with a sequence: the parts have the shapes {sorted(shapes)}")
        found = np.stack(parts)
    else:
        return own(np.array(object, dtype, copy=copy, order=order, ndmin=ndmin, **others), object)  # type: ignore[call-overload]
    if ndmin and ndmin > np.ndim(found):
        return np.reshape(found, (1,) * (ndmin - np.ndim(found)) + np.shape(found))
    return found


@functools.wraps(np.asarray)
def as_made_array(a: Any, dtype: Any = None, order: Any = None, *, copy: Any = None, **others: Any) -> Any:
    """`numpy.asarray`, in the same way; of a number it is a new array of no dimensions."""
    a = _elements(a)
    if isinstance(a, Tensor):
        found = _in_dtype(a, dtype)
        in_order = order != "C" or array_of(a).flags.c_contiguous
        is_number = not a.ndim and not is_written(a)
        return np.copy(found) if found is a and (copy or is_number or not in_order) else found
    if type(a) in PAIRS:
        return _in_complex_dtype(a, dtype)
    if holds_tensors(a) or _holds_pairs(a):
        return made_array(a, dtype)
    return own(np.asarray(a, dtype, order, copy=copy, **others), a)


@functools.wraps(np.fromiter)
def from_items(iter: Iterable[Any], dtype: Any = float, count: int = -1, **others: Any) -> Any:
    """`numpy.fromiter`, in the same way."""
    items = list(iter if count < 0 else itertools.islice(iter, count))
    if len(items) < count:
        raise ValueError(f"iterator too short: Expected {count} but iterator had only {len(items)} items.")
    return made_array(items, dtype) if holds_tensors(items) else told(own(np.fromiter(items, dtype, **others)))


class enumerated:  # noqa: N801
    """`numpy.ndenumerate`: places and elements, which are numbers that are differentiated."""

    def __init__(self, arr: Any) -> None:
        self._places = np.ndindex(np.shape(arr))
        self._array = arr if isinstance(arr, Tensor) else as_made_array(arr)

    def __iter__(self) -> enumerated:
        return self

    def __next__(self) -> tuple[Any, Any]:
        place = next(self._places)
        return place, self._array[place]


@functools.wraps(np.ascontiguousarray)
def contiguous(a: Any, dtype: Any = None, **others: Any) -> Any:
    """`numpy.ascontiguousarray`, in the same way."""
    return np.atleast_1d(as_made_array(a, dtype, "C", **others))


@makes_constants_of_shapes
def told(made: Any) -> Any:
    """An array that was made of shapes and numbers, of which this thread's tracer is told if it has one."""
    if TAPE.tracers and isinstance(made, Tensor) and (tracer := current_tracer()) is not None:
        tracer.made(made)
    return made


def creating(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of NumPy that makes an array from nothing but numbers."""

    @functools.wraps(function)
    def create(*args: Any, **kwargs: Any) -> Any:
        made = function(*args, **kwargs)
        return told(own(made.copy() if issubclass(type(made), np.ndarray) and made.base is not None else made))

    return create


@functools.wraps(np.full)
def full(shape: Any, fill_value: Any, dtype: Any = None, **others: Any) -> Any:
    """`numpy.full`, also of a tracked value."""
    if isinstance(fill_value, Tensor) or holds_tensors(fill_value):
        return np.copy(np.broadcast_to(as_made_array(fill_value, dtype), shape))
    return told(own(np.full(shape, fill_value, dtype, **others)))


@functools.wraps(np.lib.stride_tricks.as_strided)
def strided(x: Any, shape: Any = None, strides: Any = None, subok: bool = False, writeable: bool = True) -> Any:
    """`numpy.lib.stride_tricks.as_strided`, also of what is differentiated, with steps in bytes of its memory."""
    if not isinstance(x, Tensor):
        return np.lib.stride_tricks.as_strided(x, shape, strides, subok, writeable)
    size = x.dtype.itemsize
    steps = np.asarray(x.strides if strides is None else strides)
    if (steps % size).any():
        raise ValueError(f"as_strided: steps of {tuple(steps.tolist())} bytes are no multiples of an element's {size}")
    view = look_up("ops.subviews:as_strided")(x, np.shape(x) if shape is None else shape, tuple((steps // size).tolist()))
    return as_arrays(view)


class joined_rows:  # noqa: N801 - an instance is NumPy's `r_`
    """``np.r_``: its parts one after the other."""

    like, axis = np.r_, -1

    def __getitem__(self, key: Any) -> Any:
        parts = key if isinstance(key, tuple) else (key,)
        if not any(isinstance(part, Tensor) or holds_tensors(part) for part in parts):
            return own(self.like[key])
        if any(isinstance(part, str) for part in parts):
            raise TypeError("r_ and c_ with directives take no tracked values; write np.concatenate or np.stack")
        return self._joined([part if isinstance(part, Tensor) else self._part(part) for part in parts])

    def _part(self, part: Any) -> Any:
        return as_made_array(np.r_[part] if isinstance(part, slice) else part)

    def _joined(self, parts: list[Any]) -> Any:
        return np.concatenate([np.reshape(part, (1,)) if np.ndim(part) == 0 else part for part in parts], 0)


class joined_columns(joined_rows):  # noqa: N801
    """``np.c_``: its parts as columns."""

    like = np.c_  # type: ignore[assignment]

    def _joined(self, parts: list[Any]) -> Any:
        return np.concatenate([np.reshape(part, (-1, 1)) if np.ndim(part) < 2 else part for part in parts], -1)
