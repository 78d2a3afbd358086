"""Triangular matrices in the BLAS that NumPy has.

NumPy has no function for triangles, but the library that it calls for products has two. They are called by their Fortran names,
whose arguments are all addresses, so that one text fits to integers of 32 and of 64 bits.
"""

from __future__ import annotations

import ctypes
import functools
import sys
from collections.abc import Callable
from typing import Any

import numpy as np

__all__ = ["by_triangle"]

Array = np.ndarray[Any, Any]
NAMES = "scipy_{}_64_ {}_64_ scipy_{}_ {}_"


@functools.cache
def _function(name: str) -> Callable[..., Any] | None:
    """``dtrsm`` or ``dtrmm`` of the library that NumPy's products are made by; None where it has no name that is known here."""
    if sys.byteorder != "little":  # pragma: no cover - where integers of 32 bits would be read from the wrong end
        return None
    try:
        from numpy.linalg import _umath_linalg

        library = ctypes.CDLL(_umath_linalg.__file__)
    except (ImportError, AttributeError, OSError):  # pragma: no cover - other NumPy versions
        return None
    for form in NAMES.split():
        function = getattr(library, form.format(name), None)
        if function is not None:
            # Fortran hands the lengths of strings over at the end.
            function.argtypes, function.restype = [*[ctypes.c_void_p] * 11, *[ctypes.c_size_t] * 4], None
            return function
    return None  # pragma: no cover - other builds of NumPy


def by_triangle(name: str, a: Array, b: Array, upper: bool, left: bool = True, unit: bool = False) -> Array | None:
    """``a @ b`` or the solution X of ``a @ X = b`` for a triangular matrix; None where the library does not have it.

    Parameters
    ----------
    name : {"dtrmm", "dtrsm"}
        Product or solution.
    a : ndarray, shape (n, n)
        Of which one triangle is read.
    b : ndarray, shape (n, k) or (k, n)
    upper : bool
        Which triangle.
    left : bool
        Whether `a` stands on the left; else ``b @ a``, or ``X @ a = b``.
    unit : bool
        Whether the diagonal are ones and not read.
    """
    if not (a.ndim == b.ndim == 2 and a.dtype == b.dtype == np.float64 and b.size):
        return None
    function = _function(name)
    if function is None:
        return None
    # Fortran reads arrays in C order as their transposes, for which everything is the other way round.
    turned = a.flags.f_contiguous
    matrix = np.asarray(a.T if turned else a, order="C")
    x = np.array(b, order="C")
    side, half = b"R" if left else b"L", b"U" if upper == turned else b"L"
    lengths = np.array([x.shape[1], x.shape[0], len(a), x.shape[1]])
    rows, columns, a_step, b_step = (lengths.ctypes.data + 8 * place for place in range(4))
    letters = side, half, b"T" if turned else b"N", b"U" if unit else b"N"
    one = ctypes.c_double(1.0)
    function(*letters, rows, columns, ctypes.byref(one), matrix.ctypes.data, a_step, x.ctypes.data, b_step, 1, 1, 1, 1)
    return x
