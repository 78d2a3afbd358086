"""A function may overwrite what its derivative needs: it is called once more, with copies of what is saved."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tapegrad as tg

X = np.array([1.5, -0.5, 2.0, 0.7])


def overwriting(x: Any) -> Any:
    y = np.exp(x)
    y[0] = 1.0
    y[1] = y[2] ** 2
    y -= y.mean()
    y /= y.std() + 1.0
    return (y * np.arange(4.0)).sum()


def of_copies(x: Any) -> Any:
    y = np.exp(x).copy()
    y[0] = 1.0
    y[1] = y[2].copy() ** 2
    y = y - y.mean()
    y = y / (y.std() + 1.0)
    return (y * np.arange(4.0)).sum()


def filled(x: Any) -> Any:
    y = np.sin(x)
    y[1:] *= y[:-1]
    return y * x


DRIVERS: dict[str, Any] = {
    "value_and_grad": lambda f: tg.value_and_grad(f)(X),
    "hessian": lambda f: tg.hessian(f)(X),
    "hvp": lambda f: tg.hvp(f, X, X),
    "grad of grad": lambda f: tg.jacobian(tg.grad(f))(X),
    "jvp": lambda f: tg.jvp(f, (X,), (X,)),
    "minimize": lambda f: tg.optimize.minimize(f, X, method="BFGS", options={"maxiter": 3}).fun,
    "inside of a driver": lambda f: tg.grad(lambda x: tg.value_and_grad(f)(x)[0] * x[0])(X),
}


@pytest.mark.parametrize("name", DRIVERS)
def test_what_was_overwritten_is_what_the_derivative_takes(name: str) -> None:
    found, expected = (DRIVERS[name](f) for f in (overwriting, of_copies))
    for own, other in zip(found, expected, strict=True) if isinstance(found, tuple) else [(found, expected)]:
        np.testing.assert_allclose(own, other, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("mode", ["forward", "reverse"])
def test_jacobian_of_a_function_that_overwrites(mode: str) -> None:
    tg.check_grads(filled, (X,), order=2)
    step = np.stack([filled(X + 1e-6 * e) - filled(X - 1e-6 * e) for e in np.eye(4)], 1) / 2e-6
    np.testing.assert_allclose(tg.jacobian(filled, mode=mode)(X), step, atol=1e-8)


def test_a_function_is_called_twice_only_the_first_time() -> None:
    calls: list[int] = []

    def f(x: Any) -> Any:
        calls.append(1)
        return overwriting(x)

    gradient = tg.grad(f)
    counts = []
    for _ in range(3):
        gradient(X)
        counts.append(len(calls))
    assert counts == [2, 3, 4]


def test_a_function_that_overwrites_nothing_of_use_is_called_once() -> None:
    calls: list[int] = []

    def f(x: Any) -> Any:
        calls.append(1)
        y = np.zeros_like(x)
        y[1:] = x[:-1] ** 2
        return y.sum()

    tg.grad(f)(X)
    assert len(calls) == 1


def test_a_function_with_another_value_each_time_is_refused_with_what_to_write() -> None:
    calls: list[int] = []

    def f(x: Any) -> Any:
        calls.append(1)
        y = np.exp(x)
        y[0] = len(calls)
        return y.sum()

    with pytest.raises(RuntimeError, match=r"modified by an inplace operation.*y = np\.exp\(x\)\.copy\(\)"):
        tg.grad(f)(X)


def test_method_that_overwrites_is_called_twice_only_once() -> None:
    class Model:
        calls = 0

        def loss(self, x: Any) -> Any:
            self.calls += 1
            return overwriting(x)

    model = Model()
    for _ in range(3):
        tg.grad(model.loss)(X)
    assert model.calls == 4
