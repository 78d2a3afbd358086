"""Every driver, and every optimiser, on compiled functions: the same as on the Python functions that they are compiled from."""

from __future__ import annotations

import dataclasses
import functools
from collections.abc import Callable
from typing import Any, NamedTuple

import numba
import numpy as np
import pytest
from linked_numba import numbas_functions_are_linked  # noqa: F401 - a fixture
from unoptimised_numba import code_is_not_optimised  # noqa: F401 - a fixture

import tapegrad as tg

X = np.array([1.3, 0.7, 1.1])
V = np.array([0.2, -1.0, 0.5])


def scalar(x):
    return (np.sin(x) * x).sum() * x[0] + x[1] ** 3


def vector(x):
    return np.exp(x[1:] * x[:-1]) + x[0]


def of_two(x, a):
    return a * x[0] * x[1] + a * a * x[2]


njit_scalar, njit_vector, njit_of_two = numba.njit(scalar), numba.njit(vector), numba.njit(of_two)

DRIVERS: dict[str, Callable[[Any, Any], Any]] = {
    "value_and_grad": lambda f, _: tg.value_and_grad(f)(X),
    "grad": lambda f, _: tg.grad(f)(X),
    "elementwise_grad": lambda _, g: tg.elementwise_grad(g)(X),
    "jacobian": lambda _, g: tg.jacobian(g)(X),
    "forward jacobian": lambda _, g: tg.jacobian(g, mode="forward")(X),
    "reverse jacobian": lambda _, g: tg.jacobian(g, mode="reverse")(X),
    "value_and_jacobian": lambda _, g: tg.value_and_jacobian(g)(X),
    "jacobian of a scalar": lambda f, _: tg.jacobian(f)(X),
    "hessian": lambda f, _: tg.hessian(f)(X),
    "hvp": lambda f, _: tg.hvp(f, X, V),
    "jvp": lambda _, g: tg.jvp(g, (X,), (V,)),
    "vjp": lambda _, g: tg.vjp(g, X)[1](np.array([1.0, -2.0])),
    "linearize": lambda _, g: tg.linearize(g, X)[1](V),
    "gauss_newton": lambda _, g: (lambda m: (m.value, m.gradient, m.product(V), m.matrix()))(tg.gauss_newton(g, X)),
}


def same(got: Any, expected: Any) -> None:
    """Assert equal structures with values that agree to rounding."""
    assert type(got) is type(expected)
    if isinstance(expected, tuple):
        assert len(got) == len(expected)
        for a, b in zip(got, expected, strict=True):
            same(a, b)
    else:
        assert np.shape(got) == np.shape(expected)
        np.testing.assert_allclose(got, expected, rtol=1e-12)


@pytest.mark.parametrize("name", DRIVERS)
def test_driver(name: str) -> None:
    same(DRIVERS[name](njit_scalar, njit_vector), DRIVERS[name](scalar, vector))


BY_TWO: dict[str, Callable[[Any], Any]] = {
    "grad": lambda f: tg.value_and_grad(f, argnums=(1, 0))(X, 2.0),
    "hessian": lambda f: tg.hessian(f, argnums=(1, 0))(X, 2.0),
    "jacobian": lambda f: tg.jacobian(f, argnums=[0, 1])(X, 2.0),
    "jvp": lambda f: tg.jvp(f, (X, 2.0), (V, 1.0)),
    "vjp": lambda f: tg.vjp(f, X, 2.0)[1](1.0),
    "negative": lambda f: tg.grad(f, argnums=-1)(X, 2.0),
    "keyword": lambda f: tg.grad(f)(X, a=2.0),
}


@pytest.mark.parametrize("name", BY_TWO)
def test_several_arguments(name: str) -> None:
    same(BY_TWO[name](njit_of_two), BY_TWO[name](of_two))


class Parameters(NamedTuple):
    weights: np.ndarray
    scale: float


def of_parameters(p):
    return (p.weights * p.weights).sum() * p.scale, (p.weights * p.scale, p.scale)


njit_of_parameters = numba.njit(of_parameters)


@numba.njit
def value_of_parameters(p):
    return njit_of_parameters(p)[0]


POINT = Parameters(X, 2.0)


def test_gradient_by_a_named_tuple_with_aux() -> None:
    (value, aux), gradient = tg.value_and_grad(njit_of_parameters, has_aux=True)(POINT)
    assert value == pytest.approx(2.0 * X @ X)
    same(aux, (2.0 * X, 2.0))
    same(gradient, Parameters(4.0 * X, float(X @ X)))


