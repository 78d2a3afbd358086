"""IPOPT gets the derivatives that dense drivers give; with a stand-in for it everywhere, and itself where it is installed."""

import importlib.util
import sys
from typing import Any

import interior_point_solver
import numba
import numpy as np
import pytest
from scipy.optimize import LinearConstraint, NonlinearConstraint
from scipy.sparse import coo_array, csr_array

import tapegrad as tg
from tapegrad.optimize import ipopt_interface
from tapegrad.optimize.interior_point import Problem
from tapegrad.optimize.packing import Packing

optimize: Any = tg.optimize


def rosenbrock(x: Any) -> Any:
    return (100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2).sum()


@numba.njit  # type: ignore[untyped-decorator]
def compiled_rosenbrock(x: Any) -> Any:
    total = 0.0
    for k in range(len(x) - 1):
        total += 100.0 * (x[k + 1] - x[k] ** 2) ** 2 + (1.0 - x[k]) ** 2
    return total


def products(x: Any) -> Any:
    return x[1:] * x[:-1]


@numba.njit  # type: ignore[untyped-decorator]
def compiled_products(x: Any) -> Any:
    return x[1:] * x[:-1]


CONSTRAINTS = {
    "ours": optimize.between(products, -1.0, np.arange(1.0, 5.0)),
    "compiled": optimize.equality(compiled_products),
    "a dict": {"type": "ineq", "fun": lambda x, c: np.sin(x[:2]) * c, "args": (2.0,)},
    "SciPy's nonlinear": NonlinearConstraint(lambda x: x[0] ** 3 * x[4], 0.0, 1.0),
    "SciPy's linear": LinearConstraint(np.arange(10.0).reshape(2, 5), 0.0, [1.0, np.inf]),
    "SciPy's linear, sparse": LinearConstraint(csr_array(np.eye(5)), -1.0, 1.0),
    "several": [optimize.equality(products), optimize.inequality(lambda x: np.stack([x[0] * x[4], x.sum()]))],
    "none": (),
}
FUNCTIONS: dict[str, Any] = {
    "ours": products,
    "compiled": products,
    "a dict": lambda x: np.sin(x[:2]) * 2.0,
    "SciPy's nonlinear": lambda x: np.stack([x[0] ** 3 * x[4]]),
    "SciPy's linear": lambda x: np.arange(10.0).reshape(2, 5) @ x,
    "SciPy's linear, sparse": lambda x: x * 1.0,
    "several": lambda x: np.concatenate([products(x), np.stack([x[0] * x[4], x.sum()])]),
    "none": lambda x: x[:0],
}


@pytest.mark.parametrize("f", [rosenbrock, compiled_rosenbrock], ids=["Python", "compiled"])
@pytest.mark.parametrize("name", CONSTRAINTS)
def test_entries_are_those_of_dense_derivatives(f: Any, name: str) -> None:
    start, x = np.ones(5), np.array([0.3, -1.2, 0.7, 2.0, -0.4])
    packing = Packing(start, "minimize")
    problem = Problem(f, packing, CONSTRAINTS[name])
    g = FUNCTIONS[name]
    m = len(problem.lower)
    multipliers = np.linspace(-1.0, 2.0, m)

    assert problem.objective(x) == pytest.approx(rosenbrock(x))
    np.testing.assert_allclose(problem.gradient(x), tg.grad(rosenbrock)(x), rtol=1e-12)
    np.testing.assert_allclose(problem.constraints(x), g(x), rtol=1e-12)
    jacobian = coo_array((problem.jacobian(x), problem.jacobianstructure()), shape=(m, 5)).toarray()
    np.testing.assert_allclose(jacobian, tg.jacobian(g)(x), rtol=1e-12, atol=1e-14)
    lower = coo_array((problem.hessian(x, multipliers, 0.5), problem.hessianstructure()), shape=(5, 5)).toarray()
    dense = tg.hessian(lambda x: 0.5 * rosenbrock(x) + (multipliers * g(x)).sum())(x)
    np.testing.assert_allclose(lower, np.tril(dense), rtol=1e-10, atol=1e-12)


def test_limits_are_those_of_the_constraints() -> None:
    packing = Packing(np.ones(5), "minimize")
    problem = Problem(rosenbrock, packing, [CONSTRAINTS["ours"], CONSTRAINTS["SciPy's linear"]])
    np.testing.assert_array_equal(problem.lower, [-1.0, -1.0, -1.0, -1.0, 0.0, 0.0])
    np.testing.assert_array_equal(problem.upper, [1.0, 2.0, 3.0, 4.0, 1.0, 2e19])


def test_limits_of_another_number_are_refused() -> None:
    packing = Packing(np.ones(5), "minimize")
    with pytest.raises(ValueError, match="a constraint gives 4 numbers, but has 3 limits"):
        Problem(rosenbrock, packing, optimize.between(products, np.zeros(3), 1.0))


def test_derivatives_by_differences_are_refused() -> None:
    packing = Packing(np.ones(5), "minimize")
    given = {"type": "eq", "fun": products, "jac": "2-point"}
    with pytest.raises(NotImplementedError, match="leave jac out of the dict"):
        Problem(rosenbrock, packing, given)


