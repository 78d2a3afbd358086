"""Losses, against their formulas in NumPy."""

from typing import Any

import numpy as np
from operation_case import Case

import tapegrad as tg
from tapegrad.nn import functional

A = np.array([[0.7, -1.3, 2.2], [-0.4, 1.6, -2.8]])
B = np.array([[1.9, 0.6, -1.1], [-0.8, -0.6, 0.4]])
P = np.array([[0.2, 0.7, 0.1], [0.5, 0.15, 0.35]])
Q = np.array([[0.6, 0.3, 0.8], [0.45, 0.9, 0.25]])
W = np.array([0.5, 2.0, 1.25])
CLASSES = np.array([2, 0])
SIGNS = np.array([1, -1])
SPATIAL = np.array([[[0.7, -1.3], [-0.4, 1.6], [2.2, -2.8]], [[1.9, 0.6], [-1.1, 2.5], [-0.8, 0.4]]])
PIXELS = np.array([[2, 1], [-100, 0]])


def logs(x: np.ndarray, along: int = 1) -> np.ndarray:
    return x - np.log(np.exp(x).sum(along, keepdims=True))


def chosen(x: np.ndarray, classes: np.ndarray) -> np.ndarray:
    return np.take_along_axis(x, classes[:, None], 1)[:, 0]


def norm(x: np.ndarray) -> np.ndarray:
    return np.sqrt((x * x).sum(-1))


def cosine(x: np.ndarray, y: np.ndarray) -> np.ndarray:
    return (x * y).sum(-1) / (norm(x) * norm(y))


def spatial_cross_entropy(x: np.ndarray, classes: np.ndarray) -> Any:
    kept = classes != -100
    return -(chosen(logs(x), np.where(kept, classes, 0)) * kept).sum() / kept.sum()


def binary(x: np.ndarray, y: np.ndarray, positive: Any = 1.0) -> np.ndarray:
    return -(positive * y * np.log(x) + (1 - y) * np.log(1 - x))


def logistic(x: np.ndarray) -> np.ndarray:
    return 1 / (1 + np.exp(-x))


def huber(r: np.ndarray, delta: float) -> np.ndarray:
    return np.where(np.abs(r) < delta, r * r / 2, delta * (np.abs(r) - delta / 2))


def hinge(x: np.ndarray) -> np.ndarray:
    return np.maximum(x, 0)


def smoothed(x: np.ndarray, classes: np.ndarray) -> Any:
    target = 0.7 * np.eye(3)[classes] + 0.3 / 3
    return -(logs(x) * target).sum(1)


