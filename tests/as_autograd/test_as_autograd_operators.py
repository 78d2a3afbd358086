"""autograd's differential operators by their results: values, shapes, types."""

from typing import Any

import autograd
import autograd.numpy as np
import numpy as onp
import pytest
from autograd.differential_operators import make_jvp_reversemode
from autograd.test_util import check_grads

X = onp.array([0.3, -0.7, 1.1])
V = onp.array([1.0, 2.0, -1.0])
M = onp.array([[1.0, 2.0, 0.5], [0.0, -1.0, 3.0]])


def cubes(x: Any) -> Any:
    return np.sum(x**3)


def image(x: Any) -> Any:
    return np.tanh(np.dot(M, x))


SLOPES = 1.0 - onp.tanh(M @ X) ** 2
RESULTS = {
    "grad": (lambda: autograd.grad(cubes)(X), 3 * X**2),
    "grad of integers": (lambda: autograd.grad(cubes)(onp.array([1, 2])), [3.0, 12.0]),
    "grad of an output of one element": (lambda: autograd.grad(lambda x: x[:1] ** 2)(X), [0.6, 0.0, 0.0]),
    "value_and_grad": (lambda: autograd.value_and_grad(cubes)(X)[0], (X**3).sum()),
    "elementwise_grad": (lambda: autograd.elementwise_grad(np.sin)(X), onp.cos(X)),
    "elementwise_grad by another": (lambda: autograd.elementwise_grad(lambda a, b: a * b**2, 1)(2.0, X), 4.0 * X),
    "deriv": (lambda: autograd.deriv(np.sin)(0.3), onp.cos(0.3)),
    "jacobian": (lambda: autograd.jacobian(image)(X), SLOPES[:, None] * M),
    "jacobian of a number": (lambda: autograd.jacobian(lambda x: x * V)(2.0), V),
    "hessian": (lambda: autograd.hessian(cubes)(X), onp.diag(6.0 * X)),
    "hessian of an array": (lambda: autograd.hessian(lambda x: x**3)(X)[1], onp.diag([0.0, 6.0 * X[1], 0.0])),
    "hessian_vector_product": (lambda: autograd.hessian_vector_product(cubes)(X, V), 6.0 * X * V),
    "hessian_tensor_product by another": (
        lambda: autograd.hessian_tensor_product(lambda a, x: a * cubes(x), 1)(2.0, X, V),
        12 * X * V,
    ),
    "make_hvp": (lambda: autograd.make_hvp(cubes)(X)[0](V), 6.0 * X * V),
    "make_hvp's gradient": (lambda: autograd.make_hvp(cubes)(X)[1], 3 * X**2),
    "make_vjp": (lambda: autograd.make_vjp(image)(X)[0](V[:2]), (V[:2] * SLOPES) @ M),
    "make_jvp": (lambda: autograd.make_jvp(image)(X)(V)[1], SLOPES * (M @ V)),
    "make_jvp's value": (lambda: autograd.make_jvp(image)(X)(V)[0], onp.tanh(M @ X)),
    "make_jvp_reversemode": (lambda: make_jvp_reversemode(image)(X)(V), SLOPES * (M @ V)),
    "make_ggnvp": (lambda: autograd.make_ggnvp(image)(X)(V), (SLOPES[:, None] * M).T @ (SLOPES * (M @ V))),
    "tensor_jacobian_product": (lambda: autograd.tensor_jacobian_product(image)(X, V[:2]), (V[:2] * SLOPES) @ M),
    "grad_and_aux": (lambda: autograd.grad_and_aux(lambda x: (cubes(x), x * 2))(X)[0], 3 * X**2),
    "grad_and_aux's second output": (lambda: autograd.grad_and_aux(lambda x: (cubes(x), x * 2))(X)[1], 2 * X),
    "grad_named": (lambda: autograd.grad_named(lambda a, b: a * b**2, "b")(3.0, 2.0), 12.0),
    "checkpoint": (lambda: autograd.grad(autograd.checkpoint(cubes))(X), 3 * X**2),
    "holomorphic_grad of real numbers": (lambda: autograd.grad(lambda x: np.real(x**2))(3.0), 6.0),
}


