"""Derivatives through solvers: closed forms, differences through the whole solver, and what has no derivative."""

import gc
from typing import Any

import numpy as np
import pytest
from numba import njit
from scipy.optimize import Bounds, LinearConstraint, NonlinearConstraint

import tapegrad as tg
from tapegrad import optimize
from tapegrad.tape.tape import TAPE

A = np.array([[3.0, 1.0], [1.0, 2.0]])


def differences(f: Any, p: np.ndarray, step: float = 1e-5) -> np.ndarray:
    """Jacobian by central differences."""
    columns = [(np.asarray(f(p + step * e)) - np.asarray(f(p - step * e))) / (2.0 * step) for e in np.eye(len(p))]
    return np.stack(columns, axis=-1)


def plain(f: Any) -> Any:
    """The same function of NumPy's arrays, to be differenced."""

    def call(p: np.ndarray) -> Any:
        with tg.no_grad():
            return f(p)

    return call


def square_root(a: Any, x0: float = 1.0) -> Any:
    return optimize.root(lambda x, a: x * x - a, x0, (a,)).x


def coupled(p: Any) -> Any:
    def equations(x: Any, p: Any) -> Any:
        return np.stack([x[0] + p[0] * np.tanh(x[1]) - p[1], x[1] * np.exp(x[0] * p[2]) - p[0]])

    return optimize.root(equations, [0.3, 0.6], (p,), tol=1e-13).x


def logistic(p: Any) -> Any:
    x = np.array([[0.5, 1.0], [-1.0, 0.3], [0.2, -0.7]])

    def loss(w: Any, p: Any) -> Any:
        return np.log(1.0 + np.exp(-(x @ w) * np.array([1.0, -1.0, 1.0]))).sum() + np.exp(p[0]) * (w * w).sum() + p[1] * w[0]

    return optimize.minimize(loss, [0.1, -0.1], (p,), method="trust-exact", tol=1e-13).x


def cosine(p: Any) -> Any:
    return optimize.fixed_point(lambda x, p: np.cos(p * x), np.array([0.5, 0.7]), (p,), xtol=1e-14)


SOLVERS: dict[str, tuple[Any, list[float]]] = {
    "root": (coupled, [0.5, 0.8, 0.3]),
    "minimize": (logistic, [-1.0, 0.2]),
    "fixed_point": (cosine, [0.6, 0.9]),
}


@pytest.mark.parametrize("name", SOLVERS)
def test_jacobians_are_those_of_differences(name: str) -> None:
    f, p = SOLVERS[name]
    found = tg.jacobian(f)(np.array(p))
    np.testing.assert_allclose(found, differences(plain(f), np.array(p)), rtol=1e-6, atol=1e-9)


@pytest.mark.parametrize("name", SOLVERS)
def test_forward_and_reverse_agree(name: str) -> None:
    f, p = SOLVERS[name]
    forward, reverse = (tg.jacobian(f, mode=mode)(np.array(p)) for mode in ("forward", "reverse"))
    np.testing.assert_allclose(forward, reverse, rtol=1e-11, atol=1e-13)


@pytest.mark.parametrize("name", SOLVERS)
def test_second_derivatives_are_those_of_differences(name: str) -> None:
    f, p = SOLVERS[name]
    found = tg.hessian(lambda p: (f(p) ** 2).sum())(np.array(p))
    expected = differences(tg.grad(lambda p: (f(p) ** 2).sum()), np.array(p))
    np.testing.assert_allclose(found, expected, rtol=1e-5, atol=1e-8)


def test_three_derivatives_of_a_square_root() -> None:
    first = tg.grad(square_root)
    second = tg.grad(first)
    assert first(4.0) == pytest.approx(0.25, rel=1e-12)
    assert second(4.0) == pytest.approx(-1.0 / 32.0, rel=1e-12)
    assert tg.grad(second)(4.0) == pytest.approx(3.0 / 256.0, rel=1e-12)


