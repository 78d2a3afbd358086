"""An objective and its constraints on the same leaves have the derivatives that each has by itself, and are called as often."""

import gc
import sys
from collections.abc import Callable
from typing import Any

import interior_point_solver
import numba
import numpy as np
import pytest
from engine_fixtures import settled_rows
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import LinearConstraint
from scipy.sparse import coo_array

import tapegrad as tg
from tapegrad.optimize import interior_point
from tapegrad.optimize.interior_point import Problem
from tapegrad.optimize.packing import Packing
from tapegrad.optimize.recorded_apart import Apart
from tapegrad.optimize.recorded_together import NotTogether, Together
from tapegrad.sparse.compression import Bidirectional
from tapegrad.sparse.element_passes import ElementPass

optimize: Any = tg.optimize
Function = Callable[[Any], Any]
N = 5
A = np.random.default_rng(0).normal(size=(N, N))
PLACES = np.array([0, 2, 2, 4, 1])
START = np.linspace(0.5, 1.5, N)
POINTS = [np.array([0.3, -1.2, 0.7, 2.0, -0.4]), np.array([1.3, 0.8, -0.6, 0.1, 1.1])]


def rosenbrock(x: Any) -> Any:
    return (100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2).sum()


CASES: dict[str, tuple[Function, list[Function]]] = {
    "products": (rosenbrock, [lambda x: x[1:] * x[:-1]]),
    "several": (rosenbrock, [lambda x: x[1:] * x[:-1], lambda x: (x**3).sum(), lambda x: x[:2] ** 2]),
    "the variable": (rosenbrock, [lambda x: x]),
    "views": (rosenbrock, [lambda x: x[1:3], lambda x: x[::-1], lambda x: x.reshape(1, N)]),
    "one element": (lambda x: x[0], [lambda x: x[0], lambda x: x[1]]),
    "a constant": (rosenbrock, [lambda x: 0.0 * x + 3.0, lambda x: np.stack([x[0], 0.0 * x[1]])]),
    "no elements": (rosenbrock, [lambda x: x[:0], lambda x: x**3, lambda x: 2.0 * x[:0]]),
    "no constraints": (rosenbrock, []),
    "linear": (lambda x: x.sum(), [lambda x: A @ x]),
    "a linear objective": (lambda x: x.sum(), [lambda x: (A @ x) ** 2]),
    "linear constraints": (rosenbrock, [lambda x: x.sum(), lambda x: 2.0 * x]),
    "products of matrices": (lambda x: x @ A @ x, [lambda x: A @ (x * x), lambda x: np.outer(x, x) @ x]),
    "places": (lambda x: x[PLACES] @ x**3, [lambda x: x[PLACES] ** 2 * x, lambda x: np.cumsum(x * x)]),
    "drivers": (lambda x: tg.grad(rosenbrock)(x) @ x, [lambda x: tg.jacobian(lambda z: z**3)(x) @ x]),
}


def problem_of(f: Function, constraints: list[Any], start: Any = START, second: bool = True) -> Problem:
    return Problem(f, Packing(start, "minimize"), [optimize.equality(g) if callable(g) else g for g in constraints], (), second)


def joined(constraints: list[Function]) -> Function:
    """All of their numbers as one vector."""
    return lambda x: np.concatenate([x[:0], *(np.reshape(g(x), -1) for g in constraints)])


def jacobian_of(problem: Problem, x: Any) -> Any:
    shape = len(problem.lower), len(x)
    return coo_array((problem.jacobian(x), problem.jacobianstructure()), shape=shape).toarray()


def hessian_of(problem: Problem, x: Any, multipliers: Any, factor: float) -> Any:
    """The lower triangle."""
    entries = problem.hessian(x, multipliers, factor), problem.hessianstructure()
    return coo_array(entries, shape=(len(x), len(x))).toarray()


def lagrangian(f: Function, g: Function, multipliers: Any, factor: float) -> Function:
    return lambda x: factor * f(x) + (multipliers * g(x)).sum()


