"""``x[key]`` and ``x[key] = value`` by NumPy's rules.

Single elements are numbers and no views: what is written later does not change them. Keys that NumPy and PyTorch read alike, which
are the common ones, go the tensor's way, and steps backwards are views that NumPy takes. All others (numbers among index arrays,
which move dimensions) are read off as NumPy reads them from an array of places, so that no rule of NumPy's is written again.
"""

from __future__ import annotations

import math
import operator
from collections.abc import Iterator
from operator import itemgetter
from typing import Any

import numpy as np

from tapegrad.deferred import look_up  # writes take as much to import as half of the rest
from tapegrad.numpy_arrays.array import Array, as_arrays
from tapegrad.numpy_arrays.numbers import as_array
from tapegrad.numpy_arrays.untracked import values_of, write_constants
from tapegrad.numpy_protocol.operands import holds_tensors, stacked
from tapegrad.ops.cloning import clone
from tapegrad.ops.indexing import getitem as item_of_tensor
from tapegrad.ops.views import part, view
from tapegrad.tape.tape import TAPE
from tapegrad.tensors.number_entries import NumberEntries, entry
from tapegrad.tensors.tensor import Tensor, array_of
from tapegrad.tensors.tracers import computed, left, writes_operands

__all__: list[str] = []

_FLOAT64 = np.dtype(np.float64)
_BASIC = frozenset([slice, int, type(None), type(Ellipsis)])


def getitem(x: Array, key: Any) -> Any:
    """The part of `x` that `key` names: a view for slices, a number for an element, else a copy.

    Raises
    ------
    IndexError
        As NumPy.
    """
    data = x._data
    kind = type(key)
    if TAPE.tracers and not x._row:
        return computed(operator.getitem, (x, key), {}, _general_item(x, key))
    # The commonest keys first.
    if kind is int:
        if type(data) is float or data.ndim != 1:
            found = item_of_tensor(x, key)
        elif (type(x._meta) is NumberEntries or _is_doubles(data)) and -data.shape[0] <= key < data.shape[0]:
            found = entry(x, key)
        else:
            found = _number(x, (key,))
    elif kind is slice and key.step is None and type(data) is not float and data.ndim:
        found = view(x, "SliceBackward0", itemgetter(key))
    else:
        return _general_item(x, key)
    if type(found) is Tensor:
        found.__class__ = Array
    return found


def _general_item(x: Array, key: Any) -> Any:
    if key is Ellipsis and not x.ndim:
        return as_array(as_arrays(item_of_tensor(x, key)), (x,))
    column = _column(x, key if type(key) is tuple else (key,))
    if column is not None:
        return as_arrays(column)
    key = _plain(key)
    parts = key if isinstance(key, tuple) else (key,)
    if _is_common(key):
        if len(parts) == x.ndim and all(type(given) is int for given in parts):
            return _number(x, parts)
        return as_arrays(item_of_tensor(x, key))
    if all(type(given) in _BASIC for given in parts):
        return as_arrays(view(x, "SliceBackward0", lambda array: array[key]))
    return as_arrays(item_of_tensor(x, _places(x, key)))  # whatever else NumPy takes (a range, a sequence) gives copies


def _column(x: Array, parts: tuple[Any, ...]) -> Tensor | None:
    """The copy that an index array of one place makes, as that of a slice, which no row in Python is needed for; else None."""
    data, place = x._data, None
    if type(data) is float or len(parts) > data.ndim:
        return None
    for k, given in enumerate(parts):
        if type(given) is slice:
            if given.step is not None:
                return None
        elif place is None and (place := _only_place(given, data.shape[k])) is not None:
            parts = (*parts[:k], slice(place, place + 1), *parts[k + 1 :])
        else:
            return None
    return None if place is None else part(x, "SliceBackward0", itemgetter((*parts, Ellipsis)), copies=True)