CASES: list[Case] = [
    Case("mse_loss", functional.mse_loss, (A, B), lambda x, y: ((x - y) ** 2).mean()),
    Case("mse_loss", lambda x, y: functional.mse_loss(x, y, reduction="none"), (A, B), lambda x, y: (x - y) ** 2, "none"),
    Case(
        "mse_loss",
        lambda x, y, w: functional.mse_loss(x, y, weight=w),
        (A, B, Q),
        lambda x, y, w: ((x - y) ** 2 * w).sum() / w.sum(),
        "weight",
    ),
    Case("l1_loss", functional.l1_loss, (A, B), lambda x, y: np.abs(x - y).mean()),
    Case(
        "smooth_l1_loss",
        lambda x, y: functional.smooth_l1_loss(x, y, reduction="sum", beta=1.5),
        (A, B),
        lambda x, y: huber(x - y, 1.5).sum() / 1.5,
    ),
    Case("huber_loss", lambda x, y: functional.huber_loss(x, y, delta=1.5), (A, B), lambda x, y: huber(x - y, 1.5).mean()),
    Case("nll_loss", functional.nll_loss, (A, CLASSES), lambda x, c: -chosen(x, c).mean()),
    Case(
        "nll_loss",
        lambda x, c: functional.nll_loss(x, c, tg.tensor(W, dtype=x.dtype), reduction="none"),
        (A, CLASSES),
        lambda x, c: -chosen(x, c) * W[c],
        "weight none",
    ),
    Case(
        "nll_loss",
        lambda x, c: functional.nll_loss(x, c, tg.tensor(W, dtype=x.dtype), ignore_index=0),
        (A, CLASSES),
        lambda x, c: -x[0, 2],
        "ignored",
    ),
    Case("cross_entropy", functional.cross_entropy, (A, CLASSES), lambda x, c: -chosen(logs(x), c).mean()),
    Case("cross_entropy", functional.cross_entropy, (A[0], np.array(1)), lambda x, c: -logs(x, 0)[1], "no batch", expands=False),
    Case("cross_entropy", functional.cross_entropy, (SPATIAL, PIXELS), spatial_cross_entropy, "spatial, ignored"),
    Case(
        "cross_entropy",
        lambda x, c: functional.cross_entropy(x, c, label_smoothing=0.3, reduction="none"),
        (A, CLASSES),
        smoothed,
        "smoothed",
    ),
    Case(
        "cross_entropy",
        lambda x, y, w: functional.cross_entropy(x, y, w),
        (A, P, W),
        lambda x, y, w: -(logs(x) * y * w).sum() / 2,
        "probabilities weight",
    ),
    Case("binary_cross_entropy", functional.binary_cross_entropy, (P, Q), lambda x, y: binary(x, y).mean()),
    Case(
        "binary_cross_entropy",
        lambda x, y: functional.binary_cross_entropy(x, y, tg.tensor(W, dtype=x.dtype), reduction="none"),
        (P, Q),
        lambda x, y: binary(x, y) * W,
        "weight none",
    ),
    Case(
        "binary_cross_entropy_with_logits",
        functional.binary_cross_entropy_with_logits,
        (A, Q),
        lambda x, y: binary(logistic(x), y).mean(),
    ),
    Case(
        "binary_cross_entropy_with_logits",
        lambda x, y: functional.binary_cross_entropy_with_logits(x, y, reduction="sum", pos_weight=tg.tensor(W, dtype=x.dtype)),
        (A, Q),
        lambda x, y: binary(logistic(x), y, W).sum(),
        "pos_weight",
    ),
    Case(
        "kl_div",
        lambda x, y: functional.kl_div(x, y, reduction="batchmean"),
        (A, P),
        lambda x, y: (y * (np.log(y) - x)).sum() / 2,
    ),
    Case(
        "kl_div",
        lambda x, y: functional.kl_div(x, y, reduction="sum", log_target=True),
        (A, B),
        lambda x, y: (np.exp(y) * (y - x)).sum(),
        "log target",
    ),
    Case(
        "poisson_nll_loss",
        lambda x, y: functional.poisson_nll_loss(x, y, full=True),
        (A, Q * 4.2),
        lambda x, y: (np.exp(x) - y * x + np.where(y > 1, y * np.log(y) - y + np.log(2 * np.pi * y) / 2, 0)).mean(),
        "full",
    ),
    Case(
        "poisson_nll_loss",
        lambda x, y: functional.poisson_nll_loss(x, y, log_input=False),
        (Q, B),
        lambda x, y: (x - y * np.log(x + 1e-8)).mean(),
    ),
    Case(
        "gaussian_nll_loss",
        lambda x, y, v: functional.gaussian_nll_loss(x, y, v, reduction="sum"),
        (A, B, Q[:, 0]),
        lambda x, y, v: ((np.log(v[:, None]) + (x - y) ** 2 / v[:, None]) / 2).sum(),
    ),
    Case("cosine_similarity", lambda x, y: functional.cosine_similarity(x, y, -1), (A, B), cosine, expands=False),
    Case("pairwise_distance", functional.pairwise_distance, (A, B), lambda x, y: norm(x - y + 1e-6)),
    Case("normalize", functional.normalize, (A,), lambda x: x / norm(x)[:, None]),
    Case(
        "cosine_embedding_loss",
        lambda x, y, t: functional.cosine_embedding_loss(x, y, t, -0.9, reduction="none"),
        (A, B, SIGNS),
        lambda x, y, t: np.where(t == 1, 1 - cosine(x, y), hinge(cosine(x, y) + 0.9)),
    ),
    Case(
        "hinge_embedding_loss",
        lambda x, t: functional.hinge_embedding_loss(x, t, 1.2, reduction="none"),
        (A[:, 0], SIGNS),
        lambda x, t: np.where(t == 1, x, hinge(1.2 - x)),
    ),
    Case(
        "margin_ranking_loss",
        lambda x, y, t: functional.margin_ranking_loss(x, y, t, 3.0, reduction="none"),
        (A[0, :2], B[0, :2], SIGNS),
        lambda x, y, t: hinge(-t * (x - y) + 3.0),
    ),
    Case(
        "triplet_margin_loss",
        lambda x, y, z: functional.triplet_margin_loss(x, y, z, 4.0, swap=True),
        (A, B, Q),
        lambda x, y, z: hinge(4.0 + norm(x - y + 1e-6) - np.minimum(norm(x - z + 1e-6), norm(y - z + 1e-6))).mean(),
    ),
    Case(
        "soft_margin_loss",
        lambda x, t: functional.soft_margin_loss(x, t),
        (A[:, 0], SIGNS),
        lambda x, t: np.log(1 + np.exp(-t * x)).mean(),
    ),
    Case(
        "multi_margin_loss",
        lambda x, c: functional.multi_margin_loss(x, c, p=2, margin=0.8, weight=tg.tensor(W, dtype=x.dtype)),
        (A, CLASSES),
        lambda x, c: np.mean(
            [sum(hinge(0.8 - x[n, c[n]] + x[n, k]) ** 2 for k in range(3) if k != c[n]) / 3 * W[c[n]] for n in range(2)]
        ),
    ),
    Case(
        "multi_margin_loss",
        lambda x, c: functional.multi_margin_loss(x, c, p=2, margin=0.8, reduction="none"),
        (A[0], CLASSES[0]),
        lambda x, c: sum(hinge(0.8 - x[c] + x[k]) ** 2 for k in range(3) if k != c) / 3,
        "one sample",
    ),
    Case(
        "multi_margin_loss",
        lambda x, c: functional.multi_margin_loss(x, c, p=2, margin=0.8, reduction="none"),
        (A[0], CLASSES[:1]),
        lambda x, c: np.array([sum(hinge(0.8 - x[c[0]] + x[k]) ** 2 for k in range(3) if k != c[0]) / 3]),
        "one sample in a row",
    ),
    Case(
        "multilabel_soft_margin_loss",
        functional.multilabel_soft_margin_loss,
        (A, Q),
        lambda x, y: binary(logistic(x), y).mean(),
    ),
    Case(
        "multilabel_margin_loss",
        lambda x: functional.multilabel_margin_loss(x, tg.tensor([[1, 0, -1], [2, -1, 0]]), reduction="none"),
        (A,),
        lambda x: np.array(
            [
                sum(hinge(1 - x[n, k] + x[n, i]) for k in of for i in range(3) if i not in of) / 3
                for n, of in enumerate(([1, 0], [2]))
            ]
        ),
    ),
    Case(
        "triplet_margin_with_distance_loss",
        lambda x, y, z: functional.triplet_margin_with_distance_loss(
            x, y, z, distance_function=lambda a, b: (a - b).square().sum(-1), margin=9.0, swap=True
        ),
        (A, B, Q),
        lambda x, y, z: hinge(9.0 + ((x - y) ** 2).sum(-1) - np.minimum(((x - z) ** 2).sum(-1), ((y - z) ** 2).sum(-1))).mean(),
    ),
]
