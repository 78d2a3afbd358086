"""Large operands: constants that nobody can change any more, and values with NumPy's bits."""

from typing import Any

import numpy as np
from many_cases import each

import tapegrad as tg

RNG = np.random.default_rng(3)
TALL = RNG.standard_normal((10_000, 3))


def product(x: Any, constant: np.ndarray) -> Any:
    return (constant @ x[:3]).sum()


def product_of_elements(x: Any, constant: np.ndarray) -> Any:
    return (x[0] * constant).sum() + (constant * x[1]).sum()


def of_numpy(x: Any, constant: np.ndarray) -> Any:
    return np.logaddexp(constant, x[1]).sum() + np.hypot(x[0], constant).sum()


@each("function", [product, product_of_elements, of_numpy])
def test_a_large_constant_that_is_written_afterwards_counts_as_it_was(function: Any) -> None:
    def overwriting(x: Any) -> Any:
        constant = TALL.copy()
        value = function(x, constant)
        constant[:] = np.nan
        return value

    point = np.array([0.5, 1.5, -0.3])
    np.testing.assert_array_equal(tg.grad(overwriting)(point), tg.grad(lambda x: function(x, TALL))(point))


def test_logarithms_of_sums_of_exponentials_have_numpys_bits() -> None:
    edges = np.array([0.0, -0.0, np.inf, -np.inf, np.nan, 1.0, -1.0, 1e308, -1e308, 5e-324, 36.0, -745.0])
    x, y = (np.tile(grid.ravel(), 20) for grid in np.meshgrid(edges, edges))
    spread = np.concatenate([scale * RNG.standard_normal((2, 3000)) for scale in (1e-3, 1.0, 30.0, 900.0)], 1)
    wide = np.repeat(spread, 2, 1)[:, ::2]
    for a, b in ((x, y), tuple(spread), tuple(wide), (x, 0.25), (-1.5, y), (spread[0], spread[0])):
        with np.errstate(all="ignore"):
            expected = np.logaddexp(a, b)
        found = tg.logaddexp(*(tg.tensor(value, dtype=tg.float64) for value in (a, b))).numpy()
        np.testing.assert_array_equal(found, expected)


def test_products_of_large_untracked_arrays_with_numbers_have_numpys_values() -> None:
    for number in (0.5, tg.tensor(0.5, dtype=tg.float64)):
        found = tg.tensor(TALL) * number
        np.testing.assert_array_equal(found.numpy(), TALL * 0.5)
        assert found.dtype == np.float64
    assert (tg.tensor(TALL, dtype=tg.float32) * 0.5).dtype == np.float32