def test_backward_of_the_eager_graph() -> None:
    b = tg.tensor([1.0, 2.0], requires_grad=True)
    result = optimize.root(lambda x, b: A @ x - b, [0.0, 0.0], (b,))
    (result.x[0] + 10.0 * result.flat[1]).backward()
    np.testing.assert_allclose(b.grad.numpy(), np.linalg.inv(A)[0] + 10.0 * np.linalg.inv(A)[1], rtol=1e-12)


def test_closed_over_leaves() -> None:
    w = tg.tensor(2.0, requires_grad=True)
    result = optimize.minimize(lambda x: ((x - w * w) ** 2).sum(), [0.0, 0.0])
    result.x.sum().backward()
    assert w.grad.item() == pytest.approx(8.0)


def test_closed_over_values_inside_of_a_driver() -> None:
    gradient = tg.grad(lambda a: optimize.root(lambda x: x * x - 2.0 * a, 1.0).x)(2.0)
    assert gradient == pytest.approx(0.5, rel=1e-12)


def test_containers_of_parameters_and_variables() -> None:
    def solve(p: Any) -> Any:
        def f(x: Any, p: Any) -> Any:
            return (x["u"] - p["a"]) ** 2 + ((x["v"] - p["b"] * x["u"]) ** 2).sum()

        x = optimize.minimize(f, {"u": 0.0, "v": np.zeros(2)}, (p,), tol=1e-12).x
        return x["u"] + x["v"].sum()  # a + a (b0 + b1)

    found = tg.grad(solve)({"a": 2.0, "b": np.array([3.0, 5.0])})
    assert found["a"] == pytest.approx(9.0, rel=1e-6)
    np.testing.assert_allclose(found["b"], [2.0, 2.0], rtol=1e-6)


def test_several_solutions_in_a_row() -> None:
    assert tg.grad(lambda a: square_root(square_root(a)))(16.0) == pytest.approx(0.25 * 16.0**-0.75, rel=1e-10)


def test_a_solver_inside_of_a_solver() -> None:
    def inner(y: Any) -> Any:
        return optimize.root(lambda x, y: x**3 - y, 1.0, (y,)).x

    # Where the cube root of y is a.
    gradient = tg.grad(lambda a: optimize.root(lambda y: inner(y) - a, 4.0).x)(1.5)
    assert gradient == pytest.approx(3.0 * 1.5**2, rel=1e-8)


def test_the_minimum_has_the_derivative_of_the_envelope() -> None:
    # min over x of (x - a)² + a x is a - ... : x = a / 2, the value 3 a² / 4.
    gradient = tg.grad(lambda a: optimize.minimize(lambda x, a: (x - a) ** 2 + a * x, 0.0, (a,), tol=1e-12).fun)(2.0)
    assert gradient == pytest.approx(3.0, rel=1e-6)


def test_least_squares() -> None:
    t = np.linspace(0.0, 1.0, 8)

    def fit(y: Any) -> Any:
        return optimize.least_squares(lambda p, y: p[0] + p[1] * t - y, [0.0, 0.0], (y,))

    y = np.sin(3.0 * t)
    design = np.stack([np.ones_like(t), t], axis=1)
    np.testing.assert_allclose(tg.jacobian(lambda y: fit(y).x)(y), np.linalg.pinv(design), atol=1e-8)
    residual = design @ np.linalg.pinv(design) @ y - y
    np.testing.assert_allclose(tg.grad(lambda y: fit(y).cost)(y), -residual, atol=1e-8)
    np.testing.assert_allclose(tg.grad(lambda y: (fit(y).fun ** 2).sum())(y), -2.0 * residual, atol=1e-8)


@pytest.mark.parametrize("method", ["L-BFGS-B", "SLSQP", "trust-constr"])
def test_variables_that_a_bound_holds_do_not_move(method: str) -> None:
    def project(c: Any) -> Any:
        return optimize.minimize(lambda x, c: ((x - c) ** 2).sum(), np.full(3, 0.5), (c,), method, [(0.0, 1.0)] * 3, tol=1e-7).x

    np.testing.assert_allclose(tg.jacobian(project)(np.array([-1.0, 0.5, 4.0])), np.diag([0.0, 1.0, 0.0]), atol=1e-7)


