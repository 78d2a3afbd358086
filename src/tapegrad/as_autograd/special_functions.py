"""Functions of `scipy.special` that are none of its ufuncs; those are taken as they are."""

from __future__ import annotations

from typing import Any

import numpy as np
import scipy.special

from tapegrad.as_autograd.tracing import getval
from tapegrad.drivers.leaves import is_tracked
from tapegrad.numpy_arrays.array import as_arrays
from tapegrad.surface import functions as tg

__all__ = ["logsumexp", "multigammaln", "polygamma"]


def polygamma(n: Any, x: Any) -> Any:
    """`scipy.special.polygamma`: derivatives of the digamma function."""
    if not is_tracked((n, x)):
        return scipy.special.polygamma(getval(n), getval(x))
    sign = 1.0 - 2.0 * ((np.asarray(n) + 1) % 2)
    return np.where(np.equal(n, 0), scipy.special.psi(x), sign * scipy.special.gamma(n + 1.0) * scipy.special.zeta(n + 1.0, x))


def multigammaln(a: Any, d: int) -> Any:
    """`scipy.special.multigammaln`: the logarithm of the gamma function of several variables."""
    return as_arrays(tg.mvlgamma(a, d)) if is_tracked(a) else scipy.special.multigammaln(getval(a), getval(d))


def logsumexp(a: Any, axis: Any = None, b: Any = None, keepdims: bool = False, return_sign: bool = False) -> Any:
    """`scipy.special.logsumexp`: ``log(sum(b * exp(a)))`` without overflow.

    Raises
    ------
    NotImplementedError
        If the sign is asked for of what is being differentiated.
    """
    if not is_tracked((a, b)):
        return scipy.special.logsumexp(getval(a), axis=axis, b=getval(b), keepdims=keepdims, return_sign=return_sign)
    if return_sign:
        raise NotImplementedError(
            "logsumexp: return_sign=True of what is being differentiated; write np.log(np.sum(b * np.exp(a)))"
        )
    if b is None or (issubclass(type(b), float) and b == 1.0):
        axes = tuple(range(np.ndim(a))) if axis is None else axis
        return as_arrays(tg.logsumexp(a, axes, keepdims)) if np.ndim(a) else a
    shift = np.max(getval(a), axis=axis, keepdims=True)
    shift = np.where(np.isfinite(shift), shift, 0.0)  # a constant, of which the result does not depend
    found = np.log(np.sum(b * np.exp(a - shift), axis=axis, keepdims=True)) + shift
    return found if keepdims else np.squeeze(found, axis)
