"""Products of matrices in machine code of programs, which have last digits of their own."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from machine_code import with_code

import tapegrad as tg
from tapegrad.programs.fused import product_tiles

# Rows, inner elements, columns: whole tiles, and what is left of tiles and registers.
SHAPES = [
    (8, 16, 32), (16, 1, 64), (7, 5, 3), (1, 30, 50), (2, 9, 17), (3, 70, 130), (9, 11, 33), (13, 40, 2), (33, 8, 300),
    (30, 300, 47), (4, 64, 16), (21, 2, 19),
]  # fmt: skip


def whole_numbers(shape: tuple[int, ...], dtype: Any, seed: int) -> np.ndarray:
    return np.random.default_rng(seed).integers(-9, 10, shape).astype(dtype)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("shape", SHAPES)
def test_products_of_whole_numbers_are_exact(shape: tuple[int, int, int], dtype: Any) -> None:
    rows, inner, columns = shape
    x, y = whole_numbers((rows, inner), dtype, 0), whole_numbers((inner, columns), dtype, 1)
    run = with_code(lambda x, y: x @ y, x, y)
    assert np.array_equal(run(x, y), x @ y)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("shape", SHAPES[4:10])
def test_gradients_of_products_of_whole_numbers_are_exact(shape: tuple[int, int, int], dtype: Any) -> None:
    rows, inner, columns = shape
    x, y = whole_numbers((rows, inner), dtype, 2), whole_numbers((inner, columns), dtype, 3)
    weights = whole_numbers((rows, columns), dtype, 4)

    def f(x: Any, y: Any, weights: Any) -> Any:
        return ((x @ y) * weights).sum()

    found = with_code(f, x, y, weights, driver=lambda f: tg.grad(f, (0, 1)))(x, y, weights)
    assert np.array_equal(found[0], weights @ y.T)
    assert np.array_equal(found[1], x.T @ weights)


@pytest.mark.parametrize(("dtype", "digits"), [(np.float64, 2.0**-53), (np.float32, 2.0**-24)])
def test_products_are_as_exact_as_sums_of_that_length(dtype: Any, digits: float) -> None:
    rng = np.random.default_rng(5)
    x, y = rng.normal(size=(19, 250)).astype(dtype), rng.normal(size=(250, 37)).astype(dtype)
    found = with_code(lambda x, y: x @ y, x, y)(x, y)
    wide, other = x.astype(np.longdouble), y.astype(np.longdouble)
    assert np.all(np.abs(found - wide @ other) <= 250 * digits * (np.abs(wide) @ np.abs(other)))


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_matrices_in_other_orders_of_elements(dtype: Any) -> None:
    x, y = whole_numbers((24, 10), dtype, 6), whole_numbers((12, 70), dtype, 7)
    run = with_code(lambda x, y: x[::2].T @ y[:, 3:] + x[:12, :10].T @ y[:, :67], x, y)
    assert np.array_equal(run(x, y), x[::2].T @ y[:, 3:] + x[:12, :10].T @ y[:, :67])


def test_infinite_and_undefined_elements_stay_in_their_rows_and_columns() -> None:
    x, y = whole_numbers((9, 20), np.float64, 8), whole_numbers((20, 19), np.float64, 9)
    run = with_code(lambda x, y: x @ y, x, y)
    x[3, 4], y[5, 18] = np.nan, np.inf
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(run(x, y), x @ y)


def test_registers_of_half_the_length(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(product_tiles, "_registers", lambda: (32, 12, 6))
    for shape in SHAPES[:9]:
        rows, inner, columns = shape
        x, y = whole_numbers((rows, inner), np.float32, 10), whole_numbers((inner, columns), np.float32, 11)
        assert np.array_equal(with_code(lambda x, y: x @ y, x, y)(x, y), x @ y)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("shape", [*SHAPES, (5, 512, 9), (4, 513, 20)])
def test_a_transposed_matrix_gives_the_same_bits(shape: tuple[int, int, int], dtype: Any) -> None:
    rows, inner, columns = shape
    rng = np.random.default_rng(12)
    x, y = rng.normal(size=(rows, inner)).astype(dtype), rng.normal(size=(columns, inner)).astype(dtype)
    found, straight = with_code(lambda x, y: x @ y.T, x, y)(x, y), with_code(lambda x, y: x @ y, x, y.T.copy())(x, y.T.copy())
    if rows < product_tiles.ROWS or inner > product_tiles.PACKED:  # BLAS multiplies these
        np.testing.assert_allclose(found, straight, rtol=0.0, atol=inner * rows * np.finfo(dtype).eps)
    else:
        assert np.array_equal(found, straight)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_any_length_of_registers_gives_the_same_bits(monkeypatch: pytest.MonkeyPatch, dtype: Any) -> None:
    rng = np.random.default_rng(13)
    x, y = rng.normal(size=(19, 70)).astype(dtype), rng.normal(size=(70, 37)).astype(dtype)
    found = []
    for registers in ((64, 16, 8), (32, 12, 6), (16, 12, 6)):
        monkeypatch.setattr(product_tiles, "_registers", lambda registers=registers: registers)
        found.append(with_code(lambda x, y: (x @ y) @ (x @ y).T, x, y)(x, y))
    assert np.array_equal(found[0], found[1])
    assert np.array_equal(found[0], found[2])


def test_large_matrices_have_the_bits_of_numpys_products() -> None:
    rng = np.random.default_rng(14)
    x, y = rng.normal(size=(3, 2100)), rng.normal(size=(2100, 37))
    assert np.array_equal(with_code(lambda x, y: x @ y, x, y)(x, y), x @ y)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_products_with_vectors(dtype: Any) -> None:
    x, y, z = (whole_numbers(shape, dtype, k) for k, shape in enumerate([(40,), (40, 70), (70,)], 20))

    def f(x: Any, y: Any, z: Any) -> Any:
        return (x @ y) @ z

    value, found = with_code(f, x, y, z, driver=lambda f: tg.value_and_grad(f, (0, 1, 2)))(x, y, z)
    assert value == f(x, y, z)
    for a, b in zip(found, (y @ z, np.outer(x, z), x @ y), strict=True):
        assert np.array_equal(a, b)
    assert np.array_equal(with_code(lambda x, y: x @ y, x, y)(x, y), x @ y)
