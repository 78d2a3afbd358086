"""Views whose base lies in memory in another order than C's: what is one stride there is none in C order."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from engine_fixtures import assert_values, leaf
from numerical import check_gradients

import tapegrad as tg

MATRIX = np.arange(6.0).reshape(2, 3) / 5.0
over = pytest.mark.parametrize

# Views of a base of shape (3, 2) whose columns are contiguous.
VIEWS: dict[str, Callable[[tg.Tensor], tg.Tensor]] = {
    "flattened transpose": lambda t: t.t().flatten(),
    "part of it": lambda t: t.t().flatten()[1:5:2],
    "reshaped transpose": lambda t: t.t().view(3, 2)[1:],
    "windows": lambda t: t.t().flatten().unfold(0, 2, 2),
    "element": lambda t: t.t().flatten()[3],
    "as_strided": lambda t: t.as_strided((2, 2), (3, 1), 1),
}


def turned(x: tg.Tensor) -> tg.Tensor:
    """A result that keeps the layout of its transposed operand."""
    y = x.t() * 1.0
    assert not y.is_contiguous()
    return y


@over("take", VIEWS.values(), ids=VIEWS)
def test_write_through_a_view_passes_the_gradient(take: Any) -> None:
    def f(x: tg.Tensor, v: tg.Tensor) -> tg.Tensor:
        y = turned(x)
        take(y).mul_(v)
        return y * y

    check_gradients(f, MATRIX, 0.7)


@over("take", VIEWS.values(), ids=VIEWS)
def test_view_used_after_a_write_to_its_base_passes_the_gradient(take: Any) -> None:
    def f(x: tg.Tensor, v: tg.Tensor) -> tg.Tensor:
        y = turned(x)
        part = take(y)
        y.mul_(v)
        return part * part

    check_gradients(f, MATRIX, 0.7)


def test_view_used_after_an_unrecorded_write_stays_tracked() -> None:
    x = leaf(MATRIX)
    y = turned(x)
    part = y.t().flatten()
    with tg.no_grad():
        y.mul_(2.0)
    (part * tg.arange(6.0)).sum().backward()
    assert_values(x.grad, np.arange(6.0).reshape(2, 3))


def test_untracked_base_in_columns_becomes_tracked_by_what_is_written_through_a_view() -> None:
    base = tg.from_numpy(np.asfortranarray(MATRIX))
    v = leaf(2.0)
    base.t().reshape(6)[:2].copy_(v)
    (base * base).sum().backward()
    assert v.grad.item() == 8.0
