"""Polynomials and convolutions, which are their products, with NumPy's names and arguments."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tapegrad.numpy_protocol.functions import as_tensors, one
from tapegrad.surface import functions as tg
from tapegrad.tensors.tensor import Tensor

__all__ = ["POLYNOMIALS"]


def _polyval(p: Any, x: Any) -> Any:
    x = one(x)
    value = tg.zeros_like(x)
    coefficients: Any = p if isinstance(p, (list, tuple)) else one(p)
    for coefficient in coefficients:
        value = value * x + as_tensors(coefficient)[0]
    return value


def _vander(x: Any, N: int | None = None, increasing: bool = False) -> Any:
    x = one(x)
    if x.ndim != 1:
        raise ValueError("x must be a one-dimensional array or sequence.")
    columns = x.shape[0] if N is None else N
    x = x if x.dtype.kind == "f" else x.to(np.int64)
    if not columns:
        return x.unsqueeze(1)[:, :0]
    powers = [tg.ones_like(x)]
    for _ in range(columns - 1):
        powers.append(powers[-1] * x)
    return tg.stack(powers if increasing else powers[::-1], 1)


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


def _part(long: Tensor, short: Tensor, mode: str) -> Any:
    """The convolution of two sequences, or its middle part."""
    m, n = short.shape[0], long.shape[0]
    places = {"full": (0, n + m - 1), "same": ((m - 1) // 2, n), "valid": (m - 1, n - m + 1)}
    if mode not in places:
        raise ValueError(f"mode must be one of 'full', 'same' and 'valid', not {mode!r}")
    products = short.unsqueeze(1) * long
    # Rows with m zeros behind, cut into rows that are one element shorter: each is shifted by one against the one before.
    rows = tg.cat([products, tg.zeros(m, m, dtype=products.dtype)], 1).reshape(-1)[: m * (n + m - 1)]
    start, length = places[mode]
    return rows.reshape(m, n + m - 1).sum(0).to(products.dtype)[start : start + length]


POLYNOMIALS: dict[str, Callable[..., Any]] = {
    "convolve": _convolve,
    "correlate": _correlate,
    "polyval": _polyval,
    "vander": _vander,
}
