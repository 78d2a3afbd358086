"""Bounds and constraints that mean nothing are refused by name, where a solver would take them for something else."""

import sys
from collections.abc import Callable
from typing import Any

import interior_point_solver
import numpy as np
import pytest
from scipy.optimize import Bounds

import tapegrad as tg

optimize: Any = tg.optimize
inf, nan = np.inf, np.nan


def distance(x: Any) -> Any:
    return ((x - 3.0) ** 2).sum()


@pytest.fixture(autouse=True)
def _stand_in(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "cyipopt", interior_point_solver)


def by_ipopt(bounds: Any = None, constraints: Any = ()) -> Any:
    return optimize.minimize(distance, [0.5, 0.5], method="ipopt", bounds=bounds, constraints=constraints)


@pytest.mark.parametrize(
    ("bounds", "kind", "message"),
    [
        ([(0, 1)], ValueError, r"bounds are 1 pair for 2 variables.*Bounds\(low, high\)"),
        (np.array([[0.0, 1.0]]), ValueError, "bounds are 1 pair for 2 variables"),
        ([(0, 1)] * 3, ValueError, "bounds are 3 pairs for 2 variables"),
        ([], ValueError, "bounds are 0 pairs for 2 variables"),
        ([(0, 1, 2), (0, 1)], ValueError, r"bounds\[0\] has 3 numbers"),
        (np.ones((2, 2)) * 1j, TypeError, r"bounds\[0\] is .*complex numbers have no order"),
        ([(0, 1), {0, 1}], TypeError, r"bounds\[1\] is \{0, 1\}, which is no pair"),
        ([(0, 1), (0, 10**400)], ValueError, r"bounds\[1\] is \(0, 1.*too large"),
        ([(0, 1), (2, 1)], ValueError, r"bounds\[1\] are \(2, 1\): An upper bound is less than the corresponding lower bound"),
        ([(2, 1), (2, 1)], ValueError, r"bounds\[0\] are \(2, 1\) \(and 1 more\)"),
        ([(inf, inf), (0, 1)], ValueError, r"bounds\[0\] are \(inf, inf\): no number is between them"),
        ([(0, 1), (None, -inf)], ValueError, r"bounds\[1\] are \(-inf, -inf\): no number is between them"),
        ([(nan, 1), (0, 1)], ValueError, r"bounds\[0\] are \(nan, 1\): nan is no limit"),
        ([(None, nan), (0, 1)], ValueError, r"bounds\[0\] are \(-inf, nan\): nan is no limit"),
        ((0, 1), TypeError, r"bounds\[0\] is 0, which is no pair"),
        ([None, (0, 1)], TypeError, r"bounds\[0\] is None, which is no pair"),
        (3.0, TypeError, "bounds are 3.0"),
        ([("low", 1), (0, 1)], ValueError, r"bounds\[0\] is \('low', 1\): could not convert"),
        ([(0, 1), (1j, 1)], TypeError, r"bounds\[1\] is \(1j, 1\)"),
        (Bounds([0] * 3, [1] * 3), ValueError, r"shapes \(3,\) and \(3,\) for 2 variables.*shape \(2,\)"),
        (Bounds([0, 2], [1, 1]), ValueError, r"bounds\[1\] are \(2, 1\)"),
        (Bounds([nan, 0], 1), ValueError, r"bounds\[0\] are \(nan, 1\)"),
        (Bounds(inf, inf), ValueError, r"bounds\[0\] are \(inf, inf\)"),
    ],
)
def test_bounds_that_are_none_are_refused_by_name(bounds: Any, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        by_ipopt(bounds)


@pytest.mark.parametrize(
    ("bounds", "minimum"),
    [
        (None, [3.0, 3.0]),
        ([(None, 1), (0, None)], [1.0, 3.0]),
        ([(-inf, 1), [0, inf]], [1.0, 3.0]),
        (np.array([[0, 1], [0, 2]]), [1.0, 2.0]),
        (((0, 1), (0, 2)), [1.0, 2.0]),
        (Bounds([0, 0], [1, 2]), [1.0, 2.0]),
        (Bounds(0, 1), [1.0, 1.0]),
        (Bounds(-inf, [1, inf]), [1.0, 3.0]),
    ],
)
def test_bounds_in_each_form_are_taken(bounds: Any, minimum: list[float]) -> None:
    np.testing.assert_allclose(by_ipopt(bounds).x, minimum, atol=1e-3)


@pytest.mark.parametrize("method", ["ipopt", "SLSQP", "trust-constr"])
def test_bounds_that_can_be_looked_at_once_are_taken(method: str) -> None:
    found = optimize.minimize(distance, [0.5, 0.5], method=method, bounds=zip([0, 0], [1, 2], strict=True))
    np.testing.assert_allclose(found.x, [1.0, 2.0], atol=1e-3)


def test_tracked_bounds_are_found_in_an_iterator() -> None:
    low = tg.tensor(0.0, requires_grad=True)
    with pytest.raises(NotImplementedError, match="bounds that are tracked tensors"):
        optimize.minimize(distance, [0.5, 0.5], method="SLSQP", bounds=zip([low, 0.0], [1.0, 1.0], strict=True))


@pytest.mark.parametrize(
    ("limits", "message"),
    [((2.0, 1.0), r"\(2, 1\): An upper"), ((nan, 1.0), r"\(nan, 1\): nan is no"), ((inf, inf), r"\(inf, inf\): no number")],
)
def test_limits_of_constraints_that_no_number_keeps_to_are_refused(limits: tuple[float, float], message: str) -> None:
    with pytest.raises(ValueError, match=r"limits of constraint numbers\[0\] are " + message):
        by_ipopt(constraints=optimize.between(lambda x: x.sum(), *limits))


@pytest.mark.parametrize("method", ["ipopt", "SLSQP", "trust-constr", "highs"])
@pytest.mark.parametrize(
    ("constraints", "kind", "message"),
    [
        ([3], TypeError, r"constraints\[0\] is 3, which is no constraint.*tg.optimize.equality"),
        (3, TypeError, "constraints is 3, which is no constraint"),
        (["a"], TypeError, r"constraints\[0\] is 'a', which is no constraint"),
        ([None], TypeError, r"constraints\[0\] is None"),
        ([optimize.equality(distance), [Bounds(0, 1)]], TypeError, r"constraints\[1\]\[0\] is Bounds"),
        (distance, TypeError, "which is no constraint. A function does not say by itself"),
        ({}, KeyError, "constraints is a dict without 'type'"),
        ([{"type": "eq"}], KeyError, r"constraints\[0\] is a dict without 'fun'"),
        ([{"type": "equal", "fun": distance}], ValueError, r"constraints\[0\] has the type 'equal'; it is 'eq' or 'ineq'"),
    ],
)
def test_what_is_no_constraint_is_refused_by_name(method: str, constraints: Any, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        optimize.minimize(distance, [0.5, 0.5], method=method, constraints=constraints)


@pytest.mark.parametrize("method", ["ipopt", "SLSQP"])
@pytest.mark.parametrize(
    "given",
    [
        lambda: {"type": "EQ", "fun": lambda x: x[0] - 1.0},
        lambda: (one for one in [optimize.equality(lambda x: x[0] - 1.0)]),
    ],
    ids=["a dict in capitals", "a generator"],
)
def test_equalities_in_other_forms_hold(method: str, given: Callable[[], Any]) -> None:
    found = optimize.minimize(distance, [0.5, 0.5], method=method, constraints=given())
    np.testing.assert_allclose(found.x, [1.0, 3.0], atol=1e-3)


def test_an_equality_in_capitals_is_one_for_derivatives() -> None:
    def solution(c: Any) -> Any:
        given = {"type": "EQ", "fun": lambda x: x[0] - c}
        return optimize.minimize(lambda x: ((x - c * 3.0) ** 2).sum(), [0.5, 0.5], method="SLSQP", constraints=given, tol=1e-12).x

    np.testing.assert_allclose(tg.jacobian(solution)(1.0), [1.0, 3.0], atol=1e-6)


def test_constraints_may_be_none() -> None:
    found = optimize.minimize(distance, [0.5, 0.5], method="ipopt", constraints=None)
    np.testing.assert_allclose(found.x, 3.0, atol=1e-3)
