"""Sums of many neighbours have the bits of NumPy's, which adds them up by halves."""

import numpy as np
import pytest

import tapegrad as tg

RNG = np.random.default_rng(11)


def numbers(*shape: int) -> np.ndarray:
    return RNG.normal(size=shape) * 10.0 ** RNG.integers(-6, 6, shape)


@pytest.mark.parametrize("count", [511, 512, 513, 519, 520, 1000, 1024, 2047, 2049, 4097, 8191, 8192, 20_001, 32_767])
def test_vectors(count: int) -> None:
    for _ in range(5):
        a = numbers(count)
        assert tg.tensor(a).sum().item() == np.add.reduce(a)


@pytest.mark.parametrize("shape", [(316, 316), (50, 700), (700, 50), (3, 4000), (9000, 4), (1, 5000), (60, 33)])
def test_matrices_by_columns(shape: tuple[int, int]) -> None:
    a = numbers(*shape)
    x = tg.tensor(a, requires_grad=True)
    total = x.T.sum()
    assert total.item() == np.add.reduce(a.T, None)
    total.backward()
    np.testing.assert_array_equal(x.grad.numpy(), 1.0)


@pytest.mark.parametrize("columns", [1, 7, 100, 158, 315])
def test_rows_that_lie_apart(columns: int) -> None:
    a = numbers(316, 316)
    assert tg.tensor(a)[:, :columns].sum().item() == np.add.reduce(a[:, :columns], None)
    assert tg.tensor(a)[:, :columns].T.sum().item() == np.add.reduce(a[:, :columns].T, None)


@pytest.mark.parametrize("odd", [np.inf, -np.inf, np.nan])
@pytest.mark.parametrize("place", [0, 127, 128, 999, 2047, 2499])
def test_an_odd_number_is_seen_wherever_it_stands(place: int, odd: float) -> None:
    a = numbers(2500)
    a[place] = odd
    np.testing.assert_array_equal(tg.tensor(a).sum().item(), odd)


def test_zeros_keep_their_sign_as_numpys_do() -> None:
    a = np.full(3000, -0.0)
    assert np.signbit(tg.tensor(a).sum().item()) == np.signbit(np.add.reduce(a))
