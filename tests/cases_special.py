"""Special functions that are not rules, beside closed forms, sums and integrals."""

import math
from collections.abc import Callable
from statistics import NormalDist

import numpy as np
from operation_case import Case

import tapegrad as tg

Array = np.ndarray
S = tg.special
X = np.array([[0.7, 1.3, 2.2], [0.4, 1.6, 2.8]])
SIGNS = np.array([[1.0, -1.0, 1.0], [-1.0, 1.0, -1.0]])
ROW = np.array([0.45, 1.7, 2.3])
UNIT = np.array([[0.2, 0.55, 0.9], [0.35, 0.62, 0.15]])
NORMAL = NormalDist()


def _each(f: Callable[[float], float]) -> Callable[[Array], Array]:
    return np.vectorize(f, otypes=[float])


def _mean_over_angles(f: Callable[[Array, Array], Array]) -> Callable[[Array], Array]:
    """Mean over a whole turn: Bessel's integrals, exact to rounding by a sum over equal angles."""
    angles = (np.arange(64) + 0.5) * (math.pi / 32)
    return lambda x: f(np.asarray(x)[..., None], angles).mean(-1)


def _integral(f: Callable[[Array, Array], Array]) -> Callable[[Array], Array]:
    """Integral from 0 on of what falls doubly exponentially, by a sum that is exact to rounding."""
    places = np.arange(400) * 0.025
    weights = np.where(places == 0.0, 0.5, 1.0) * 0.025
    return lambda x: (f(np.asarray(x)[..., None], places) * weights).sum(-1)


def _zeta(x: Array) -> Array:
    """The sum of (k + x)**-4, whose rest is that of Euler and Maclaurin."""
    k, end = np.arange(200), np.asarray(x) + 200.0
    return ((np.asarray(x)[..., None] + k) ** -4.0).sum(-1) + end**-3 / 3.0 + end**-4 / 2.0 + end**-5 / 3.0


CASES: list[Case] = [
    Case("special.entr", S.entr, (X,), lambda x: -x * np.log(x)),
    Case("special.erfcx", S.erfcx, (X * SIGNS,), _each(lambda x: math.exp(x * x) * math.erfc(x))),
    Case("special.ndtr", S.ndtr, (X * SIGNS,), _each(NORMAL.cdf)),
    Case("special.log_ndtr", S.log_ndtr, (X * SIGNS,), _each(lambda x: math.log(0.5 * math.erfc(-x / math.sqrt(2.0))))),
    Case("special.ndtri", S.ndtri, (UNIT,), _each(NORMAL.inv_cdf)),
    Case("special.xlog1py", S.xlog1py, (X * SIGNS, ROW), lambda x, y: x * np.log1p(y)),
    Case("igamma", lambda x: tg.igamma(tg.tensor(2.0), x), (X,), lambda x: 1.0 - np.exp(-x) * (1.0 + x)),
    Case("igammac", lambda x: tg.igammac(tg.tensor(2.0), x), (X,), lambda x: np.exp(-x) * (1.0 + x)),
    Case("special.zeta", lambda x: S.zeta(tg.tensor(4.0), x), (X,), _zeta),
    Case("i0", tg.i0, (X * SIGNS,), _mean_over_angles(lambda x, a: np.exp(x * np.cos(a)))),
    Case("special.i0e", S.i0e, (X * SIGNS,), _mean_over_angles(lambda x, a: np.exp(x * np.cos(a) - abs(x)))),
    Case("special.i1", S.i1, (X * SIGNS,), _mean_over_angles(lambda x, a: np.cos(a) * np.exp(x * np.cos(a)))),
    Case("special.i1e", S.i1e, (X * SIGNS,), _mean_over_angles(lambda x, a: np.cos(a) * np.exp(x * np.cos(a) - abs(x)))),
    Case("special.bessel_j0", S.bessel_j0, (X * SIGNS,), _mean_over_angles(lambda x, a: np.cos(x * np.sin(a)))),
    Case("special.bessel_j1", S.bessel_j1, (X * SIGNS,), _mean_over_angles(lambda x, a: np.cos(a - x * np.sin(a)))),
    Case("special.modified_bessel_k0", S.modified_bessel_k0, (X,), _integral(lambda x, t: np.exp(-x * np.cosh(t)))),
    Case(
        "special.scaled_modified_bessel_k1", S.scaled_modified_bessel_k1, (X,),
        _integral(lambda x, t: np.cosh(t) * np.exp(x - x * np.cosh(t))),
    ),
]  # fmt: skip
