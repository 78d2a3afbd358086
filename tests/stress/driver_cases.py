"""What exceptions are injected into: objects of the package that are asked again and again, and the truth by closed forms."""

from collections.abc import Callable
from typing import Any

import numba
import numpy as np

import tapegrad as tg

Case = tuple[Callable[[], Any], Any]  # what an object of the package gives each time it is asked, and the truth
X = np.array([0.5, 2.0])
ROWS = 6000  # more than a new tape has room for, in pairs and in triplets


@numba.njit
def long_sum(x, n):
    s = 0.0
    for _ in range(n):
        s += x[0] * x[1] * x[1]
    return s


@numba.njit
def long_sums(x, n):
    return np.array([long_sum(x, n), 3.0 * long_sum(x, n)])


@numba.njit
def whole_sum(x):
    return long_sum(x, ROWS)


@numba.njit
def all_sums(x):
    return long_sums(x, ROWS)


@numba.njit
def line(t, a, b):
    return a + b * t


@numba.njit
def quartic(x):
    return x[0] ** 4 * x[1] + x[1] ** 2


VALUE, GRADIENT = ROWS * 2.0, ROWS * np.array([4.0, 2.0])
HESSIAN = ROWS * np.array([[0.0, 4.0], [4.0, 1.0]])
QUARTIC_GRADIENT = np.array([4 * 0.5**3 * 2.0, 0.5**4 + 2 * 2.0])
QUARTIC_HESSIAN = np.array([[12 * 0.5**2 * 2.0, 4 * 0.5**3], [4 * 0.5**3, 2.0]])


def compiled_gradient() -> Case:
    gradient = tg.value_and_grad(long_sum)
    return lambda: gradient(X, ROWS), (VALUE, GRADIENT)


def compiled_pullback() -> Case:
    _, pull = tg.vjp(all_sums, X)
    return lambda: pull(np.array([1.0, 1.0]))[0], 4.0 * GRADIENT


def compiled_product() -> Case:
    _, push = tg.linearize(all_sums, X)
    return lambda: push(np.array([1.0, -1.0])), np.array([1.0, 3.0]) * (GRADIENT[0] - GRADIENT[1])


def compiled_jacobian() -> Case:
    matrix = tg.jacobian(long_sums)
    return lambda: matrix(X, ROWS), np.outer([1.0, 3.0], GRADIENT)


def compiled_hessian() -> Case:
    matrix = tg.hessian(long_sum)
    return lambda: matrix(X, ROWS), HESSIAN


def compiled_direction() -> Case:
    return lambda: tg.hvp(whole_sum, X, np.array([1.0, 2.0])), HESSIAN @ [1.0, 2.0]


def compiled_operation() -> Case:
    operation = tg.njit_op(quartic)

    def run() -> Any:
        x = tg.tensor(X, requires_grad=True)
        (operation(x) * 2.0).backward()
        return x.grad.numpy()

    return run, 2.0 * QUARTIC_GRADIENT


def compiled_operation_twice() -> Case:
    operation = tg.njit_op(quartic)

    def run() -> Any:
        x = tg.tensor(X, requires_grad=True)
        (g,) = tg.autograd.grad(operation(x), x, create_graph=True)
        (g * tg.tensor([1.0, 2.0])).sum().backward()
        return x.grad.numpy()

    return run, QUARTIC_HESSIAN @ [1.0, 2.0]


def compiled_scipy_function() -> Case:
    fun = tg.optimize.scipy_fun(quartic)

    def run() -> Any:
        return fun(X)[1], fun.hessp(X, np.array([1.0, 2.0])), fun.hess(X), fun.gradient(X)

    return run, (QUARTIC_GRADIENT, QUARTIC_HESSIAN @ [1.0, 2.0], QUARTIC_HESSIAN, QUARTIC_GRADIENT)


M = np.array([[1.0, 2.0], [3.0, -1.0], [0.5, 0.25]])


def of_tensors(x: Any) -> Any:
    return x[0] ** 4 * x[1] + x[1] ** 2


def of_matrices(x: Any) -> Any:
    return (tg.tensor(M) @ x) ** 2


MATRICES_JACOBIAN = 2.0 * (M @ X)[:, None] * M


def eager_gradient() -> Case:
    gradient = tg.value_and_grad(of_tensors)
    return lambda: gradient(X)[1], QUARTIC_GRADIENT


def eager_jacobians() -> Case:
    forward, reverse = tg.jacobian(of_matrices, mode="forward"), tg.jacobian(of_matrices, mode="reverse")
    return lambda: (forward(X), reverse(X)), (MATRICES_JACOBIAN, MATRICES_JACOBIAN)


def eager_products() -> Case:
    _, push = tg.linearize(of_matrices, X)
    _, pull = tg.vjp(of_matrices, X)
    v = np.array([1.0, -2.0])
    return lambda: (push(v), pull(np.ones(3))[0]), (MATRICES_JACOBIAN @ v, MATRICES_JACOBIAN.sum(axis=0))


