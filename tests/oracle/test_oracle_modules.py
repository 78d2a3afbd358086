"""Modules beside those of PyTorch with the same parameters: values, and gradients by inputs and parameters."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch", reason="compares with PyTorch, which is not installed; make oracle installs it")

import tapegrad as tg  # noqa: E402

pytestmark = pytest.mark.oracle
Make = Callable[[Any], Any]


@pytest.fixture(autouse=True)
def _float64() -> Iterator[None]:
    torch.set_default_dtype(torch.float64)
    yield
    torch.set_default_dtype(torch.float32)


def flat(results: Any) -> list[Any]:
    if isinstance(results, (tuple, list)):
        return [one for part in results for one in flat(part)]
    return [] if results is None else [results]


def evaluated(library: Any, module: Any, inputs: list[np.ndarray], call: Callable[..., Any]) -> list[np.ndarray]:
    """Results, and the gradients of a projection of them by inputs and parameters."""
    leaves = [library.tensor(array.copy()) for array in inputs]
    tracked = [leaf.requires_grad_() for leaf, array in zip(leaves, inputs, strict=True) if array.dtype.kind == "f"]
    results = flat(call(library, module, *leaves))
    rng = np.random.default_rng(0)
    sum((r * library.tensor(np.asarray(rng.normal(size=tuple(r.shape))))).sum() for r in results).backward()
    wanted = tracked + [p for _, p in sorted(module.named_parameters())]
    gradients = [np.zeros(tuple(t.shape)) if t.grad is None else np.array(t.grad.numpy()) for t in wanted]
    return [np.array(r.detach().numpy()) for r in results] + gradients


def compare(
    make: Make, inputs: list[np.ndarray], call: Callable[..., Any] = lambda library, module, *given: module(*given)
) -> None:
    torch.manual_seed(0)
    theirs, ours = make(torch.nn), make(tg.nn)
    assert repr(ours) == repr(theirs).replace("NonDynamicallyQuantizable", "")
    ours.load_state_dict({name: tg.tensor(value.detach().numpy().copy()) for name, value in theirs.state_dict().items()})
    found, expected = evaluated(tg, ours, inputs, call), evaluated(torch, theirs, inputs, call)
    for one, other in zip(found, expected, strict=True):
        np.testing.assert_allclose(one, other, rtol=1e-10, atol=1e-12)


RNG = np.random.default_rng(8)
LINES, IMAGES, VOLUMES = (RNG.normal(size=shape) for shape in ((2, 4, 6), (2, 4, 6, 4), (1, 2, 4, 4, 4)))
PADS = ("ZeroPad", "ReflectionPad", "ReplicationPad", "CircularPad")
OF_FUNCTIONS: list[tuple[Make, np.ndarray]] = [
    *[(lambda nn, name=name: getattr(nn, f"{name}1d")((2, 1)), LINES) for name in PADS],
    *[(lambda nn, name=name: getattr(nn, f"{name}2d")(2), IMAGES) for name in PADS],
    *[(lambda nn, name=name: getattr(nn, f"{name}3d")(1), VOLUMES) for name in PADS],
    (lambda nn: nn.ConstantPad1d((2, -1), 0.5), LINES),
    (lambda nn: nn.PixelShuffle(2), IMAGES),
    (lambda nn: nn.PixelUnshuffle(2), IMAGES),
    (lambda nn: nn.ChannelShuffle(2), IMAGES),
    (lambda nn: nn.LPPool1d(3, 2, ceil_mode=True), np.abs(LINES)),
    (lambda nn: nn.LPPool2d(2, 3, 2, ceil_mode=True), IMAGES),
    (lambda nn: nn.LPPool3d(2, 2), VOLUMES),
    (lambda nn: nn.Unfold((2, 3), 1, 1, 2), IMAGES),
    (lambda nn: nn.Fold((3, 4), 2), LINES),
]


@pytest.mark.parametrize(("make", "points"), OF_FUNCTIONS)
def test_modules_of_functions_are_those_of_pytorch(make: Make, points: np.ndarray) -> None:
    compare(make, [points])


STATE = RNG.normal(size=(2, 4))
CELLS: list[tuple[Make, list[np.ndarray]]] = [
    (lambda nn: nn.RNNCell(3, 4), [RNG.normal(size=(2, 3)), STATE]),
    (lambda nn: nn.RNNCell(3, 4, bias=False, nonlinearity="relu"), [RNG.normal(size=3)]),
    (lambda nn: nn.GRUCell(3, 4), [RNG.normal(size=(2, 3)), STATE]),
    (lambda nn: nn.GRUCell(3, 4, bias=False), [RNG.normal(size=3)]),
    (lambda nn: nn.LSTMCell(3, 4), [RNG.normal(size=(2, 3)), STATE, STATE * 0.5]),
    (lambda nn: nn.LSTMCell(3, 4), [RNG.normal(size=3)]),
]


def with_state(library: Any, module: Any, given: Any, *state: Any) -> Any:
    return module(given, *([state] if len(state) > 1 else state))


@pytest.mark.parametrize(("make", "points"), CELLS)
def test_cells_are_those_of_pytorch(make: Make, points: list[np.ndarray]) -> None:
    compare(make, points, with_state)


SEQUENCE, STATES = RNG.normal(size=(5, 2, 3)), RNG.normal(size=(4, 2, 4))
RECURRENT: list[tuple[Make, list[np.ndarray]]] = [
    (lambda nn: nn.RNN(3, 4), [SEQUENCE]),
    (lambda nn: nn.RNN(3, 4, 2, "relu", bidirectional=True), [SEQUENCE, STATES]),
    (lambda nn: nn.RNN(3, 4, batch_first=True, bias=False), [SEQUENCE.swapaxes(0, 1)]),
    (lambda nn: nn.GRU(3, 4, 2, bidirectional=True, batch_first=True), [SEQUENCE.swapaxes(0, 1), STATES]),
    (lambda nn: nn.GRU(3, 4), [SEQUENCE[:, 0], STATES[:1, 0]]),
    (lambda nn: nn.LSTM(3, 4, 2, bidirectional=True), [SEQUENCE, STATES, 0.5 * STATES]),
    (lambda nn: nn.LSTM(3, 4, 2, proj_size=2), [SEQUENCE]),
    (lambda nn: nn.LSTM(3, 4, 1, bias=False), [SEQUENCE[:, 0]]),
]


@pytest.mark.parametrize(("make", "points"), RECURRENT)
def test_recurrent_layers_are_those_of_pytorch(make: Make, points: list[np.ndarray]) -> None:
    compare(make, points, with_state)
