"""Cosines between the rows of large matrices, which are one row of the tape, beside those of few rows, which are several."""

from typing import Any

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.arrays.memory_pool import SMALL

RNG = np.random.default_rng(17)
SIZES = [(60, 50), (3, 1000), (700, 4), (5, 8, 90)]
similarity = tg.nn.functional.cosine_similarity


def pair(shape: tuple[int, ...]) -> tuple[tg.Tensor, tg.Tensor]:
    assert np.prod(shape) > SMALL
    x, y = (tg.tensor(RNG.normal(size=shape), requires_grad=True) for _ in range(2))
    return x, y


def cosines(a: np.ndarray, b: np.ndarray, least: float = 1e-8) -> np.ndarray:
    """By NumPy's functions one after the other."""
    lengths = [np.sqrt(np.add.reduce(x * x, -1, keepdims=True)) for x in (a, b)]
    first, second = (x / (length + np.maximum(least - length, 0.0)) for x, length in zip((a, b), lengths, strict=True))
    return np.add.reduce(first * second, -1)


@pytest.mark.parametrize("least", [1e-8, 8.0])
@pytest.mark.parametrize("shape", SIZES, ids=str)
def test_cosines_have_the_bits_of_numpys_functions(shape: tuple[int, ...], least: float) -> None:
    x, y = pair(shape)
    found = similarity(x, y, -1, least)
    np.testing.assert_array_equal(found.detach().numpy(), cosines(x.detach().numpy(), y.detach().numpy(), least))


@pytest.mark.parametrize("shape", SIZES, ids=str)
def test_slopes_of_cosines_are_those_of_the_formula(shape: tuple[int, ...]) -> None:
    x, y = pair(shape)
    g = RNG.normal(size=shape[:-1])
    found = tg.autograd.grad(similarity(x, y, -1), [x, y], tg.tensor(g))
    a, b = (t.detach().numpy().astype(np.longdouble) for t in (x, y))
    p, q = (np.sqrt((z * z).sum(-1, keepdims=True)) for z in (a, b))
    cosine = (a * b).sum(-1, keepdims=True) / (p * q)
    for one, expected in zip(found, (b / (p * q) - cosine * a / p**2, a / (p * q) - cosine * b / q**2), strict=True):
        np.testing.assert_allclose(one.numpy(), (g[..., None] * expected).astype(float), rtol=0, atol=1e-14)


def parts(x: tg.Tensor, y: tg.Tensor, least: float) -> tg.Tensor:
    """The cosines of some rows at once, so few that each function of them is a row of its own."""
    step = SMALL // x.shape[-1]
    return tg.cat([similarity(x[k : k + step], y[k : k + step], -1, least) for k in range(0, x.shape[0], step)])


@pytest.mark.parametrize("least", [1e-8, 8.0])
def test_recorded_slopes_have_the_slopes_of_few_rows(least: float) -> None:
    x, y = pair((60, 50))
    weights = tg.tensor(RNG.normal(size=(60, 50)))
    seconds = []
    for function in (lambda: similarity(x, y, -1, least), lambda: parts(x, y, least)):
        first = tg.autograd.grad(function().square().sum(), [x, y], create_graph=True)
        seconds.append([*first, *tg.autograd.grad((first[0] * weights + first[1] * weights.flip(0)).sum(), [x, y])])
    for one, other in zip(*seconds, strict=True):
        np.testing.assert_allclose(one.detach().numpy(), other.detach().numpy(), rtol=0, atol=1e-13)


@pytest.mark.parametrize("row", [0.0, 1e-200, 1e200, np.inf, np.nan])
def test_rows_whose_squares_are_out_of_range_are_as_among_few(row: float) -> None:
    x, y = pair((60, 50))
    x.data[7] = row
    found = similarity(x, y, -1)
    slopes = tg.autograd.grad(found.sum(), [x, y])
    expected = parts(x, y, 1e-8)
    np.testing.assert_allclose(found.detach().numpy(), expected.detach().numpy(), rtol=0, atol=1e-15)
    for one, other in zip(slopes, tg.autograd.grad(expected.sum(), [x, y]), strict=True):
        np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=1e-13, atol=1e-14)


def test_a_matrix_beside_itself_has_slopes_of_zero() -> None:
    x, _ = pair((60, 50))
    (found,) = tg.autograd.grad(similarity(x, x, -1).sum(), [x])
    np.testing.assert_allclose(found.numpy(), np.zeros((60, 50)), rtol=0, atol=1e-15)


@pytest.mark.parametrize("which", [0, 1])
def test_one_of_both_is_tracked_alone(which: int) -> None:
    both = pair((60, 50))
    operands: list[Any] = [t.detach() for t in both]
    operands[which] = both[which]
    (alone,) = tg.autograd.grad(similarity(*operands, -1).sum(), [both[which]])
    np.testing.assert_array_equal(alone.numpy(), tg.autograd.grad(similarity(*both, -1).sum(), list(both))[which].numpy())


def test_programs_have_the_slopes_at_other_values() -> None:
    x, y = pair((60, 50))
    other, constant = RNG.normal(size=(60, 50)), y.detach()
    function = tg.program(lambda a: similarity(a, constant, -1).square().sum())
    for values in (x.detach().numpy(), other, np.where(np.arange(60)[:, None] == 3, 0.0, other)):
        value, slope = tg.value_and_grad(function)(values)
        leaf = tg.tensor(values, requires_grad=True)
        expected = parts(leaf, constant, 1e-8).square().sum()
        np.testing.assert_allclose(value, expected.item(), rtol=1e-13)
        np.testing.assert_allclose(slope, tg.autograd.grad(expected, [leaf])[0].numpy(), rtol=0, atol=1e-13)