def _only_place(given: Any, extent: int) -> int | None:
    """The place that an index array or list of one integer within bounds names; else None."""
    if type(given) is np.ndarray:
        if given.shape != (1,) or given.dtype.kind not in "iu":
            return None
        place = given.item()
    elif type(given) in (list, tuple) and len(given) == 1 and type(given[0]) is int:
        place = given[0]
    else:
        return None
    return place % extent if -extent <= place < extent else None


def _number(x: Array, places: tuple[int, ...]) -> Array:
    if type(x._data) is not float and _is_doubles(x._data):
        return as_arrays(entry(x, places))
    return as_arrays(clone(item_of_tensor(x, places)))


def _is_doubles(data: np.ndarray) -> bool:
    """Whether single elements can be read as numbers."""
    return data.dtype is _FLOAT64 and data.flags.c_contiguous


@writes_operands
def setitem(x: Array, key: Any, value: Any) -> None:
    """Write into the part of `x` that `key` names.

    Raises
    ------
    IndexError
        As NumPy.
    """
    key = _plain(key)
    if x.dtype.kind == "c":
        write_constants(x, lambda array: array.__setitem__(key, values_of(value)), value)
        return
    if issubclass(type(value), (list, tuple, range)):
        value = stacked(value) if holds_tensors(value) else np.asarray(value)
    if issubclass(type(value), (np.ndarray, np.generic)):
        value = np.asarray(value, x.dtype)
    elif isinstance(value, Tensor) and value.dtype != x.dtype:
        value = look_up("surface.conversions:to")(value, x.dtype)
    if x.ndim == 0 and all(part is None or part is Ellipsis for part in (key if isinstance(key, tuple) else (key,))):
        look_up("ops.in_place:copy_")(
            x, value.reshape(()) if isinstance(value, (np.ndarray, Tensor)) and math.prod(value.shape) == 1 else value
        )
        return
    look_up("ops.in_place:setitem")(x, key if _is_common(key) else _places(x, key), value)


def iterate(x: Array) -> Iterator[Any]:
    """The parts along the first dimension.

    Raises
    ------
    TypeError
        If there is none.
    """
    data = x._data
    if type(data) is float or data.ndim == 0:
        raise TypeError("iteration over a 0-d array")
    return (x[k] for k in range(len(data)))


def _plain(key: Any) -> Any:
    """A key with Python's numbers for NumPy's, and arrays for ours and for lists, which tuples in a tuple are too."""
    if isinstance(key, tuple):
        return tuple([_plain(list(part) if type(part) is tuple else part) for part in key])
    if isinstance(key, Tensor):
        if TAPE.tracers:
            left(key)
        key = array_of(key)
    if isinstance(key, list):
        key = np.asarray(key) if key else np.asarray(key, np.intp)
    if isinstance(key, np.ndarray) and key.ndim == 0 and key.dtype.kind in "iu":
        return int(key)
    if isinstance(key, np.integer):
        return int(key)
    if isinstance(key, np.ndarray) and key.dtype.kind == "u":
        return key.astype(np.intp)  # PyTorch takes bytes for a mask
    return bool(key) if isinstance(key, np.bool_) else key


def _is_common(key: Any) -> bool:
    """Whether NumPy and PyTorch read a key alike: no steps backwards, and one index array only, without numbers beside it."""
    parts = key if isinstance(key, tuple) else (key,)
    arrays = numbers = 0
    for given in parts:
        if isinstance(given, bool):
            return False
        if isinstance(given, slice):
            if given.step is not None and not (isinstance(given.step, int) and given.step > 0):
                return False
        elif isinstance(given, np.ndarray):
            arrays += 1
        elif isinstance(given, int):
            numbers += 1
        elif given is not None and given is not Ellipsis:
            return False
    return arrays == 0 or (arrays == 1 and not numbers)


def _places(x: Array, key: Any) -> tuple[np.ndarray, ...]:
    """Index arrays, one a dimension, of the elements that NumPy finds under a key."""
    places = np.arange(x.size).reshape(x.shape)[key]
    return np.unravel_index(places, x.shape)
