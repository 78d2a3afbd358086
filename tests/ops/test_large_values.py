"""Values on arrays that are large enough for loops of the engine have the bits of NumPy's functions, also written in place."""

from collections.abc import Callable
from itertools import combinations, combinations_with_replacement
from typing import Any

import numpy as np
import pytest

import tapegrad as tg

ROWS, COLUMNS = 60, 50
RNG = np.random.default_rng(3)
SPECIAL = np.array([0.0, -0.0, np.nan, np.inf, -np.inf, 1e-310, -1e308, 1.0, -1.0, 20.0])
X, Y = RNG.normal(size=(2, ROWS, COLUMNS))
X.ravel()[:10] = Y.ravel()[10:20] = SPECIAL


def same_bits(found: Any, expected: np.ndarray) -> None:
    found = found.detach().numpy()
    assert found.dtype == expected.dtype
    np.testing.assert_array_equal(found, expected)
    known = ~np.isnan(expected)
    np.testing.assert_array_equal(np.signbit(found)[known], np.signbit(expected)[known])


def logistic(x: np.ndarray) -> np.ndarray:
    e = np.exp(-np.abs(x))
    return np.where(x >= 0.0, 1.0, e) / (1.0 + e)


UNARY: dict[str, tuple[Callable[[Any], Any], Callable[[np.ndarray], np.ndarray]]] = {
    "sign": (tg.sign, np.sign),
    "relu": (tg.relu, lambda x: np.where(x <= 0.0, 0.0, x)),
    "leaky_relu": (lambda x: tg.nn.functional.leaky_relu(x, 0.1), lambda x: np.where(x > 0.0, x, x * 0.1)),
    "hardshrink": (lambda x: tg.nn.functional.hardshrink(x, 0.3), lambda x: np.where(np.abs(x) <= 0.3, 0.0, x)),
    "cube": (lambda x: x**3, lambda x: x * x * x),
    "sigmoid": (tg.sigmoid, logistic),
    "silu": (tg.nn.functional.silu, lambda x: x * logistic(x)),
    "cumsum of rows": (lambda x: x.cumsum(1), lambda x: np.add.accumulate(x, 1)),
    "cumsum of columns": (lambda x: x.cumsum(0), lambda x: np.add.accumulate(x, 0)),
    "cumsum of few rows": (lambda x: x.reshape(6, 500).cumsum(1), lambda x: np.add.accumulate(x.reshape(6, 500), 1)),
}


@pytest.mark.parametrize("name", list(UNARY))
@pytest.mark.parametrize("strided", [False, True])
@pytest.mark.filterwarnings("ignore")
def test_values_have_the_bits_of_numpy(name: str, strided: bool) -> None:
    function, expected = UNARY[name]
    x = np.ascontiguousarray(X.T).T if strided else X
    same_bits(function(tg.tensor(0.0).new_tensor(X) if not strided else tg.tensor(X.T.copy()).t()), expected(x))


@pytest.mark.parametrize("function", [np.fmod, np.remainder, np.floor_divide, np.logaddexp])
@pytest.mark.parametrize("shape", [(ROWS, COLUMNS), (COLUMNS,), (ROWS, 1), (1,)])
@pytest.mark.filterwarnings("ignore")
def test_operands_that_are_stretched_give_the_bits_of_numpy(function: np.ufunc, shape: tuple[int, ...]) -> None:
    y = np.resize(Y, shape)
    own = getattr(tg, function.__name__)
    same_bits(own(tg.tensor(X), tg.tensor(y)), function(X, y))
    same_bits(own(tg.tensor(y), tg.tensor(X)), function(y, X))


BINARY_IN_PLACE = {"add_": np.add, "mul_": np.multiply, "remainder_": np.remainder, "fmod_": np.fmod, "atan2_": np.arctan2}
UNARY_IN_PLACE = {"sign_": np.sign, "neg_": np.negative, "exp_": np.exp, "floor_": np.floor, "square_": np.square}


@pytest.mark.parametrize("name", list(UNARY_IN_PLACE))
@pytest.mark.filterwarnings("ignore")
def test_unary_writes_have_the_bits_of_numpy(name: str) -> None:
    for target in (tg.tensor(X), tg.tensor(X.T.copy()).t()):
        assert getattr(target, name)() is target
        same_bits(target, UNARY_IN_PLACE[name](X))


@pytest.mark.parametrize("name", list(BINARY_IN_PLACE))
@pytest.mark.parametrize("other", ["array", "number", "itself", "overlapping"])
@pytest.mark.filterwarnings("ignore")
def test_binary_writes_have_the_bits_of_numpy(name: str, other: str) -> None:
    memory = np.concatenate([X.ravel(), Y.ravel()[:COLUMNS]])
    whole = tg.tensor(memory)
    target, shifted = whole[: ROWS * COLUMNS], whole[COLUMNS:]
    operand, data = {
        "array": (tg.tensor(Y.ravel()), Y.ravel()), "number": (0.7, np.float64(0.7)), "itself": (target, X.ravel()),
        "overlapping": (shifted, memory[COLUMNS:].copy()),
    }[other]  # fmt: skip
    getattr(target, name)(operand)
    same_bits(target, BINARY_IN_PLACE[name](X.ravel(), data))


@pytest.mark.parametrize("function", [np.add, np.remainder, np.fmod, np.logaddexp])
@pytest.mark.filterwarnings("ignore")
def test_writes_into_every_other_column_leave_the_columns_between(function: np.ufunc) -> None:
    memory, values = np.concatenate([X, Y]), np.concatenate([Y, X])[:, ::2].copy()
    expected = memory.copy()
    expected[:, ::2] = function(memory[:, ::2], values)
    whole = tg.tensor(memory)
    getattr(whole[:, ::2], f"{function.__name__}_")(tg.tensor(values))
    same_bits(whole, expected)


@pytest.mark.parametrize("name", ["exp_", "square_", "neg_", "sign_"])
def test_writes_have_the_derivatives_of_the_function(name: str) -> None:
    point = RNG.normal(size=3000)
    x, y = (tg.tensor(point, requires_grad=True) for _ in range(2))
    weights = tg.tensor(RNG.normal(size=3000))
    (getattr(x * 1.0, name)() * weights).sum().backward()
    (getattr(y * 1.0, name[:-1])() * weights).sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), y.grad.numpy())


def test_a_product_written_in_place_has_the_derivatives_of_both_operands() -> None:
    point, other = RNG.normal(size=(2, 3000))
    x, y = tg.tensor(point, requires_grad=True), tg.tensor(other, requires_grad=True)
    z = x.clone()
    z.mul_(y)
    z.sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), other)
    np.testing.assert_array_equal(y.grad.numpy(), point)


def test_a_write_over_what_a_row_saved_is_refused() -> None:
    x = tg.tensor(RNG.normal(size=3000), requires_grad=True)
    y = x * 1.0
    z = y * y
    y.add_(1.0)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.sum().backward()


@pytest.mark.parametrize("count", [0, 1, 4, 6])
@pytest.mark.parametrize("r", [1, 2, 3, 5])
def test_choices_are_those_of_itertools(count: int, r: int) -> None:
    numbers = tg.tensor(np.arange(float(count)))
    for repeated, choose in ((False, combinations), (True, combinations_with_replacement)):
        found = tg.combinations(numbers, r, repeated)
        expected = [list(map(float, choice)) for choice in choose(range(count), r)]
        assert found.shape == (len(expected), r)
        assert found.tolist() == expected