def eager_hessian() -> Case:
    matrix = tg.hessian(of_tensors)
    return lambda: (matrix(X), tg.hvp(of_tensors, X, np.array([1.0, 2.0]))), (QUARTIC_HESSIAN, QUARTIC_HESSIAN @ [1.0, 2.0])


def without_recording() -> Case:
    gradient = tg.value_and_grad(of_tensors)

    def run() -> Any:
        with tg.no_grad():
            return gradient(X)[1]

    return run, QUARTIC_GRADIENT


def nested_drivers() -> Case:
    matrix = tg.jacobian(tg.grad(of_tensors))
    return lambda: matrix(X), QUARTIC_HESSIAN


def gauss_newton() -> Case:
    model = tg.gauss_newton(of_matrices, X)
    v = np.array([1.0, -2.0])
    normal = MATRICES_JACOBIAN.T @ MATRICES_JACOBIAN
    return lambda: (model.product(v), model.matrix()), (normal @ v, normal)


def scipy_function() -> Case:
    fun = tg.optimize.scipy_fun(of_tensors)

    def run() -> Any:
        return fun(X)[1], fun.hessp(X, np.array([1.0, 2.0])), fun.hess(X), fun.gradient(X)

    return run, (QUARTIC_GRADIENT, QUARTIC_HESSIAN @ [1.0, 2.0], QUARTIC_HESSIAN, QUARTIC_GRADIENT)


def held_root() -> Case:
    """The square root of a leaf, found once and differentiated again and again."""
    a = tg.tensor(4.0, requires_grad=True)
    x = tg.optimize.root(lambda x, a: x * x - a, 1.0, (a,), tol=1e-12).x

    def run() -> Any:
        (first,) = tg.autograd.grad(x, a, create_graph=True)
        (second,) = tg.autograd.grad(first, a, retain_graph=True)
        return first.item(), second.item()

    return run, (0.25, -1.0 / 32.0)


def root() -> Case:
    derivative = tg.grad(lambda a: tg.optimize.root(lambda x: x * x - a, 1.0, tol=1e-12).x)
    return lambda: derivative(4.0), 0.25


def fixed_point() -> Case:
    derivative = tg.grad(lambda a: tg.optimize.fixed_point(lambda x: 0.5 * (x + a / x), 1.0))
    return lambda: derivative(4.0), 0.25


def minimum() -> Case:
    def run() -> Any:
        p = tg.tensor(1.0, requires_grad=True)
        result = tg.optimize.minimize(
            lambda w: ((w - 1.0) ** 2).sum() + p * (w * w).sum(), [0.0, 0.0], method="trust-ncg", tol=1e-12
        )
        result.x.sum().backward()
        return result.x.detach().numpy(), p.grad.item()

    return run, (np.array([0.5, 0.5]), -0.5)


def constrained_minimum() -> Case:
    def run() -> Any:
        a = tg.tensor(1.0, requires_grad=True)
        result = tg.optimize.minimize(
            lambda x: (x * x).sum(), [0.3, 0.2], constraints=[tg.optimize.equality(lambda x: x.sum() - a)], tol=1e-12
        )
        result.x[0].backward()
        return a.grad.item()

    return run, 0.5


def least_squares() -> Case:
    derivative = tg.grad(lambda a: tg.optimize.least_squares(lambda x: x - a * np.ones(2), [0.0, 0.0], xtol=1e-12).x.sum())
    return lambda: derivative(3.0), 2.0


T = np.linspace(0.0, 1.0, 5)


def fitted() -> Case:
    return lambda: tg.optimize.curve_fit(lambda t, a, b: a + b * t, T, 2.0 + 3.0 * T, [1.0, 1.0])[0], np.array([2.0, 3.0])


def fitted_compiled() -> Case:
    return lambda: tg.optimize.curve_fit(line, T, 2.0 + 3.0 * T, [1.0, 1.0])[0], np.array([2.0, 3.0])


def checkpointed() -> Case:
    piece = tg.checkpoint(lambda x: tg.checkpoint(of_tensors)(x) * 2.0)

    def run() -> Any:
        x = tg.tensor(X, requires_grad=True)
        piece(x * 1.0).backward()
        return x.grad.numpy()

    return run, 2.0 * QUARTIC_GRADIENT


def checkpointed_twice() -> Case:
    piece = tg.checkpoint(of_tensors)

    def run() -> Any:
        x = tg.tensor(X, requires_grad=True)
        (g,) = tg.autograd.grad(piece(x), x, create_graph=True)
        g.sum().backward()
        return x.grad.numpy()

    return run, QUARTIC_HESSIAN.sum(axis=0)


CASES = {
    case.__name__: case
    for case in (
        compiled_gradient, compiled_pullback, compiled_product, compiled_jacobian, compiled_hessian, compiled_direction,
        compiled_operation, compiled_operation_twice, compiled_scipy_function, eager_gradient, eager_jacobians, eager_products,
        eager_hessian, without_recording, nested_drivers, gauss_newton, scipy_function, held_root, root, fixed_point, minimum,
        constrained_minimum, least_squares, fitted, fitted_compiled, checkpointed, checkpointed_twice,
    )
}  # fmt: skip
