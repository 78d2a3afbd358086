"""Gradients inside of a function that is differentiated, by its constants: one operation with the derivatives of the formula."""

from typing import Any

import autograd.numpy as np
import numpy as onp
import pytest
from autograd import elementwise_grad, grad, hessian, jacobian, value_and_grad
from autograd.extend import defvjp, primitive
from autograd.test_util import check_grads

T = onp.array([0.5, 1.5, 2.5])
P = onp.array([1.2, 0.7])


def hazard(p: Any, t: Any) -> Any:
    """Cumulative, of Weibull's distribution."""
    scale, shape = p
    return (t / scale) ** shape


def slope(p: Any) -> Any:
    return p[1] / p[0] * (T / p[0]) ** (p[1] - 1.0)


def inner(p: Any) -> Any:
    return elementwise_grad(hazard, 1)(p, T)


FUNCTIONS = {
    "by an array": inner,
    "by an array that the result uses again": lambda p: inner(p) * hazard(p, T) + inner(p) ** 2,
    "by a number": lambda p: grad(lambda t: hazard(p, t))(1.5) * p,
    "by a container": lambda p: grad(lambda c: np.sum(c["t"] ** 2 * p[0] * c["k"]) * p[1])({"t": T, "k": 2.0})["t"],
    "with its value": lambda p: value_and_grad(lambda t: np.sum(hazard(p, t)))(T)[1],
    "by something that is being differentiated": lambda p: elementwise_grad(lambda q: q**3 * p[0])(p),
    "inside of another": lambda p: elementwise_grad(lambda t: elementwise_grad(hazard, 1)(p, t))(T),
    "by something that is computed": lambda p: grad(lambda q: np.sum(np.sin(q) * q * p))(np.exp(p)) * p,
    "by something that takes long": lambda p: grad(lambda q: sum(np.sin(k * q[0]) * q[1] for k in range(9)))(np.exp(p)),
    "at two places, one of them computed": lambda p: grad(lambda c: sum(c[0] @ c[1] * p[1] for _ in range(9)))((p * p[0], P))[1],
    "of a product of what takes long": lambda p: grad(lambda q: sum(np.trace(np.outer(q, q) @ np.outer(q, T)) for _ in T))(
        p[:1] * T
    ),
    "of a matrix product": lambda p: grad(lambda t: np.sum(np.dot(np.outer(t, t), t) * p[0]))(T),
}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_inner_gradient_has_all_derivatives(name: str) -> None:
    check_grads(FUNCTIONS[name], order=2)(P)
    total = lambda p: np.sum(np.sin(FUNCTIONS[name](p)))  # noqa: E731
    step = 1e-6 * onp.eye(2)
    numeric = [(grad(total)(P + h) - grad(total)(P - h)) / 2e-6 for h in step]
    onp.testing.assert_allclose(hessian(total)(P), numeric, rtol=1e-6, atol=1e-7)
    numeric = [(hessian(total)(P + h) - hessian(total)(P - h)) / 2e-6 for h in step]
    onp.testing.assert_allclose(onp.moveaxis(jacobian(hessian(total))(P), -1, 0), numeric, rtol=1e-5, atol=1e-6)


def test_values_and_first_derivatives_are_those_of_the_formula() -> None:
    for weights in (onp.ones(3), T):
        found = value_and_grad(lambda p, weights=weights: np.sum(weights * inner(p)))(P)
        wanted = value_and_grad(lambda p, weights=weights: np.sum(weights * slope(p)))(P)
        onp.testing.assert_allclose(found[0], wanted[0], rtol=1e-14)
        onp.testing.assert_allclose(found[1], wanted[1], rtol=1e-12)


def test_what_is_differentiated_may_come_by_other_ways() -> None:
    def f(p: Any, q: Any) -> Any:
        scale = np.exp(q) * p[0]
        return np.sum(elementwise_grad(lambda t: np.log(t * scale) * p[1] * t)(T))

    check_grads(f, (0, 1))(P, 0.3)


def test_a_primitive_inside_is_taken_by_the_general_way() -> None:
    cube = primitive(lambda x: x**3)
    defvjp(cube, lambda ans, x: lambda g: g * 3.0 * x**2)
    found = grad(lambda p: np.sum(elementwise_grad(lambda t: cube(t * p[0]))(T)))(P)
    onp.testing.assert_allclose(found, [onp.sum(9.0 * P[0] ** 2 * T**2), 0.0], rtol=1e-12)


def test_a_constant_gradient_is_a_constant() -> None:
    assert grad(lambda p: np.sum(elementwise_grad(lambda t: t**2)(T)) * p[0])(P).tolist() == [9.0, 0.0]


def test_an_inner_gradient_can_be_kept_after_the_call() -> None:
    kept: list[Any] = []
    jacobian(lambda p: kept.append(inner(p)) or kept[0])(P)
    onp.testing.assert_allclose(onp.asarray(kept[0].detach()), slope(P))