def check(problem: Problem, what: str, x: Any, f: Function, g: Function, random: np.random.Generator) -> None:
    """Compare one thing with what dense drivers give."""
    close: Any = np.testing.assert_allclose
    if what == "objective":
        close(problem.objective(x), f(x), rtol=1e-12)
    elif what == "gradient":
        close(problem.gradient(x), tg.grad(f)(x), rtol=1e-11, atol=1e-11)
    elif what == "constraints":
        close(problem.constraints(x), g(x), rtol=1e-12, atol=1e-13)
    elif what == "jacobian":
        close(jacobian_of(problem, x), tg.jacobian(g)(x), rtol=1e-11, atol=1e-11)
    else:
        multipliers = random.normal(size=len(problem.lower)) * (what != "of f")
        factor = float(random.normal()) * (what != "of g")
        expected = np.tril(tg.hessian(lagrangian(f, g, multipliers, factor))(x))
        close(hessian_of(problem, x, multipliers, factor), expected, rtol=1e-9, atol=1e-9 * (1.0 + np.abs(expected).max()))


ORDERS = [
    "objective constraints gradient jacobian hessian",
    "constraints objective jacobian gradient hessian",
    "hessian jacobian gradient constraints objective",
    "hessian hessian jacobian hessian gradient",
    "jacobian hessian constraints constraints hessian objective objective gradient jacobian",
    "of f|of g|hessian|of f|gradient|constraints|hessian",
]


@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("name", CASES)
def test_derivatives_are_the_dense_ones_in_whatever_order_they_are_asked_for(name: str, order: str) -> None:
    f, constraints = CASES[name]
    problem, g, random = problem_of(f, constraints), joined(constraints), np.random.default_rng(1)
    assert type(problem.functions) is Together
    for x in (*POINTS, POINTS[0], START):
        for what in order.split("|") if "|" in order else order.split():
            check(problem, what, x, f, g, random)


@given(st.integers(0, 10**6))
@settings(max_examples=60)
def test_derivatives_of_random_functions(seed: int) -> None:
    random = np.random.default_rng(seed)
    f, *constraints = [random_function(random) for _ in range(1 + int(random.integers(0, 4)))]
    problem, g = problem_of(lambda x: f(x).sum(), constraints), joined(constraints)
    assert type(problem.functions) is Together
    for x in (*POINTS, POINTS[0]):
        for what in random.permutation(["objective", "gradient", "constraints", "jacobian", "hessian", "hessian"]):
            check(problem, what, x, lambda x: f(x).sum(), g, random)


def random_function(random: np.random.Generator) -> Function:
    """A composition of operations whose second derivatives the compiled sweeps have."""
    matrix, index = random.normal(size=(3, N)), random.integers(0, N, N)
    steps: list[Function] = [
        lambda x: np.sin(x),
        lambda x: x * x[::-1],
        lambda x: x[index] * x,
        lambda x: np.concatenate([matrix @ x, x[:2] ** 2]),
        lambda x: np.exp(0.3 * np.tanh(x)) + x[0] * x[1],
        lambda x: 0.5 * x,
        lambda x: np.outer(x, np.cos(x)) @ x,
    ]
    chosen = [steps[int(k)] for k in random.integers(0, len(steps), int(random.integers(1, 4)))]
    last = int(random.integers(1, N + 1))

    def function(x: Any) -> Any:
        for step in chosen:
            x = step(x)
        return x[:last]

    return function


def test_rows_stand_in_the_order_of_the_constraints() -> None:
    matrix = np.arange(2.0 * N).reshape(2, N)
    parts = [lambda x: x[1:] * x[:-1], LinearConstraint(matrix, 0.0, 1.0), lambda x: x.sum() ** 2, LinearConstraint(np.eye(N)[:1])]
    problem = problem_of(rosenbrock, parts)

    def g(x: Any) -> Any:
        return np.concatenate([x[1:] * x[:-1], matrix @ x, (x.sum() ** 2).reshape(1), x[:1]])

    random = np.random.default_rng(2)
    for what in ("constraints", "jacobian", "hessian"):
        check(problem, what, POINTS[0], rosenbrock, g, random)


