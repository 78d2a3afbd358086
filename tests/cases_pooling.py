"""Pooling, against the largest element or the mean of every window by itself."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from operation_case import Case

from tapegrad.nn import functional

rng = np.random.default_rng(5)


def distinct(*shape: int) -> np.ndarray:
    """Values of which no two are near."""
    return rng.permutation(math.prod(shape)).reshape(shape) / 4.0 - 1.0


def pooled(x: np.ndarray, bins: list[list[list[int]]], of: Callable[[np.ndarray, tuple[int, ...]], Any]) -> np.ndarray:
    """A number for every combination of bins, which list places along the last dimensions; ``of(window, place)`` makes it."""
    ahead = x.shape[: x.ndim - len(bins)]
    result = np.zeros(ahead + tuple(map(len, bins)))
    for lead in np.ndindex(*ahead):
        for place in np.ndindex(*map(len, bins)):
            rows = [along[k] for along, k in zip(bins, place, strict=True)]
            result[lead + place] = of(x[lead][np.ix_(*rows)], place)
    return result


def largest(window: np.ndarray, place: tuple[int, ...]) -> Any:
    return window.max()


def mean(window: np.ndarray, place: tuple[int, ...]) -> Any:
    return window.mean()


def windows(extent: int, kernel: int, stride: int, padding: int = 0, dilation: int = 1, count: int = 0) -> list[list[int]]:
    """The places of every window that are inside."""
    count = count or (extent + 2 * padding - dilation * (kernel - 1) - 1) // stride + 1
    starts = [o * stride - padding for o in range(count)]
    return [[start + t * dilation for t in range(kernel) if 0 <= start + t * dilation < extent] for start in starts]


def even(extent: int, count: int) -> list[list[int]]:
    return [list(range(o * extent // count, math.ceil((o + 1) * extent / count))) for o in range(count)]


CASES: list[Case] = [
    Case(
        "max_pool1d",
        lambda x: functional.max_pool1d(x, 3, stride=2, padding=1),
        (distinct(2, 2, 5),),
        lambda x: pooled(x, [windows(5, 3, 2, 1)], largest),
        "overlapping, padded",
    ),
    Case(
        "max_pool2d",
        lambda x: functional.max_pool2d(x, 2),
        (distinct(2, 1, 4, 5),),
        lambda x: pooled(x, [windows(4, 2, 2), windows(5, 2, 2)], largest),
        "remainder",
    ),
    Case(
        "max_pool2d",
        lambda x: functional.max_pool2d(x, (2, 2), stride=(1, 2), dilation=(2, 1), ceil_mode=True),
        (distinct(2, 4, 3),),
        lambda x: pooled(x, [windows(4, 2, 1, 0, 2), windows(3, 2, 2, count=2)], largest),
        "dilation ceil",
    ),
    Case(
        "max_pool2d",
        lambda x: functional.max_pool2d(x, 2, return_indices=True),
        (distinct(1, 1, 2, 4),),
        lambda x: (
            pooled(x, [windows(2, 2, 2), windows(4, 2, 2)], largest),
            np.array([[[[int(np.argmax(x[0, 0] == x[0, 0, :, a:b].max())) for a, b in ((0, 2), (2, 4))]]]]),
        ),
        "indices",
    ),
    Case(
        "max_pool3d",
        lambda x: functional.max_pool3d(x, 2),
        (distinct(1, 1, 2, 2, 4),),
        lambda x: pooled(x, [windows(2, 2, 2), windows(2, 2, 2), windows(4, 2, 2)], largest),
    ),
    Case(
        "avg_pool1d",
        lambda x: functional.avg_pool1d(x, 3, stride=2, padding=1, count_include_pad=False),
        (distinct(1, 2, 6),),
        lambda x: pooled(x, [windows(6, 3, 2, 1)], mean),
        "without padding in the mean",
    ),
    Case(
        "avg_pool1d",
        lambda x: functional.avg_pool1d(x, 2, stride=3, padding=1),
        (distinct(2, 1, 6),),
        lambda x: pooled(x, [windows(6, 2, 3, 1)], lambda window, place: window.sum() / 2),
        "gaps, padded",
    ),
    Case(
        "avg_pool2d",
        lambda x: functional.avg_pool2d(x, 2, ceil_mode=True),
        (distinct(1, 1, 4, 3),),
        lambda x: pooled(x, [windows(4, 2, 2), windows(3, 2, 2, count=2)], mean),
        "ceil",
    ),
    Case(
        "avg_pool2d",
        lambda x: functional.avg_pool2d(x, (2, 3), stride=1, divisor_override=5),
        (distinct(1, 3, 4),),
        lambda x: pooled(x, [windows(3, 2, 1), windows(4, 3, 1)], lambda window, place: window.sum() / 5),
        "divisor",
    ),
    Case(
        "adaptive_avg_pool1d",
        lambda x: functional.adaptive_avg_pool1d(x, 3),
        (distinct(2, 2, 5),),
        lambda x: pooled(x, [even(5, 3)], mean),
        "shared elements",
    ),
    Case(
        "adaptive_avg_pool2d",
        lambda x: functional.adaptive_avg_pool2d(x, (None, 1)),
        (distinct(1, 1, 2, 4),),
        lambda x: pooled(x, [even(2, 2), even(4, 1)], mean),
        "one size kept",
    ),
    Case(
        "adaptive_avg_pool2d",
        lambda x: functional.adaptive_avg_pool2d(x, (3, 2)),
        (distinct(1, 2, 2),),
        lambda x: pooled(x, [even(2, 3), even(2, 2)], mean),
        "more places than elements",
    ),
    Case(
        "adaptive_max_pool1d",
        lambda x: functional.adaptive_max_pool1d(x, 2),
        (distinct(1, 2, 3),),
        lambda x: pooled(x, [even(3, 2)], largest),
    ),
    Case(
        "adaptive_max_pool2d",
        lambda x: functional.adaptive_max_pool2d(x, (2, 3)),
        (distinct(1, 2, 3, 4),),
        lambda x: pooled(x, [even(3, 2), even(4, 3)], largest),
    ),
    Case(
        "avg_pool3d",
        lambda x: functional.avg_pool3d(x, (1, 2, 2), stride=(1, 2, 1)),
        (distinct(1, 2, 2, 3),),
        lambda x: pooled(x, [[[0], [1]], [[0, 1]], [[0, 1], [1, 2]]], mean),
    ),
    Case(
        "adaptive_avg_pool3d",
        lambda x: functional.adaptive_avg_pool3d(x, (1, 2, 2)),
        (distinct(1, 2, 2, 3),),
        lambda x: pooled(x, [even(2, 1), even(2, 2), even(3, 2)], mean),
    ),
    Case(
        "adaptive_max_pool3d",
        lambda x: functional.adaptive_max_pool3d(x, (1, 2, 2)),
        (distinct(1, 2, 2, 3),),
        lambda x: pooled(x, [even(2, 1), even(2, 2), even(3, 2)], largest),
    ),
]
