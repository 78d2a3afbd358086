"""Large arrays that are stretched along rows or columns of one another: operators have NumPy's bits."""

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.recording.stretched_operands import outer_product

RNG = np.random.default_rng(6)
SHAPES = [
    ((100, 1), (1, 90)),
    ((100, 90), (90,)),
    ((100, 90), (100, 1)),
    ((4, 50, 50), (50, 50)),
    ((4, 50, 50), (4, 1, 1)),
    ((4, 50, 50), (1, 50, 1)),
    ((4, 1, 50), (50, 1)),
    ((1, 70, 90), (90,)),
    ((3000,), (4, 1)),
    ((2, 9000), (9000,)),
    ((1, 9000), (1,)),
    ((5000, 3), (3,)),
    ((0, 90), (90,)),
]
ODD = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1e308, 5e-324])


def values(shape: tuple[int, ...]) -> np.ndarray:
    made = RNG.normal(size=shape)
    odd = RNG.random(shape) < 0.02
    made[odd] = RNG.choice(ODD, int(odd.sum()))
    return made


@pytest.mark.parametrize(("first", "second"), SHAPES)
@pytest.mark.parametrize("function", [operator.add, operator.sub, operator.mul, operator.truediv])
def test_values(function: Callable[[Any, Any], Any], first: tuple[int, ...], second: tuple[int, ...]) -> None:
    a, b = values(first), values(second)
    for x, y in ((a, b), (b, a)):
        with np.errstate(all="ignore"):
            expected = function(x, y)
        found = function(tg.tensor(x), tg.tensor(y)).numpy()
        assert found.shape == expected.shape
        np.testing.assert_array_equal(found, expected)
        numbers = ~np.isnan(expected)
        np.testing.assert_array_equal(np.signbit(found[numbers]), np.signbit(expected[numbers]))


@pytest.mark.parametrize(("first", "second"), SHAPES)
def test_the_product_that_is_zero_where_a_factor_is(first: tuple[int, ...], second: tuple[int, ...]) -> None:
    from tapegrad.kernels.opcodes import OPCODES
    from tapegrad.recording.primal_values import forward

    for make in (values, lambda shape: RNG.normal(size=shape)):
        a, b = make(first), make(second)
        for x, y in ((a, b), (b, a)):
            with np.errstate(all="ignore"):
                expected = np.where((x == 0.0) | (y == 0.0), 0.0, x * y)
                np.testing.assert_array_equal(forward[OPCODES["_mul0"]](x, y), expected)


@pytest.mark.parametrize("step", [1, 2, -1])
def test_outer_products(step: int) -> None:
    a, b = values((160,))[::step], values((180,))[::step]
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(outer_product(a, b), a[:, None] * b)


def test_stretched_numbers_times_rows() -> None:
    from tapegrad.kernels.opcodes import OPCODES
    from tapegrad.recording.primal_values import forward

    row, whole = values((90,)), values((100, 90))
    for number in (1.5, 0.0, np.inf, -0.0, np.nan):
        stretched = np.broadcast_to(np.float64(number), (100, 90))
        for y in (row, whole, 2.0, 0.0, stretched):
            with np.errstate(all="ignore"):
                expected = np.where((stretched == 0.0) | (np.asarray(y) == 0.0), 0.0, stretched * y)
                np.testing.assert_array_equal(forward[OPCODES["_mul0"]](stretched, y), expected)
