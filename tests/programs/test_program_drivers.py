"""Drivers of programs do again what a call recorded, and give what they give for the function."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from random_programs import points, random_program

import tapegrad as tg
from tapegrad.drivers.containers import flatten

X, Y, S = np.array([0.5, -1.0, 2.0]), np.array([1.5, 0.3, -0.2]), 0.7
DRIVERS = {
    "jacobian": lambda f, a, t: tg.jacobian(f, (0, 1, 2))(*a),
    "value_and_jacobian": lambda f, a, t: tg.value_and_jacobian(f, (2, 0, 1), mode="forward")(*a),
    "hessian": lambda f, a, t: tg.hessian(f, (0, 2, 1))(*a),
    "jvp": lambda f, a, t: tg.jvp(f, a, t),
    "linearize": lambda f, a, t: tg.linearize(f, *a)[1](*t),
    "vjp": lambda f, a, t: tg.vjp(f, *a)[1](1.0),
    "value_and_grad": lambda f, a, t: tg.value_and_grad(f, (1, 0, 2))(*a),
    "sparse hessian": lambda f, a, t: tg.sparse.hessian(f, (0, 1, 2))(*a)[0][1].toarray(),
}
OF_ONE = {
    "hvp": lambda f, x: tg.hvp(f, x, X),
    "gauss_newton": lambda f, x: tg.gauss_newton(f, x).product(X),
    "elementwise_grad": lambda f, x: tg.elementwise_grad(f)(x),
    "sparse jacobian": lambda f, x: tg.sparse.jacobian(f)(x).toarray(),
}


def parts(value: Any) -> list[Any]:
    found: list[Any] = []
    flatten(value, found)
    return found


def same(found: Any, expected: Any, rtol: float = 0.0) -> bool:
    pairs = zip(parts(found), parts(expected), strict=True)
    return all(type(a) is type(b) and np.shape(a) == np.shape(b) and np.allclose(a, b, rtol, 0.0, True) for a, b in pairs)


def never(*args: Any) -> Any:
    raise AssertionError("the function was called")


@pytest.mark.parametrize("driver", list(DRIVERS))
def test_random_programs_have_the_drivers_results_of_their_function(driver: str) -> None:
    wrong = []
    for seed in range(12):
        function, text = random_program(seed)
        program = tg.program(function)
        for k, arguments in enumerate(points(seed)[:5]):
            tangents = tuple(np.cos(np.asarray(a) + k) if np.ndim(a) else 0.3 for a in arguments)
            with np.errstate(all="ignore"):
                expected = DRIVERS[driver](function, arguments, tangents)
                found = DRIVERS[driver](program, arguments, tangents)
            if not same(found, expected, rtol=1e-13 if driver == "vjp" else 0.0):
                wrong.append(f"{text} at {arguments}")
    assert not wrong, "\n".join(wrong)


@pytest.mark.parametrize("driver", list(OF_ONE))
def test_drivers_of_one_argument_have_the_results_of_the_function(driver: str) -> None:
    def f(x: Any) -> Any:
        y = np.stack([x[0] * x[1], np.sin(x[1]) * x[2], x[2] ** 3])
        return y.sum() if driver == "hvp" else y

    program = tg.program(f)
    for x in (X, Y, X + Y, X):
        assert same(OF_ONE[driver](program, x), OF_ONE[driver](f, x))


@pytest.mark.parametrize("run", [
    lambda f, x: tg.jacobian(f)(x),
    lambda f, x: tg.jvp(f, (x,), (x,)),
    lambda f, x: tg.vjp(f, x)[1](np.ones(5)),
    lambda f, x: tg.linearize(f, x)[1](x),
    lambda f, x: tg.gauss_newton(f, x).matrix(),
    lambda f, x: tg.elementwise_grad(f)(x),
    lambda f, x: tg.sparse.jacobian(f)(x),
])  # fmt: skip
def test_the_function_is_not_called_again(run: Any) -> None:
    f = tg.program(lambda x: np.concatenate([10.0 * (x[1:] - x[:-1] ** 2), np.exp(x)]))
    run(f, X)
    f.function = never
    run(f, Y)
    assert len(f.traces) == 1


def test_products_outlive_later_runs() -> None:
    f = tg.program(lambda x: np.stack([x[0] * x[1], np.sin(x[2]), (x * x).sum()]))
    value, push = tg.linearize(f, X)
    other, pull = tg.vjp(f, X)
    newton = tg.gauss_newton(f, X)
    expected = tg.jacobian(f.function)(X)
    tg.jacobian(f)(10.0 * Y)
    np.testing.assert_allclose(push(Y), expected @ Y, rtol=1e-13)
    np.testing.assert_allclose(pull(Y)[0], Y @ expected, rtol=1e-13)
    np.testing.assert_allclose(newton.matrix(), expected.T @ expected, rtol=1e-13)
    np.testing.assert_array_equal(value, f.function(X))
    np.testing.assert_array_equal(other, newton.value)


def test_products_with_tracked_vectors_are_part_of_their_graph() -> None:
    f = tg.program(lambda x: np.stack([x[0] * x[1], np.sin(x[2])]))
    tg.jacobian(f)(Y)
    expected = tg.jacobian(f.function)(X)
    v, w = tg.tensor(Y, requires_grad=True), tg.tensor(Y[:2], requires_grad=True)
    pushed, pulled = tg.linearize(f, X)[1](v), tg.vjp(f, X)[1](w)[0]
    tg.jacobian(f)(Y)
    (pushed * tg.tensor(Y[:2])).sum().backward()
    (pulled * tg.tensor(Y)).sum().backward()
    np.testing.assert_allclose(v.grad.numpy(), Y[:2] @ expected, rtol=1e-13)
    np.testing.assert_allclose(w.grad.numpy(), expected @ Y, rtol=1e-13)


def test_a_product_with_the_hessian_by_a_tracked_direction_is_recorded() -> None:
    f = tg.program(lambda x: (x**3).sum() * x[0])
    tg.hvp(f, Y, X)
    v = tg.tensor(Y, requires_grad=True)
    product = tg.hvp(f, X, v)
    tg.hvp(f, Y, X)
    product.sum().backward()
    np.testing.assert_allclose(v.grad.numpy(), tg.hessian(f.function)(X) @ np.ones(3), rtol=1e-13)


@pytest.mark.parametrize("method", ["trust-ncg", "trust-exact", "dogleg", "trust-constr"])
def test_optimisers_with_second_derivatives_run_programs(method: str) -> None:
    def f(x: Any) -> Any:
        return (x**4).sum() + ((x[1:] - x[:-1]) ** 2).sum() + x @ x

    own = tg.optimize.minimize(f, X, method=method, tol=1e-8)
    found = tg.optimize.minimize(f, X, method=method, tol=1e-8, program=True)
    assert (found.x.tolist(), found.nit) == (own.x.tolist(), own.nit)


@pytest.mark.parametrize("sparse", [False, True])
def test_least_squares_of_a_program_takes_the_functions_steps(sparse: bool) -> None:
    def residual(x: Any) -> Any:
        return np.concatenate([10.0 * (x[1:] - x[:-1] ** 2), 1.0 - x[:-1]])

    start = np.linspace(-1.0, 1.0, 6)
    own, found = (tg.optimize.least_squares(f, start, sparse=sparse) for f in (residual, tg.program(residual)))
    assert (found.x.tolist(), found.nfev) == (own.x.tolist(), own.nfev)


def test_a_program_from_a_file_says_that_it_has_gradients_only(tmp_path: Any) -> None:
    f = tg.program(lambda x: (x * x).sum())
    tg.grad(f)(X)
    f.save(tmp_path / "f.tgp")
    with pytest.raises(tg.ProgramError, match="values and gradients and no other derivatives"):
        tg.hessian(tg.load_program(tmp_path / "f.tgp"))(X)


@pytest.mark.parametrize("driver", [tg.jacobian, tg.hessian, tg.grad])
def test_arguments_that_are_not_there_are_said_by_the_driver(driver: Any) -> None:
    f = tg.program(lambda x: (x * x).sum())
    with pytest.raises(ValueError, match=f"^{driver.__name__}: argnums=3 asks for positional argument 3"):
        driver(f, 3)(X)
