"""Messages of drivers speak of functions and arrays to people who never made a tensor, and what they advise works."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
import pytest

import tapegrad as tg

X, V = np.array([1.3, 0.7]), np.array([0.5, -2.0])
TENSORS_ONLY = re.compile(r"detach|create_graph|retain_graph|requires_grad|no_grad|njit_op")
cubes = numba.njit(lambda x: x**3)
sum_of_cubes = numba.njit(lambda x: (x**3).sum())


def refusal(call: Callable[[], Any]) -> str:
    with pytest.raises((RuntimeError, TypeError, NotImplementedError)) as found:
        call()
    return str(found.value)


def filled(x: Any) -> Any:
    a = np.zeros(2)
    a[:] = x
    return a.sum()


def filled_by_element(x: Any) -> Any:
    a = np.zeros(2)
    a[0], a[1] = x[0], x[1]
    return a.sum()


def added_into(x: Any) -> Any:
    a = np.zeros(2)
    a += x
    return a.sum()


CONVERSIONS: dict[str, Callable[[Any], Any]] = {
    "array of a list": lambda x: np.array([x[0], 2 * x[1]]).sum(),
    "array of lists": lambda x: np.array([[x[0], 1.0], [2.0, x[1]]]).sum(),
    "array": lambda x: np.array(x).sum(),
    "asarray": lambda x: np.asarray(x).sum(),
    "full": lambda x: np.full(3, x[0]).sum(),
    "filled": filled,
    "filled by element": filled_by_element,
    "added into": added_into,
    "float": lambda x: float(x[0]) ** 2,
    "not covered": lambda x: np.quantile(x, 0.3, weights=[1.0] * len(x), method="inverted_cdf").sum(),
}


@pytest.mark.filterwarnings("ignore:Converting a tensor")
@pytest.mark.parametrize("name", CONVERSIONS)
def test_a_conversion_in_a_differentiated_function_is_refused_without_a_word_of_tensors_modes(name: str) -> None:
    assert not TENSORS_ONLY.search(refusal(lambda: tg.grad(CONVERSIONS[name])(X)).replace("requires grad", ""))


def test_an_array_of_tracked_elements_is_refused_with_what_keeps_the_derivative() -> None:
    message = refusal(lambda: tg.jacobian(lambda x: np.array([x[0], 2 * x[1]]))(X))
    assert "write np.stack([x[0], 2 * x[1]])" in message
    assert tg.jacobian(lambda x: np.stack([x[0], 2 * x[1]]))(X).tolist() == [[1.0, 0.0], [0.0, 2.0]]


def test_outside_of_drivers_the_values_alone_are_offered_last() -> None:
    message = refusal(lambda: np.asarray(tg.tensor(X, requires_grad=True)))
    assert 0 < message.index("np.stack") < message.index("detach().numpy()")


# Compositions of drivers that compiled functions do not have: f, what is refused, and what the message says in its place.
ORDERS: list[tuple[Callable[[], Any], Callable[[], Any], str]] = [
    (
        lambda: tg.jvp(tg.grad(sum_of_cubes), (X,), (V,)),
        lambda: tg.hvp(sum_of_cubes, X, V),
        "hvp(f, x, v) for jvp(grad(f), (x,), (v,))",
    ),
    (
        lambda: tg.jacobian(lambda x: tg.jvp(cubes, (x,), (V,))[1])(X),
        lambda: tg.jacobian(lambda x: tg.jacobian(cubes)(x) @ V)(X),
        "jacobian(f) for jvp",
    ),
    (
        lambda: tg.hessian(lambda x: tg.grad(sum_of_cubes)(x).sum())(X),
        lambda: tg.hessian(lambda x: tg.grad(sum_of_cubes.py_func)(x).sum())(X),
        "without numba.njit (its .py_func)",
    ),
    (
        lambda: tg.jacobian(lambda v: tg.jvp(cubes, (X,), (v,))[1])(V),
        lambda: tg.jacobian(lambda v: tg.jacobian(cubes)(X) @ v)(V),
        "jacobian(f)(x) @ v for jvp",
    ),
    (
        lambda: tg.jacobian(lambda v: tg.vjp(cubes, X)[1](v)[0])(V),
        lambda: tg.jacobian(lambda v: v @ tg.jacobian(cubes)(X))(V),
        "v @ jacobian(f)(x) for vjp",
    ),
    (
        lambda: tg.jacobian(lambda v: tg.hvp(sum_of_cubes, X, v))(V),
        lambda: tg.jacobian(lambda v: tg.hessian(sum_of_cubes)(X) @ v)(V),
        "hessian(f)(x) @ v for hvp",
    ),
]
TRUTH = [
    6 * X * V,
    np.diag(6 * X * V),
    np.diag([6.0, 6.0]),
    np.diag(3 * X**2),
    np.diag(3 * X**2),
    np.diag(6 * X),
]


@pytest.mark.parametrize("k", range(len(ORDERS)))
def test_a_composition_that_is_not_available_names_one_that_is(k: int) -> None:
    refused, advised, words = ORDERS[k]
    message = refusal(refused)
    assert words in message and not TENSORS_ONLY.search(message)
    np.testing.assert_allclose(advised(), TRUTH[k], rtol=1e-12)


def test_with_tensors_the_message_speaks_of_tensors() -> None:
    x = tg.tensor(X, requires_grad=True)
    (g,) = tg.autograd.grad(tg.njit_op(sum_of_cubes)(x), x, create_graph=True)
    assert "create_graph" in refusal(lambda: tg.autograd.grad(g.sum(), x, create_graph=True))