@pytest.mark.parametrize("method", ["SLSQP", "trust-constr"])
def test_equality_constraints(method: str) -> None:
    def project(p: Any) -> Any:
        on_plane = optimize.equality(lambda x: x.sum() - p[3])
        return optimize.minimize(lambda x: ((x - p[:3]) ** 2).sum(), np.zeros(3), method=method, constraints=on_plane, tol=1e-10).x

    expected = np.concatenate([np.eye(3) - 1.0 / 3.0, np.full((3, 1), 1.0 / 3.0)], axis=1)
    np.testing.assert_allclose(tg.jacobian(project)(np.array([1.0, 2.0, 4.0, 2.0])), expected, atol=1e-6)


def test_active_and_inactive_inequalities_with_bounds() -> None:
    def solve(p: Any) -> Any:
        return optimize.minimize(
            lambda x: (x[0] - p[0]) ** 2 + (x[1] - p[1]) ** 2 + (x[2] + 1.0) ** 2,
            [0.1, 0.1, 0.1],
            method="SLSQP",
            bounds=[(None, None), (None, None), (0.0, None)],
            constraints=[
                optimize.between(lambda x: x[0] ** 2 + x[1] ** 2, -np.inf, 1.0),
                optimize.inequality(lambda x: 10.0 - x[0]),
            ],
            tol=1e-10,
        ).x

    # Onto the unit circle: p / |p|.
    expected = np.zeros((3, 2))
    expected[:2] = (np.eye(2) - np.outer([0.6, 0.8], [0.6, 0.8])) / 5.0
    np.testing.assert_allclose(tg.jacobian(solve)(np.array([3.0, 4.0])), expected, atol=1e-6)


def test_constraints_in_scipys_older_form() -> None:
    def solve(r: Any) -> Any:
        circle = {"type": "eq", "fun": lambda x, r: (x * x).sum() - r, "args": (r,)}
        return optimize.minimize(lambda x: x.sum(), [-1.2, -0.9], constraints=circle, tol=1e-12).x

    np.testing.assert_allclose(tg.jacobian(solve)(2.0), [-0.25, -0.25], atol=1e-6)  # x = -sqrt(r / 2)


def test_a_constraint_alone_may_depend_on_the_parameter() -> None:
    w = tg.tensor(1.5, requires_grad=True)
    x = optimize.minimize(lambda x: (x * x).sum(), [2.0, 2.0], constraints=optimize.inequality(lambda x: x[0] - w), tol=1e-12).x
    (x * x).sum().backward()
    assert w.grad.item() == pytest.approx(3.0, rel=1e-6)


def test_the_starting_point_has_no_influence() -> None:
    gradient = tg.grad(lambda x0: optimize.root(lambda x: x * x - 4.0, x0).x * 1.0 + x0)(1.5)
    assert gradient == 1.0


def test_hooks_of_parameters_run_once() -> None:
    w = tg.tensor(4.0, requires_grad=True)
    a, seen = w * 1.0, []
    a.register_hook(lambda g: seen.append(g.item()))
    square_root(a).backward()
    assert seen == [pytest.approx(0.25)]


def test_arrays_among_the_arguments_may_change_afterwards() -> None:
    b, matrix = tg.tensor([1.0, 2.0], requires_grad=True), A.copy()
    x = optimize.root(lambda x, m, b: m @ x - b, [0.0, 0.0], (matrix, b)).x
    matrix[...] = 0.0
    (g,) = tg.autograd.grad(x.sum(), b, create_graph=True)
    np.testing.assert_allclose(g.tolist(), np.linalg.inv(A).sum(axis=0), rtol=1e-12)


def test_equations_with_a_driver_of_constants() -> None:
    def solution(p: Any) -> Any:
        return optimize.root(lambda x: tg.grad(lambda c: 0.5 * c * c * x * x)(1.0) - p, 1.0, tol=1e-14).x

    assert tg.grad(solution)(4.0) == pytest.approx(0.25, rel=1e-12)
    assert tg.grad(tg.grad(solution))(4.0) == pytest.approx(-1.0 / 32.0, rel=1e-12)


