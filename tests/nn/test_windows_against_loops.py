"""Columns of windows and poolings at random geometries, against their definitions element by element."""

import itertools
from typing import Any

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.nn import functional
from tapegrad.nn.functional.sliding import columns, fold, sliding

RNG = np.random.default_rng(8)


def geometry(rank: int) -> dict[str, tuple[int, ...]]:
    """Sizes that leave at least one window."""
    while True:
        drawn = {
            "extents": tuple(RNG.integers(1, 6, rank).tolist()),
            "kernel": tuple(RNG.integers(1, 4, rank).tolist()),
            "stride": tuple(RNG.integers(1, 4, rank).tolist()),
            "dilation": tuple(RNG.integers(1, 3, rank).tolist()),
            "before": tuple(RNG.integers(0, 4, rank).tolist()),
        }
        behind = RNG.integers(0, 4, rank).tolist()
        rows = zip(*drawn.values(), behind, strict=True)
        drawn["places"] = tuple([(n + p + q - (k - 1) * d - 1) // s + 1 for n, k, s, d, p, q in rows])
        if min(drawn["places"]) > 0:
            return drawn


def columns_by_loops(x: np.ndarray, numbers: dict[str, tuple[int, ...]]) -> np.ndarray:
    """Shape (n, c, *kernel, *places)."""
    result = np.zeros((*x.shape[:2], *numbers["kernel"], *numbers["places"]), x.dtype)
    for tap in itertools.product(*map(range, numbers["kernel"])):
        for place in itertools.product(*map(range, numbers["places"])):
            steps = zip(tap, place, numbers["dilation"], numbers["stride"], numbers["before"], strict=True)
            at = tuple([o * s + t * d - p for t, o, d, s, p in steps])
            if all(0 <= k < n for k, n in zip(at, numbers["extents"], strict=True)):
                result[(slice(None), slice(None), *tap, *place)] = x[(slice(None), slice(None), *at)]
    return result


@pytest.mark.parametrize("dtype", [np.float64, np.float32, np.int64])
@pytest.mark.parametrize("rank", [1, 2, 3])
def test_columns_and_their_transpose_are_the_definition(rank: int, dtype: Any) -> None:
    for _ in range(40):
        numbers = geometry(rank)
        windows = sliding(*(numbers[name] for name in ("extents", "kernel", "stride", "dilation", "before", "places")))
        x = RNG.integers(-9, 9, (2, 3, *numbers["extents"])).astype(dtype)
        wanted = columns_by_loops(x, numbers).reshape(2, 3 * windows.taps, windows.total)
        assert np.array_equal(columns(x, windows), wanted), numbers
        assert np.array_equal(columns(x, windows, joined=True), wanted.swapaxes(0, 1).reshape(3 * windows.taps, -1)), numbers
        y = RNG.integers(-9, 9, wanted.shape).astype(dtype)
        assert (fold(y, windows) * x).sum() == (y * wanted).sum(), numbers


@pytest.mark.parametrize("rank", [1, 2, 3])
def test_largest_and_mean_of_windows_are_the_definition(rank: int) -> None:
    largest, mean = (getattr(functional, f"{name}_pool{rank}d") for name in ("max", "avg"))
    for _ in range(20):
        kernel = RNG.integers(1, 4, rank)
        options = {"stride": tuple(RNG.integers(1, 4, rank).tolist()), "padding": tuple((kernel // 2).tolist())}
        x = RNG.normal(size=(2, *(kernel + RNG.integers(0, 4, rank)).tolist()))
        numbers = {"kernel": tuple(kernel.tolist()), "dilation": (1,) * rank, "before": options["padding"]}
        pairs = zip(x.shape[1:], kernel.tolist(), options["stride"], options["padding"], strict=True)
        numbers |= {
            "stride": options["stride"],
            "extents": x.shape[1:],
            "places": tuple([(n + 2 * p - k) // s + 1 for n, k, s, p in pairs]),
        }
        cells = columns_by_loops(x[:, None], numbers).reshape(2, kernel.prod(), *numbers["places"])
        inside = columns_by_loops(np.ones_like(x[:, None]), numbers).reshape(cells.shape) == 1.0
        t = tg.tensor(x)
        assert np.array_equal(largest(t, numbers["kernel"], **options).numpy(), np.where(inside, cells, -np.inf).max(1))
        assert np.allclose(mean(t, numbers["kernel"], **options).numpy(), cells.mean(1), atol=1e-14)
        without = mean(t, numbers["kernel"], **options, count_include_pad=False).numpy()
        assert np.allclose(without, cells.sum(1) / inside.sum(1), atol=1e-14)


def test_windows_of_nothing_are_nothing() -> None:
    assert functional.conv1d(tg.zeros(0, 2, 5), tg.zeros(3, 2, 2)).shape == (0, 3, 4)
    assert functional.conv1d(tg.zeros(2, 0, 5), tg.zeros(3, 0, 2)).tolist() == [[[0.0] * 4] * 3] * 2
    assert functional.max_pool1d(tg.zeros(0, 2, 5), 2).shape == (0, 2, 2)
    assert functional.conv_transpose1d(tg.zeros(0, 2, 5), tg.zeros(2, 3, 2)).shape == (0, 3, 6)