@pytest.fixture(params=["stand-in", *["IPOPT", "cyipopt"] * (importlib.util.find_spec("cyipopt") is not None)])
def ipopt(request: pytest.FixtureRequest, monkeypatch: pytest.MonkeyPatch) -> str:
    """What solves the problem."""
    name: str = request.param
    if name == "stand-in":
        monkeypatch.setitem(sys.modules, "cyipopt", interior_point_solver)
    if name == "cyipopt":
        monkeypatch.setattr(ipopt_interface, "_direct", lambda: None)
    return name


@pytest.mark.usefixtures("ipopt")
def test_minimum_without_constraints() -> None:
    found = optimize.minimize(rosenbrock, np.full(6, 0.5), method="ipopt", tol=1e-9)
    np.testing.assert_allclose(found.x, 1.0, atol=1e-6)
    assert found.success
    assert len(found.history) == found.nit + 1
    assert found.history[-1].objective == pytest.approx(found.fun, abs=1e-9)


@pytest.mark.usefixtures("ipopt")
def test_hock_and_schittkowski_71() -> None:
    """W. Hock, K. Schittkowski, "Test examples for nonlinear programming codes", 1981, number 71, with its published solution."""
    found = optimize.minimize(
        lambda p: p["a"][0] * p["d"] * (p["a"][0] + p["a"][1] + p["a"][2]) + p["a"][2],
        {"a": np.array([1.0, 5.0, 5.0]), "d": 1.0},
        method="ipopt",
        tol=1e-9,
        bounds=[(1.0, 5.0)] * 4,
        constraints=[
            optimize.inequality(lambda p: p["a"].prod() * p["d"] - 25.0),
            optimize.equality(lambda p: (p["a"] ** 2).sum() + p["d"] ** 2 - 40.0),
        ],
    )
    np.testing.assert_allclose(found.x["a"], [1.0, 4.74299964, 3.82114998], atol=1e-4)
    assert found.x["d"] == pytest.approx(1.37940831, abs=1e-4)
    assert found.fun == pytest.approx(17.0140173, abs=1e-4)


@pytest.mark.usefixtures("ipopt")
def test_entries_that_come_up_on_the_way_are_added() -> None:
    def f(x: Any) -> Any:
        return ((x - 3.0) ** 2).sum() + (x[0] * x[1] if x[0] > 1.0 else 0.0)

    found = optimize.minimize(f, np.zeros(3), method="ipopt", tol=1e-9)
    np.testing.assert_allclose(found.x, [2.0, 2.0, 3.0], atol=1e-5)


@pytest.mark.usefixtures("ipopt")
def test_exceptions_of_functions_are_raised() -> None:
    def f(x: Any) -> Any:
        if x[0] > 0.5:
            raise ArithmeticError("too far")
        return ((x - 3.0) ** 2).sum()

    with pytest.raises(ArithmeticError, match="too far"):
        optimize.minimize(f, np.zeros(3), method="ipopt")


@pytest.mark.usefixtures("ipopt")
def test_callbacks_may_end_it() -> None:
    seen: list[Any] = []

    def callback(x: Any) -> None:
        seen.append(x)
        if len(seen) == 2:
            raise StopIteration

    found = optimize.minimize(rosenbrock, np.full(6, 0.5), method="ipopt", callback=callback)
    assert not found.success
    assert len(seen) == 2
    np.testing.assert_array_equal(found.x, seen[-1])


@pytest.mark.usefixtures("ipopt")
def test_callbacks_in_scipys_newer_form() -> None:
    seen: list[Any] = []

    def callback(intermediate_result: Any) -> None:
        seen.append((intermediate_result.nit, intermediate_result.fun))

    found = optimize.minimize(rosenbrock, np.full(3, 0.5), method="ipopt", callback=callback)
    assert [number for number, _ in seen] == list(range(1, found.nit + 1))
    assert seen[-1][1] == pytest.approx(found.fun, abs=1e-6)


@pytest.mark.usefixtures("ipopt")
def test_without_second_derivatives() -> None:
    options = {"hessian_approximation": "limited-memory"}
    found = optimize.minimize(rosenbrock, np.full(3, 0.5), method="ipopt", tol=1e-9, options=options)
    np.testing.assert_allclose(found.x, 1.0, atol=1e-5)
    assert found.nhev == 0


@pytest.mark.usefixtures("ipopt")
def test_minima_stay_differentiable() -> None:
    def nearest(p: Any) -> Any:
        return optimize.minimize(lambda x, p: ((x - p) ** 2).sum() + x[0] ** 4, np.ones(2), (p,), method="ipopt", tol=1e-9).x

    x = nearest(2.0)[0]
    np.testing.assert_allclose(tg.jacobian(nearest)(2.0), [1.0 / (1.0 + 6.0 * x**2), 1.0], rtol=1e-6)


@pytest.mark.usefixtures("ipopt")
@pytest.mark.filterwarnings("ignore")
def test_options_that_it_does_not_take() -> None:
    with pytest.raises(ValueError, match="does not take the option nonsense=3"):
        optimize.minimize(rosenbrock, np.ones(3), method="ipopt", options={"nonsense": 3})


@pytest.mark.usefixtures("ipopt")
def test_a_function_that_is_nan_at_the_start() -> None:
    with pytest.raises(ValueError, match="nan at x0"):
        optimize.minimize(lambda x: np.log(x).sum() * np.nan, np.ones(3), method="ipopt")


def test_where_it_is_not_installed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cyipopt", None)
    with pytest.raises(ModuleNotFoundError, match=r"pip install 'tapegrad\[ipopt\]'"):
        optimize.minimize(rosenbrock, np.ones(3), method="ipopt")
