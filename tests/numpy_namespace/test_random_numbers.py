"""`tapegrad.numpy.random`: NumPy's streams, with derivatives by what places and scales a distribution."""

from __future__ import annotations

from typing import Any

import numpy
import pytest

import tapegrad as tg
import tapegrad.numpy as np

X = numpy.array([0.3, 1.2, 0.7, 0.4])
W = numpy.arange(1.0, 5.0)
DRAWS = """
normal(x, 2.0) | normal(x[0], x, size=4) | normal(loc=1.0, scale=x) | uniform(x, 3.0) | uniform(-x, x) | exponential(x)
laplace(x, x) | logistic(x, 1.0) | gumbel(x, x) | rayleigh(x) | lognormal(x, 0.5) | lognormal(0.1, x) | normal(size=4) * x
permutation(4) * x | permutation(x) | integers(0, 5, 4) * x | normal(x[0], 1.0, (2, 2)).ravel() | standard_normal(4) + x
gamma(2.0, size=4) * x
"""


@pytest.mark.parametrize("draw", [part.strip() for line in DRAWS.strip().splitlines() for part in line.split(" | ")])
def test_draws_are_numpys_and_have_their_slopes(draw: str) -> None:
    def loss(x: Any, xp: Any) -> Any:
        return (eval(f"rng.{draw}", {"rng": xp.random.default_rng(5), "x": x}) * W).sum()

    value, gradient = tg.value_and_grad(lambda x: loss(x, np))(X)
    numpy.testing.assert_allclose(value, loss(X, numpy), rtol=1e-15)
    slope = [(loss(X + 1e-6 * e, numpy) - loss(X - 1e-6 * e, numpy)) / 2e-6 for e in numpy.eye(4)]
    numpy.testing.assert_allclose(gradient, slope, rtol=1e-7, atol=1e-8)


def test_functions_of_the_module_share_numpys_state() -> None:
    state = numpy.random.get_state()  # noqa: NPY002 - what is tested
    found = np.random.rand(3)
    numpy.random.set_state(state)  # noqa: NPY002
    assert found.tolist() == numpy.random.rand(3).tolist()  # noqa: NPY002
    assert type(found) is numpy.ndarray


def test_draws_can_hold_what_is_differentiated() -> None:
    def f(x: Any) -> Any:
        r = np.random.default_rng(0).normal(size=4)
        r[1] = x[0]
        np.random.default_rng(1).shuffle(r)
        return (r * W).sum()

    assert sorted(tg.grad(f)(X).tolist())[:3] == [0.0, 0.0, 0.0]
    assert tg.grad(f)(X)[0] in W


def test_parameters_without_a_derivative_are_refused() -> None:
    with pytest.raises(TypeError, match=r"random numbers of gamma have no derivative.*stop_gradient"):
        tg.grad(lambda x: np.random.default_rng(0).gamma(x).sum())(X)
