"""Functions of the BLAS and LAPACK that NumPy has, and does not hand on.

NumPy has no function for triangles, but the library that it calls for products has two, and it solves equations without giving
the factors away. They are called by their Fortran names, whose arguments are all addresses, so that one text fits to integers of
32 and of 64 bits.
"""

from __future__ import annotations

import ctypes
import functools
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

from tapegrad.tape.array_kernels import ARRAY_KERNELS

__all__ = ["address_of", "by_triangle", "function_of_library"]

Array = np.ndarray[Any, Any]
NAMES = "scipy_{}_64_ {}_64_ scipy_{}_ {}_"


@functools.cache
def function_of_library(name: str, forms: str = NAMES) -> Callable[..., Any] | None:
    """A function of the library that NumPy's products are made by; None where it has no name that is known here.

    Parameters
    ----------
    name : str
    forms : str
        What builds of the library make of its name, the likeliest one first.
    """
    if sys.byteorder != "little":  # pragma: no cover - where integers of 32 bits would be read from the wrong end
        return None
    try:
        from numpy.linalg import _umath_linalg

        library = ctypes.CDLL(_umath_linalg.__file__)
    except (ImportError, AttributeError, OSError):  # pragma: no cover - other NumPy versions
        return None
    for form in forms.split():
        function = getattr(library, form.format(name), None)
        if function is not None:
            return function
    return None  # pragma: no cover - other builds of NumPy


@functools.cache
def address_of(name: str) -> int:
    """The address of a function, for compiled code; 0 where it is not there."""
    return ctypes.cast(function_of_library(name), ctypes.c_void_p).value or 0  # type: ignore[arg-type]


def by_triangle(name: str, a: Array, b: Array, upper: bool, left: bool = True, unit: bool = False) -> Array | None:
    """``a @ b`` or the solution X of ``a @ X = b`` for a triangular matrix; None where the library does not have it.

    Parameters
    ----------
    name : {"dtrmm", "dtrsm"}
        Product or solution.
    a : ndarray, shape (..., n, n)
        Of which one triangle is read.
    b : ndarray, shape (..., n, k) or (..., k, n)
        Of the same batch.
    upper : bool
        Which triangle.
    left : bool
        Whether `a` stands on the left; else ``b @ a``, or ``X @ a = b``.
    unit : bool
        Whether the diagonal are ones and not read.
    """
    if not (a.ndim == b.ndim and a.shape[:-2] == b.shape[:-2] and a.dtype == b.dtype == np.float64 and b.size):
        return None
    function = address_of(name)
    if not function:
        return None
    columns = a.T if a.ndim == 2 else a.swapaxes(-1, -2)
    turned = columns.flags.c_contiguous
    matrix = np.asarray(columns if turned else a, order="C")
    x, words = np.array(b, order="C"), np.empty(8, np.int64)
    ARRAY_KERNELS.apply_triangle(function, id(x), id(matrix), id(words), int(left), int(upper), int(turned), int(unit))
    return x
