"""Products of large matrices that are copied and multiplied block by block."""

from __future__ import annotations

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.linalg import copied_products
from tapegrad.linalg.copied_products import product_with_copy
from tapegrad.recording.structural import apply

generator = np.random.default_rng


@pytest.fixture
def small_blocks(monkeypatch):
    """Matrices of some hundred rows count as large; BLAS is taken to have one thread."""
    monkeypatch.setattr(copied_products, "WORTH_BLOCKS", 1)
    monkeypatch.setattr(copied_products, "BLOCK", 1)
    monkeypatch.setattr(copied_products, "_threads", lambda: 1)


@pytest.mark.parametrize("n", [128, 129, 191, 192, 200, 1000])
@pytest.mark.parametrize("k", [1, 2, 7, 30])
def test_products_have_the_bits_of_the_whole_product(small_blocks, n, k):
    x, w = generator(n + k).standard_normal((n, k)), generator(k).standard_normal(k)
    found = product_with_copy(x, tg.tensor(w, requires_grad=True))
    assert np.array_equal(found.detach().numpy(), x @ w)


def test_the_derivative_has_what_the_matrix_was(small_blocks):
    x, w = generator(1).standard_normal((300, 5)), tg.tensor(generator(2).standard_normal(5), requires_grad=True)
    before = x.copy()
    y = product_with_copy(x, w)
    x[...] = 0.0
    y.sum().backward()
    np.testing.assert_allclose(w.grad.numpy(), before.sum(0), rtol=1e-13)


def test_second_derivatives(small_blocks):
    x, w = generator(3).standard_normal((300, 5)), tg.tensor(generator(4).standard_normal(5), requires_grad=True)
    (first,) = tg.autograd.grad((product_with_copy(x, w) ** 2).sum(), w, create_graph=True)
    (second,) = tg.autograd.grad(first.sum(), w)
    np.testing.assert_allclose(second.numpy(), 2.0 * (x.T @ x).sum(1), rtol=1e-12)


@pytest.mark.parametrize(
    ("x", "w"),
    [
        (np.ones((400, 3)), np.ones(4)),
        (np.ones((400, 3)).T, np.ones(400)),
        (np.ones((800, 3))[::2], np.ones(3)),
        (np.ones((400, 3)), np.ones(6)[::2]),
        (np.ones((400, 3)), np.ones((3, 1))),
        (np.ones((400, 3), np.float32), np.ones(3, np.float32)),
        (np.ones((100, 3)), np.ones(3)),
        (np.ones((400, 0)), np.ones(0)),
        (np.ones(400), np.ones(400)),
    ],
)
def test_others_are_left_alone(small_blocks, x, w):
    assert product_with_copy(x, tg.from_numpy(w).requires_grad_()) is None


def test_constants_are_left_alone(small_blocks):
    assert product_with_copy(np.ones((400, 3)), tg.ones(3)) is None
    with tg.no_grad():
        assert product_with_copy(np.ones((400, 3)), tg.ones(3, requires_grad=True)) is None


@pytest.mark.parametrize("multiply", [np.matmul, np.dot, lambda x, w: x @ w])
def test_drivers_take_blocks_for_large_matrices(monkeypatch, multiply):
    made = []
    monkeypatch.setattr(copied_products, "_threads", lambda: 1)
    monkeypatch.setattr(copied_products, "apply", lambda *given: made.append(given) or apply(*given))
    x, w = generator(5).standard_normal((copied_products.WORTH_BLOCKS // 8 // 16, 16)), generator(6).standard_normal(16)
    value, gradient = tg.value_and_grad(lambda w: (multiply(x, w) ** 2).sum())(w)
    assert len(made) == 1
    assert value == np.sum((x @ w) ** 2)
    np.testing.assert_allclose(gradient, 2.0 * x.T @ (x @ w), rtol=1e-11)
