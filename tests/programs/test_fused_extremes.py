"""Machine code of largest and smallest elements: the bits of eager values and gradients, ties and special values among them."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from machine_code import compiled
from quick_machine_code import machine_code_is_made_quickly  # noqa: F401 - a fixture

import tapegrad as tg

SHAPE = (5, 3, 4)
FORMS: dict[str, Callable[[Any], Any]] = {
    "of the last axis": lambda x: x.max(axis=2),
    "of the first axis, kept": lambda x: np.min(x, axis=0, keepdims=True),
    "of two axes": lambda x: np.max(x, axis=(0, 2)),
    "of a computed array": lambda x: np.amin(x * x, axis=1),
    "of everything": lambda x: x.max() * x,
    "of everything, as PyTorch has it": lambda x: tg.min(tg.as_tensor(x)) * x,
    "of a part in another order": lambda x: x[1:4, ::-1].transpose(2, 0, 1).max(axis=1),
    "of one element": lambda x: x[:, :1].max(axis=1),
    "both": lambda x: np.ptp(x, axis=1),
    "softmax by hand": lambda x: np.exp(x - x.max(axis=1, keepdims=True)),
}


def points(dtype: Any) -> list[np.ndarray]:
    rng = np.random.default_rng(1)
    found = [rng.normal(size=SHAPE), np.round(rng.normal(size=SHAPE)) + 0.0, np.ones(SHAPE), np.zeros(SHAPE), np.full(SHAPE, -0.0)]
    for special in (-math.inf, math.inf, math.nan, -0.0, 0.0):
        other = np.round(2.0 * rng.normal(size=SHAPE))
        other[rng.random(SHAPE) < 0.3] = special
        found.append(other)
    return [x.astype(dtype) for x in found]


def bits(x: Any) -> Any:
    x = np.asarray(x)
    return x.dtype, x.shape, np.where(np.isnan(x), np.nan, x).astype(x.dtype).tobytes()


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("name", list(FORMS))
def test_values_and_gradients_have_the_bits_of_eager_ones(name: str, dtype: Any) -> None:
    form = FORMS[name]

    def loss(x: Any, weights: Any) -> Any:  # whose gradient by the weights is the value
        return (form(x * 0.5) * weights).sum()

    first = points(dtype)[0]
    weights = np.random.default_rng(2).normal(size=np.shape(form(first))).astype(dtype)
    _, run = compiled(loss, first, weights, argnums=(0, 1))
    own = tg.value_and_grad(loss, (0, 1))
    is_summed = name in ("of everything", "of everything, as PyTorch has it", "softmax by hand")  # in what goes back to an extreme
    for x in points(dtype):
        (_, found), (_, expected) = run(x, weights), own(x, weights)
        assert bits(found[1]) == bits(expected[1]), x
        if is_summed:
            np.testing.assert_allclose(found[0], expected[0], rtol=1e-12 if dtype is np.float64 else 1e-5, atol=1e-6)
        else:
            assert bits(found[0]) == bits(expected[0]), x


def test_numbers_that_are_extremes_have_the_bits_of_eager_ones() -> None:
    for loss in (lambda x: x.max(), lambda x: np.min(x * x)):
        _, run = compiled(loss, points(np.float64)[0])
        for x in points(np.float64)[:6]:
            (value, found), (own, expected) = run(x), tg.value_and_grad(loss)(x)
            assert [bits(value), bits(found)] == [bits(own), bits(expected)]


def test_which_of_two_zeros_is_the_largest_is_numpys_choice() -> None:
    def loss(x: Any) -> Any:
        return (1.0 / x.max(axis=1)).sum()

    _, run = compiled(loss, np.ones((4, 9)))
    for seed in range(20):
        x = np.where(np.random.default_rng(seed).random((4, 9)) < 0.5, 0.0, -0.0)
        with np.errstate(all="ignore"):
            assert [bits(part) for part in run(x)] == [bits(part) for part in tg.value_and_grad(loss)(x)]


def test_many_points_have_the_gradients_of_each() -> None:
    def loss(x: Any) -> Any:
        return (x * x).max() * x[0] - x.min()

    program = tg.program(loss)
    both = tg.value_and_grad(program)
    xs = np.random.default_rng(3).normal(size=(9000, 5))
    xs[7, 2], xs[4100, 0], xs[11, :2] = np.nan, np.inf, 0.0
    xs[12, :] = 0.0, -0.0, 0.0, -0.0, 0.0
    with np.errstate(all="ignore"):
        both(xs[0])
        values, gradients = both.map(xs)
        for k in (0, 3, 7, 11, 12, 4100, 8999):
            value, gradient = tg.value_and_grad(loss)(xs[k])
            assert bits(values[k]) == bits(np.float64(value))
            assert bits(gradients[k]) == bits(gradient)


def test_a_saved_program_has_them(tmp_path: Any) -> None:
    f = tg.program(lambda x: (x.max(axis=0) * np.arange(1.0, 5.0)).sum())
    x = np.random.default_rng(4).normal(size=(3, 4))
    expected = tg.value_and_grad(f)(x)
    f.save(tmp_path / "f.tgp")
    value, gradient = tg.value_and_grad(tg.load_program(tmp_path / "f.tgp"))(x)
    assert value == pytest.approx(expected[0], rel=1e-14)
    assert np.array_equal(gradient, expected[1])
