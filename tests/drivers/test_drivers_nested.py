"""Drivers as parts of graphs: at tracked tensors, with tracked vectors, and inside of other drivers."""

from typing import Any

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.drivers.calling import call
from tapegrad.drivers.derivatives import derivative_of, hessian_matrix


@pytest.mark.parametrize(
    "total",
    [
        lambda w: tg.grad(lambda x: (x**3).sum())(w).sum(),
        lambda w: tg.value_and_grad(lambda p: (p["x"] ** 3).sum())({"x": w})[1]["x"].sum(),
        lambda w: tg.jacobian(lambda x: x**3)(w * 1.0).sum(),
        lambda w: tg.hessian(lambda x: (x**4).sum())(w).sum() / 4.0,
        lambda w: tg.hvp(lambda x: (x**4).sum(), w, np.ones(2)).sum() / 4.0,
        lambda w: tg.jvp(lambda x: x**3, (w,), (np.ones(2),))[1].sum(),
        lambda w: tg.vjp(lambda x: x**3, w)[1](np.ones(2))[0].sum(),
        lambda w: tg.linearize(lambda x: x**3, w)[1](np.ones(2)).sum(),
    ],
    ids=["grad", "value_and_grad", "jacobian", "hessian", "hvp", "jvp", "vjp", "linearize"],
)
def test_drivers_at_a_tracked_tensor_are_part_of_its_graph(total: Any) -> None:
    w = tg.tensor([1.0, 2.0], requires_grad=True)
    total(w).backward()  # the sum of 3 w**2
    np.testing.assert_allclose(w.grad.numpy(), [6.0, 12.0], rtol=1e-13)


@pytest.mark.parametrize(
    "product",
    [
        lambda v: tg.hvp(lambda x: (x**3).sum(), np.array([1.0, 2.0]), v),
        lambda v: tg.jvp(lambda x: 3.0 * x**2, (np.array([1.0, 2.0]),), (v,))[1],
        lambda v: tg.vjp(lambda x: 3.0 * x**2, np.array([1.0, 2.0]))[1](v)[0],
        lambda v: tg.linearize(lambda x: 3.0 * x**2, np.array([1.0, 2.0]))[1](v),
    ],
    ids=["hvp", "jvp", "vjp", "linearize"],
)
def test_products_with_a_tracked_vector_are_part_of_its_graph(product: Any) -> None:
    w = tg.tensor([1.0, -1.0], requires_grad=True)
    product(w * w).sum().backward()
    np.testing.assert_allclose(w.grad.numpy(), [12.0, -24.0], rtol=1e-13)


def test_products_that_were_made_outside_can_be_differentiated() -> None:
    _, pull = tg.vjp(lambda x: x * x, 3.0)
    _, push = tg.linearize(lambda x: x * x, 3.0)
    assert tg.grad(lambda c: pull(c)[0] * c)(2.0) == 24.0
    assert tg.grad(lambda c: push(c) * c)(2.0) == 24.0


@pytest.mark.parametrize("mode", [tg.no_grad, tg.inference_mode], ids=["no_grad", "inference_mode"])
@pytest.mark.parametrize(
    "product",
    [lambda x: tg.vjp(lambda y: y**3, x)[1], lambda x: tg.linearize(lambda y: y**3, x)[1]],
    ids=["vjp", "linearize"],
)
def test_products_that_are_taken_without_recording_are_constants(product: Any, mode: Any) -> None:
    def f(x: Any) -> Any:
        multiply = product(x)
        with mode():
            (found,) = np.atleast_1d(multiply(1.0))
        return x * float(found)

    assert tg.grad(f)(2.0) == 12.0


def test_products_of_gauss_newton_refuse_a_tracked_vector() -> None:
    model = tg.gauss_newton(lambda x: x * x, np.array([3.0]))
    with pytest.raises(NotImplementedError, match=r"write vjp\(f, x\)\[1\]"):
        tg.grad(lambda v: model.product(v).sum())(np.array([2.0]))


# Drivers inside of drivers.


def test_a_driver_without_recording_gives_constants() -> None:
    def f(x: Any) -> Any:
        with tg.no_grad():
            slope = tg.grad(lambda y: y**3)(x)
        return slope * x

    assert tg.grad(f)(2.0) == 12.0


@pytest.mark.parametrize(
    "inner", [lambda x: tg.hessian(lambda y: 3.0)(x), lambda x: tg.hvp(lambda y: 3.0, x, 1.0)], ids=["hessian", "hvp"]
)
def test_an_inner_function_that_is_constant(inner: Any) -> None:
    assert tg.grad(lambda x: x * inner(x))(2.0) == 0.0


def test_derivatives_of_derivatives() -> None:
    quintic = tg.grad(tg.grad(tg.grad(lambda x: x**5)))
    assert quintic(2.0) == pytest.approx(240.0)


