"""Gradients by few elements of float32 that many others are computed of: their terms are added up in float64 and rounded once."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from many_cases import each

import tapegrad as tg

TERMS = np.append(np.float32(2.0**24), np.ones(1000, np.float32)).reshape(
    -1, 1
)  # float32 sees none of the ones, one after the other
TOTAL = 2.0**24 + 1000.0

FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "a product with float64": lambda y: (y * TERMS.astype(np.float64)).sum(),
    "a product with float32": lambda y: (y * TERMS).sum(),
    "both operands": lambda y: (y * 0.5 * TERMS + y * 0.5 * TERMS).sum(),
    "several columns": lambda y: (np.concatenate([y, y], axis=1) * np.repeat(TERMS * 0.5, 2, axis=1)).sum(),
    "a view that repeats elements": lambda y: (np.broadcast_to(y, TERMS.shape) * TERMS).sum(),
    "a choice": lambda y: np.where(TERMS > 0.0, y * TERMS, 0.0).sum(),
}


@each("name", FUNCTIONS)
def test_gradients_are_rounded_once(name: str) -> None:
    gradient = tg.grad(FUNCTIONS[name])(np.array([[0.5]], np.float32))
    assert (gradient.dtype, gradient.tolist()) == (np.float32, [[TOTAL]])
