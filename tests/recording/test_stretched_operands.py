"""Large arrays that are stretched along rows or columns of one another: operators have NumPy's bits."""

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.recording.stretched_operands import (
    divided_twice,
    outer_product,
    product_of_column_and_row,
    sums_of_products,
)

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


THREE = [
    ((100, 90), (100, 90), (90,)),
    ((100, 90), (90,), (100, 90)),
    ((90,), (100, 1), (100, 90)),
    ((100, 1), (100, 90), (100, 90)),
    ((), (100, 90), (100, 90)),
    ((9000,), (9000,), (9000,)),
    ((4, 50, 50), (4, 50, 50), (4, 1, 1)),
    ((4, 50, 50), (1, 50, 1), (4, 50, 50)),
    ((100, 90), (100, 1), (100, 1)),
    ((3000, 3), (3,), (3000, 3)),
    ((1, 9000), (1,), (9000,)),
]


@pytest.mark.parametrize("value", [1, -1.5, 0.0])
@pytest.mark.parametrize("shapes", THREE)
@pytest.mark.parametrize(("name", "operation"), [("addcmul", np.multiply), ("addcdiv", np.divide)])
def test_scaled_sums_have_the_bits_of_three_operations(
    name: str, operation: Any, shapes: tuple[tuple[int, ...], ...], value: float
) -> None:
    a, b, c = map(values, shapes)
    with np.errstate(all="ignore"):
        term = operation(b, c)
        expected = np.asarray(a + (term if value == 1 else value * term))
    found = getattr(tg, name)(tg.tensor(a), tg.tensor(b), tg.tensor(c), value=value).numpy()
    assert found.shape == expected.shape
    np.testing.assert_array_equal(found, expected)
    numbers = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(found[numbers]), np.signbit(expected[numbers]))


@pytest.mark.parametrize("shapes", [*SHAPES, ((9000,), (9000,)), ((100, 90), (100, 90))])
def test_quotients_that_are_divided_once_more(shapes: tuple[tuple[int, ...], tuple[int, ...]]) -> None:
    a, b = map(values, shapes)
    for x, y in ((a, b), (b, a)):
        with np.errstate(all="ignore"):
            expected = x / y / y
            found = divided_twice(x, y)
        if found is not None:
            np.testing.assert_array_equal(found, expected)
            numbers = ~np.isnan(expected)
            np.testing.assert_array_equal(np.signbit(found[numbers]), np.signbit(expected[numbers]))


@pytest.mark.parametrize("turned", [False, True])
def test_products_of_a_column_and_a_row_are_those_of_the_blas(turned: bool) -> None:
    a, b = values((120, 1)), values((1, 130))
    if turned:
        a, b = np.asfortranarray(np.stack([a, a], 1))[:, 0], np.asfortranarray(values((130, 1))).T
    with np.errstate(all="ignore"):
        found, expected = product_of_column_and_row(a, b), np.dot(a, b)
    assert found is not None
    np.testing.assert_array_equal(found, expected)
    assert not np.signbit(found[found == 0.0]).any()  # as those of the BLAS, but at the edges of matrices on some processors


@pytest.mark.parametrize("number", [1.0, -1.5, 0.0, -0.0, np.inf, np.nan])
@pytest.mark.parametrize(
    ("shape", "kept"), [((100, 90), (90,)), ((3, 40, 50), (40, 50)), ((3, 40, 50), (50,)), ((2, 9000), (9000,))]
)
def test_sums_of_products_have_the_bits_of_two_operations(shape: tuple[int, ...], kept: tuple[int, ...], number: float) -> None:
    x = values(shape)
    found = sums_of_products(np.broadcast_to(number, shape), x, kept)
    with np.errstate(all="ignore"):
        product = np.where((x == 0) | (number == 0), 0.0, number * x)
        expected = np.add.reduce(product, axis=tuple(range(len(shape) - len(kept))))
    assert found is not None
    np.testing.assert_array_equal(found, expected)
    numbers = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(found[numbers]), np.signbit(expected[numbers]))


def test_outer_products_of_blocks_have_numpys_bits() -> None:
    for shapes in (((14, 1, 14), (185, 1)), ((14, 185, 1), (14, 1, 14)), ((14, 1, 1), (185, 14)), ((1, 185, 14), (14, 1, 14))):
        a, b = map(values, shapes)
        with np.errstate(all="ignore"):
            np.testing.assert_array_equal((tg.tensor(a) * tg.tensor(b)).numpy(), a * b)
            np.testing.assert_array_equal((tg.tensor(b) / tg.tensor(a)).numpy(), b / a)