def test_a_solver_inside_of_a_driver_of_constants() -> None:
    def inner(u: Any, y: Any) -> Any:
        return optimize.fixed_point(lambda z: u + 0.1 * np.tanh(z * y), 0.1, xtol=1e-14)

    def solution(p: Any) -> Any:
        return optimize.root(lambda z: tg.grad(lambda y: inner(z * y, y) ** 2)(1.3) + z - p, 0.5, tol=1e-13).x

    first, h = tg.grad(solution), 1e-5
    assert tg.grad(first)(0.7) == pytest.approx((first(0.7 + h) - first(0.7 - h)) / (2.0 * h), rel=1e-7)


def test_a_driver_of_constants_makes_no_fit_depend_on_parameters() -> None:
    t = np.linspace(0.0, 1.0, 5)
    fitted, _ = optimize.curve_fit(lambda t, a: a * tg.elementwise_grad(lambda s: s**2)(t), t, 6.0 * t, [1.0])
    np.testing.assert_allclose(fitted, [3.0], rtol=1e-9)


def test_dicts_of_a_fixed_point_are_matched_by_their_keys() -> None:
    def solution(p: Any) -> Any:
        return optimize.fixed_point(lambda z: {"b": 3.0 * p, "a": 0.5 * z["a"] + p}, {"a": 0.1, "b": 0.2}, method="iteration")

    assert solution(1.0)["a"] == pytest.approx(2.0, rel=1e-7)
    assert solution(1.0)["b"] == pytest.approx(3.0, rel=1e-7)
    assert tg.grad(lambda p: solution(p)["a"])(1.0) == pytest.approx(2.0, rel=1e-12)


@pytest.mark.parametrize("solve", [square_root, lambda a: optimize.minimize(lambda x, a: (x - a) ** 2, 0.0, (a,)).x])
def test_without_tracked_parameters_or_recording_results_are_plain(solve: Any) -> None:
    assert type(solve(4.0)) is float
    with tg.no_grad():
        assert type(solve(tg.tensor(4.0, requires_grad=True))) is float


def test_solutions_that_are_gone_leave_nothing_on_the_tape() -> None:
    w = tg.tensor([2.0, 3.0], requires_grad=True)
    TAPE.collect()
    before = TAPE.rows
    gc.disable()  # cycles would keep what they hold until a collection comes by
    try:
        for _ in range(20):
            optimize.root(lambda x: x * x - w, [1.0, 1.0]).x.sum().backward()
            optimize.minimize(lambda x: ((x * x - w) ** 2).sum(), [1.0, 1.0], method="trust-ncg").x.sum().backward()
        TAPE.collect()
        assert TAPE.rows < before + 20
    finally:
        gc.enable()


def test_a_checkpoint_around_a_solver() -> None:
    f = tg.checkpoint(square_root)
    assert tg.grad(f)(4.0) == pytest.approx(0.25, rel=1e-12)
    assert tg.grad(tg.grad(f))(4.0) == pytest.approx(-1.0 / 32.0, rel=1e-12)


# What has no derivative.


def test_a_solver_that_gave_up() -> None:
    w = tg.tensor(1.0, requires_grad=True)
    result = optimize.root(lambda x: x * x + w, 1.0)
    assert not result.success
    with pytest.raises(RuntimeError, match="root: the solver did not converge"):
        result.x.backward()
    assert w.grad is None


def test_a_solver_that_gave_up_at_the_solution() -> None:
    # Rounding keeps the gradient above this tolerance.
    def solve(a: Any) -> Any:
        result = optimize.minimize(lambda x, a: ((np.exp(x) - a) ** 2).sum() * 1e3, [0.0, 1.0], (a,), "BFGS", tol=1e-300)
        assert not result.success
        return result.x

    a = np.array([2.0, 3.0])
    np.testing.assert_allclose(tg.jacobian(solve)(a), np.diag(1.0 / a), atol=1e-6)


def test_a_result_that_solves_nothing() -> None:
    with pytest.raises(RuntimeError, match=r"does not solve its equations.*smaller tolerance"):
        tg.grad(lambda a: optimize.minimize(lambda x, a: (x - a) ** 2, 0.0, (a,), "Nelder-Mead", tol=10.0).x)(2.0)