def test_hessian_by_a_named_tuple() -> None:
    hessian = tg.hessian(value_of_parameters)(POINT)
    same(hessian, Parameters(Parameters(4.0 * np.eye(3), 2.0 * X), Parameters(2.0 * X, 0.0)))


def test_jacobian_of_a_tuple() -> None:
    several = numba.njit(lambda x: (x[0] * x, x[1]))
    same(tg.jacobian(several)(X), (X[0] * np.eye(3) + np.outer(X, [1.0, 0.0, 0.0]), np.array([0.0, 1.0, 0.0])))


def test_has_aux_needs_a_pair() -> None:
    with pytest.raises(TypeError, match="must return a pair"):
        tg.grad(njit_scalar, has_aux=True)(X)


@dataclasses.dataclass
class Record:
    x: np.ndarray


@pytest.mark.parametrize(
    "point", [{"x": X}, Record(X), [X, X], 2, 1j, np.arange(3), X.astype(np.complex128)], ids=lambda p: type(p).__name__
)
def test_what_compiled_functions_do_not_take(point: Any) -> None:
    with pytest.raises(TypeError, match="argument 0 is"):
        tg.grad(njit_scalar)(point)


def test_result_that_is_not_a_scalar() -> None:
    with pytest.raises(TypeError, match="scalar-output"):
        tg.hessian(njit_vector)(X)


def test_complex_result() -> None:
    with pytest.raises(TypeError, match="complex"):
        tg.grad(numba.njit(lambda x: x[0] * 1j))(X)


def test_tensors_as_arguments() -> None:
    same(tg.grad(njit_scalar)(tg.tensor(X)), tg.grad(scalar)(X))


def test_drivers_inside_of_drivers() -> None:
    def norm_of_gradient(x: Any) -> Any:
        return (tg.grad(njit_scalar)(x) ** 2).sum()

    gradient, hessian = tg.grad(scalar)(X), tg.hessian(scalar)(X)
    np.testing.assert_allclose(tg.grad(norm_of_gradient)(X), 2.0 * hessian @ gradient)


def with_default(x, a, b=1.0):
    return x[0] * a * a + b * b * x[1]


def test_negative_argument_numbers_count_what_each_call_gives() -> None:
    gradient = tg.grad(numba.njit(with_default), argnums=-1)
    assert gradient(X, 2.0) == pytest.approx(4.0 * X[0])
    assert gradient(X, 2.0, 3.0) == pytest.approx(6.0 * X[1])
    assert gradient(X, 2.0) == pytest.approx(4.0 * X[0])


class Pair(NamedTuple):
    a: Any
    b: Any


def of_tuples(p, q):
    return (p.a * p.a * q[0][1]).sum() * q[1] + p.b * q[0][0][0]


def several(x, a):
    return x * x * a, Pair(x[1:] * a, a * a * x[0])


njit_of_tuples, njit_several = numba.njit(of_tuples), numba.njit(several)

INSIDE: dict[str, Callable[[Any, Any, Any], Any]] = {
    "keyword": lambda f, _, __: lambda x: (tg.grad(f)(x, a=2.0) ** 2).sum(),
    "tracked keyword": lambda f, _, __: lambda x: (tg.grad(f)(X, a=x[0] * x[1]) ** 2).sum(),
    "elements by a tracked keyword": lambda f, _, __: lambda x: (tg.elementwise_grad(f)(X, a=x[0] * x[1]) ** 2).sum(),
    "tuples": lambda _, g, __: lambda x: tg.value_and_grad(g)(Pair(x, 2.0), ((x * x, 3.0), x[0]))[0],
    "several results": lambda _, __, h: lambda x: (tg.vjp(h, x, x[0])[1]((x, Pair(x[1:], 2.0)))[0] ** 2).sum(),
}


@pytest.mark.parametrize("name", INSIDE)
def test_inside_of_another_driver(name: str) -> None:
    ours, theirs = INSIDE[name](njit_of_two, njit_of_tuples, njit_several), INSIDE[name](of_two, of_tuples, several)
    same(tg.grad(ours)(X), tg.grad(theirs)(X))


