"""Cross entropy with smoothed targets, where some are ignored."""

import numpy as np
import pytest

import tapegrad as tg

F = tg.nn.functional


@pytest.mark.parametrize("reduction", ["none", "sum", "mean"])
@pytest.mark.parametrize("rows", [4, 100], ids=["few", "many"])
def test_ignored_rows_may_have_classes_without_probability(rows: int, reduction: str) -> None:
    rng = np.random.default_rng(0)
    data, classes = rng.normal(size=(rows, 60)), rng.integers(0, 60, rows)
    data[0, 0], classes[::2] = -np.inf, -100
    x = tg.tensor(data, requires_grad=True)
    loss = F.cross_entropy(x, tg.tensor(classes), reduction=reduction, label_smoothing=0.1)
    loss.sum().backward()

    kept = tg.tensor(data[1::2], requires_grad=True)
    expected = F.cross_entropy(kept, tg.tensor(classes[1::2]), reduction=reduction, label_smoothing=0.1)
    expected.sum().backward()

    found = loss.detach().numpy()
    np.testing.assert_allclose(found[1::2] if reduction == "none" else found, expected.detach().numpy(), rtol=1e-13)
    np.testing.assert_array_equal(found[::2] if reduction == "none" else 0.0, 0.0)
    np.testing.assert_allclose(x.grad.numpy()[1::2], kept.grad.numpy(), rtol=1e-12, atol=1e-16)
    np.testing.assert_array_equal(x.grad.numpy()[::2], 0.0)


@pytest.mark.parametrize("classes", [np.zeros(0, int), np.full(3, -100)], ids=["empty", "all are ignored"])
def test_the_mean_of_nothing_is_nan(classes: np.ndarray) -> None:
    loss = F.cross_entropy(tg.zeros(len(classes), 4), tg.tensor(classes), label_smoothing=0.1)
    assert np.isnan(loss.item())
