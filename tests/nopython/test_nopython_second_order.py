"""Second derivatives and products in both directions of compiled functions, against gradients and passes over tensors."""

from __future__ import annotations

import copy
import importlib
import itertools
import math
from fractions import Fraction
from typing import Any

import compiled_arrays
import compiled_control
import compiled_views
import numba
import numpy as np
import pytest
from compiled_case import Case
from linked_numba import numbas_functions_are_linked  # noqa: F401 - a fixture
from test_nopython_rules import DOMAINS, FUNCTIONS, compiled  # noqa: F401
from unoptimised_numba import code_is_not_optimised  # noqa: F401 - a fixture

import tapegrad as tg
from tapegrad.nopython.derivatives import Recording
from tapegrad.nopython.recorder import recorder

NAMES = {
    "arithmetic", "newtons_method", "calls", "generator", "tuples", "elements_accumulated", "extremes", "a_strided_argument",
    "the_argument_is_overwritten",
}  # fmt: skip
TABLES = (compiled_control.TABLE, compiled_arrays.TABLE, compiled_views.TABLE)
CASES = [case for table in TABLES for case in table if repr(case) in NAMES]


def recording(f: Any, args: tuple[Any, ...], curved: bool = False, direction: Any = None) -> Recording:
    record = recorder(f, (0,))
    return Recording(record, record.arguments(copy.deepcopy(args), {}), curved, direction=direction)


def along(f: Any, args: tuple[Any, ...], direction: np.ndarray) -> np.ndarray:
    """Product of the Hessian with a direction that is known before the function runs."""
    return recording(f, args, curved=True, direction=direction).curve_along()


def moved(case: Case, direction: np.ndarray) -> Any:
    point = case.args[0]
    if isinstance(point, float):
        return point + float(direction[0])
    copied = np.copy(point, order="K")
    copied += direction.reshape(point.shape)
    return copied


