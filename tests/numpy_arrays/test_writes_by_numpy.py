"""What NumPy's functions write into constants is seen by the derivative, whichever way they are told where to write."""

from collections import namedtuple
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapegrad as tg

POINT = np.array([1.5, -0.5, 2.0])


def by_position(c: Any) -> None:
    np.cumsum(c + 1.0, 0, None, c)


def two_results(c: Any) -> None:
    np.modf(c + 2.25, out=(c, np.zeros_like(c)))


def second_result(c: Any) -> None:
    np.divmod(c + 7.0, 3.0, out=(None, c))


def without_a_copy(c: Any) -> None:
    c[1] = np.inf
    np.nan_to_num(c, copy=False, posinf=4.0)


def where_a_mask_says_so(c: Any) -> None:
    np.divide(c + 1.0, np.array([0.0, 2.0, 4.0]), out=c, where=np.array([False, True, True]))


WRITES = [by_position, two_results, second_result, without_a_copy, where_a_mask_says_so]


@pytest.mark.parametrize("write", WRITES)
def test_what_was_written_is_what_counts(write: Callable[[Any], None]) -> None:
    def f(x: Any) -> Any:
        c = np.ones_like(x)
        write(c)
        return (c * x).sum()

    value, gradient = tg.value_and_grad(f)(POINT)
    expected = np.ones(3)
    write(expected)
    assert value == f(POINT)
    np.testing.assert_array_equal(gradient, expected)


@pytest.mark.parametrize("write", WRITES)
def test_a_derivative_that_needs_what_was_overwritten_has_it(write: Callable[[Any], None]) -> None:
    def f(x: Any) -> Any:
        c = np.ones_like(x)
        y = c * x
        write(c)
        return y.sum()

    np.testing.assert_array_equal(tg.grad(f)(POINT), np.ones(3))


@pytest.mark.parametrize("function", [np.median, np.nanmedian, lambda c, **named: np.quantile(c, 0.5, **named)])
def test_constants_keep_their_order_though_they_may_be_overwritten(function: Callable[..., Any]) -> None:
    def f(x: Any) -> Any:
        c = np.zeros_like(x) + np.array([3.0, 1.0, 2.0])
        y = c * x
        return y.sum() * function(c, overwrite_input=True)

    np.testing.assert_array_equal(tg.grad(f)(POINT), [6.0, 2.0, 4.0])


def test_places_that_a_mask_leaves_out_keep_what_is_differentiated() -> None:
    def f(x: Any) -> Any:
        return np.divide(np.ones_like(x), np.array([0.0, 2.0, 4.0]), out=x * 3.0, where=np.array([False, True, True])).sum()

    np.testing.assert_array_equal(tg.grad(f)(POINT), [3.0, 0.0, 0.0])


Pair = namedtuple("Pair", ["first", "second"])


def test_a_constant_before_a_tracked_array_in_a_named_tuple() -> None:
    gradient = tg.grad(lambda x: (np.concatenate(Pair(np.ones_like(x), x)) ** 2).sum())(POINT)
    np.testing.assert_array_equal(gradient, 2 * POINT)


HALVES = {
    "converted": lambda x: x.astype(np.float16),
    "written": lambda x: _halves(x).__setitem__(slice(None), x),
    "written at places": lambda x: _halves(x).__setitem__([0, 2], x[0]),
    "added": lambda x: _halves(x).__iadd__(x),
    "filled": lambda x: _halves(x).fill(x[0]),
    "out": lambda x: np.add(x, 1.0, out=_halves(x)),
    "summed": lambda x: np.sum(x, dtype=np.float16),
}


def _halves(x: Any) -> Any:
    return np.zeros_like(x, dtype=np.float16)


@pytest.mark.parametrize("way", HALVES)
def test_what_is_differentiated_does_not_get_lost_in_float16(way: str) -> None:
    def f(x: Any) -> Any:
        HALVES[way](x)
        return x.sum()

    with pytest.raises((TypeError, RuntimeError), match="float16"):
        tg.grad(f)(POINT)


def test_a_result_is_stretched_to_where_it_is_written() -> None:
    gradient = tg.grad(lambda x: (np.multiply(x[0], x[1], out=np.ones_like(x)) * np.arange(3.0)).sum())(POINT)
    np.testing.assert_array_equal(gradient, [-1.5, 4.5, 0.0])
