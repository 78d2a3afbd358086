"""The marginal likelihood of a Gaussian process in compiled code: as on tensors, and as differences say."""

from __future__ import annotations

import numba
import numpy as np
import pytest
from linked_numba import numbas_functions_are_linked  # noqa: F401 - a fixture
from unoptimised_numba import code_is_not_optimised  # noqa: F401 - a fixture

import tapegrad as tg

TIMES = np.array([0.0, 0.4, 1.1, 1.5, 2.3])
SEEN = np.array([0.1, 0.6, 0.9, 0.7, -0.4])
POINT = np.array([0.3, -0.2, -1.5])


def misfit(logs, times, seen):
    """The negative logarithm of the likelihood, by logarithms of amplitude, length and noise."""
    n = len(times)
    scales = np.exp(logs)
    distances = (times.reshape(n, 1) - times.reshape(1, n)) / scales[1]
    covariance = scales[0] ** 2 * np.exp(-0.5 * distances**2) + scales[2] ** 2 * np.eye(n)
    factor = np.linalg.cholesky(covariance)
    whitened = np.linalg.solve(factor, seen)
    return 0.5 * np.dot(whitened, whitened) + np.log(np.diag(factor)).sum()


COMPILED = numba.njit(misfit)


def test_value_and_gradient_are_those_of_tensors_and_of_differences() -> None:
    value, gradient = tg.value_and_grad(COMPILED)(POINT, TIMES, SEEN)
    assert value == COMPILED(POINT, TIMES, SEEN)
    expected_value, expected = tg.value_and_grad(misfit)(POINT, TIMES, SEEN)
    assert value == pytest.approx(expected_value, rel=1e-13)
    np.testing.assert_allclose(gradient, expected, rtol=1e-12)
    steps = 1e-6 * np.eye(3)
    differences = [COMPILED(POINT + step, TIMES, SEEN) - COMPILED(POINT - step, TIMES, SEEN) for step in steps]
    np.testing.assert_allclose(gradient, np.array(differences) / 2e-6, rtol=1e-7)


def test_hessian_is_that_of_tensors() -> None:
    np.testing.assert_allclose(tg.hessian(COMPILED)(POINT, TIMES, SEEN), tg.hessian(misfit)(POINT, TIMES, SEEN), rtol=1e-11)
