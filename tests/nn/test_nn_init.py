"""Starting values: their distributions, and what is refused."""

import math

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.nn import Parameter, init

SHAPE = (40, 30, 10)
FAN_IN, FAN_OUT = 300, 400

SPREADS = {
    "uniform": (lambda t: init.uniform_(t, -1.0, 3.0), 1.0, 4.0 / math.sqrt(12.0)),
    "normal": (lambda t: init.normal_(t, 2.0, 3.0), 2.0, 3.0),
    "xavier uniform": (lambda t: init.xavier_uniform_(t, 2.0), 0.0, 2.0 * math.sqrt(2.0 / (FAN_IN + FAN_OUT))),
    "xavier normal": (init.xavier_normal_, 0.0, math.sqrt(2.0 / (FAN_IN + FAN_OUT))),
    "kaiming uniform": (lambda t: init.kaiming_uniform_(t, nonlinearity="relu"), 0.0, math.sqrt(2.0 / FAN_IN)),
    "kaiming normal": (lambda t: init.kaiming_normal_(t, 1.0, "fan_out"), 0.0, math.sqrt(1.0 / FAN_OUT)),
    "truncated": (lambda t: init.trunc_normal_(t, 1.0, 2.0, 1.0 - 4.0, 1.0 + 4.0), 1.0, 2.0 * 0.8796),
    "truncated, narrow": (lambda t: init.trunc_normal_(t, 0.0, 1.0, 0.5, 0.6), 0.55, 0.1 / math.sqrt(12.0)),
}


@pytest.mark.parametrize(("fill", "mean", "spread"), SPREADS.values(), ids=SPREADS)
def test_mean_and_spread(fill, mean, spread):
    tg.manual_seed(0)
    values = fill(tg.empty(*SHAPE)).numpy()
    assert abs(values.mean() - mean) < 0.05 * spread
    assert abs(values.std() / spread - 1.0) < 0.03


def test_truncated_numbers_are_in_the_interval():
    values = init.trunc_normal_(tg.empty(1000), 0.0, 1.0, -0.5, 1.0).numpy()
    assert (values.min() >= -0.5, values.max() <= 1.0) == (True, True)


@pytest.mark.parametrize("shape", [(3, 5), (5, 3), (4, 2, 2)])
def test_orthogonal_rows_or_columns(shape):
    matrix = init.orthogonal_(tg.empty(*shape), 2.0).numpy().reshape(shape[0], -1)
    small = matrix @ matrix.T if matrix.shape[0] <= matrix.shape[1] else matrix.T @ matrix
    np.testing.assert_allclose(small, 4.0 * np.eye(len(small)), atol=1e-12)


def test_a_dirac_convolution_hands_its_input_on():
    x = tg.randn(1, 2, 5)
    weight = init.dirac_(tg.empty(2, 2, 3))
    np.testing.assert_allclose(tg.nn.functional.conv1d(x, weight, padding=1).numpy(), x.numpy())


def test_a_share_of_each_column_is_zero():
    assert ((init.sparse_(tg.empty(10, 4), 0.3).numpy() == 0.0).sum(0) == 3).all()


def test_filling_is_in_place_and_not_recorded():
    weight = Parameter(tg.empty(2, 2))
    assert init.eye_(weight) is weight
    assert (weight.tolist(), weight.is_leaf, weight.requires_grad) == ([[1.0, 0.0], [0.0, 1.0]], True, True)


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda: init.xavier_uniform_(tg.empty(3)), "fewer than 2 dimensions"),
        (lambda: init.eye_(tg.empty(3)), "Only tensors with 2 dimensions are supported"),
        (lambda: init.kaiming_normal_(tg.empty(3, 3), mode="fan"), "Mode fan not supported"),
        (lambda: init.calculate_gain("step"), "Unsupported nonlinearity step"),
        (lambda: init.orthogonal_(tg.empty(3)), "Only tensors with 2 or more dimensions are supported"),
    ],
)
def test_wrong_shapes_and_names(call, words):
    with pytest.raises(ValueError, match=words):
        call()