def test_a_result_that_solves_nothing_in_small_units() -> None:
    # The method stops where it starts, since the gradient is below its tolerance.
    solve = lambda p: optimize.minimize(lambda x: 1e-6 * (1e8 * x - p) ** 2, 1.5e-8, method="BFGS", options={"gtol": 1e3}).x  # noqa: E731
    with pytest.raises(RuntimeError, match="does not solve its equations"):
        tg.grad(solve)(1.0)


def test_a_singular_hessian() -> None:
    with pytest.raises(tg.linalg.LinAlgError, match="singular at the solution"):
        tg.grad(lambda a: optimize.minimize(lambda x: (x[0] + x[1] - a) ** 2, [0.0, 0.0]).x.sum())(1.0)


def test_a_function_that_changed_before_the_second_derivative() -> None:
    factor = [2.0]
    a = tg.tensor(4.0, requires_grad=True)
    x = optimize.root(lambda x, a: x * x - factor[0] * a, 1.0, (a,)).x
    factor[0] = 3.0
    with pytest.raises(RuntimeError, match="gives other values than when the solution was computed"):
        tg.autograd.grad(x, a, create_graph=True)


def test_parameters_written_in_place() -> None:
    a = tg.tensor([4.0], requires_grad=True)
    b = a * 1.0
    x = optimize.root(lambda x, b: x * x * b * b - 1.0, [1.0], (b,)).x
    b.mul_(2.0)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        x.sum().backward()


@pytest.mark.parametrize("bounds", [lambda w: [(w, None)] * 2, lambda w: [(0.0, np.float64(1.0)), [None, w]]])
def test_bounds_that_are_parameters(bounds: Any) -> None:
    w = tg.tensor(0.0, requires_grad=True)
    with pytest.raises(NotImplementedError, match="bounds that are tracked tensors"):
        optimize.minimize(lambda x: (x * x).sum(), [1.0, 1.0], bounds=bounds(w))


def test_limits_that_are_parameters() -> None:
    w = tg.tensor(0.0, requires_grad=True)
    with pytest.raises(NotImplementedError, match="bounds that are tracked tensors"):
        optimize.minimize(lambda x: (x * x).sum(), [1.0], constraints=optimize.between(lambda x: x, w, 1.0))


@pytest.mark.parametrize(
    "limits",
    [
        lambda w: Bounds(w, 3.0),
        lambda w: Bounds([0.0, w[0]], 3.0),
        lambda w: LinearConstraint([[1.0]], -np.inf, w),
        lambda w: LinearConstraint(np.stack([w, w])),
    ],
)
def test_limits_of_scipy_that_are_parameters(limits: Any) -> None:
    with pytest.raises(RuntimeError, match="SciPy keeps limits as numbers"):
        limits(tg.tensor([0.0], requires_grad=True))


def test_nonlinear_constraint_of_scipy_whose_bound_is_a_parameter() -> None:
    w = tg.tensor(0.0, requires_grad=True)
    with pytest.raises(NotImplementedError, match="bounds that are tracked tensors"):
        optimize.minimize(lambda x: (x * x).sum(), [1.0], constraints=NonlinearConstraint(lambda x: x, w, 1.0))


def test_constraints_that_cannot_be_recorded() -> None:
    w = tg.tensor(0.0, requires_grad=True)
    constraint = {"type": "ineq", "fun": lambda x: x, "jac": "2-point"}
    with pytest.raises(NotImplementedError, match="jac SciPy finds by differences, which cannot be recorded"):
        optimize.minimize(lambda x: ((x - w) ** 2).sum(), [1.0], method="COBYLA", constraints=constraint)


def line(p: Any) -> Any:
    """The point nearest to (3, 3) under the line ``p x + y = 1``."""
    t = (3.0 * p + 2.0) / (p * p + 1.0)
    return np.stack([3.0 - p * t, 3.0 - t])


@njit
def above(x: Any) -> Any:
    return x[0] * x[1]


