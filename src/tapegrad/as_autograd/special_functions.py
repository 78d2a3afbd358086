"""Functions of `scipy.special` with their derivatives.

What `scipy.special` offers as a ufunc that the table of rules has is taken as it is; all others are primitives here, whose
derivatives are written with each other, so that they can be differentiated to any order.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import scipy.special

from tapegrad.as_autograd.given_derivatives import defvjp
from tapegrad.as_autograd.primitives import primitive
from tapegrad.as_autograd.tracing import getval
from tapegrad.drivers.leaves import is_tracked
from tapegrad.numpy_arrays.array import as_arrays
from tapegrad.numpy_protocol.protocols import SCIPY
from tapegrad.surface import functions as tg

__all__ = ["logsumexp"]


def _function(name: str, *vjps: Any) -> Any:
    function = getattr(scipy.special, name)
    if name in SCIPY:
        return function
    made = primitive(function)
    defvjp(made, *vjps)
    return made


# Gamma functions

digamma: Any = _function("digamma", lambda ans, x: lambda g: g * polygamma(1, x))
psi: Any = _function("psi", lambda ans, x: lambda g: g * polygamma(1, x))
polygamma: Any = _function("polygamma", None, lambda ans, n, x: lambda g: g * polygamma(n + 1, x))
gammaln: Any = _function("gammaln", lambda ans, x: lambda g: g * psi(x))
gammasgn = _function("gammasgn", None)
gamma = _function("gamma", lambda ans, x: lambda g: g * ans * psi(x))
rgamma = _function("rgamma", lambda ans, x: lambda g: -g * ans * psi(x))
multigammaln = _function(
    "multigammaln", lambda ans, a, d: lambda g: g * np.sum(psi(np.expand_dims(a, -1) - 0.5 * np.arange(d)), -1), None
)
xlogy: Any = _function("xlogy", lambda ans, x, y: lambda g: g * np.log(y), lambda ans, x, y: lambda g: g * x / y)
xlog1py: Any = _function("xlog1py", lambda ans, x, y: lambda g: g * np.log1p(y), lambda ans, x, y: lambda g: g * x / (1.0 + y))
beta = _function(
    "beta",
    lambda ans, a, b: lambda g: g * ans * (psi(a) - psi(a + b)),
    lambda ans, a, b: lambda g: g * ans * (psi(b) - psi(a + b)),
)
betaln: Any = _function(
    "betaln", lambda ans, a, b: lambda g: g * (psi(a) - psi(a + b)), lambda ans, a, b: lambda g: g * (psi(b) - psi(a + b))
)


def _gamma_density(a: Any, x: Any) -> Any:
    return np.exp(xlogy(a - 1.0, x) - x - gammaln(a))


def _not_given(name: str, argument: str) -> Any:
    """A derivative that has no closed form."""

    def refuse(ans: Any, *args: Any) -> Any:
        raise NotImplementedError(f"VJP of {name} wrt {argument} not defined: it has no closed form; difference it by a primitive")

    return refuse


def _by_density(name: str, sign: float) -> Any:
    return _function(name, _not_given(name, "a"), lambda ans, a, x: lambda g: sign * g * _gamma_density(a, x))


gammainc, gammaincc = _by_density("gammainc", 1.0), _by_density("gammaincc", -1.0)
betainc = _function(
    "betainc",
    _not_given("betainc", "a"),
    _not_given("betainc", "b"),
    lambda ans, a, b, x: lambda g: g * np.exp(xlogy(a - 1.0, x) + xlog1py(b - 1.0, -x) - betaln(a, b)),
)

# Error functions and the normal distribution

_TWO_OVER_ROOT_PI = 2.0 / math.sqrt(math.pi)
_DENSITY_AT_0 = 1.0 / math.sqrt(2.0 * math.pi)

erf = _function("erf", lambda ans, x: lambda g: g * _TWO_OVER_ROOT_PI * np.exp(-(x**2)))
erfc = _function("erfc", lambda ans, x: lambda g: -g * _TWO_OVER_ROOT_PI * np.exp(-(x**2)))
erfinv = _function("erfinv", lambda ans, x: lambda g: g / _TWO_OVER_ROOT_PI * np.exp(ans**2))
erfcinv = _function("erfcinv", lambda ans, x: lambda g: -g / _TWO_OVER_ROOT_PI * np.exp(ans**2))
ndtr = _function("ndtr", lambda ans, x: lambda g: g * _DENSITY_AT_0 * np.exp(-0.5 * x**2))
log_ndtr = _function("log_ndtr", lambda ans, x: lambda g: g * _DENSITY_AT_0 * np.exp(-0.5 * x**2 - ans))
logit = _function("logit", lambda ans, x: lambda g: g / (x * (1.0 - x)))
expit = _function("expit", lambda ans, x: lambda g: g * ans * (1.0 - ans))

# Bessel functions

j0: Any = _function("j0", lambda ans, x: lambda g: -g * j1(x))
j1: Any = _function("j1", lambda ans, x: lambda g: 0.5 * g * (j0(x) - jn(2, x)))
y0: Any = _function("y0", lambda ans, x: lambda g: -g * y1(x))
y1: Any = _function("y1", lambda ans, x: lambda g: 0.5 * g * (y0(x) - yn(2, x)))
jn: Any = _function("jn", None, lambda ans, n, x: lambda g: 0.5 * g * (jn(n - 1, x) - jn(n + 1, x)))
yn: Any = _function("yn", None, lambda ans, n, x: lambda g: 0.5 * g * (yn(n - 1, x) - yn(n + 1, x)))
i0: Any = _function("i0", lambda ans, x: lambda g: g * i1(x))
i1: Any = _function("i1", lambda ans, x: lambda g: 0.5 * g * (i0(x) + iv(2, x)))
iv: Any = _function("iv", None, lambda ans, n, x: lambda g: 0.5 * g * (iv(n - 1, x) + iv(n + 1, x)))
# Of exp(-|x|) iv(n, x).
ive: Any = _function("ive", None, lambda ans, n, x: lambda g: g * (0.5 * (ive(n - 1, x) + ive(n + 1, x)) - ans * np.sign(x)))


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
    if b is None or (isinstance(b, float) and b == 1.0):
        axes = tuple(range(np.ndim(a))) if axis is None else axis
        return as_arrays(tg.logsumexp(a, axes, keepdims)) if np.ndim(a) else a
    shift = np.max(getval(a), axis=axis, keepdims=True)
    shift = np.where(np.isfinite(shift), shift, 0.0)  # a constant, of which the result does not depend
    found = np.log(np.sum(b * np.exp(a - shift), axis=axis, keepdims=True)) + shift
    return found if keepdims else np.squeeze(found, axis)
