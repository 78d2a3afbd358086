"""Ufuncs of `scipy.special` that the package has a function for."""

from __future__ import annotations

import numpy as np
import pytest
from scipy import special

import tapegrad as tg
from tapegrad.numpy_protocol.protocols import SCIPY

P = np.array([0.71, 0.13, 0.42, 0.55, 0.34, 0.86])


@pytest.mark.parametrize("name", sorted(set(SCIPY) - {"xlogy"}))
def test_values_and_derivatives_are_scipys(name: str) -> None:
    function = getattr(special, name)
    value, derivative = tg.value_and_grad(lambda x: (function(x) * np.arange(6.0)).sum())(P)
    np.testing.assert_allclose(value, (function(P) * np.arange(6.0)).sum(), rtol=4e-15)
    expected = np.arange(6.0) * (function(P + 1e-6) - function(P - 1e-6)) / 2e-6
    np.testing.assert_allclose(derivative, expected, rtol=1e-7, atol=1e-9)


def test_xlogy_takes_numbers_and_arrays() -> None:
    derivative = tg.grad(lambda x: (special.xlogy(x, 0.3) + special.xlogy(2.0, x) + special.xlogy(P, x)).sum())(P)
    np.testing.assert_allclose(derivative, np.log(0.3) + 2.0 / P + 1.0, rtol=1e-15)


def test_derivatives_of_exprel_have_limits() -> None:
    found = tg.grad(lambda x: special.exprel(x).sum())(np.array([-np.inf, -1.0, 0.0, 2000.0, np.inf]))
    np.testing.assert_allclose(found, [0.0, 1.0 - 2.0 / np.e, 0.5, np.inf, np.inf], rtol=1e-14)
