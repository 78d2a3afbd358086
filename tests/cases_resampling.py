"""Resizing and slopes of samples, against weights and differences that are written out place by place."""

from collections.abc import Callable
from typing import Any

import numpy as np
from operation_case import Case

import tapegrad as tg
from tapegrad.nn import functional

rng = np.random.default_rng(21)
LINE, IMAGE, VOLUME = rng.normal(size=(2, 2, 4)), rng.normal(size=(1, 2, 3, 4)), rng.normal(size=(1, 1, 2, 3, 2))
X1, X2, WEIGHT, BIAS = rng.normal(size=(2, 3)), rng.normal(size=(2, 4)), rng.normal(size=(5, 3, 4)), rng.normal(size=5)
PLACES = np.array([0.0, 0.5, 1.7, 2.0])

CHANNELS = rng.normal(size=(1, 8, 2, 3))


def shuffled(x: np.ndarray) -> np.ndarray:
    """Blocks of two by two pixels, from four channels each."""
    n, channels, height, width = x.shape
    found = np.empty((n, channels // 4, 2 * height, 2 * width))
    for k in range(4):
        found[:, :, k // 2 :: 2, k % 2 :: 2] = x[:, k::4]
    return found


def unshuffled(x: np.ndarray) -> np.ndarray:
    n, channels, height, width = x.shape
    found = np.empty((n, 4 * channels, height // 2, width // 2))
    for k in range(4):
        found[:, k::4] = x[:, :, k // 2 :: 2, k % 2 :: 2]
    return found


def sliding_sums(x: np.ndarray, rank: int) -> np.ndarray:
    """Sums of neighbours in the last dimensions."""
    for dim in range(-rank, 0):
        x = np.moveaxis(x, dim, -1)
        x = np.moveaxis(x[..., 1:] + x[..., :-1], -1, dim)
    return x


def tent(distance: float) -> float:
    return max(0.0, 1.0 - abs(distance))


def keys(distance: float, a: float = -0.75) -> float:
    x = abs(distance)
    if x <= 1:
        return (a + 2) * x**3 - (a + 3) * x**2 + 1
    return a * (x**3 - 5 * x**2 + 8 * x - 4) if x < 2 else 0.0


def weights(extent: int, count: int, kernel: Callable[[float], float], corners: bool, step: float | None = None) -> np.ndarray:
    """Of every element in every place; what is outside counts to the element at the edge."""
    found = np.zeros((count, extent))
    for k in range(count):
        if corners:
            at = k * (extent - 1) / (count - 1) if count > 1 else 0.0
        else:
            at = (k + 0.5) * (extent / count if step is None else step) - 0.5
        for n in range(-3, extent + 3):
            found[k, min(max(n, 0), extent - 1)] += kernel(at - n)
    return found


def resized(x: np.ndarray, *along: np.ndarray) -> np.ndarray:
    for n, matrix in enumerate(along):
        axis = x.ndim - len(along) + n
        x = np.moveaxis(np.tensordot(x, matrix, (axis, 1)), -1, axis)
    return x


def nearest(extent: int, count: int, half: float = 0.0) -> np.ndarray:
    found = np.zeros((count, extent))
    found[np.arange(count), np.minimum((np.arange(count) + half) * extent // count, extent - 1).astype(int)] = 1.0
    return found


def resizing(label: str, x: np.ndarray, options: dict[str, Any], *along: np.ndarray) -> Case:
    return Case("interpolate", lambda t: functional.interpolate(t, **options), (x,), lambda a: resized(a, *along), label)


def slopes(label: str, call: Callable[..., Any], reference: Callable[..., Any], *arrays: np.ndarray) -> Case:
    return Case("gradient", call, arrays, reference, label, expands=False)


CASES: list[Case] = [
    resizing("nearest", LINE, {"size": 7}, nearest(4, 7)),
    resizing("nearest image", IMAGE, {"size": (6, 3)}, nearest(3, 6), nearest(4, 3)),
    resizing("nearest volume", VOLUME, {"scale_factor": (2, 1, 1.5)}, nearest(2, 4), nearest(3, 3), nearest(2, 3)),
    resizing("nearest exact", LINE, {"size": 3, "mode": "nearest-exact"}, nearest(4, 3, 0.5)),
    resizing("linear", LINE, {"size": 7, "mode": "linear"}, weights(4, 7, tent, False)),
    resizing("linear corners", LINE, {"size": 7, "mode": "linear", "align_corners": True}, weights(4, 7, tent, True)),
    resizing("linear factor", LINE, {"scale_factor": 1.9, "mode": "linear"}, weights(4, 7, tent, False, 1 / 1.9)),
    resizing(
        "linear recomputed", LINE, {"scale_factor": 1.9, "mode": "linear", "recompute_scale_factor": True},
        weights(4, 7, tent, False),
    ),
    resizing("bilinear", IMAGE, {"size": (5, 2), "mode": "bilinear"}, weights(3, 5, tent, False), weights(4, 2, tent, False)),
    resizing(
        "bilinear corners", IMAGE, {"size": (5, 1), "mode": "bilinear", "align_corners": True}, weights(3, 5, tent, True),
        weights(4, 1, tent, True),
    ),
    resizing("bicubic", IMAGE, {"size": (5, 6), "mode": "bicubic"}, weights(3, 5, keys, False), weights(4, 6, keys, False)),
    resizing(
        "bicubic corners", IMAGE, {"size": (5, 3), "mode": "bicubic", "align_corners": True}, weights(3, 5, keys, True),
        weights(4, 3, keys, True),
    ),
    resizing(
        "trilinear", VOLUME, {"size": (3, 2, 5), "mode": "trilinear"}, weights(2, 3, tent, False), weights(3, 2, tent, False),
        weights(2, 5, tent, False),
    ),
    resizing("area", LINE, {"size": 2, "mode": "area"}, np.kron(np.eye(2), [[0.5, 0.5]])),
    Case(
        "bilinear", functional.bilinear, (X1, X2, WEIGHT, BIAS), lambda x, y, w, b: np.einsum("bm,kmn,bn->bk", x, w, y) + b,
        expands=False,
    ),
    Case("bilinear", functional.bilinear, (X1[0], X2[0], WEIGHT), lambda x, y, w: np.einsum("m,kmn,n->k", x, w, y), "vectors"),
    slopes("all", lambda x: tg.gradient(x), lambda x: tuple(np.gradient(x)), IMAGE[0, 0]),
    slopes("spacing", lambda x: tg.gradient(x, spacing=[0.5, 2.0]), lambda x: tuple(np.gradient(x, 0.5, 2.0)), IMAGE[0, 0]),
    slopes(
        "second order", lambda x: tg.gradient(x, spacing=0.3, dim=-1, edge_order=2),
        lambda x: np.gradient(x, 0.3, axis=-1, edge_order=2), IMAGE[0],
    ),
    slopes(
        "coordinates",
        lambda x, s: tg.gradient(x, spacing=(s,), dim=1, edge_order=2),
        lambda x, s: np.gradient(x, s, axis=1, edge_order=2),
        IMAGE[0, 0],
        PLACES,
    ),
    slopes(
        "uneven", lambda x, s: tg.gradient(x, spacing=[s], dim=(1,)), lambda x, s: np.gradient(x, s, axis=1), IMAGE[0, 0], PLACES
    ),
    Case("positive", lambda x: tg.positive(x) * 1.0, (X1,), lambda x: +x),
    Case("pixel_shuffle", lambda x: functional.pixel_shuffle(x, 2), (CHANNELS,), shuffled),
    Case("pixel_unshuffle", lambda x: functional.pixel_unshuffle(x, 2), (shuffled(CHANNELS),), unshuffled),
    Case("channel_shuffle", lambda x: functional.channel_shuffle(x, 2), (CHANNELS,), lambda x: x[:, [0, 4, 1, 5, 2, 6, 3, 7]]),
    *(
        Case(
            name,
            lambda x, name=name, rank=rank: getattr(functional, name)(x, 3.0, 2, 1),
            (np.abs(CHANNELS.reshape(shape)) + 0.1,),
            lambda x, rank=rank: sliding_sums(x**3.0, rank) ** (1.0 / 3.0),
        )
        for rank, name, shape in ((1, "lp_pool1d", (1, 4, 12)), (2, "lp_pool2d", (2, 2, 3, 4)), (3, "lp_pool3d", (1, 2, 2, 3, 4)))
    ),
    Case(
        "lp_pool1d",
        lambda x: functional.lp_pool1d(x, 1.0, 2, 1),
        (np.cos(np.arange(12.0)).reshape(1, 2, 6),),
        lambda x: sliding_sums(x, 1),
        "sums of either sign",
    ),
]  # fmt: skip