LINES: dict[str, Any] = {
    "nonlinear constraint": lambda p: NonlinearConstraint(lambda x: p * x[0] + x[1], -np.inf, 1.0),
    "with its Jacobian": lambda p: NonlinearConstraint(
        lambda x: p * x[0] + x[1], -np.inf, 1.0, jac=lambda x: np.stack([p, 1.0 + 0.0 * p])
    ),
    "of a list": lambda p: NonlinearConstraint(lambda x: [p * x[0] + x[1], x[0]], -np.inf, [1.0, 9.0]),
    "dictionary": lambda p: {"type": "ineq", "fun": lambda x: 1.0 - p * x[0] - x[1]},
    "dictionary with its Jacobian": lambda p: {
        "type": "ineq", "fun": lambda x: 1.0 - p * x[0] - x[1], "jac": lambda x: np.stack([-p, -1.0 + 0.0 * p])
    },
}  # fmt: skip


@pytest.mark.parametrize(
    ("name", "structured"), [*((name, False) for name in LINES), *((name, True) for name in LINES if "dictionary" not in name)]
)
def test_constraints_of_scipy_that_depend_on_parameters(name: str, structured: bool) -> None:
    def solution(p: Any) -> Any:
        if structured:
            objective, x0 = lambda x: (x["a"] - 3.0) ** 2 + (x["b"] - 3.0) ** 2, {"a": 0.0, "b": 0.0}
            x = optimize.minimize(objective, x0, constraints=LINES[name](p), tol=1e-10).x
            return np.stack([x["a"], x["b"]])
        return optimize.minimize(lambda x: ((x - 3.0) ** 2).sum(), np.zeros(2), constraints=LINES[name](p), tol=1e-10).x

    np.testing.assert_allclose(tg.jacobian(solution)(0.7), tg.jacobian(line)(0.7), rtol=1e-6)


def test_compiled_function_in_a_constraint_of_scipy() -> None:
    def solution(p: Any) -> Any:
        limits = NonlinearConstraint(above, 1.0, np.inf)  # where it holds, x is sqrt(p), and y is its reciprocal
        return optimize.minimize(lambda x: x[0] + p * x[1], np.ones(2), constraints=limits, tol=1e-10).x

    np.testing.assert_allclose(tg.jacobian(solution)(4.0), [0.25, -0.0625], rtol=1e-5)


@pytest.mark.parametrize(("w", "slope"), [(1.0, 1.0), (3.0, 0.0)])
def test_linear_constraints_of_scipy_beside_parameters(w: float, slope: float) -> None:
    def solution(w: Any) -> Any:
        limits = LinearConstraint([[1.0]], 0.0, 2.0)
        return optimize.minimize(lambda x: ((x - w) ** 2).sum(), [1.5], constraints=limits, tol=1e-10).x[0]

    assert tg.grad(solution)(w) == pytest.approx(slope, abs=1e-6)


def test_constraint_with_its_derivative_may_be_any_function_of_arrays() -> None:
    fun, jac = lambda x: np.array([1.0 - x[0], 1.0 - x[1]]), lambda x: -np.eye(2)
    for constraint in ({"type": "ineq", "fun": fun, "jac": jac}, NonlinearConstraint(fun, 0.0, np.inf)):
        x = optimize.minimize(lambda x: ((x - 3.0) ** 2).sum(), np.zeros(2), constraints=constraint).x
        np.testing.assert_allclose(x, 1.0)


def test_fits_that_depend_on_parameters() -> None:
    w, t = tg.tensor(1.0, requires_grad=True), np.linspace(0.0, 1.0, 4)
    with pytest.raises(NotImplementedError, match="curve_fit: the fit depends on tracked tensors"):
        optimize.curve_fit(lambda t, a: a * t * w, t, t, [1.0])
    with pytest.raises(NotImplementedError, match="loss='linear'"):
        optimize.least_squares(lambda p: p[0] * t - w * t, [0.0], loss="soft_l1")


def test_a_fixed_point_of_another_dict() -> None:
    with pytest.raises(TypeError, match=r"a dict with \['a'\], not \['b'\]"):
        optimize.fixed_point(lambda z: {"b": z["a"]}, {"a": 1.0})