def test_variables_in_containers() -> None:
    start = {"a": np.linspace(0.5, 1.0, 3), "b": [0.7, np.array([[1.0, 2.0], [3.0, 4.0]])]}

    def f(p: Any) -> Any:
        return (p["a"] ** 2).sum() * p["b"][0] + (p["b"][1] @ p["b"][1]).sum()

    def g(p: Any) -> Any:
        return {"one": p["b"][0] ** 2, "two": (p["a"][:2] @ p["b"][1], p)}

    def flat(h: Function) -> Function:
        return lambda x: h({"a": x[:3], "b": [x[3], x[4:].reshape(2, 2)]})

    def flat_g(x: Any) -> Any:
        return np.concatenate([x[3:4] ** 2, x[:2] @ x[4:].reshape(2, 2), x])

    problem, random = problem_of(f, [g], start), np.random.default_rng(3)
    for what in ("objective", "gradient", "constraints", "jacobian", "hessian"):
        check(problem, what, np.linspace(-1.0, 1.5, 8), flat(f), flat_g, random)


def test_what_one_function_does_to_its_container_the_next_one_does_not_see() -> None:
    def f(p: Any) -> Any:
        return (p.pop("a") ** 2).sum()

    problem = problem_of(f, [lambda p: p["a"] ** 3], {"a": START})
    problem.objective(POINTS[0])
    np.testing.assert_allclose(problem.constraints(POINTS[0]), POINTS[0] ** 3, rtol=1e-14)


def test_variables_in_single_precision() -> None:
    problem = problem_of(lambda x: (x * x).sum() * x[0], [lambda x: x**3], START.astype(np.float32))
    x = START.astype(np.float32).astype(np.float64)
    np.testing.assert_allclose(problem.gradient(x), 2.0 * x * x[0] + np.eye(N)[0] * (x @ x), rtol=1e-6)
    np.testing.assert_allclose(jacobian_of(problem, x), np.diag(3.0 * x**2), rtol=1e-6)
    np.testing.assert_allclose(hessian_of(problem, x, np.ones(N), 0.0), np.diag(6.0 * x), rtol=1e-6)


def test_without_second_derivatives() -> None:
    f, constraints = CASES["several"]
    problem, g, random = problem_of(f, constraints, second=False), joined(constraints), np.random.default_rng(4)
    for x in (*POINTS, POINTS[0]):
        for what in ("constraints", "jacobian", "objective", "gradient"):
            check(problem, what, x, f, g, random)


def test_structures_that_change_with_the_point() -> None:
    def f(x: Any) -> Any:
        return (x**2).sum() + (x[0] * x[1] if x[0] > 1.0 else 0.0)

    def g(x: Any) -> Any:
        return x[0] * x[2] if x[1] > 0.0 else x[3] ** 2

    problem, random = problem_of(f, [g]), np.random.default_rng(5)
    for x in (POINTS[0], POINTS[1], POINTS[0], START):
        for what in ("jacobian", "hessian", "gradient"):
            try:
                check(problem, what, x, f, joined([g]), random)
            except interior_point._Grown:
                problem.latest = x
                problem.find_patterns_again()
                check(problem, what, x, f, joined([g]), random)


def test_hessians_by_edge_pushing(monkeypatch: pytest.MonkeyPatch) -> None:
    size, random = 60, np.random.default_rng(6)
    one, two, three = random.integers(0, size, (3, 400))
    monkeypatch.setattr(ElementPass, "is_quicker", lambda self, derivative, colours: self.settle(derivative))

    def f(x: Any) -> Any:
        return (np.sin(x[one] * x[two]) * x[three]).sum()

    def g(x: Any) -> Any:
        return x[one[:30]] * x[two[:30]] ** 2

    problem = problem_of(f, [g], np.linspace(0.5, 1.5, size))
    assert isinstance(problem.functions._weighted._known.plan, ElementPass)
    for x in (np.linspace(0.5, 1.5, size), np.linspace(0.2, 1.1, size), np.linspace(-1.0, 1.0, size)):
        for what in ("hessian", "hessian", "jacobian", "of f", "gradient"):
            check(problem, what, x, f, g, random)


def test_jacobians_by_products_from_both_sides() -> None:
    size, random = 400, np.random.default_rng(7)

    def g(x: Any) -> Any:
        return np.concatenate([x * x[0], (x * x).sum().reshape(1)])

    problem = problem_of(lambda x: (x**2).sum(), [g], np.linspace(0.5, 1.5, size))
    assert isinstance(problem.functions._first._known.plan, Bidirectional)
    for what in ("jacobian", "hessian", "jacobian"):
        check(problem, what, np.linspace(-1.0, 1.0, size), lambda x: (x**2).sum(), g, random)


