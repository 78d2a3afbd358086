"""Sums of large arrays: their values, and the bits that they have wherever they are computed."""

import math

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.engine.layout import LARGEST_BLOCK, MANY, ROW_OF_MANY
from tapegrad.ops.reductions import total

SIZES = [LARGEST_BLOCK, LARGEST_BLOCK + 1, 9001, MANY - 1, MANY, MANY + 1, 40 * ROW_OF_MANY, 70 * ROW_OF_MANY + 1023, 300_001]


@pytest.mark.parametrize("size", SIZES)
def test_a_sum_is_right(size: int) -> None:
    a = np.random.default_rng(size).standard_normal(size) * 10.0 ** np.random.default_rng(1).integers(-5, 5, size)
    assert tg.tensor(a).sum().item() == pytest.approx(math.fsum(a), rel=0, abs=1e-14 * np.abs(a).sum())


@pytest.mark.parametrize("size", SIZES)
def test_the_method_has_the_bits_of_the_function(size: int) -> None:
    a = np.random.default_rng(size).standard_normal(size)
    assert tg.tensor(a).sum().item() == float(total(a, None)) == tg.sum(tg.tensor(a)).item()


@pytest.mark.parametrize("shape", [(70, 70), (200, 300), (46, 46, 46), (1, 40_000), (40_000, 1)])
def test_the_sum_of_a_block_is_that_of_its_elements_in_order(shape: tuple[int, ...]) -> None:
    a = np.random.default_rng(3).standard_normal(shape)
    assert tg.tensor(a).sum().item() == float(total(a, None)) == tg.tensor(a.reshape(-1)).sum().item()


@pytest.mark.parametrize("odd", [np.inf, -np.inf, np.nan])
def test_infinities_and_nan_come_through(odd: float) -> None:
    a = np.ones(50_000)
    a[31_234] = odd
    assert tg.tensor(a).sum().item() == pytest.approx(odd, nan_ok=True)
    a[7] = -odd
    assert math.isnan(tg.tensor(a).sum().item())


def test_a_sum_of_negative_zeros_is_that_of_the_function() -> None:
    a = np.full(2 * MANY, -0.0)
    assert math.copysign(1.0, tg.tensor(a).sum().item()) == math.copysign(1.0, float(total(a, None)))


def test_a_large_part_is_summed_alone() -> None:
    a = np.random.default_rng(4).standard_normal((3, 50_000))
    x = tg.tensor(a, requires_grad=True)
    x[1].sum().backward()
    assert x[1].sum().item() == float(total(a[1], None))
    assert np.array_equal(x.grad.numpy(), np.array([[0.0], [1.0], [0.0]]) * np.ones(50_000))


PARTS = {
    "columns": lambda w: w[:, :170], "columns, transposed": lambda w: w[:, 20:160].T, "every second row": lambda w: w[::2],
    "rows and columns": lambda w: w[3:90, 5:], "one column": lambda w: w[:, 3:4], "every second column": lambda w: w[:, ::2],
    "transposed": lambda w: w.T, "upside down": lambda w: w[::-1, :170], "one more dimension": lambda w: w[:, None, :170],
    "stretched": lambda w: np.broadcast_to(w[0], (40, 200)), "wide": lambda w: w.reshape(2, -1)[:, :9000],
    "blocks": lambda w: w.reshape(10, 10, 200)[:, 2:7, :100],
}  # fmt: skip


@pytest.mark.parametrize("name", PARTS)
def test_the_sum_of_what_is_no_block_has_numpys_bits(name: str) -> None:
    a = np.random.default_rng(5).standard_normal((100, 200))
    part = PARTS[name](a)
    found = tg.from_numpy(part).sum().item()
    assert found == np.add.reduce(part, None)
    assert found == pytest.approx(math.fsum(part.reshape(-1)), rel=0, abs=1e-14 * np.abs(part).sum())


def test_sums_of_columns_have_gradients_in_these_alone() -> None:
    x = tg.tensor(np.ones((100, 200)), requires_grad=True)
    (2.0 * x[:, :150].sum() + x[:, 150:].sum()).backward()
    assert np.array_equal(x.grad.numpy(), np.where(np.arange(200) < 150, 2.0, 1.0) * np.ones((100, 1)))
