"""`multilabel_margin_loss`: its values are those of the formula in NumPy, and its slopes are constants."""

import itertools
from typing import Any

import numpy as np
import pytest
from numerical import check_gradients

import tapegrad as tg
from tapegrad.nn.functional import multilabel_margin_loss

RNG = np.random.default_rng(21)
Array = np.ndarray[Any, Any]


def lists_of_classes(shape: tuple[int, int]) -> Array:
    """Of each sample a list of any length, ended by a negative number, and anything behind that."""
    found = RNG.integers(0, shape[1], shape)
    for row in found:
        length = RNG.integers(0, shape[1] + 1)
        row[:length] = RNG.permutation(shape[1])[:length]
        row[length : length + 1] = -1
    return found


def by_pairs(scores: Array, classes: Array) -> Array:
    """What each class that is not listed exceeds each listed one less the margin by, summed in NumPy's order."""
    n, c = scores.shape
    terms = np.zeros((n, c, c), scores.dtype)
    for sample in range(n):
        listed = list(itertools.takewhile(lambda k: k >= 0, classes[sample]))
        for k, target in enumerate(listed):
            for j in set(range(c)) - set(listed):
                short = scores.dtype.type(1) - scores[sample, target] + scores[sample, j]
                terms[sample, k, j] = np.maximum(short, 0.0)
    return terms.sum((-2, -1)) / scores.dtype.type(c)


@pytest.mark.parametrize("dtype", [np.float64, np.float32], ids=["float64", "float32"])
@pytest.mark.parametrize("shape", [(2, 3), (5, 7), (3, 40), (0, 3), (1, 1)], ids=str)
def test_values_have_the_bits_of_the_formula(shape: tuple[int, int], dtype: type) -> None:
    scores, classes = RNG.normal(size=shape).astype(dtype), lists_of_classes(shape)
    if scores.size > 20:
        scores[0, :2] = np.nan, np.inf
    with np.errstate(invalid="ignore"):
        expected = by_pairs(scores, classes)
        found = multilabel_margin_loss(tg.tensor(scores), tg.tensor(classes), "none").numpy()
    np.testing.assert_array_equal(found, expected)
    assert found.dtype == dtype


@pytest.mark.parametrize("reduction", ["mean", "sum", "none"])
def test_slopes_are_difference_quotients(reduction: str) -> None:
    classes = tg.tensor(lists_of_classes((4, 6)))
    check_gradients(lambda x: multilabel_margin_loss(x, classes, reduction) ** 2, RNG.normal(size=(4, 6)))


def test_scores_in_columns_have_the_gradient_of_those_in_rows() -> None:
    scores, classes = RNG.normal(size=(4, 6)), lists_of_classes((4, 6))
    x, y = tg.tensor(scores, requires_grad=True), tg.tensor(scores.T.copy(), requires_grad=True)
    multilabel_margin_loss(x, tg.tensor(classes)).backward()
    multilabel_margin_loss(y.t(), tg.tensor(np.asfortranarray(classes))).backward()
    np.testing.assert_array_equal(y.grad.numpy(), x.grad.numpy().T)


def test_scores_that_are_nan_hand_gradients_on() -> None:
    x = tg.tensor([np.nan, 0.0, 0.0], requires_grad=True)
    multilabel_margin_loss(x, tg.tensor([0, -1, 0])).backward()
    np.testing.assert_allclose(x.grad.numpy(), [-2 / 3, 1 / 3, 1 / 3])


@pytest.mark.parametrize("p", [1, 2])
def test_an_infinite_score_of_the_target_leaves_no_loss(p: int) -> None:
    x = tg.tensor([[np.inf, 0.5, 0.0], [0.0, 0.5, 0.25]], requires_grad=True)
    losses = tg.nn.functional.multi_margin_loss(x, tg.tensor([0, 1]), p=p, reduction="none")
    expected = (0.5**p + 0.75**p) / 3
    np.testing.assert_allclose(losses.detach().numpy(), [0.0, expected])
    losses.sum().backward()
    np.testing.assert_array_equal(x.grad.numpy()[0], 0.0)
