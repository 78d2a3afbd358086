"""`tapegrad.numpy`: NumPy's namespace, where made arrays and lists can hold what is being differentiated."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy
import pytest

import tapegrad as tg
import tapegrad.numpy as np

V = numpy.array([1.3, 0.7, 4.2])


def written_into_zeros(x: Any) -> Any:
    r = np.zeros(3)
    for k in range(3):
        r[k] = x[k] ** 2
    return (r * x).sum()


def written_into_empty(x: Any) -> Any:
    r = np.empty((2, 3))
    r[:] = x
    r[1] *= x[0]
    return r.std()


def accumulated(x: Any) -> Any:
    grid = np.linspace(0.0, 1.0, 4)
    grid += x[0]
    grid[1:3] = x[1]
    return (grid**2).sum() + np.full(2, x[2]).prod() + np.full((2, 2), x[2]).std()


def stepped(x: Any) -> Any:
    u = np.ones(5)
    for _ in range(3):
        lap = np.zeros_like(u)
        lap[1:-1] = u[2:] - 2.0 * u[1:-1] + u[:-2]
        u = u + x[0] * lap
        u[0] = x[1]
    return (u**2).sum()


LINES = """
(np.array([x[0], 2.0 * x[1]]) ** 2).sum()
np.array([[x[0], 1.0], [2.0, x[1]]]).std()
np.array([x, 2.0 * x])[1, 2] * x[0]
np.array((x[0], x[1])).std()
np.array(x).std()
np.array(x.flat).std() * np.asarray(np.array([x, x * x]).T.flat)[1]
np.asarray(x).std()
np.asarray([x[0], 1.0]).std()
np.array([1.0, 2.0, 3.0]) @ x
np.array([x[0], x[1]], ndmin=2)[0, 1] * x[2]
np.sum([x[0], x[1]]) * x[2]
np.max([x[0], x[1]]) * x[2]
np.mean([x[0] * x[1], x[2]])
np.exp([x[0], x[1]]).sum()
np.maximum([x[0], x[1]], 1.0).std()
np.dot([x[0], x[1]], [1.0, 2.0])
np.linalg.norm([x[0], x[1]])
np.linalg.det([[x[0], 1.0], [2.0, x[1]]])
np.r_[0.0, x].std()
np.r_[x[0], x[1:], 1:4].std()
np.r_[0.0, 1.0].sum() * x[0]
np.c_[x, x**2].std()
np.concatenate([x, [x[0]]]).std()
np.stack([x, np.ones(3)]).std()
np.hstack([x[0], x]).std()
(np.eye(3) @ x).std()
(np.arange(3) * x).sum()
np.where(np.arange(3) > 0, x, 0.0).std()
np.add.reduce(x)
np.interp(1.5, np.arange(3.0), x)
np.pi * x[0] + np.inf * 0 if x[1] > np.inf else np.pi * x[0]
np.float64(2.0) * x[0]
np.vander(np.linspace(0.0, 1.0, 3), 3) @ x @ np.ones(3)
np.einsum("i,i", x, x)
np.fft.fftfreq(4)[1] * x[0]
"""


def of(text: str) -> Callable[[Any], Any]:
    function: Callable[[Any], Any] = eval(f"lambda x: {text}", globals())
    return function


FUNCTIONS = [*map(of, LINES.strip().splitlines()), written_into_zeros, written_into_empty, accumulated, stepped]
NAMES = [*LINES.strip().splitlines(), *(f.__name__ for f in FUNCTIONS[-4:])]


@pytest.mark.parametrize("f", FUNCTIONS, ids=NAMES)
def test_value_is_the_functions_own_and_the_gradient_that_of_differences(f: Callable[[Any], Any]) -> None:
    value, gradient = tg.value_and_grad(f)(V)
    numpy.testing.assert_allclose(value, f(V), rtol=1e-15)
    expected = numpy.zeros(3)
    for k, step in enumerate(1e-3 * numpy.eye(3)):
        expected[k] = (8.0 * (f(V + step) - f(V - step)) - f(V + 2 * step) + f(V - 2 * step)) / 12e-3
    numpy.testing.assert_allclose(gradient, expected, rtol=1e-7, atol=1e-9)


def test_outside_of_drivers_everything_is_numpys() -> None:
    made = [np.zeros(2), np.array([1.0, 2.0]), np.r_[0.0, V], np.asarray(V), np.full(2, 3.0), np.linalg.inv(np.eye(2))]
    assert [type(a) for a in made] == [numpy.ndarray] * len(made)
    assert np.asarray(V) is V


def test_results_of_a_function_that_makes_arrays_are_numpys() -> None:
    value, aux = tg.grad(lambda x: (x.sum(), np.zeros(2)), has_aux=True)(V)
    assert [type(value), type(aux)] == [numpy.ndarray] * 2


@pytest.mark.parametrize(
    "made", [np.asarray, np.ascontiguousarray, np.asanyarray, lambda a: np.array(a, copy=False), np.atleast_1d]
)
def test_what_is_written_into_a_given_array_later_does_not_change_derivatives(made: Callable[[Any], Any]) -> None:
    def f(x: Any) -> Any:
        w = numpy.array([1.0, 2.0, 3.0])
        y = (made(w) * x).sum()
        w[0] = 100.0
        return y

    assert tg.grad(f)(V).tolist() == [1.0, 2.0, 3.0]


def test_second_derivatives() -> None:
    numpy.testing.assert_allclose(tg.hessian(written_into_zeros)(V), numpy.diag(6.0 * V), rtol=1e-14)


def test_names_are_numpys() -> None:
    assert set(numpy.__all__) <= set(dir(np))
    assert np.ndarray is numpy.ndarray
    assert np.float64 is numpy.float64
    assert np.linalg.LinAlgError is numpy.linalg.LinAlgError
    with pytest.raises(AttributeError, match=r"tapegrad.numpy.* has no attribute 'nothing'"):
        np.nothing


def test_parts_of_different_shapes_are_refused() -> None:
    with pytest.raises(ValueError, match="parts have the shapes"):
        tg.grad(lambda x: np.array([x, x[0]]).sum())(V)


def test_directives_of_rows_are_refused_for_what_is_differentiated() -> None:
    with pytest.raises(TypeError, match="np.concatenate"):
        tg.grad(lambda x: np.r_["0,2", x].sum())(V)


def test_items_one_by_one_keep_the_derivative() -> None:
    def f(x: Any) -> Any:
        made = np.fromiter((v * k for k, v in enumerate(x)), float, 3)
        return made.sum() + sum(place[0] * v**2 for place, v in np.ndenumerate(x))

    numpy.testing.assert_allclose(tg.grad(f)(numpy.array([1.0, 2.0, 3.0, 4.0])), [0.0, 5.0, 14.0, 24.0])
    numpy.testing.assert_array_equal(np.fromiter((k * 2 for k in range(3)), float), [0.0, 2.0, 4.0])
    with pytest.raises(ValueError, match="iterator too short"):
        np.fromiter([1.0], float, 2)