def test_operations_on_tuples_twice() -> None:
    def through(g: Any, h: Any) -> Any:
        def scalar(x: Any) -> Any:
            first, second = h(x, x[0])
            return (first * first).sum() * second.b + g(Pair(x, 2.0), ((x * x, 3.0), x[0]))

        return tg.hessian(scalar)(X)

    np.testing.assert_allclose(through(tg.njit_op(njit_of_tuples), tg.njit_op(njit_several)), through(of_tuples, several))


@pytest.mark.parametrize("p", [[tg.tensor(X)], {"x": tg.tensor(X)}], ids=["list", "dict"])
def test_containers_of_tensors_that_operations_do_not_take(p: Any) -> None:
    with pytest.raises(TypeError, match="take a tuple or a named tuple"):
        tg.njit_op(njit_scalar)(p)


def test_tensors_in_tuples_and_keywords_that_are_not_tracked() -> None:
    expected = tg.grad(of_tuples)(Pair(X, 2.0), ((X * X, 3.0), X[0]))
    same(tg.grad(njit_of_tuples)(Pair(tg.tensor(X), 2.0), ((tg.tensor(X * X), 3.0), tg.tensor(X[0]))), expected)
    same(tg.grad(njit_of_tuples)(Pair(X, 2.0), ((tg.tensor(X * X), 3.0), float(X[0]))), expected)
    same(tg.grad(njit_of_two)(X, a=tg.tensor(2.0)), tg.grad(of_two)(X, 2.0))


def test_a_constant_that_changes_before_the_second_derivative() -> None:
    weights = np.array([1.0, 2.0, 3.0])
    x = tg.tensor(X, requires_grad=True)
    y = tg.njit_op(numba.njit(lambda x, w: (x * x * x * w).sum()))(x, weights)
    weights[:] = 0.0
    (gradient,) = tg.autograd.grad(y, [x], create_graph=True)
    np.testing.assert_allclose(gradient.detach().numpy(), 3.0 * X * X * [1.0, 2.0, 3.0])


def test_partial_functions() -> None:
    same(tg.grad(functools.partial(njit_of_two, a=2.0))(X), tg.grad(of_two)(X, 2.0))
    np.testing.assert_allclose(tg.hessian(functools.partial(njit_of_two, a=2.0))(X), tg.hessian(of_two)(X, 2.0))


def test_checkpoint() -> None:
    same(tg.grad(tg.checkpoint(njit_scalar))(X), tg.grad(scalar)(X))


def test_a_pullback_keeps_its_tape_while_other_calls_run() -> None:
    _, pullback = tg.vjp(njit_vector, X)
    before = pullback(np.ones(2))
    tg.hessian(njit_scalar)(X)
    same(pullback(np.ones(2)), before)


def test_check_grads() -> None:
    tg.check_grads(njit_vector, (X,))
    tg.check_grads(njit_of_two, (X, 2.0))


def rosenbrock(x):
    return (100.0 * (x[1:] - x[:-1] ** 2) ** 2).sum() + ((1.0 - x[:-1]) ** 2).sum()


njit_rosenbrock = numba.njit(rosenbrock)


@pytest.mark.parametrize("method", ["L-BFGS-B", "Newton-CG", "trust-exact", "trust-krylov"])
def test_minimize(method: str) -> None:
    start = np.array([-1.2, 1.0, 0.8])
    ours, theirs = (tg.optimize.minimize(f, start, method=method) for f in (njit_rosenbrock, rosenbrock))
    np.testing.assert_allclose(ours.x, 1.0, atol=1e-3)
    assert ours.nfev == theirs.nfev


def test_one_recording_serves_value_and_gradient() -> None:
    fun = tg.optimize.scipy_fun(njit_rosenbrock, X)
    fun.value(X), fun.gradient(X)
    assert fun.evaluations == 1
    fun.hess(X), fun.hessp(X, V), fun.value(X)
    assert fun.evaluations == 2  # the second one records second derivatives


def test_constraints() -> None:
    circle = numba.njit(lambda x: (x * x).sum() - 2.0)
    found = tg.optimize.minimize(
        numba.njit(lambda x: x.sum()), np.array([1.0, -2.0]), method="trust-constr", constraints=tg.optimize.equality(circle)
    )
    np.testing.assert_allclose(found.x, -1.0, atol=1e-4)


