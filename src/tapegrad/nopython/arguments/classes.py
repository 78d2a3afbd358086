"""The classes of values that compiled functions take as arguments, by what can be done with their memory."""

from __future__ import annotations

import array
import ctypes
import enum
import mmap
import types as python_types
from typing import Any

import numba
import numpy as np
from numba.core import types
from numba.core.ccallback import CFunc
from numba.core.dispatcher import Dispatcher
from numba.experimental.jitclass import _box
from numba.experimental.structref import StructRefProxy
from numba.np.numpy_support import map_arrayscalar_type
from numpy.polynomial import Polynomial

__all__ = ["BUFFERS", "FIXED", "IMMUTABLE", "INSTANCES", "LISTS", "TYPED", "has_fixed_memory", "identity", "item_type",
           "plain_items"]  # fmt: skip

# Values that compiled code cannot write into, and functions. A generator of random numbers advances, as it does in the plain call.
IMMUTABLE = (
    bool, int, float, complex, str, bytes, type(None), type(...), slice, enum.Enum, type, np.generic, np.dtype, types.Type,
    Dispatcher, CFunc, types.WrapperAddressProtocol, ctypes._CFuncPtr, python_types.CodeType, python_types.BuiltinFunctionType,
    np.random.Generator, np.random.BitGenerator,
)  # fmt: skip
# Numba 0.61 has no typed sets.
TYPED = tuple(getattr(numba.typed, name) for name in ("List", "Dict", "Set") if hasattr(numba.typed, name))
LISTS = (list, numba.typed.List, numba.typed.Dict)
BUFFERS = (bytearray, array.array, memoryview, mmap.mmap)
FIXED = (np.void, Polynomial, *BUFFERS)  # memory that no type of Numba's protects from writes
INSTANCES = (_box.Box, StructRefProxy)  # what cannot be copied: only their own constructors make them


def has_fixed_memory(value: Any) -> bool:
    """Whether a value is of these classes; records and arrays of records are, raw bytes in a NumPy scalar are not."""
    if isinstance(value, np.ndarray):
        return value.dtype.names is not None  # a record is a pointer into the array, and written into even if that is read-only
    return isinstance(value, FIXED) and not (
        isinstance(value, np.void) and not isinstance(map_arrayscalar_type(value), types.Record)
    )


def identity(value: Any) -> int:
    """The address of what a proxy stands for: typed containers and instances give a new proxy at every access."""
    if isinstance(value, TYPED):
        return int(value._opaque.data) if value._typed else id(value)
    return int(_box.box_get_meminfoptr(value) if isinstance(value, _box.Box) else value._meminfo.data)


def item_type(value: Any) -> Any:
    """The type of what a typed container holds; that of keys and of items of sets is nothing that can be written into."""
    if value._typed and isinstance(value, numba.typed.Dict):
        return value._dict_type.value_type
    return value._list_type.item_type if value._typed and isinstance(value, numba.typed.List) else types.none


def plain(kind: Any) -> bool:
    """Whether items of a type cannot be written into."""
    return isinstance(kind, (types.Number, types.Boolean, types.UnicodeType, types.NoneType))


def plain_items(value: Any) -> bool:
    """Whether a container is typed and holds nothing that has memory of its own."""
    return isinstance(value, TYPED) and plain(item_type(value))