@pytest.mark.filterwarnings("ignore:Converting a tensor with requires_grad")
@pytest.mark.parametrize("factor", [1.0, None], ids=["nothing else", "partly tracked"])
def test_parameters_written_into_an_array(factor: Any) -> None:
    def equations(x: Any, p: Any) -> Any:
        r = np.zeros(1)
        r[0] = p
        return x - r * (p if factor is None else factor)

    with pytest.raises(TypeError, match="written into an array of NumPy's at .*test_implicit.py"):
        tg.jacobian(lambda p: optimize.root(equations, [1.0], (p,)).x)(2.0)


def test_equations_and_unknowns_are_as_many() -> None:
    with pytest.raises(ValueError, match="as many numbers as it takes"):
        optimize.fixed_point(lambda x: x[:1], [1.0, 2.0])


# Kinks that move with a parameter.


def minimum(f: Any, x0: Any, method: str = "Nelder-Mead", **options: Any) -> Any:
    return lambda p: optimize.minimize(lambda x: f(x, p), x0, method=method, tol=1e-12, **options).x


KINKS: dict[str, tuple[Any, Any]] = {
    "hinge": (minimum(lambda x, c: np.maximum(0.0, c - x) + 0.1 * x, 0.3), 1.0),
    "maximum": (minimum(lambda x, p: np.maximum(x - p, 0.0) + 0.5 * x * x, 1.0), -0.3),
    "where": (minimum(lambda x, p: np.where(x > p, 1.0, -0.5) * x + x * x, 1.0), 0.1),
    "branch": (minimum(lambda x, p: (x if x > p else -0.5 * x) + x * x, 1.0), 0.1),
    "abs": (minimum(lambda x, p: abs(x - p) + 0.1 * x * x, 0.7), 0.3),
    "abs where the gradient of the rest is zero": (minimum(lambda x, p: abs(x - p) + (x - 0.3) ** 2, 0.3, "BFGS"), 0.3),
    "abs at zero": (minimum(lambda x, p: abs(x - p) + x * x, 0.0, "BFGS"), 0.0),
    "abs at zero in small units": (minimum(lambda x, p: abs(1e8 * x - p) + (1e8 * x) ** 2, 0.0, "BFGS"), 0.0),
    "norm": (minimum(lambda x, p: np.sqrt(((x - p) ** 2).sum()) + 0.1 * (x * x).sum(), [0.2, 0.3]), 0.3),
    "one direction of two": (minimum(lambda x, p: abs(x[0] - x[1] - p) + ((x - 0.2) ** 2).sum(), [0.2, 0.1]), 0.1),
    "median": (minimum(lambda x, p: abs(x - np.stack([0.1 * p, p, 4.0 * p])).sum(), 0.5), 0.3),
    "bent gradient": (minimum(lambda x, p: np.maximum(x - p, 0.0) ** 2 + 0.5 * x * x, 0.0, "BFGS"), 0.0),
    "root": (lambda p: optimize.root(lambda x: x + 0.5 * abs(x - 0.3) - p, 0.3).x, 0.3),
    "fixed point": (lambda p: optimize.fixed_point(lambda x: 0.3 + 0.5 * np.maximum(x - p, 0.0), 0.3), 0.3),
    "least squares": (lambda p: optimize.least_squares(lambda x: [np.maximum(x - p, 0.0), 0.5 * x], 0.0).x, 0.0),
}


@pytest.mark.parametrize("name", KINKS)
def test_solutions_at_kinks_have_no_derivative(name: str) -> None:
    f, p = KINKS[name]
    with pytest.raises(RuntimeError, match="the result sits at a kink"):
        tg.jacobian(f)(p)


def test_solution_of_a_constant_residual_depends_on_what_was_compared_only() -> None:
    p = tg.tensor(1.0, requires_grad=True)
    x = optimize.minimize(lambda x: np.maximum(0.0, p - x) + 0.1 * x, 0.3, method="Nelder-Mead", tol=1e-12).x
    node = x.grad_fn
    while node.next_functions:
        ((node, _),) = node.next_functions
    assert node.variable is p


