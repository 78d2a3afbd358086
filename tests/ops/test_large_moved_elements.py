"""Few elements put, added or taken in large tensors: gradients are the elements at the places, and zeros or the rest elsewhere."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapegrad as tg

SHAPE = (90, 80)
a = np.random.default_rng(1).standard_normal(SHAPE)
WEIGHTS = {"ones": np.ones(SHAPE), "others": np.linspace(0.5, 1.5, a.size).reshape(SHAPE)}
Case = tuple[Callable[[Any, Any], Any], tuple[int, ...], Any]
few = tg.tensor([3, 70, 5])

# What is put, the shape of what is put, and the key of its places.
PUTS: dict[str, Case] = {
    "index_put": (lambda x, v: x.index_put((few,), v), (3, 80), [3, 70, 5]),
    "index_put of elements": (lambda x, v: x.index_put((few, few), v), (3,), ([3, 70, 5], [3, 70, 5])),
    "index_copy": (lambda x, v: x.index_copy(0, few, v), (3, 80), [3, 70, 5]),
    "index_fill_": (lambda x, v: x.clone().index_fill_(0, few, v), (), [3, 70, 5]),
    "select_scatter": (lambda x, v: x.select_scatter(v, 1, 7), (90,), (slice(None), 7)),
    "slice_scatter": (lambda x, v: x.slice_scatter(v, 0, 4, 20, 3), (6, 80), slice(4, 20, 3)),
    "diagonal_scatter": (lambda x, v: x.diagonal_scatter(v, 2), (78,), (np.arange(78), np.arange(2, 80))),
    "assigned part": (
        lambda x, v: written(x, (slice(2, 6), slice(None, None, 2)), v),
        (4, 40),
        (slice(2, 6), slice(None, None, 2)),
    ),
    "assigned elements": (lambda x, v: written(x, (few, few), v), (3,), ([3, 70, 5], [3, 70, 5])),
    "assigned number": (lambda x, v: written(x, (slice(2, 6),), v), (), slice(2, 6)),
}


def written(x: tg.Tensor, key: Any, value: tg.Tensor) -> tg.Tensor:
    y = x.clone()
    y[key] = value
    return y


@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("name", PUTS)
def test_what_is_put_gets_the_gradient_at_its_places_and_what_was_there_the_rest(name: str, weights: str) -> None:
    put, shape, key = PUTS[name]
    w, v = WEIGHTS[weights], np.random.default_rng(2).standard_normal(shape)
    x, y = tg.tensor(a, requires_grad=True), tg.tensor(v, requires_grad=True)
    result = put(x, y)
    (result.sum() if weights == "ones" else (result * tg.tensor(w)).sum()).backward()
    whole, rest = a.copy(), w.copy()
    whole[key], rest[key] = v, 0.0
    assert np.array_equal(result.detach().numpy(), whole)
    assert np.array_equal(x.grad.numpy(), rest)
    np.testing.assert_allclose(y.grad.numpy(), w[key] if shape else w[key].sum(), rtol=1e-13)


@pytest.mark.parametrize("weights", WEIGHTS)
def test_of_the_same_places_the_last_one_counts(weights: str) -> None:
    w, rest = WEIGHTS[weights], WEIGHTS[weights].copy()
    x, y = tg.tensor(a, requires_grad=True), tg.tensor(np.ones((3, 80)), requires_grad=True)
    (x.index_put((tg.tensor([4, 9, 4]),), y) * tg.tensor(w)).sum().backward()
    rest[[4, 9]] = 0.0
    assert np.array_equal(x.grad.numpy(), rest)
    assert np.array_equal(y.grad.numpy(), np.stack([np.zeros(80), w[9], w[4]]))


@pytest.mark.parametrize("weights", WEIGHTS)
@pytest.mark.parametrize("at", [[4, 9, 60], [4, 9, 4]], ids=["different", "the same"])
def test_what_is_added_gets_the_gradient_at_its_places(weights: str, at: list[int]) -> None:
    w = WEIGHTS[weights]
    for add in (lambda x, y: x.index_add(0, tg.tensor(at), y), lambda x, y: x.index_put((tg.tensor(at),), y, accumulate=True)):
        v = np.random.default_rng(6).standard_normal((3, 80))
        x, y = tg.tensor(a, requires_grad=True), tg.tensor(v, requires_grad=True)
        result, expected = add(x, y), a.copy()
        np.add.at(expected, at, v)
        (result * tg.tensor(w)).sum().backward()
        np.testing.assert_allclose(result.detach().numpy(), expected, rtol=1e-14, atol=1e-15)
        assert np.array_equal(x.grad.numpy(), w)
        assert np.array_equal(y.grad.numpy(), w[at])


@pytest.mark.parametrize("at", [[5, 2, 80], [5, 5, 5, 80]], ids=["different", "the same"])
def test_few_elements_that_are_taken_get_the_only_gradients(at: list[int]) -> None:
    x, w = tg.tensor(a, requires_grad=True), np.linspace(1.0, 2.0, len(at) * 80).reshape(-1, 80)
    (x[tg.tensor(at)] * tg.tensor(w)).sum().backward()
    expected = np.zeros(SHAPE)
    np.add.at(expected, at, w)
    np.testing.assert_allclose(x.grad.numpy(), expected, rtol=1e-14)


def test_the_rest_is_added_to_what_another_use_contributed() -> None:
    x = tg.tensor(a, requires_grad=True)
    y = x.select_scatter(tg.zeros(80, dtype=tg.float64), 0, 5)
    (y.sum() + (x * x).sum() + x[tg.tensor([1, 5])].sum()).backward()
    expected = 2 * a + 1
    expected[5] -= 1
    expected[[1, 5]] += 1
    np.testing.assert_allclose(x.grad.numpy(), expected, rtol=1e-13, atol=1e-14)


def test_a_row_may_be_both_what_is_written_into_and_what_is_put() -> None:
    x = tg.tensor(a, requires_grad=True)
    x.index_put((few,), x[tg.tensor([0, 1, 2])]).sum().backward()
    expected = np.ones(SHAPE)
    expected[[3, 70, 5]] = 0.0
    expected[[0, 1, 2]] += 1.0
    assert np.array_equal(x.grad.numpy(), expected)
    y = tg.tensor(np.random.default_rng(5).standard_normal(5000), requires_grad=True)
    y.index_add(0, tg.tensor(np.arange(5000)[::-1].copy()), y).sum().backward()
    assert np.array_equal(y.grad.numpy(), np.full(5000, 2.0))


@pytest.mark.parametrize("write", ["mul_", "neg_", "zero_", "fill_"])
def test_writes_to_parts_of_large_tensors_scale_their_gradients(write: str) -> None:
    x, w = tg.tensor(a, requires_grad=True), WEIGHTS["others"]
    y = x.clone()
    part = y[10:14, ::3]
    factor = {"mul_": 3.0, "neg_": -1.0, "zero_": 0.0, "fill_": 0.0}[write]
    getattr(part, write)(*{"mul_": (3.0,), "fill_": (8.0,)}.get(write, ()))
    (y * tg.tensor(w)).sum().backward()
    expected = w.copy()
    expected[10:14, ::3] *= factor
    np.testing.assert_allclose(x.grad.numpy(), expected, rtol=1e-15)


def test_second_derivatives_go_through_large_puts() -> None:
    x = tg.tensor(a, requires_grad=True)
    y = x.select_scatter((x[0] * x[1]), 0, 2)
    (g,) = tg.autograd.grad((y * y).sum(), x, create_graph=True)
    g.sum().backward()
    p, q = a[0], a[1]
    expected = np.full(SHAPE, 2.0)
    expected[2] = 0.0
    expected[0] += 2 * q**2 + 4 * p * q
    expected[1] += 2 * p**2 + 4 * p * q
    np.testing.assert_allclose(x.grad.numpy(), expected, rtol=1e-12, atol=1e-12)