def test_an_inner_variable_is_not_mistaken_for_the_outer_one() -> None:
    assert tg.grad(lambda x: x * tg.grad(lambda y: x + y)(1.0))(3.0) == 1.0
    assert tg.grad(lambda x: tg.grad(lambda y: x * y)(x))(3.0) == 1.0


def test_a_jacobian_of_a_gradient_is_the_hessian() -> None:
    def f(x: Any) -> Any:
        return np.sin(x).sum() * x[0]

    x = np.array([0.3, 0.7])
    np.testing.assert_allclose(tg.jacobian(tg.grad(f))(x), tg.hessian(f)(x), rtol=1e-13)


@pytest.mark.parametrize(
    "inner",
    [
        lambda x: tg.jacobian(lambda y: y * y * y)(x).sum(),
        lambda x: tg.hessian(lambda y: (y**4).sum())(x).sum() * 0.25,
        lambda x: tg.hvp(lambda y: (y**4).sum(), x, np.ones(2)).sum() * 0.25,
        lambda x: tg.jvp(lambda y: y * y * y, (x,), (np.ones(2),))[1].sum(),
        lambda x: tg.vjp(lambda y: y * y * y, x)[1](np.ones(2))[0].sum(),
        lambda x: tg.linearize(lambda y: y * y * y, x)[1](np.ones(2)).sum(),
    ],
    ids=["jacobian", "hessian", "hvp", "jvp", "vjp", "linearize"],
)
def test_every_driver_can_be_differentiated(inner: Any) -> None:
    np.testing.assert_allclose(tg.grad(inner)(np.array([1.0, 2.0])), [6.0, 12.0], rtol=1e-13)  # of the sum of 3 x**2


def test_a_driver_of_numbers_alone_is_refused_inside_of_another_instead_of_being_a_constant() -> None:
    def laplacian(f: Any, x: Any) -> Any:
        made = call(f, (x,), {}, 0, False, "laplacian", second=True)
        return np.trace(hessian_matrix(derivative_of(made, [made.output], second=True)))

    point = np.array([1.0, 2.0])
    assert laplacian(lambda x: (x**3).sum(), point) == pytest.approx(18.0, rel=1e-13)
    for inside in (
        tg.grad(lambda x: laplacian(lambda y: (y**3).sum(), x)),
        lambda w: laplacian(np.sum, tg.tensor(w).requires_grad_()),
    ):
        with pytest.raises(NotImplementedError, match="cannot be differentiated by another driver"):
            inside(point)


@pytest.mark.parametrize("point", [np.array([0.3, 0.7, 1.9]), 0.4], ids=["array", "number"])
def test_derivatives_at_constants_have_numpys_meaning_too(point: Any) -> None:
    def f(x: Any) -> Any:
        inner = tg.grad(lambda y: np.sum(np.sin(y) * x) + np.sum(x * y) ** 2)(point)
        blocks = tg.value_and_grad(lambda p: np.sum(p["y"] ** 2 * x))({"y": point})[1]["y"]
        return np.std(inner) + (x * inner).std() + (blocks * x).std()

    x = np.array([0.5, -1.2, 2.0])
    value, gradient = tg.value_and_grad(f)(x)
    assert value == pytest.approx(f(x), rel=1e-13)
    steps = 1e-6 * np.eye(3)
    np.testing.assert_allclose(gradient, [(f(x + h) - f(x - h)) / 2e-6 for h in steps], rtol=1e-7)


class Cube(tg.autograd.Function):
    """A custom function whose derivative is a constant to whoever differentiates it."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    @tg.autograd.function.once_differentiable
    def backward(ctx: Any, g: Any) -> Any:
        return 3.0 * g * ctx.saved_tensors[0] ** 2


@pytest.mark.parametrize("driver", [
    lambda x: tg.hessian(lambda y: Cube.apply(y).sum())(x),
    lambda x: tg.hvp(lambda y: Cube.apply(y).sum(), x, x),
    lambda x: tg.grad(lambda z: tg.grad(lambda y: Cube.apply(y).sum())(z).sum())(x),
])  # fmt: skip
def test_what_is_once_differentiable_is_not_taken_for_a_constant(driver: Any) -> None:
    with pytest.raises(RuntimeError, match="trying to differentiate twice"):
        driver(np.array([1.0, 2.0]))


def test_first_derivatives_of_what_is_once_differentiable() -> None:
    x = np.array([1.0, 2.0])
    np.testing.assert_array_equal(tg.grad(lambda y: Cube.apply(y).sum())(x), 3.0 * x**2)
    np.testing.assert_array_equal(tg.jacobian(Cube.apply)(x), np.diag(3.0 * x**2))
