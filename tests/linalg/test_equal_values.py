"""Eigenvalues and singular values that are equal up to rounding: second derivatives are right or not finite."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapegrad as tg


def fourth_powers(x: Any) -> Any:
    return np.trace((x @ x.T) @ (x @ x.T))


FORMS: dict[str, Callable[[Any], Any]] = {
    "svd": lambda x: (np.linalg.svd(x)[1] ** 4).sum(),
    "svdvals": lambda x: (np.linalg.svd(x, compute_uv=False) ** 4).sum(),
    "eigh": lambda x: (np.linalg.eigh(x @ x.T)[0] ** 2).sum(),
    "eigvalsh": lambda x: (np.linalg.eigvalsh(x @ x.T) ** 2).sum(),
}


def rotated(values: list[float], seed: int) -> np.ndarray:
    """A matrix with these singular values."""
    rng = np.random.default_rng(seed)
    n = len(values)
    left, right = (np.linalg.qr(rng.normal(size=(n, n)))[0] for _ in range(2))
    return left @ np.diag(values) @ right


@pytest.mark.parametrize("name", FORMS)
@pytest.mark.parametrize("values", [[1.0, 1.0], [2.0, 2.0, 1.0], [0.5, 0.5, 0.5], [3.0, 2.0, 1.0]], ids=str)
def test_second_derivatives_are_right_or_not_finite(name: str, values: list[float]) -> None:
    for point in (np.diag(values), *(rotated(values, seed) for seed in range(8))):
        np.testing.assert_allclose(tg.grad(FORMS[name])(point), tg.grad(fourth_powers)(point), rtol=1e-10, atol=1e-10)
        found, expected = tg.hessian(FORMS[name])(point), tg.hessian(fourth_powers)(point)
        known = np.isfinite(found)
        np.testing.assert_allclose(found[known], expected[known], rtol=1e-9, atol=1e-9)
        assert known.all() == (len(set(values)) == len(values))


def test_first_derivatives_through_vectors_of_equal_values_near_zero_are_not_finite() -> None:
    def by_vectors(x: Any) -> Any:
        values, vectors = np.linalg.eigh(x @ x.T)
        return np.sin((vectors * values) @ vectors.T).sum()

    point = np.outer([1.0, 2.0, 3.0], [2.0, 1.0, 1.0])  # two eigenvalues are zero up to rounding, which is no difference
    with np.errstate(all="ignore"):
        assert not np.isfinite(tg.grad(by_vectors)(point)).any()
