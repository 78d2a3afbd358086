"""Losses of small arrays, which are few calls into compiled code: their sums are NumPy's, bit by bit."""

from typing import Any

import numpy as np
import pytest

import tapegrad as tg

F = tg.nn.functional
SIZES = [(1, 2), (3, 5), (8, 8), (40, 17), (9, 200)]


def scores(shape: tuple[int, ...], dtype: Any = np.float64) -> tuple[np.ndarray, np.ndarray]:
    rng = np.random.default_rng(shape[0])
    return rng.standard_normal(shape).astype(dtype), rng.integers(0, shape[1], shape[0])


@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("shape", SIZES, ids=str)
def test_negative_log_likelihood_has_numpys_sums(shape: tuple[int, int], weighted: bool) -> None:
    x, classes = scores(shape)
    ignored = int(classes[0])
    weights = np.linspace(0.5, 2.0, shape[1])
    factors = np.where(classes == ignored, 0.0, weights[classes] if weighted else 1.0)
    losses = -x[np.arange(len(x)), classes] * factors
    given = {"weight": tg.tensor(weights) if weighted else None, "ignore_index": ignored}
    summed = F.nll_loss(tg.tensor(x), tg.tensor(classes), reduction="sum", **given)
    assert summed.item() == losses.sum()
    with np.errstate(invalid="ignore"):
        expected = losses.sum() / factors.sum()
    mean = F.nll_loss(tg.tensor(x), tg.tensor(classes), **given)
    np.testing.assert_array_equal(mean.item(), expected)


@pytest.mark.parametrize("reduction", ["mean", "sum"])
@pytest.mark.parametrize("shape", SIZES, ids=str)
def test_gradient_of_the_likelihood_stands_at_the_classes(shape: tuple[int, int], reduction: str) -> None:
    x, classes = scores(shape)
    leaf = tg.tensor(x, requires_grad=True)
    (3.0 * F.nll_loss(leaf, tg.tensor(classes), reduction=reduction)).backward()
    expected = np.zeros(shape)
    expected[np.arange(len(x)), classes] = -3.0 * (1.0 / len(x) if reduction == "mean" else 1.0)
    np.testing.assert_array_equal(leaf.grad.numpy(), expected)


@pytest.mark.parametrize("smoothing", [0.0, 0.25])
@pytest.mark.parametrize("samples", [2, 300])
def test_mean_of_ignored_targets_has_the_gradient_zero(samples: int, smoothing: float) -> None:
    leaf = tg.ones(samples, 3, requires_grad=True)
    ignored = tg.tensor(np.full(samples, 1))
    loss = F.cross_entropy(leaf, ignored, ignore_index=1, label_smoothing=smoothing)
    assert np.isnan(loss.item())
    loss.backward()
    np.testing.assert_array_equal(leaf.grad.numpy(), np.zeros((samples, 3)))


def test_likelihood_of_no_class_is_refused() -> None:
    with pytest.raises(IndexError, match="Target 5 is out of bounds"):
        F.nll_loss(tg.tensor([[0.5, 1.0]]), tg.tensor([5]))


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
@pytest.mark.parametrize("weighted", [False, True])
@pytest.mark.parametrize("p", [1, 2])
@pytest.mark.parametrize("shape", SIZES, ids=str)
def test_margins_of_classes_have_numpys_sums(shape: tuple[int, int], p: int, weighted: bool, reduction: str) -> None:
    x, classes = scores(shape)
    samples, count = shape
    weights = np.linspace(0.5, 2.0, count)
    rows = np.arange(samples)
    short = x + (0.75 - x[rows, classes][:, None])
    short[rows, classes] = 0.0
    shares = (short > 0.0) * (1.0 / (count * (samples if reduction == "mean" else 1)))
    if weighted:
        shares = shares * weights[classes][:, None]
    positive = np.maximum(short, 0.0)
    losses = (positive * (shares if p == 1 else positive * shares)).sum(1)
    leaf = tg.tensor(x, requires_grad=True)
    found = F.multi_margin_loss(leaf, tg.tensor(classes), p, 0.75, tg.tensor(weights) if weighted else None, reduction)
    np.testing.assert_array_equal(found.detach().numpy(), losses if reduction == "none" else losses.sum())
    slopes = shares if p == 1 else 2.0 * (positive * shares)
    slopes[rows, classes] = -slopes.sum(1)
    found.sum().backward()
    np.testing.assert_array_equal(leaf.grad.numpy(), slopes)


@pytest.mark.parametrize("shape", SIZES, ids=str)
def test_residual_losses_have_numpys_sums(shape: tuple[int, int]) -> None:
    x, _ = scores(shape)
    y = x[::-1].copy()
    squares, size = (x - y) * (x - y), np.abs(x - y)
    assert F.mse_loss(tg.tensor(x), tg.tensor(y)).item() == squares.sum() / squares.size
    bent = np.where(size < 0.5, 0.5 * size * size / 0.5, size - 0.25)
    assert F.smooth_l1_loss(tg.tensor(x), tg.tensor(y), beta=0.5, reduction="sum").item() == bent.sum()


def test_probabilities_outside_of_their_interval_are_refused() -> None:
    inside = tg.tensor([0.25, 1.0, 0.0])
    assert F.binary_cross_entropy(inside, inside).item() > 0.0
    for wrong in ([0.25, 1.5, 0.0], [-0.5, 0.5, 0.5], [0.5, np.nan, 0.5]):
        with pytest.raises(RuntimeError, match="all elements of input should be between 0 and 1"):
            F.binary_cross_entropy(tg.tensor(wrong), inside)
    assert np.isnan(F.binary_cross_entropy(tg.tensor([]), tg.tensor([])).item())
