"""The derivative of the determinant of a singular matrix, computed in Python.

It is asked for at single points only, and takes longer to compile than the determinant, its inverse and all rows together.
"""

from __future__ import annotations

import ctypes
from typing import Any

import llvmlite.binding as llvm
import numpy as np
from llvmlite import ir
from numba.core import cgutils, types
from numba.core.extending import intrinsic

from tapegrad.nopython.tape.columns import _call_python
from tapegrad.nopython.types.variable_arrays import copy_in_order

__all__ = ["cofactors"]

I64 = ir.IntType(64)
SYMBOL = "tapegrad_cofactors"  # compiled code that is kept on disk asks for it by name


def _cofactors(itself: Any, address: int) -> None:
    """Replace a matrix by its cofactors; at the address stand its size and where it is."""
    size, place = (ctypes.c_int64 * 2).from_address(address)
    matrix = np.frombuffer((ctypes.c_double * (size * size)).from_address(place)).reshape(size, size)
    u, s, vt = np.linalg.svd(matrix)
    others = [np.prod(np.delete(s, k)) for k in range(size)]
    matrix[...] = np.linalg.det(u) * np.linalg.det(vt) * (u * others) @ vt


llvm.add_symbol(SYMBOL, id(_cofactors))


@intrinsic
def cofactors(typingctx: Any, a: Any) -> Any:
    """The derivative of the determinant of a matrix, which may be singular, by its singular values."""
    kind = types.Array(types.float64, 2, "C")

    def write(context: Any, builder: Any, sig: Any, args: Any) -> Any:
        made = copy_in_order(context, builder, a, kind, args[0])
        size = cgutils.unpack_tuple(builder, made.shape, 2)[0]
        words = cgutils.alloca_once(builder, I64, size=2)
        for k, word in enumerate((size, builder.ptrtoint(made.data, I64))):
            builder.store(word, builder.gep(words, [I64(k)]))
        function = builder.ptrtoint(context.get_c_value(builder, ir.IntType(8), SYMBOL), I64)
        _call_python(context, builder, function, function, builder.ptrtoint(words, I64))
        return made._getvalue()

    return kind(a), write