@pytest.mark.parametrize("name", RESULTS)
def test_operator_gives_the_closed_form(name: str) -> None:
    call, wanted = RESULTS[name]
    found = call()
    assert onp.shape(found) == onp.shape(wanted)
    onp.testing.assert_allclose(found, wanted, rtol=1e-12, atol=1e-14)


def test_numbers_are_numpys() -> None:
    value, gradient = autograd.value_and_grad(np.sin)(1.0)
    assert type(value) is onp.float64
    assert type(gradient) is onp.float64


def test_a_gradient_has_the_arguments_dtype() -> None:
    assert autograd.grad(lambda x: np.sum(x**2))(X.astype(onp.float32)).dtype == onp.float32


def test_containers_are_given_back() -> None:
    found = autograd.grad(lambda p: p["a"] * np.sum(p["b"][0] * p["b"][1]))({"a": 2.0, "b": [X, 3.0]})
    assert found["a"] == pytest.approx(3.0 * X.sum())
    onp.testing.assert_allclose(found["b"][0], 6.0)
    assert type(found["b"]) is list


def test_several_arguments_give_a_tuple() -> None:
    found = autograd.grad(lambda x, y, k=1.0: k * np.sum(x * y), [1, 0])(X, V, k=2.0)
    assert type(found) is tuple
    onp.testing.assert_allclose(found, (2.0 * X, 2.0 * V))


def test_multigrad_dict_names_all_arguments() -> None:
    found = autograd.multigrad_dict(lambda a, b=2.0, *c, **d: a * b * c[0] * d["k"])(1.0, 2.0, 3.0, k=4.0)
    assert found == {"a": 24.0, "b": 12.0, "c": (8.0,), "d": {"k": 6.0}}


def test_operators_are_nested() -> None:
    f = lambda a: np.sum(autograd.hessian(lambda x: np.sum(a * x**4))(X) ** 2)  # noqa: E731
    assert autograd.grad(f)(2.0) == pytest.approx(4.0 * onp.sum((12 * X**2) ** 2))


def test_an_inner_gradient_that_only_closes_over_what_is_differentiated_is_an_array() -> None:
    f = lambda a: autograd.grad(lambda y: np.sum(a * y**2))(onp.ones(3)).size * a  # noqa: E731
    assert autograd.grad(f)(2.0) == 3.0


@pytest.mark.parametrize("f", [image, lambda x: np.sort(x) * x[0], lambda x: np.array([x[0], x[1] * x[2]]), cubes])
def test_check_grads_agrees(f: Any) -> None:
    check_grads(f, order=3)(X)


def test_check_grads_finds_a_wrong_derivative() -> None:
    wrong = autograd.primitive(lambda x: x**2)
    autograd.extend.defvjp(wrong, lambda ans, x: lambda g: g * x)
    with pytest.raises(AssertionError, match="check of"):
        check_grads(wrong, modes=["rev"], order=1)(3.0)


def test_independent_outputs_warn_and_have_zeros() -> None:
    with pytest.warns(UserWarning, match="independent"):
        assert autograd.grad(lambda x: 3.0)(X).tolist() == [0.0, 0.0, 0.0]


REFUSALS = {
    "an integer": (lambda: autograd.grad(lambda x: x * 2.0)(3), "Pass floats"),
    "an output of an array": (lambda: autograd.grad(np.sin)(X), "scalar-output"),
    "an argnum that is none": (lambda: autograd.grad(np.sin, 1.5), "argnum"),
}


@pytest.mark.parametrize("name", REFUSALS)
def test_refused(name: str) -> None:
    call, message = REFUSALS[name]
    with pytest.raises(TypeError, match=message):
        call()