@pytest.mark.parametrize("case", CASES, ids=repr)
def test_products_agree_with_gradients_around_the_point(case: Case) -> None:
    directions = np.random.default_rng(0).standard_normal((np.size(case.args[0]), 3))
    first, second = recording(case.function, case.args), recording(case.function, case.args, curved=True)
    gradient = first.gradient()
    np.testing.assert_allclose(first.push(directions)[0], gradient @ directions, rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(first.push(directions[:, :1])[0], gradient @ directions[:, :1], rtol=1e-10, atol=1e-12)
    np.testing.assert_allclose(first.pull(np.array([[1.0, -2.0]])), np.stack([gradient, -2.0 * gradient], axis=1), rtol=1e-10)
    curved = second.curve(directions)
    np.testing.assert_allclose(second.curve(directions[:, :1]), curved[:, :1], rtol=1e-9, atol=1e-11)
    np.testing.assert_allclose(along(case.function, case.args, directions[:, 0]), curved[:, 0], rtol=1e-9, atol=1e-11)
    hessian = second.curve(np.eye(first.inputs))
    np.testing.assert_allclose(hessian, hessian.T, rtol=1e-9, atol=1e-10)
    np.testing.assert_allclose(hessian @ directions, curved, rtol=1e-8, atol=1e-9)
    step = 1e-5 * directions[:, 0]
    ahead, behind = (recording(case.function, (moved(case, s), *case.args[1:])).gradient() for s in (step, -step))
    np.testing.assert_allclose(curved[:, 0], (ahead - behind) / 2e-5, rtol=1e-6, atol=1e-6)


def test_second_partials_of_every_function(compiled: tuple[Any, np.ndarray]) -> None:  # noqa: F811
    f, points = compiled
    points = points + np.array([0.0, 0.01])  # beside the kinks of maxima
    wrong = []
    for k, (text, rule) in enumerate(FUNCTIONS):
        hessian = recording(f, (points[k], k), curved=True).curve(np.eye(2))
        for which in range(2):
            step = np.zeros(2)
            step[which] = 1e-6
            ahead, behind = (recording(f, (points[k] + s, k)).gradient() for s in (step, -step))
            if not np.allclose(hessian[which], (ahead - behind) / 2e-6, rtol=1e-6, atol=1e-7):
                wrong.append((text, DOMAINS[rule], hessian[which], (ahead - behind) / 2e-6))
    assert not wrong


def mixed(x):
    y = np.sin(x[0] * x[1]) * x[2] / (x[0] + x[3]) - x[1] * x[1] * x[0]
    z = y * y * y + np.exp(x[2] - y) * x[0] - (x[3] - x[3] * x[2]) ** 2
    return (x[0] + x[0]) * z * z + np.sqrt(x[1]) * np.log(x[0] * z + 5.0) + x[2] ** 3 * x[3]


def chained(x):
    y = x[0]
    for k in range(1, len(x)):
        y = np.tanh(y * x[k] + x[k - 1]) * y + x[k] * x[k]
    return y


X = np.array([1.3, 0.7, 1.1, 0.9])


@pytest.mark.parametrize("f", [mixed, chained], ids=lambda f: f.__name__)
def test_hessian_is_that_of_the_function_on_tensors(f: Any) -> None:
    np.testing.assert_allclose(tg.hessian(numba.njit(f))(X), tg.hessian(f)(X), rtol=1e-11, atol=1e-11)


@numba.njit
def pairs(x, i, j):
    return x[i] * x[j] * x[j] + (x[i] + 1.0) * (x[j] - 1.0)


def test_two_leaves_that_are_one_element_only_when_it_runs() -> None:
    # x**3 + x**2 - 1
    second = recording(pairs, (X, 1, 1), curved=True)
    expected = np.zeros(4)
    expected[1] = 6.0 * X[1] + 2.0
    np.testing.assert_allclose(np.diag(second.curve(np.eye(4))), expected)
    np.testing.assert_allclose(second.curve(np.ones((4, 1)))[:, 0], expected)
    np.testing.assert_allclose(along(pairs, (X, 1, 1), np.ones(4)), expected)


def test_two_elements() -> None:
    second = recording(pairs, (X, 0, 2), curved=True)
    expected = np.zeros((4, 4))
    expected[2, 2] = 2.0 * X[0]
    expected[0, 2] = expected[2, 0] = 2.0 * X[2] + 1.0
    np.testing.assert_allclose(second.curve(np.eye(4)), expected)


def quartic_sum(x):
    s = 0.0
    for i in range(len(x)):
        s = s + x[i] ** 4 * x[(i + 1) % len(x)]
    return s


@pytest.mark.parametrize("count", [2, 8, 9, 32, 33, 41, 70])
def test_any_number_of_directions(count: int) -> None:
    x, directions = np.linspace(0.5, 1.5, 9), np.random.default_rng(count).standard_normal((9, count))
    hessian = np.diag(12.0 * x**2 * np.roll(x, -1))
    for i in range(9):
        hessian[i, (i + 1) % 9] += 4.0 * x[i] ** 3
        hessian[(i + 1) % 9, i] += 4.0 * x[i] ** 3
    second = recording(compiled_quartic_sum, (x,), curved=True)
    np.testing.assert_allclose(second.curve(directions), hessian @ directions, rtol=1e-11)
    gradient = 4.0 * x**3 * np.roll(x, -1) + np.roll(x, 1) ** 4
    np.testing.assert_allclose(second.push(directions)[0], gradient @ directions, rtol=1e-11)
    np.testing.assert_allclose(second.pull(directions[:1]), np.outer(gradient, directions[0]), rtol=1e-11)


compiled_quartic_sum = numba.njit(quartic_sum)


@numba.njit
def sums_and_products(x):
    m = x[:4].reshape(2, 2) @ x[2:].reshape(2, 2)
    norm = np.linalg.norm(x[1:])
    return np.dot(x, x[::-1].copy()) * m.sum() + norm * norm * norm + np.mean(x * x) * np.sum(x) + m[0, 1] * norm


def by_loops(x):
    m = [[x[2 * i] * x[2 + j] + x[2 * i + 1] * x[4 + j] for j in range(2)] for i in range(2)]
    dot, squares, mean, total = 0.0, 0.0, 0.0, 0.0
    for k in range(6):
        dot = dot + x[k] * x[5 - k]
        squares = squares + (x[k] * x[k] if k else 0.0)
        mean = mean + x[k] * x[k] / 6.0
        total = total + x[k]
    norm = np.sqrt(squares)
    return dot * (m[0][0] + m[0][1] + m[1][0] + m[1][1]) + norm * norm * norm + mean * total + m[0][1] * norm


def test_rows_of_sums_and_products_have_second_partials() -> None:
    x = np.array([1.3, 0.7, 1.1, 0.9, -0.4, 0.6])
    hessian = tg.hessian(by_loops)(x)
    np.testing.assert_allclose(tg.hessian(sums_and_products)(x), hessian, rtol=1e-11)
    np.testing.assert_allclose([tg.hvp(sums_and_products, x, v) for v in np.eye(6)], hessian, rtol=1e-11)


@pytest.mark.parametrize("size", [1e-150, 1.0, 1e150])
def test_norm_of_large_and_small_vectors(size: float) -> None:
    x = size * np.array([3.0, -4.0, 12.0])
    unit = x / (13.0 * size)
    hessian = tg.hessian(numba.njit(lambda x: np.linalg.norm(x)))(x)
    np.testing.assert_allclose(hessian * size, (np.eye(3) - np.outer(unit, unit)) / 13.0, rtol=1e-12)


def test_norm_at_the_origin_has_no_derivatives() -> None:
    norm = numba.njit(lambda x: np.linalg.norm(x) + x[0] * x[0])
    np.testing.assert_array_equal(tg.hessian(norm)(np.zeros(2)), [[2.0, 0.0], [0.0, 0.0]])
    np.testing.assert_array_equal(tg.hvp(norm, np.zeros(2), np.ones(2)), [2.0, 0.0])


def test_spectral_norm_has_the_second_derivative_that_it_has_on_tensors() -> None:
    def norm(x):
        return np.linalg.norm(x, 2)

    f, point = numba.njit(norm), np.array([[2.0, 1.0], [0.0, 3.0]])
    expected = tg.hessian(norm)(point)
    np.testing.assert_allclose(tg.hessian(f)(point), expected, rtol=1e-12)
    np.testing.assert_allclose(tg.hvp(f, point, point), np.tensordot(expected, point), rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize("x", [0.0, 1e-9, 0.3, 0.32, 2.5])
def test_cardinal_sine(x: float) -> None:
    f = numba.njit(lambda x: np.sinc(x[0]) * x[1])
    point = np.array([x, 2.0])
    np.testing.assert_allclose(tg.hessian(f)(point), tg.hessian(lambda x: tg.sinc(x[0]) * x[1])(point), rtol=1e-13, atol=1e-15)
    assert tg.value_and_grad(f)(point)[0] == f(point)


def test_a_recording_that_lives_longer_than_the_module(monkeypatch: pytest.MonkeyPatch) -> None:
    module = importlib.import_module("tapegrad.nopython.tape.column_memory")
    held = recording(compiled_quartic_sum, (X,))
    monkeypatch.setattr(module, "KNOWN", None)  # as at the end of the process
    monkeypatch.setattr(module, "IDLE", None)
    held.__del__()
    held.columns = None


def test_absolute_zero_in_second_order() -> None:
    # The second partial of the root is infinite at 0, and the branch is multiplied by 0.
    f = numba.njit(lambda x: 0.0 * math.sqrt(x[0]) + x[0] * x[0])
    np.testing.assert_array_equal(tg.hessian(f)(np.zeros(1)), [[2.0]])
    assert tg.hvp(f, np.zeros(1), np.ones(1)).tolist() == [2.0]
    assert recording(f, (np.zeros(1),), curved=True).curve(np.ones((1, 1))).tolist() == [[2.0]]


def test_infinite_partials_meet_zero_lanes() -> None:
    f = numba.njit(lambda x: np.array([math.sqrt(x[0]), x[1]]))
    jacobian = tg.jacobian(f, mode="forward")(np.array([0.0, 1.0]))
    assert jacobian.tolist() == [[np.inf, 0.0], [0.0, 1.0]]
    assert tg.jacobian(f, mode="reverse")(np.array([0.0, 1.0])).tolist() == jacobian.tolist()


@numba.njit
def long_sum(x, n):
    s = 0.0
    for _ in range(n):
        s += x[0] * x[1] * x[1]
    return s


def test_columns_of_second_partials_grow_and_are_counted() -> None:
    n, x = 30_000, np.array([0.5, 2.0])
    tg.free_tape_memory()
    held = tg.tape_memory()
    recording(long_sum, (x, n)).close()
    without = tg.tape_memory()
    second = recording(long_sum, (x, n), curved=True)
    assert tg.tape_memory() >= without + 2 * n * 20
    np.testing.assert_allclose(second.curve(np.eye(2)), n * np.array([[0.0, 4.0], [4.0, 1.0]]), rtol=1e-9)
    second.close()
    tg.free_tape_memory()
    assert tg.tape_memory() == held


def test_columns_of_a_direction_grow_and_are_counted() -> None:
    n, x, v = 30_000, np.array([0.5, 2.0]), np.array([1.0, -1.0])
    tg.free_tape_memory()
    recording(long_sum, (x, n)).close()
    without = tg.tape_memory()
    second = recording(long_sum, (x, n), curved=True, direction=v)
    assert tg.tape_memory() >= without + 3 * n * 8
    np.testing.assert_allclose(second.curve_along(), n * np.array([-4.0, 3.0]), rtol=1e-9)
    second.close()
    np.testing.assert_allclose(
        recording(long_sum, (x, n), curved=True).curve(v[:, None])[:, 0], n * np.array([-4.0, 3.0]), rtol=1e-9
    )
    tg.free_tape_memory()


def test_infinite_second_partials_do_not_reach_other_inputs() -> None:
    f = numba.njit(lambda x: x[0] ** 1.5 + x[1] * x[1] * x[2])
    x, v = np.array([0.0, 2.0, 3.0]), np.array([0.0, 1.0, 1.0])
    assert tg.hvp(f, x, v).tolist() == [0.0, 10.0, 4.0]
    assert tg.hvp(f, x, np.ones(3)).tolist() == [np.inf, 10.0, 4.0]


def test_a_product_leaves_nothing_behind_for_the_next_one() -> None:
    f = numba.njit(lambda x: x[0] ** 1.5 * x[2] + x[1] * x[1] * x[2] + x[3])
    v, points = np.array([1.0, 2.0, -1.0, 3.0]), [np.array([1.0, 2.0, 3.0, 4.0]), np.array([0.0, 2.0, 3.0, np.inf])]
    shorter = numba.njit(lambda x: x[0] * x[0] * x[1])
    for x in points * 3:
        fresh = recording(f, (x,), curved=True).curve(v[:, None])[:, 0]
        np.testing.assert_array_equal(tg.hvp(f, x, v), fresh)
        assert tg.hvp(shorter, x[:2], v[:2]).tolist() == [2.0 * (v[0] * x[1] + v[1] * x[0]), 2.0 * v[0] * x[0]]


def minor(rows: list[list[Fraction]], i: int, j: int) -> list[list[Fraction]]:
    return [row[:j] + row[j + 1 :] for k, row in enumerate(rows) if k != i]


def cofactor(rows: list[list[Fraction]], i: int, j: int) -> Fraction:
    (a, b), (c, d) = minor(rows, i, j)
    return (-1) ** (i + j) * (a * d - b * c)


UNITS = np.diag([1e10, 1.0, 1e-10]) @ np.array([[1.3, -0.7, 2.0], [0.4, 1.1, -1.6], [0.9, 2.3, 0.5]]) @ np.diag([1e-5, 1.0, 1e8])
MATRICES = {
    "regular": [[1.3, -0.7, 2.0], [0.4, 1.1, -1.6], [0.9, 2.3, 0.5]],
    "rank two": [[1, 2, 3], [4, 5, 6], [7, 8, 9]],
    "rank one": [[1, 2, 3], [2, 4, 6], [4, 8, 12]],
    "zero": [[0, 0, 0], [0, 0, 0], [0, 0, 0]],
    "rows and columns in units": UNITS,
    "determinant underflows": 1e-120 * np.array([[1.3, -0.7, 2.0], [0.4, 1.1, -1.6], [0.9, 2.3, 0.5]]),
}
compiled_determinant = numba.njit(lambda a: np.linalg.det(a))


@pytest.mark.parametrize("name", MATRICES)
def test_derivatives_of_a_determinant_are_the_exact_cofactors(name: str) -> None:
    a = np.array(MATRICES[name], float)
    rows = [[Fraction(x) for x in row] for row in a.tolist()]
    gradient = np.array([[float(cofactor(rows, i, j)) for j in range(3)] for i in range(3)])
    size = np.abs(gradient).max() or np.abs(a).max() ** 2  # of the products that cofactors are differences of
    np.testing.assert_allclose(tg.grad(compiled_determinant)(a), gradient, rtol=1e-12, atol=1e-14 * size)
    hessian = np.zeros((3, 3, 3, 3))
    for i, j, k, l in itertools.product(range(3), repeat=4):
        if i != k and j != l:  # the element in neither of their rows and columns
            sign = (-1) ** (i + j + (k - (k > i)) + (l - (l > j)))
            hessian[i, j, k, l] = sign * a[3 - i - k, 3 - j - l]
    found = tg.hessian(compiled_determinant)(a).reshape(3, 3, 3, 3)
    np.testing.assert_allclose(found[hessian != 0.0], hessian[hessian != 0.0], rtol=1e-12, atol=1e-14)
    units = np.multiply.outer(np.abs(a), np.abs(a))  # what changes of the size of the elements do
    np.testing.assert_allclose(found * units, hessian * units, atol=1e-13 * np.abs(hessian * units).max(), rtol=0.0)
