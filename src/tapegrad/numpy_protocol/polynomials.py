"""Polynomials and convolutions, which are their products, with NumPy's names and arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tapegrad.numpy_protocol.operands import NotCovered, one
from tapegrad.surface import functions as tg
from tapegrad.tensors.tensor import Tensor, array_of
from tapegrad.tensors.tracers import makes_constants_of_shapes

__all__ = ["POLYNOMIALS"]


def _polyval(p: Any, x: Any) -> Any:
    x = one(x)
    value = tg.zeros_like(x)
    # Lists too are arrays to NumPy, whose elements have a dtype that counts.
    for coefficient in tg.unbind(one(p)):
        value = value * x + coefficient
    return value


def _vander(x: Any, N: int | None = None, increasing: bool = False) -> Any:
    x = one(x)
    if x.ndim != 1:
        raise ValueError("x must be a one-dimensional array or sequence.")
    if type(x) is not Tensor:
        x = x.to(np.promote_types(x.dtype, np.int64))
    return tg.vander(x, N, increasing)


def _convolve(a: Any, v: Any, mode: str = "full") -> Any:
    x, y = _operand(a, "a"), _operand(v, "v")
    return _part(*((x, y) if x.shape[0] >= y.shape[0] else (y, x)), mode)


def _correlate(a: Any, v: Any, mode: str = "valid") -> Any:
    x, y = _operand(a, "a"), _operand(v, "v")
    if y.shape[0] > x.shape[0]:
        return _part(y, x.flip(0), mode).flip(0)
    return _part(x, y.flip(0), mode)


def _operand(x: Any, name: str) -> Tensor:
    x = one(x)
    x = x.reshape(1) if x.ndim == 0 else x
    if x.ndim != 1:
        raise ValueError("object too deep for desired array")
    if not x.shape[0]:
        raise ValueError(f"{name} cannot be empty")
    found: Tensor = x
    return found


def _part(long: Tensor, short: Tensor, mode: str | int) -> Any:
    """The convolution of two sequences, or its middle part."""
    m, n = short.shape[0], long.shape[0]
    if mode in (0, 1, 2):
        mode = ("valid", "same", "full")[int(mode)]
    places = {"full": (0, n + m - 1), "same": ((m - 1) // 2, n), "valid": (m - 1, n - m + 1)}
    if mode not in places:
        raise ValueError(f"mode must be one of 'full', 'same' and 'valid', not {mode!r}")
    products = short.unsqueeze(1) * long
    # Rows with m zeros behind, cut into rows that are one element shorter: each is shifted by one against the one before.
    rows = tg.cat([products, tg.zeros(m, m, dtype=products.dtype)], 1).reshape(-1)[: m * (n + m - 1)]
    start, length = places[mode]
    return rows.reshape(m, n + m - 1).sum(0).to(products.dtype)[start : start + length]


def _polyadd(a1: Any, a2: Any) -> Any:
    x, y = (_operand(a, "a") for a in (a1, a2))
    size = max(x.shape[0], y.shape[0])
    x, y = (tg.cat([tg.zeros(size - t.shape[0], dtype=t.dtype), t], 0) for t in (x, y))
    return x + y


def _polysub(a1: Any, a2: Any) -> Any:
    return _polyadd(a1, -one(a2))


def _polymul(a1: Any, a2: Any) -> Any:
    return _convolve(a1, a2)


def _polydiv(u: Any, v: Any) -> Any:
    """Quotient and remainder, by long division; leading zeros of the remainder are left away."""
    x, y = (_operand(a, name) for a, name in ((u, "u"), (v, "v")))
    size, degree = x.shape[0] - y.shape[0], y.shape[0]
    if size < 0:
        return tg.zeros(1, dtype=x.dtype), x
    rest, found = x, []
    for k in range(size + 1):
        factor = rest[k] * (1.0 / y[0])
        found.append(factor)
        rest = tg.cat([rest[:k], rest[k : k + degree] - factor * y, rest[k + degree :]], 0)
    values, first = array_of(rest), 0
    while len(values) - first > 1 and np.allclose(values[first], 0, rtol=1e-14):
        first += 1
    return tg.stack(found), rest[first:]


@makes_constants_of_shapes
def _polyder(p: Any, m: int = 1) -> Any:
    if m < 0:
        raise ValueError("Order of derivative must be positive (see polyint)")
    x = _operand(p, "p")
    for _ in range(m):
        n = x.shape[0] - 1
        x = x[:-1] * one(np.arange(n, 0, -1).astype(x.dtype))
    return x


def _polyint(p: Any, m: int = 1, k: Any = None) -> Any:
    if m < 0:
        raise ValueError("Order of integral must be positive (see polyder)")
    x = _operand(p, "p")
    x = x if x.dtype.kind == "f" else x.to(np.float64)
    constants = one(np.zeros(m) if k is None else k).reshape(-1)
    constants = tg.broadcast_to(constants, (m,)) if constants.shape[0] == 1 else constants
    for j in range(m):
        x = tg.cat([x / one(np.arange(x.shape[0], 0, -1).astype(x.dtype)), constants[j : j + 1].to(x.dtype)], 0)
    return x


def _poly(seq_of_zeros: Any) -> Any:
    x = one(seq_of_zeros)
    if x.ndim != 1:
        raise NotCovered("the characteristic polynomial of a matrix has complex roots; give a vector of zeros")
    found = tg.ones(1, dtype=x.dtype)
    for zero in tg.unbind(x):
        found = _convolve(found, tg.stack([tg.ones_like(zero), -zero]))
    return found


def _polyfit(x: Any, y: Any, deg: int, rcond: float | None = None, full: bool = False, w: Any = None, cov: Any = False) -> Any:
    """Least squares by the triangle of an orthogonal decomposition, with columns of length one as NumPy scales them."""
    if full or cov is not False or rcond is not None:
        raise NotCovered("the coefficients alone are given")
    order = int(deg)
    places, values = (one(t).to(np.float64) for t in (x, y))
    lhs, rhs = _vander(places, order + 1), values
    if w is not None:
        weights = one(w).to(np.float64)
        lhs, rhs = lhs * weights.unsqueeze(1), rhs * (weights if rhs.ndim == 1 else weights.unsqueeze(1))
    scale = tg.sqrt(tg.sum(lhs * lhs, 0))
    q, r = tg.linalg.qr(lhs / scale)
    right = tg.t(q) @ (rhs if rhs.ndim > 1 else rhs.unsqueeze(1))
    found = tg.linalg.solve_triangular(r, right, upper=True) / scale.unsqueeze(1)
    return found if rhs.ndim > 1 else tg.squeeze(found, 1)


_NAMES = "convolve correlate poly polyadd polydiv polyder polyfit polyint polymul polysub polyval vander"
POLYNOMIALS: dict[str, Callable[..., Any]] = {name: globals()[f"_{name}"] for name in _NAMES.split()}
