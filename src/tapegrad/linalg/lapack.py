"""NumPy's compiled functions of matrices without their Python wrappers, which take four times as long as 8 by 8 elements do.

A wrapper finds common types, sets an error state of its own and names its results; for float64 none of this is needed. The
compiled functions say that they failed by the flag for invalid operations. Then, and for what is not here, the wrapper is called,
which says what it always said.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tapegrad.arrays.floating_point_warnings import INVALID_RAISES, enter, leave, quiet
from tapegrad.linalg.constant_matrices import upper_triangle

__all__ = ["call"]

Array = np.ndarray[Any, Any]
FLOAT64 = np.dtype(np.float64)


def _compiled() -> dict[Callable[..., Any], Callable[..., Any]]:
    """What takes the place of NumPy's functions; nothing where this NumPy has other names for it."""
    try:
        from numpy.linalg import _umath_linalg

        loops: Any = _umath_linalg
        svd, svd_whole, svd_values = loops.svd_s, loops.svd_f, loops.svd
        inv, solve, det, slogdet = loops.inv, loops.solve, loops.det, loops.slogdet
        cholesky = {False: loops.cholesky_lo, True: loops.cholesky_up}
        eigh = {"L": loops.eigh_lo, "U": loops.eigh_up}
        eigvalsh = {"L": loops.eigvalsh_lo, "U": loops.eigvalsh_up}
        raw, reduced, complete = loops.qr_r_raw, loops.qr_reduced, loops.qr_complete
    except (ImportError, AttributeError):  # pragma: no cover - other NumPy versions
        return {}

    def svd_of(a: Array, full_matrices: bool = True, compute_uv: bool = True) -> Any:
        if not compute_uv:
            return svd_values(a, signature="d->d")
        return (svd_whole if full_matrices else svd)(a, signature="d->ddd")

    def qr_of(a: Array, mode: str = "reduced") -> Any:
        rows, columns = a.shape[-2:]
        a = a.copy()  # the elimination is in place
        tau = raw(a, signature="d->d")
        count = rows if mode == "complete" and rows > columns else min(rows, columns)
        R = upper_triangle(a[..., :count, :])
        if mode == "r":
            return R
        return (complete if count > columns else reduced)(a, tau, signature="dd->d"), R

    return {
        np.linalg.cholesky: lambda a, upper=False: cholesky[upper](a, signature="d->d"),
        np.linalg.det: lambda a: det(a, signature="d->d"),
        np.linalg.eigh: lambda a, UPLO="L": eigh[UPLO](a, signature="d->dd"),
        np.linalg.eigvalsh: lambda a, UPLO="L": eigvalsh[UPLO](a, signature="d->d"),
        np.linalg.inv: lambda a: inv(a, signature="d->d"),
        np.linalg.qr: qr_of,
        np.linalg.slogdet: lambda a: slogdet(a, signature="d->dd"),
        np.linalg.solve: lambda a, b: solve(a, b, signature="dd->d"),
        np.linalg.svd: svd_of,
    }


_COMPILED = _compiled() if INVALID_RAISES is not None else {}


def call(function: Callable[..., Any], arrays: tuple[Array, ...], options: dict[str, Any]) -> Any:
    """``function(*arrays, **options)`` of `numpy.linalg`, for matrices, without floating point warnings.

    Raises
    ------
    numpy.linalg.LinAlgError
        As from NumPy's function.
    """
    compiled = _COMPILED.get(function)
    if compiled is not None:
        for a in arrays:
            if a.dtype is not FLOAT64 or not a.size:
                break
        else:
            token = enter(INVALID_RAISES)
            try:
                return compiled(*arrays, **options)
            except FloatingPointError:
                pass
            finally:
                leave(token)
    with quiet():
        return function(*arrays, **options)
