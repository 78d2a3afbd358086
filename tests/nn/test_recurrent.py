"""Recurrent cells beside their formulas, and recurrent layers beside cells that are called step by step."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapegrad as tg
from tapegrad import nn

RNG = np.random.default_rng(2)
X, H, C = RNG.normal(size=(2, 3)), RNG.normal(size=(2, 4)), RNG.normal(size=(2, 4))
SEQUENCE = RNG.normal(size=(5, 2, 3))


def sigmoid(x: np.ndarray) -> np.ndarray:
    return 1.0 / (1.0 + np.exp(-x))


def sums(cell: nn.Module, x: np.ndarray, h: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    w, u, b, d = (np.array(p.detach().numpy()) for p in (cell.weight_ih, cell.weight_hh, cell.bias_ih, cell.bias_hh))
    return x @ w.T + b, h @ u.T + d


def elman(cell: nn.Module, x: np.ndarray, h: np.ndarray) -> np.ndarray:
    return np.tanh(sum(sums(cell, x, h)))


def gated(cell: nn.Module, x: np.ndarray, h: np.ndarray) -> np.ndarray:
    (rx, zx, nx), (rh, zh, nh) = (np.split(part, 3, 1) for part in sums(cell, x, h))
    z = sigmoid(zx + zh)
    return (1 - z) * np.tanh(nx + sigmoid(rx + rh) * nh) + z * h


def memory(cell: nn.Module, x: np.ndarray, h: np.ndarray, c: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    i, f, g, o = np.split(sum(sums(cell, x, h)), 4, 1)
    c = sigmoid(f) * c + sigmoid(i) * np.tanh(g)
    return sigmoid(o) * np.tanh(c), c


@pytest.mark.parametrize(("kind", "formula"), [(nn.RNNCell, elman), (nn.GRUCell, gated)])
def test_a_cell_follows_its_formula(kind: Any, formula: Callable[..., np.ndarray]) -> None:
    cell = kind(3, 4)
    np.testing.assert_allclose(cell(tg.tensor(X), tg.tensor(H)).detach(), formula(cell, X, H), rtol=1e-12)
    np.testing.assert_allclose(cell(tg.tensor(X[0])).detach(), formula(cell, X, 0.0 * H)[0], rtol=1e-12)


def test_a_memory_follows_its_formula() -> None:
    cell = nn.LSTMCell(3, 4)
    found, expected = cell(tg.tensor(X), (tg.tensor(H), tg.tensor(C))), memory(cell, X, H, C)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one.detach(), other, rtol=1e-12)


@pytest.mark.parametrize(("kind", "of_cell"), [(nn.RNN, nn.RNNCell), (nn.GRU, nn.GRUCell), (nn.LSTM, nn.LSTMCell)])
def test_layers_are_cells_step_by_step(kind: Any, of_cell: Any) -> None:
    layer, cell = kind(3, 4, bidirectional=True), of_cell(3, 4)
    output, _ = layer(tg.tensor(SEQUENCE))
    for direction, suffix in enumerate(("", "_reverse")):
        cell.load_state_dict({name: getattr(layer, f"{name}_l0{suffix}") for name, _ in cell.named_parameters()})
        state = None
        for t in reversed(range(5)) if direction else range(5):
            state = cell(tg.tensor(SEQUENCE[t]), state)
            given = state[0] if isinstance(state, tuple) else state
            np.testing.assert_allclose(output[t, :, 4 * direction : 4 * direction + 4].detach(), given.detach(), rtol=1e-12)


@pytest.mark.parametrize("kind", [nn.RNN, nn.GRU, nn.LSTM])
def test_layers_take_sequences_in_any_form(kind: Any) -> None:
    layer = kind(3, 4, num_layers=2)
    output, last = layer(tg.tensor(SEQUENCE))
    first = kind(3, 4, num_layers=2, batch_first=True)
    first.load_state_dict(layer.state_dict())
    turned, _ = first(tg.tensor(SEQUENCE.swapaxes(0, 1)))
    np.testing.assert_array_equal(turned.detach(), output.detach().transpose(0, 1))
    alone, _ = layer(tg.tensor(SEQUENCE[:, 1]))
    np.testing.assert_allclose(alone.detach(), output[:, 1].detach(), rtol=1e-12)
    _, halfway = layer(tg.tensor(SEQUENCE[:3]))
    rest, again = layer(tg.tensor(SEQUENCE[3:]), halfway)
    np.testing.assert_allclose(rest.detach(), output[3:].detach(), rtol=1e-12)
    for one, other in zip(again if kind is nn.LSTM else [again], last if kind is nn.LSTM else [last], strict=True):
        np.testing.assert_allclose(one.detach(), other.detach(), rtol=1e-12)


@pytest.mark.parametrize("kind", [nn.RNN, nn.GRU, nn.LSTM])
def test_gradients_are_the_slopes(kind: Any) -> None:
    layer = kind(2, 2)
    x = tg.tensor(RNG.normal(size=(3, 1, 2)), requires_grad=True)
    parameters = [p.detach().clone().requires_grad_() for p in layer.parameters()]
    names = [name for name, _ in layer.named_parameters()]

    def run(given: tg.Tensor, *values: tg.Tensor) -> tg.Tensor:
        for name, value in zip(names, values, strict=True):
            layer._parameters[name] = value
        return layer(given)[0]

    assert tg.autograd.gradcheck(run, (x, *parameters))


def test_dropout_is_between_layers_in_training() -> None:
    layer = nn.GRU(3, 4, num_layers=2, dropout=1.0)
    layer(tg.tensor(SEQUENCE))[0].sum().backward()
    assert layer.weight_ih_l0.grad.abs().sum().item() == 0.0
    layer.eval()
    layer(tg.tensor(SEQUENCE))[0].sum().backward()
    assert layer.weight_ih_l0.grad.abs().sum().item() > 0.0
    with pytest.warns(UserWarning, match="non-zero dropout expects num_layers greater than 1"):
        nn.GRU(3, 4, dropout=0.5)


def test_states_are_of_the_dtype_of_the_input() -> None:
    for kind in (nn.RNN, nn.GRU, nn.LSTM):
        output, _ = kind(3, 4, dtype=tg.float32)(tg.tensor(SEQUENCE, dtype=tg.float32))
        assert output.dtype == tg.float32


@pytest.mark.parametrize(
    ("module", "text"),
    [
        (nn.RNN(3, 4, 2, nonlinearity="relu", bidirectional=True), "RNN(3, 4, num_layers=2, bidirectional=True)"),
        (nn.LSTM(3, 4, proj_size=2, bias=False), "LSTM(3, 4, proj_size=2, bias=False)"),
        (nn.RNNCell(3, 4, bias=False, nonlinearity="relu"), "RNNCell(3, 4, bias=False, nonlinearity=relu)"),
        (nn.LSTMCell(3, 4), "LSTMCell(3, 4)"),
    ],
)
def test_modules_print_what_differs_from_the_defaults(module: nn.Module, text: str) -> None:
    assert repr(module) == text


ONES = tg.ones


@pytest.mark.parametrize(
    ("call", "error", "message"),
    [
        (lambda: nn.RNN(3, 4)(ONES(3)), ValueError, "RNN: Expected input to be 2D or 3D, got 1D tensor instead"),
        (lambda: nn.GRU(3, 4)(ONES(3, 5)), RuntimeError, "input.size(-1) must be equal to input_size. Expected 3, got 5"),
        (lambda: nn.RNN(3, 4)(ONES(2, 2, 3), ONES(1, 1, 4)), RuntimeError, "Expected hidden size (1, 2, 4), got [1, 1, 4]"),
        (lambda: nn.LSTM(3, 4)(ONES(2, 1, 3), ONES(1)), RuntimeError, "LSTM has a state of 2 tensor(s), but got 1"),
        (lambda: nn.RNNCell(3, 4)(ONES(2)), RuntimeError, "input has inconsistent input_size: got 2 expected 3"),
        (lambda: nn.RNNCell(3, 4)(ONES(1, 1, 3)), ValueError, "RNNCell: Expected input to be 1D or 2D, got 3D instead"),
        (lambda: nn.RNNCell(3, 4)(ONES(2, 3), ONES(2, 5)), RuntimeError, "hidden0 has inconsistent hidden_size: got 5, expected 4"),
        (lambda: nn.GRUCell(3, 4)(ONES(2, 3), ONES(3, 4)), RuntimeError, "doesn't match hidden0 batch size [3]"),
        (lambda: nn.RNNCell(3, 4, nonlinearity="sin")(ONES(3)), RuntimeError, "Unknown nonlinearity: sin"),
        (lambda: nn.RNN(3, 4, nonlinearity="sin"), ValueError, "Unknown nonlinearity 'sin'. Select from 'tanh' or 'relu'."),
        (lambda: nn.RNN(3, 0), ValueError, "hidden_size and num_layers must be greater than zero"),
        (lambda: nn.RNN(3, 4, dropout=2), ValueError, "dropout should be a number in range [0, 1]"),
        (lambda: nn.LSTM(3, 4, proj_size=5), ValueError, "proj_size has to be smaller than hidden_size"),
    ],
)
def test_what_does_not_fit_is_refused(call: Callable[[], Any], error: type[Exception], message: str) -> None:
    with pytest.raises(error) as caught:
        call()
    assert message in str(caught.value)
