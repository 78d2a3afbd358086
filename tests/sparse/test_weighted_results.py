"""Products of a part of a linear tape's results, and of their weighted sum, are those of tapes that were recorded for them."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from random_sparse_functions import random_function

import tapegrad as tg
from tapegrad.drivers.calling import call
from tapegrad.drivers.derivatives import Derivative, Outputs, projected
from tapegrad.sparse.patterns import second_pattern

A = np.array([[2.0, 0.5, 0.0, 1.0], [0.0, 3.0, 1.0, 0.0], [1.0, 0.0, 4.0, 0.25]])
X = np.array([0.3, -1.2, 0.7, 2.0])
FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "elementwise": lambda x: [(x**2).sum(), np.sin(x), x[1:] * x[:-1]],
    "numbers": lambda x: [x[0] * x[1], x[2] ** 3],
    "the variable": lambda x: [(x**3).sum(), x],
    "the same twice": lambda x: [y := np.exp(x), y, y[1:]],
    "views": lambda x: [np.exp(x)[::-1], x[1:3], (x * x).reshape(2, 2)],
    "products of matrices": lambda x: [(A @ x) ** 2, x @ x, np.outer(x, x) @ x],
    "products of matrices of the variable": lambda x: [x.reshape(2, 2) @ x.reshape(2, 2), x.sum()],
    "places": lambda x: [x[np.array([0, 2, 2])] * x[:3], np.cumsum(x * x), x.sum()],
    "a constant": lambda x: [(x**2).sum(), np.zeros(2), np.cos(x)],
    "linear": lambda x: [A @ x, x.sum()],
    "no elements": lambda x: [(x**2).sum(), x[:0], x**3],
}


def recorded(f: Callable[[Any], Any], x: Any) -> tuple[Any, Outputs]:
    made = call(f, (x,), {}, 0, False, "test")
    return made, Outputs(made, "test")


def own(f: Callable[[Any], Any], x: Any, weights: Any) -> Derivative:
    """The derivative of the weighted sum, recorded as such."""
    made, outputs = recorded(f, x)
    return Derivative(made.leaves, [projected(outputs, weights)], second=True)


def whole(f: Callable[[Any], Any], x: Any) -> Derivative:
    made, outputs = recorded(f, x)
    derivative = Derivative(made.leaves, outputs.tensors, second=True)
    assert derivative.compiled
    return derivative


@pytest.fixture(params=FUNCTIONS)
def f(request: pytest.FixtureRequest) -> Callable[[Any], Any]:
    """A function of several results."""
    return FUNCTIONS[request.param]


def weights_for(derivative: Derivative) -> Any:
    return np.linspace(-1.3, 1.7, derivative.results)


@pytest.mark.parametrize("columns", [1, 3, 9, 33])
def test_products_with_the_hessian_are_those_of_the_recorded_sum(f: Callable[[Any], Any], columns: int) -> None:
    directions = np.random.default_rng(0).normal(size=(4, columns))
    derivative = whole(f, X)
    weights = weights_for(derivative)
    found = derivative.weighted(weights).curve(directions)
    np.testing.assert_array_equal(found, own(f, X, weights).curve(directions))


def test_the_hessian_is_that_of_the_dense_driver(f: Callable[[Any], Any]) -> None:
    derivative = whole(f, X)
    weights = weights_for(derivative)

    def weighted(x: Any) -> Any:
        return sum((part * w).sum() for part, w in zip(map(np.ravel, f(x)), np.split(weights, ends), strict=True))

    ends = np.cumsum(derivative.output_sizes)[:-1]
    found = derivative.weighted(weights).curve(np.eye(4))
    np.testing.assert_allclose(found, tg.hessian(weighted)(X), rtol=1e-12, atol=1e-12)


def test_the_gradient_is_that_of_the_recorded_sum(f: Callable[[Any], Any]) -> None:
    derivative = whole(f, X)
    weights = weights_for(derivative)
    found = derivative.weighted(weights).pull(np.ones((1, 1)))
    np.testing.assert_allclose(found, own(f, X, weights).pull(np.ones((1, 1))), rtol=1e-14, atol=1e-15)


def test_tangents_are_those_of_the_recorded_sum(f: Callable[[Any], Any]) -> None:
    derivative, directions = whole(f, X), np.random.default_rng(0).normal(size=(4, 5))
    weights = weights_for(derivative)
    found = derivative.weighted(weights).push(directions)
    np.testing.assert_allclose(found, own(f, X, weights).push(directions), rtol=1e-13, atol=1e-14)


def test_the_hessians_pattern_is_that_of_the_recorded_sum(f: Callable[[Any], Any]) -> None:
    derivative = whole(f, X)
    weights = weights_for(derivative)
    found, expected = (
        set(zip(*(side.tolist() for side in second_pattern(one.linear_tape)), strict=True))
        for one in (derivative.weighted(weights), own(f, X, weights))
    )
    assert found == expected


def test_a_part_has_its_rows_of_the_jacobian(f: Callable[[Any], Any]) -> None:
    derivative = whole(f, X)
    rows, done = derivative.push(np.eye(4)), derivative.output_sizes[0]
    np.testing.assert_array_equal(derivative.part(0, 1).push(np.eye(4)), rows[:done])
    rest = derivative.part(1, len(derivative.outputs))
    np.testing.assert_array_equal(rest.push(np.eye(4)), rows[done:])
    np.testing.assert_allclose(rest.pull(np.eye(rest.results)), rows[done:].T, rtol=1e-14, atol=1e-15)


def test_a_part_after_products_with_the_hessian(f: Callable[[Any], Any]) -> None:
    before, derivative = whole(f, X), whole(f, X)
    derivative.weighted(weights_for(derivative)).curve(np.eye(4))
    last = len(derivative.outputs)
    seeds = np.eye(before.part(1, last).results)
    np.testing.assert_array_equal(derivative.part(1, last).pull(seeds), before.part(1, last).pull(seeds))


def test_another_sum_before_products_takes_the_place_of_the_first() -> None:
    f = FUNCTIONS["elementwise"]
    derivative = whole(f, X)
    weights = weights_for(derivative)
    derivative.weighted(weights).pull(np.ones((1, 1)))
    found = derivative.weighted(weights[::-1].copy()).curve(np.eye(4))
    np.testing.assert_array_equal(found, own(f, X, weights[::-1].copy()).curve(np.eye(4)))


def test_weights_are_copied() -> None:
    f = FUNCTIONS["elementwise"]
    derivative = whole(f, X)
    weights = weights_for(derivative)
    made, expected = derivative.weighted(weights), own(f, X, weights.copy()).curve(np.eye(4))
    weights[:] = 0.0
    np.testing.assert_array_equal(made.curve(np.eye(4)), expected)


def test_results_in_single_precision() -> None:
    def f(x: Any) -> Any:
        return [(x * x).sum(), x**3]

    x = X.astype(np.float32)
    derivative = whole(f, x)
    weights = weights_for(derivative)
    found = derivative.weighted(weights).curve(np.eye(4))
    expected = np.diag(2.0 * weights[0] + 6.0 * X * weights[1:])
    np.testing.assert_allclose(found, expected, rtol=1e-6, atol=1e-6)


@given(st.integers(0, 10**6))
@settings(max_examples=100)
def test_random_functions(seed: int) -> None:
    g, x = random_function(seed)

    def f(x: Any) -> Any:
        y = g(x)
        return [np.cos(y).sum(), y, y[:1] * x]

    made, outputs = recorded(f, x)
    derivative = Derivative(made.leaves, outputs.tensors, second=True)
    if not derivative.compiled:
        return
    weights = np.random.default_rng(seed).normal(size=derivative.results)
    expected = own(f, x, weights).curve(np.eye(len(x)))
    found = derivative.weighted(weights).curve(np.eye(len(x)))
    np.testing.assert_allclose(found, expected, rtol=1e-12, atol=1e-12 * (1.0 + np.abs(expected).max()))
