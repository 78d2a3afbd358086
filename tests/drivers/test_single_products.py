"""Products with Hessians over long arrays, which leave out what one product does not need."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.linear.linear_tape import LONG, linear_tape

SIZE = LONG + 3
X = np.linspace(0.5, 1.5, SIZE)
V = np.cos(np.arange(SIZE))


def test_neighbours_share_what_their_adjoints_change_by() -> None:
    def rosenbrock(x: Any) -> Any:
        return (100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2).sum()

    expected = np.zeros(SIZE)
    expected[:-1] = (1200.0 * X[:-1] ** 2 - 400.0 * X[1:] + 2.0) * V[:-1] - 400.0 * X[:-1] * V[1:]
    expected[1:] += 200.0 * V[1:] - 400.0 * X[:-1] * V[:-1]
    np.testing.assert_allclose(tg.hvp(rosenbrock, X, V), expected, rtol=1e-12, atol=1e-12)


def test_numbers_among_arrays() -> None:
    def f(x: Any) -> Any:
        scale = x[0] * x[1]
        return scale * (x * x).sum() + np.sin(scale)

    a, b = X[:2]
    squares, turn = X @ X, V[0] * b + V[1] * a
    change = 2.0 * (X @ V) - np.sin(a * b) * turn
    expected = 2.0 * turn * X + 2.0 * a * b * V
    expected[:2] += change * np.array([b, a]) + (squares + np.cos(a * b)) * V[1::-1]
    np.testing.assert_allclose(tg.hvp(f, X, V), expected, rtol=1e-11)


def test_several_arguments_of_which_one_is_broadcast() -> None:
    def f(p: Any) -> Any:
        return (np.exp(p["scale"] * p["x"]) * p["unused"]).sum()

    x, scale = X.reshape(-1, 1), 0.5
    point = {"unused": np.ones(1), "scale": scale, "x": x}
    found = tg.hvp(f, point, {"unused": np.zeros(1), "scale": 2.0, "x": V.reshape(-1, 1)})
    powers, turn = np.exp(scale * x), 2.0 * x + scale * V.reshape(-1, 1)
    np.testing.assert_allclose(found["x"], powers * (scale * turn + 2.0), rtol=1e-12)
    np.testing.assert_allclose(found["scale"], (powers * (x * turn + V.reshape(-1, 1))).sum(), rtol=1e-10)
    np.testing.assert_allclose(found["unused"], (powers * turn).sum(), rtol=1e-10)


@pytest.mark.parametrize("masked", [lambda x: np.where(x > 1.0, np.sqrt(x - 1.0), 0.0 * x), lambda x: x**1.5])
def test_infinite_partials_of_elements_that_do_not_count(masked: Callable[[Any], Any]) -> None:
    x = X.copy()
    x[:5] = [0.0, 1.0, 0.0, 1.0, 0.25]
    still = np.where(x == 0.0, 0.0, V)
    found = tg.hvp(lambda x: (masked(x) * x).sum(), x, still)
    assert np.isfinite(found[x != 1.0]).all()
    assert found[0] == found[2] == 0.0


def test_rows_of_python_are_left_to_the_recorded_gradient() -> None:
    def f(x: Any) -> Any:
        return (np.cumsum(x * x) * x).sum()

    later = np.cumsum((X * 1.0)[::-1])[::-1]
    later_v = np.cumsum(V[::-1])[::-1]
    expected = 2.0 * (V * later + X * later_v) + np.cumsum(2.0 * X * V)
    np.testing.assert_allclose(tg.hvp(f, X, V), expected, rtol=1e-9)


def test_a_function_without_curvature() -> None:
    assert not tg.hvp(lambda x: (3.0 * x).sum() - x[0], X, V).any()
    assert not tg.hvp(lambda x: 1.0 + 0.0 * x[0], X, V).any()


def test_inputs_without_elements_have_products_without_any() -> None:
    product = tg.hvp(lambda x: (np.concatenate([x, X]) ** 2).sum(), np.zeros(0), np.zeros(0))
    assert product.shape == (0,)


def test_products_of_one_tape_do_not_see_each_other() -> None:
    x = tg.tensor(X, requires_grad=True)
    tape = linear_tape([x], [(x * x * x).sum()], second=True, once=True)
    assert tape is not None
    np.testing.assert_allclose(tape.curve(np.stack([V, X], 1)), np.stack([6.0 * X * V, 6.0 * X * X], 1), rtol=1e-13)
    np.testing.assert_allclose(tape.curve(V[:, None])[:, 0], 6.0 * X * V, rtol=1e-13)


def test_such_a_tape_has_nothing_else() -> None:
    x = tg.tensor(X, requires_grad=True)
    tape = linear_tape([x], [(x * x).sum()], second=True, once=True)
    assert tape is not None
    for product, matrix in ((tape.pull, np.ones((1, 1))), (tape.push, V[:, None])):
        with pytest.raises(AssertionError, match="one product needs"):
            product(matrix)


def test_programs_take_their_products_from_rows_before_there_is_code() -> None:
    program = tg.program(lambda x: (np.sin(x) * x).sum())
    expected = (2.0 * np.cos(X) - np.sin(X) * X) * V
    for _ in range(4):
        np.testing.assert_allclose(tg.hvp(program, X, V), expected, rtol=1e-12, atol=1e-13)
