"""NumPy's own compiled functions by address: making arrays, and the inner loops of ufuncs.

Compiled code that calls the very loop that a ufunc would call gets the same bits, without the half microsecond that the ufunc
spends on finding it.
"""

from __future__ import annotations

import ctypes
import functools
import importlib
import struct
from typing import Any

import numpy as np

__all__ = ["NEW_ARRAY", "c_function", "core", "has_known_arrays", "inner_loop"]

NEW_ARRAY = 93  # place of PyArray_New in NumPy's C API, which its ABI fixes


# Public fields behind the header of an object: classes of `ctypes` for them take a millisecond of each process.
UFUNC = struct.Struct("4i2P2i2P")  # nin, nout, nargs, identity, functions, data, ntypes, a reserved number, name, types
ARRAY = struct.Struct("Pi4Pi")  # data, nd, dimensions, strides, base, descr, flags


def _fields(form: struct.Struct, made: Any) -> tuple[Any, ...]:
    return form.unpack(ctypes.string_at(id(made) + object.__basicsize__, form.size))


def _numbers(address: int, count: int) -> tuple[int, ...]:
    """Words of the size of addresses."""
    return struct.unpack(f"{count}n", ctypes.string_at(address, count * struct.calcsize("n")))


def core() -> Any:
    """NumPy's compiled module."""
    return importlib.import_module("numpy._core._multiarray_umath")


def has_known_arrays() -> bool:
    """Whether arrays lie in memory as compiled code reads them; a NumPy to come may lay them out in another way."""
    whole = np.empty((3, 2), np.float32)
    array = whole[:2]
    data, nd, dimensions, strides, base, descr, flags = _fields(ARRAY, array)
    known: bool = (data, nd, base) == (array.__array_interface__["data"][0], 2, id(whole))
    known = known and _numbers(dimensions, 2) == (2, 2) and _numbers(strides, 2) == (8, 4)
    known = known and descr == id(array.dtype) and bool(flags & 1)
    number = ctypes.c_int.from_address(id(array.dtype) + object.__basicsize__ + 12).value
    return known and number == array.dtype.num


def c_function(number: int) -> int:
    """Address of a function of NumPy's C API."""
    pointer = ctypes.pythonapi.PyCapsule_GetPointer
    pointer.restype, pointer.argtypes = ctypes.c_void_p, [ctypes.py_object, ctypes.c_char_p]
    table = pointer(core()._ARRAY_API, None)
    return int(ctypes.c_int64.from_address(int(table or 0) + 8 * number).value)


@functools.cache
def inner_loop(ufunc: Any, dtype: Any = np.float64) -> tuple[int, int]:
    """The loop of a ufunc over operands of a dtype.

    Returns
    -------
    function, data : int
        Addresses; the C signature is ``void(char **operands, intptr_t *count, intptr_t *strides, void *data)``. Zeros if the
        ufunc has no such loop.
    """
    nin, nout, nargs, _, functions, data, ntypes, _, name, types = _fields(UFUNC, ufunc)
    if (nin, nout) != (ufunc.nin, ufunc.nout) or ctypes.string_at(name) != ufunc.__name__.encode():
        return 0, 0  # not the layout that is known
    kinds, known = bytes([np.dtype(dtype).num]) * nargs, ctypes.string_at(types, nargs * ntypes)
    for k in range(ntypes):
        if known[k * nargs : (k + 1) * nargs] == kinds:
            return _numbers(functions, k + 1)[k], _numbers(data, k + 1)[k] if data else 0
    return 0, 0
