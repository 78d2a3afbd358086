"""One step of a recurrent layer: the state after an element of a sequence, from the state before it."""

from __future__ import annotations

from collections.abc import Callable

from tapegrad.ops.affine import linear
from tapegrad.ops.elementwise import FUNCTIONS
from tapegrad.ops.splitting import chunk
from tapegrad.tensors.tensor import Tensor

__all__ = ["CHUNKS", "STEPS", "State", "Step"]

State = tuple[Tensor, ...]  # what the layer gives, first
# Maps what the input adds, the state, the weight and the bias of the state, and the weight of a projection.
Step = Callable[[Tensor, State, Tensor, Tensor | None, Tensor | None], State]

sigmoid, tanh, relu = FUNCTIONS["sigmoid"], FUNCTIONS["tanh"], FUNCTIONS["relu"]


def _tanh(given: Tensor, state: State, weight: Tensor, bias: Tensor | None, projection: Tensor | None) -> State:
    return (tanh(given + linear(state[0], weight, bias)),)


def _relu(given: Tensor, state: State, weight: Tensor, bias: Tensor | None, projection: Tensor | None) -> State:
    return (relu(given + linear(state[0], weight, bias)),)


def _gru(given: Tensor, state: State, weight: Tensor, bias: Tensor | None, projection: Tensor | None) -> State:
    (h,) = state
    reset_x, update_x, new_x = chunk(given, 3, -1)
    reset_h, update_h, new_h = chunk(linear(h, weight, bias), 3, -1)
    new = tanh(new_x + sigmoid(reset_x + reset_h) * new_h)
    return (new + sigmoid(update_x + update_h) * (h - new),)


def _lstm(given: Tensor, state: State, weight: Tensor, bias: Tensor | None, projection: Tensor | None) -> State:
    h, c = state
    take, keep, new, out = chunk(given + linear(h, weight, bias), 4, -1)
    c = sigmoid(keep) * c + sigmoid(take) * tanh(new)
    h = sigmoid(out) * tanh(c)
    return (h if projection is None else linear(h, projection)), c


STEPS: dict[str, Step] = {"tanh": _tanh, "relu": _relu, "gru": _gru, "lstm": _lstm}
CHUNKS = {"tanh": 1, "relu": 1, "gru": 3, "lstm": 4}  # rows of weights, in sizes of the state