def test_constraint_in_scipys_older_form() -> None:
    circle = {"type": "eq", "fun": numba.njit(lambda x, size: (x * x).sum() - size), "args": (2.0,)}
    found = tg.optimize.minimize(numba.njit(lambda x: x.sum()), np.array([1.0, -2.0]), constraints=circle, tol=1e-9)
    np.testing.assert_allclose(found.x, -1.0, atol=1e-4)


def test_tuples_as_variables() -> None:
    f = numba.njit(lambda p: ((p.a - 1.0) ** 2).sum() + (p.b - p.a[0]) ** 2)
    found = tg.optimize.minimize(f, Pair(np.array([3.0, 4.0]), 2.0), tol=1e-9).x
    same(Pair(found.a.round(6), round(found.b, 6)), Pair(np.ones(2), 1.0))
    found = tg.optimize.minimize(numba.njit(lambda p: (p.a - 1.0) ** 2 + (p.b - p.a) ** 2), Pair(3.0, 2.0), tol=1e-9).x
    same(Pair(round(found.a, 6), round(found.b, 6)), Pair(1.0, 1.0))
    zero = tg.optimize.root(numba.njit(lambda p: (p[0] - 1.0, p[1] - p[0][0])), (np.array([3.0, 4.0]), 2.0)).x
    same((zero[0].round(9), round(zero[1], 9)), (np.ones(2), 1.0))


def test_residual_with_keywords() -> None:
    residual = numba.njit(lambda x, a, b=1.0: np.array([a * (x[1] - x[0] ** 2), b - x[0]]))
    np.testing.assert_allclose(tg.optimize.least_squares(residual, [-1.2, 1.0], (10.0,), {"b": 2.0}).x, [2.0, 4.0])


def test_derivatives_of_solutions() -> None:
    ridge = numba.njit(lambda w, p: ((w - 1.0) ** 2).sum() + (p[0] * w * w).sum() * p[1])

    def solution(p: Any) -> Any:
        return tg.optimize.minimize(ridge, [0.0, 0.0], ((p, 2.0),), tol=1e-10).x

    p = np.array([1.0, 2.0])
    np.testing.assert_allclose(tg.jacobian(solution)(p), np.diag(-2.0 / (1.0 + 2.0 * p) ** 2), atol=1e-9)


def test_least_squares_root_and_curve_fit() -> None:
    residual = numba.njit(lambda x: np.array([10.0 * (x[1] - x[0] ** 2), 1.0 - x[0]]))
    np.testing.assert_allclose(tg.optimize.least_squares(residual, [-1.2, 1.0]).x, 1.0)
    np.testing.assert_allclose(tg.optimize.root(residual, [-1.2, 1.0]).x, 1.0)
    t = np.linspace(0.0, 2.0, 20)
    model = numba.njit(lambda t, a, k: a * np.exp(-k * t))
    np.testing.assert_allclose(tg.optimize.curve_fit(model, t, 3.0 * np.exp(-0.7 * t), [1.0, 1.0])[0], [3.0, 0.7])


def test_ufuncs_of_numba_are_refused() -> None:
    square = numba.vectorize(lambda x: x * x)
    with pytest.raises(TypeError, match=r"numba\.vectorize, which is not recorded"):
        tg.elementwise_grad(square)


def test_an_array_that_a_list_holds_twice_stays_one_in_a_graph() -> None:
    @numba.njit
    def f(x, arrays):
        arrays[0][0] += 3.0
        return arrays[1][0] * x * x

    w = np.array([1.0])
    assert tg.hvp(functools.partial(f, arrays=[w, w]), 2.0, 1.0) == 8.0


def test_an_automatic_mode_is_one_that_compiled_functions_have() -> None:
    matrix = tg.jacobian(lambda a: tg.jacobian(njit_vector)(a * X))(
        1.0
    )  # of one input and many outputs: second order in reverse only
    h = 1e-6
    differences = (tg.jacobian(vector)((1.0 + h) * X) - tg.jacobian(vector)((1.0 - h) * X)) / (2.0 * h)
    np.testing.assert_allclose(matrix, differences, rtol=1e-8, atol=1e-8)


def test_no_second_derivative_is_needed_for_a_first_one() -> None:
    @numba.njit
    def determinants(a):
        m = np.array([[a, 1.0], [0.5, a * a]])
        return np.array([np.linalg.det(m), a, a, a])

    assert tg.jacobian(lambda a: tg.njit_op(determinants)(a))(2.0).tolist() == pytest.approx([12.0, 1.0, 1.0, 1.0])
