"""Sums of small tensors whose elements are not side by side have NumPy's bits."""

import numpy as np
import pytest

import tapegrad as tg

RNG = np.random.default_rng(6)
MEMORY = RNG.normal(size=4096) * np.exp(4.0 * RNG.normal(size=4096))


def part(rng: np.random.Generator) -> np.ndarray:
    """A view of an array with up to four dimensions, exchanged, cut, stepped through, stretched."""
    rank = int(rng.integers(1, 5))
    shape = tuple(int(n) for n in rng.integers(1, 8 if rank > 2 else 14, rank))
    found = MEMORY[: int(np.prod(shape))].reshape(shape).transpose(rng.permutation(rank))
    if rng.random() < 0.7:
        found = found[tuple(slice(int(rng.integers(0, max(1, n // 2))), None, int(rng.integers(1, 3))) for n in found.shape)]
    if rng.random() < 0.3:
        wide = found[None] if rng.random() < 0.5 else found[..., None]
        found = np.broadcast_to(wide, tuple(4 if n == 1 and rng.random() < 0.6 else n for n in wide.shape))
    return found


@pytest.mark.parametrize("seed", range(8))
def test_sums_have_numpys_bits(seed: int) -> None:
    rng = np.random.default_rng(seed)
    for _ in range(100):
        array = part(rng)
        x = tg.from_numpy(np.array(array)) if array.flags.c_contiguous else tg.as_tensor(array)
        assert x.sum().item() == np.add.reduce(array, None)


@pytest.mark.parametrize("seed", range(4))
def test_gradients_are_ones(seed: int) -> None:
    rng = np.random.default_rng(seed)
    x = tg.tensor(rng.normal(size=(3, 4, 5)), requires_grad=True)
    for _ in range(20):
        order = tuple(int(k) for k in rng.permutation(3))
        first, last = int(rng.integers(0, 2)), int(rng.integers(2, 4))
        seen = x.permute(*order)[first:last, ::2]
        (found,) = tg.autograd.grad(seen.sum(), [x])
        expected = np.zeros((3, 4, 5))
        expected.transpose(order)[first:last, ::2] = 1.0
        np.testing.assert_array_equal(found.numpy(), expected)


def test_a_view_that_goes_backwards_is_summed_too() -> None:
    turned = MEMORY[:60].reshape(5, 12)[::-1, ::2]
    assert tg.as_tensor(turned).sum().item() == np.add.reduce(turned, None)


def test_sums_of_nothing_infinities_and_signed_zeros() -> None:
    assert tg.zeros(0, 3).t().sum().item() == 0.0
    zeros = tg.from_numpy(np.full((4, 4), -0.0)).t()[1:3]
    assert np.signbit(zeros.sum().item()) == np.signbit(np.add.reduce(zeros.numpy(), None))
    mixed = tg.from_numpy(np.array([[np.inf, 1.0], [-np.inf, 2.0]])).t()
    assert np.isnan(mixed.sum().item())
