"""Normalising layers, embedding and attention, against their formulas in NumPy."""

from typing import Any

import numpy as np
from operation_case import Case

import tapegrad as tg
from tapegrad.nn import functional

rng = np.random.default_rng(7)
X = rng.uniform(-1.5, 1.5, (2, 4, 3))
W, B = rng.uniform(0.5, 1.5, 4), rng.uniform(-1, 1, 4)
LAST_W, LAST_B = rng.uniform(0.5, 1.5, (4, 3)), rng.uniform(-1, 1, (4, 3))
MEAN, VAR = np.array([0.1, -0.2, 0.3, 0.4]), np.array([0.5, 1.5, 0.8, 1.2])
TABLE = rng.uniform(-1, 1, (4, 2))
NUMBERS = np.array([[1, 3, 1], [0, 1, 3]])
QUERY, KEY, VALUE = rng.uniform(-1, 1, (2, 3, 2)), rng.uniform(-1, 1, (2, 4, 2)), rng.uniform(-1, 1, (2, 4, 3))


def units(x: np.ndarray, over: Any, eps: float) -> np.ndarray:
    return (x - x.mean(over, keepdims=True)) / np.sqrt(x.var(over, keepdims=True) + eps)


def by_channel(x: np.ndarray) -> np.ndarray:
    return x[:, None]


def attention(q: np.ndarray, k: np.ndarray, v: np.ndarray, added: Any = 0.0) -> np.ndarray:
    fit = np.exp(q @ k.swapaxes(1, 2) / np.sqrt(2) + added)
    return fit / fit.sum(-1, keepdims=True) @ v


def stored(values: np.ndarray, like: tg.Tensor) -> tg.Tensor:
    return tg.tensor(values, dtype=like.dtype)


CASES: list[Case] = [
    Case(
        "layer_norm",
        lambda x, w, b: functional.layer_norm(x, (4, 3), w, b, 0.1),
        (X, LAST_W, LAST_B),
        lambda x, w, b: units(x, (1, 2), 0.1) * w + b,
    ),
    Case("layer_norm", lambda x: functional.layer_norm(x, (3,), eps=0.1), (X,), lambda x: units(x, 2, 0.1), "plain"),
    Case(
        "rms_norm",
        lambda x, w: functional.rms_norm(x, (3,), w, 0.1),
        (X[0], B[:3]),
        lambda x, w: x / np.sqrt((x * x).mean(-1, keepdims=True) + 0.1) * w,
    ),
    Case(
        "batch_norm",
        lambda x, w, b: functional.batch_norm(x, None, None, w, b, training=True, eps=0.1),
        (X, W, B),
        lambda x, w, b: units(x, (0, 2), 0.1) * by_channel(w) + by_channel(b),
        "training",
    ),
    Case(
        "batch_norm",
        lambda x, w, b: functional.batch_norm(x, stored(MEAN, x), stored(VAR, x), w, b, eps=0.1),
        (X, W, B),
        lambda x, w, b: (x - by_channel(MEAN)) / np.sqrt(by_channel(VAR) + 0.1) * by_channel(w) + by_channel(b),
        "evaluation",
    ),
    Case(
        "group_norm",
        lambda x, w, b: functional.group_norm(x, 2, w, b, 0.1),
        (X, W, B),
        lambda x, w, b: units(x.reshape(2, 2, 6), 2, 0.1).reshape(x.shape) * by_channel(w) + by_channel(b),
    ),
    Case(
        "instance_norm",
        lambda x, w: functional.instance_norm(x, weight=w, eps=0.1),
        (X, W),
        lambda x, w: units(x, 2, 0.1) * by_channel(w),
    ),
    Case(
        "local_response_norm",
        lambda x: functional.local_response_norm(x, 2, 0.3, 0.6, 1.2),
        (X,),
        lambda x: x / (1.2 + 0.3 * (x**2 + np.pad(x**2, ((0, 0), (1, 0), (0, 0)))[:, :-1]) / 2) ** 0.6,
    ),
    Case("embedding", lambda n, table: functional.embedding(n, table), (NUMBERS, TABLE), lambda n, table: table[n]),
    Case(
        "scaled_dot_product_attention",
        functional.scaled_dot_product_attention,
        (QUERY, KEY, VALUE),
        attention,
    ),
    Case(
        "scaled_dot_product_attention",
        lambda q, k, v: functional.scaled_dot_product_attention(q, k, v, is_causal=True),
        (QUERY, KEY, VALUE),
        lambda q, k, v: attention(q, k, v, np.where(np.tri(3, 4) > 0, 0, -np.inf)),
        "causal",
    ),
]