def test_compiled_objectives_at_kinks_have_no_derivative() -> None:
    @njit
    def f(x: Any, p: Any) -> Any:
        return abs(x[0] - p[0]) + (x[0] - x[1]) ** 2 + 0.1 * x[1] ** 2

    p = tg.tensor([0.3], requires_grad=True)
    x = optimize.minimize(f, np.array([0.5, 0.5]), (p,), "Nelder-Mead", tol=1e-12).x
    with pytest.raises(RuntimeError, match="the result sits at a kink"):
        x[0].backward()
    assert p.grad is None


def test_closed_over_leaves_that_are_only_compared_are_parameters() -> None:
    w = tg.tensor(0.1, requires_grad=True)
    x = optimize.minimize(lambda x: np.where(x > w, 1.0, -0.5) * x + x * x, 1.0, method="Nelder-Mead", tol=1e-12).x
    with pytest.raises(RuntimeError, match="the result sits at a kink"):
        x.backward()


def test_a_kink_elsewhere_does_no_harm() -> None:
    solve = minimum(lambda x, p: abs(x - 4.0 * p) + (x - p) ** 2, 0.5, "BFGS")
    assert tg.grad(solve)(1.0) == pytest.approx(1.0, rel=1e-9)  # x = p + 1/2


def test_second_derivatives_at_kinks_are_refused_too() -> None:
    f, p = KINKS["abs"]
    with pytest.raises(RuntimeError, match="the result sits at a kink"):
        tg.grad(tg.grad(f))(p)


# How exact, and when the function is looked at.


def test_derivatives_are_more_exact_than_the_solution() -> None:
    result = None

    def solve(p: Any) -> Any:
        nonlocal result
        result = optimize.minimize(lambda x: np.exp(x) - p * x, 0.5, method="Nelder-Mead", options={"xatol": 1e-3})
        return result.x

    assert tg.grad(solve)(2.0) == pytest.approx(0.5, rel=1e-9)
    assert tg.grad(tg.grad(solve))(2.0) == pytest.approx(-0.25, rel=1e-9)
    with tg.no_grad():
        found = solve(2.0)
    assert solve(tg.tensor(2.0, requires_grad=True)).item() == found != pytest.approx(np.log(2.0), rel=1e-6)


def test_variables_around_the_function_may_change_afterwards() -> None:
    w = tg.tensor(4.0, requires_grad=True)
    sum([optimize.root(lambda x: x * x - k * w, 1.0).x for k in (1.0, 4.0)]).backward()  # noqa: B023
    assert w.grad.item() == pytest.approx(0.25 + 0.5)


def test_many_unknowns_are_examined_when_the_derivative_is_asked_for() -> None:
    b = tg.tensor(np.linspace(1.0, 2.0, 40), requires_grad=True)
    factor = [1.0]
    f = lambda x: factor[0] * x**3 - b  # noqa: E731
    x = optimize.root(f, np.ones(40), tol=1e-12).x
    x.sum().backward(retain_graph=True)
    np.testing.assert_allclose(b.grad.numpy(), b.detach().numpy() ** (-2.0 / 3.0) / 3.0, rtol=1e-9)
    y = optimize.root(f, np.ones(40), tol=1e-12).x
    factor[0] = 2.0
    with pytest.raises(RuntimeError, match="gives other values than when the solution was computed"):
        y.sum().backward()


def test_many_unknowns_at_kinks() -> None:
    w = tg.tensor(0.3, requires_grad=True)
    x = optimize.minimize(lambda x: abs(x - w).sum() + (x * x).sum(), np.full(40, 0.3)).x
    with pytest.raises(RuntimeError, match="the result sits at a kink"):
        x.sum().backward()


@pytest.mark.filterwarnings("ignore:Converting a tensor with requires_grad")
def test_parameters_that_leave_the_graph_inside_of_a_solver_are_refused() -> None:
    with pytest.raises(TypeError, match="would have no derivative"):
        tg.grad(lambda p: optimize.minimize(lambda x: (x - p.item()) ** 2, 0.0).x)(1.0)
    with pytest.raises(TypeError, match="would have no derivative"):
        tg.grad(lambda p: optimize.root(lambda x: x - float(p), 0.0).x)(1.0)