class Square(tg.autograd.Function):  # type: ignore[misc,unused-ignore]
    """Whose derivative is Python, without a second one in the compiled sweeps."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x * x

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        return 2.0 * x * g


def hooked(x: Any) -> Any:
    x.register_hook(lambda g: 10.0 * g)
    return (x**2).sum()


def written(x: Any) -> Any:
    with tg.no_grad():
        x[0] = 2.0
    return (x**2).sum()


compiled: Any = numba.njit(lambda x: (x**2).sum())
APART: dict[str, tuple[Function, Function]] = {
    "a hook on the variable": (hooked, lambda x: x**3),
    "a hook": (lambda x: (y := x * x, y.register_hook(lambda g: 10.0 * g), y.sum())[2], lambda x: x**3),
    "a function that writes into its variable": (written, lambda x: x**3),
    "a compiled objective": (compiled, lambda x: x**3),
    "a compiled constraint": (rosenbrock, compiled),
    "a program": (tg.program(lambda x: (x**2).sum()), lambda x: x**3),
    "a row without curvature": (lambda x: np.linalg.det(np.outer(x, x) + A), lambda x: x**3),
    "a function of one's own": (rosenbrock, lambda x: Square.apply(x) * x[0]),
}


@pytest.mark.parametrize("name", APART)
def test_what_cannot_be_recorded_together_is_recorded_apart(name: str) -> None:
    f, g = APART[name]
    problem = problem_of(f, [g, lambda x: x[1:] * x[:-1]])
    packing = Packing(START, "minimize")
    expected = Apart(f, packing, (), [optimize.equality(h) for h in (g, lambda x: x[1:] * x[:-1])], True)
    expected.begin(START)
    assert type(problem.functions) is Apart
    for x in POINTS:
        assert problem.objective(x) == expected.objective(x)
        np.testing.assert_array_equal(problem.gradient(x), expected.gradient(x))
        np.testing.assert_array_equal(problem.constraints(x), np.concatenate(expected.constraints(x)))


def test_a_hook_of_the_objective_has_no_part_in_the_constraints() -> None:
    problem, x = problem_of(hooked, [lambda x: x**3]), POINTS[0]
    np.testing.assert_allclose(problem.gradient(x), 20.0 * x, rtol=1e-14)
    np.testing.assert_allclose(jacobian_of(problem, x), np.diag(3.0 * x**2), rtol=1e-14)


def test_what_is_written_into_the_variable_the_next_function_does_not_see() -> None:
    problem, x = problem_of(written, [lambda x: x**3]), POINTS[0]
    assert problem.objective(x) == pytest.approx(4.0 + (x[1:] ** 2).sum())
    np.testing.assert_allclose(problem.constraints(x), x**3, rtol=1e-14)


def with_one_buffer() -> tuple[Function, list[Function]]:
    """Functions that write into the same memory, and give it."""
    buffer = tg.zeros(N)

    def f(x: Any) -> Any:
        buffer[:] = x * x
        return buffer.sum()

    def cubes(x: Any) -> Any:
        buffer[:] = x**3
        return buffer

    def sines(x: Any) -> Any:
        buffer[:] = np.sin(x)
        return buffer

    return f, [cubes, sines]


def dense_with_one_buffer(x: Any) -> Any:
    return np.concatenate([x**3, np.sin(x)])


@pytest.mark.parametrize("what", ["gradient", "jacobian", "hessian", "constraints"])
def test_functions_with_one_buffer(what: str) -> None:
    problem, random = problem_of(*with_one_buffer()), np.random.default_rng(8)
    for x in POINTS:
        check(problem, "hessian", x, lambda x: (x**2).sum(), dense_with_one_buffer, random)
        check(problem, what, x, lambda x: (x**2).sum(), dense_with_one_buffer, random)


@pytest.mark.parametrize("what", ["jacobian", "hessian"])
def test_functions_with_one_buffer_apart(what: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(Together, "begin", raising(NotTogether))
    problem, random = problem_of(*with_one_buffer()), np.random.default_rng(9)
    for x in POINTS:
        problem.constraints(x)
        check(problem, what, x, lambda x: (x**2).sum(), dense_with_one_buffer, random)


def raising(error: type[BaseException]) -> Any:
    def function(*_: Any) -> Any:
        raise error

    return function


def test_what_one_function_needs_and_another_one_overwrites() -> None:
    factor = tg.zeros(N)

    def scaled(x: Any, by: float) -> Any:
        with tg.no_grad():
            factor[:] = by
        return x * x * factor

    problem = problem_of(lambda x: scaled(x, 2.0).sum(), [lambda x: scaled(x, 3.0)], second=False)
    for x in POINTS:
        assert problem.objective(x) == pytest.approx(2.0 * (x @ x))
        np.testing.assert_allclose(problem.gradient(x), 4.0 * x, rtol=1e-14)
        np.testing.assert_allclose(problem.constraints(x), 3.0 * x**2, rtol=1e-14)
        np.testing.assert_allclose(jacobian_of(problem, x), np.diag(6.0 * x), rtol=1e-14)


class Counted:
    """A function, and how often it was called."""

    def __init__(self, function: Function) -> None:
        self.function, self.calls = function, 0

    def __call__(self, x: Any) -> Any:
        self.calls += 1
        return self.function(x)


def counted() -> tuple[Problem, Counted, Counted]:
    f, g = Counted(rosenbrock), Counted(lambda x: x**3)
    return problem_of(f, [g]), f, g


def test_a_result_that_another_function_changes_is_refused() -> None:
    kept: dict[str, Any] = {}

    def one(x: Any) -> Any:
        kept["y"] = x * x
        return kept["y"]

    def other(x: Any) -> Any:
        kept["y"] += x
        return x[:1]

    with pytest.raises(RuntimeError, match="the result of constraint 0 was changed in place by another function"):
        Problem(lambda x: x.sum(), Packing(np.ones(3), "minimize"), [tg.optimize.equality(one), tg.optimize.equality(other)])


def test_each_function_is_called_once_at_the_start() -> None:
    _, f, g = counted()
    assert (f.calls, g.calls) == (1, 1)


def test_values_at_the_start_are_known() -> None:
    problem, f, g = counted()
    problem.objective(START)
    problem.constraints(START)
    assert (f.calls, g.calls) == (1, 1)


@pytest.mark.parametrize("order", ORDERS[:3])
def test_each_function_is_called_once_at_a_point(order: str) -> None:
    problem, f, g = counted()
    f.calls = g.calls = 0
    steps: dict[str, Any] = {
        "objective": problem.objective,
        "gradient": problem.gradient,
        "constraints": problem.constraints,
        "jacobian": problem.jacobian,
        "hessian": lambda x: problem.hessian(x, np.ones(N), 1.0),
    }
    for what in order.split():
        steps[what](POINTS[0])
    assert (f.calls, g.calls) == (1, 1)


def test_another_hessian_at_a_point_calls_nothing() -> None:
    problem, f, g = counted()
    f.calls = g.calls = 0
    for factor in (1.0, 0.0, 0.5):
        problem.hessian(POINTS[0], np.full(N, factor), factor)
    assert (f.calls, g.calls) == (1, 1)


def test_a_value_alone_calls_no_constraint() -> None:
    problem, f, g = counted()
    f.calls = g.calls = 0
    problem.objective(POINTS[0])
    assert (f.calls, g.calls) == (1, 0)


def test_whoever_asks_for_a_value_again_has_the_function_run() -> None:
    problem, f, _ = counted()
    f.calls = 0
    problem.objective(POINTS[0])
    problem.objective(POINTS[0])
    assert f.calls == 2


@pytest.mark.parametrize("name", [name for name in APART if name not in ("a compiled objective", "a program")])
def test_evaluations_are_calls_also_where_functions_had_to_be_recorded_apart(name: str) -> None:
    f, g = APART[name]
    objective = Counted(f)
    problem = problem_of(objective, [g])
    for x in POINTS:
        problem.objective(x)
    assert problem.evaluations == objective.calls


@pytest.fixture
def stand_in(monkeypatch: pytest.MonkeyPatch) -> None:
    """A solver that is always there."""
    monkeypatch.setitem(sys.modules, "cyipopt", interior_point_solver)


def later_without_curvature(after: int) -> Counted:
    """The same function all the time, which from some call on records what cannot be together."""

    def function(x: Any) -> Any:
        return x * x if made.calls <= after else np.diag(np.linalg.inv(np.diag(1.0 / x))) * x

    made = Counted(function)
    return made


@pytest.mark.usefixtures("stand_in")
@pytest.mark.parametrize("after", [2, 4, 7])
def test_functions_that_have_to_be_recorded_apart_on_the_way(after: int) -> None:
    f = Counted(rosenbrock)
    limits = {"method": "ipopt", "tol": 1e-9}
    found = optimize.minimize(f, np.full(4, 0.6), constraints=optimize.between(later_without_curvature(after), -1.0, 0.8), **limits)
    expected = optimize.minimize(rosenbrock, np.full(4, 0.6), constraints=optimize.between(lambda x: x * x, -1.0, 0.8), **limits)
    assert found.success
    np.testing.assert_allclose(found.x, expected.x, atol=1e-5)
    assert found.nfev == f.calls - 1  # one asks what it depends on


class Elsewhere:
    """A solver that ends at a point where it asked for nothing."""

    CyIpoptEvaluationError = ArithmeticError

    def Problem(self, n: int, m: int, *_: Any) -> Any:
        self.add_option = lambda *_: None
        self.solve = lambda x: (x + 1.0, {"status": 0, "status_msg": b"", "mult_g": np.zeros(m)} | self._multipliers(n))
        return self

    @staticmethod
    def _multipliers(n: int) -> dict[str, Any]:
        return {"mult_x_L": np.zeros(n), "mult_x_U": np.zeros(n)}


def test_a_function_that_has_to_be_recorded_apart_where_it_ends(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(interior_point, "ipopt_library", Elsewhere)
    later = later_without_curvature(1)
    found = optimize.minimize(lambda x: later(x).sum(), np.ones(4), method="ipopt")
    assert found.fun == pytest.approx(16.0)
    np.testing.assert_allclose(found.jac, 4.0, rtol=1e-12)


def test_errors_of_functions_that_are_recorded_apart_come_alone() -> None:
    def f(x: Any) -> Any:
        if made.calls > 1:
            raise ArithmeticError("again")
        return np.linalg.det(np.outer(x, x) + A)

    made = Counted(f)
    with pytest.raises(ArithmeticError, match="again") as caught:
        problem_of(made, [])
    assert caught.value.__context__ is None


@pytest.mark.usefixtures("stand_in")
@pytest.mark.parametrize("which", ["objective", "first", "second", "nothing"])
def test_nothing_stays_on_the_tape(which: str) -> None:
    def failing(name: str, function: Function) -> Function:
        def called(x: Any) -> Any:
            if name == which and made.calls > 4:
                raise ArithmeticError("later")
            return function(x)

        made = Counted(called)
        return made

    before = settled_rows()
    try:
        optimize.minimize(
            failing("objective", rosenbrock),
            np.full(4, 0.6),
            method="ipopt",
            constraints=[
                optimize.equality(failing("first", lambda x: x[:1] ** 2 - 0.3)),
                optimize.equality(failing("second", lambda x: x[1:2] - 0.3)),
            ],
        )
        assert which == "nothing"
    except ArithmeticError:
        assert which != "nothing"
    gc.collect()
    assert settled_rows() == before


@pytest.mark.usefixtures("stand_in")
def test_a_constraint_of_a_tracked_array() -> None:
    def nearest(p: Any) -> Any:
        constraint = optimize.equality(lambda x: x.sum() - 2.0 * p)
        return optimize.minimize(lambda x: (x**2).sum(), np.ones(4), method="ipopt", tol=1e-9, constraints=constraint).x

    np.testing.assert_allclose(tg.jacobian(nearest)(1.5), 0.5, rtol=1e-6)


def test_a_function_that_is_nan_at_the_start() -> None:
    with pytest.raises(ValueError, match="nan at x0"):
        problem_of(lambda x: rosenbrock(x) * np.nan, [lambda x: x**3])


def test_nan_later_is_a_value() -> None:
    problem = problem_of(lambda x: np.sqrt(x).sum(), [lambda x: x**3])
    with np.errstate(invalid="ignore"):
        assert np.isnan(problem.objective(-START))
    np.testing.assert_allclose(problem.constraints(-START), -(START**3), rtol=1e-14)
