"""What a derivative gives for a large leaf may become its gradient, if nobody else has it."""

from collections.abc import Sequence

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.recording.structural import Context, Structural, apply
from tapegrad.tensors.tensor import Tensor, make

SIZE = 5000
KEPT = np.arange(float(SIZE))


def leaves(count: int) -> list[Tensor]:
    return [tg.tensor(np.ones(SIZE), requires_grad=True) for _ in range(count)]


def _same_for_both(g: Tensor, ctx: Context) -> Sequence[Tensor | None]:
    made = make(np.full(SIZE, 2.0), 0)
    return made, made


def _one_array_in_two(g: Tensor, ctx: Context) -> Sequence[Tensor | None]:
    made = np.full(SIZE, 2.0)
    return make(made, 0), make(made, 0)


def _views_of_one(g: Tensor, ctx: Context) -> Sequence[Tensor | None]:
    made = np.full(2 * SIZE, 2.0)
    return make(made[:SIZE], 0), make(made[SIZE:], 0)


def _kept(g: Tensor, ctx: Context) -> Sequence[Tensor | None]:
    return make(KEPT, 0), make(KEPT[::-1], 0)


def _saved(g: Tensor, ctx: Context) -> Sequence[Tensor | None]:
    return ctx.inputs[0], ctx.inputs[1]


def _own(g: Tensor, ctx: Context) -> Sequence[Tensor | None]:
    return make(np.full(SIZE, 2.0), 0), make(np.full(SIZE, 2.0), 0)


@pytest.mark.parametrize("vjp", [_same_for_both, _one_array_in_two, _views_of_one, _kept, _saved, _own])
@pytest.mark.parametrize("number", [False, True])
def test_gradients_have_memory_of_their_own(vjp: object, number: bool) -> None:
    x, y = leaves(2)
    op = Structural("TestBackward0", ((0, 1), (0, 1)), vjp)  # type: ignore[arg-type]
    result = np.zeros(()) if number else np.zeros(SIZE)
    apply(op, (x, y), result).sum().backward()
    expected = {_kept: KEPT, _saved: np.ones(SIZE)}.get(vjp, np.full(SIZE, 2.0))  # type: ignore[call-overload]
    np.testing.assert_array_equal(x.grad.numpy(), expected)
    x.grad.zero_()
    np.testing.assert_array_equal(y.grad.numpy(), expected[::-1] if vjp is _kept else expected)
    np.testing.assert_array_equal(x.detach().numpy(), np.ones(SIZE))
    np.testing.assert_array_equal(KEPT, np.arange(float(SIZE)))


def test_further_contributions_are_added_to_one_that_became_the_gradient() -> None:
    (x,) = leaves(1)
    (x.cumsum(0).sum() + (x * 3.0).sum() + x.cumsum(0).sum()).backward()
    np.testing.assert_array_equal(x.grad.numpy(), 2.0 * np.arange(float(SIZE), 0.0, -1.0) + 3.0)


def test_a_gradient_that_is_there_is_added_to() -> None:
    (x,) = leaves(1)
    for _ in range(2):
        x.cumsum(0).sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), 2.0 * np.arange(float(SIZE), 0.0, -1.0))


def test_a_driver_gives_arrays_of_the_callers_own() -> None:
    point = np.ones(SIZE)
    gradient = tg.grad(lambda x: np.cumsum(x).sum())
    first, second = gradient(point), gradient(point)
    first[:] = 0.0
    np.testing.assert_array_equal(second, np.arange(float(SIZE), 0.0, -1.0))
