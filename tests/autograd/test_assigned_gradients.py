"""Gradients that were assigned: one that two leaves have, and those to which nothing can be added in place."""

from collections.abc import Callable

import numpy as np
import pytest
from engine_fixtures import assert_values, leaf

import tapegrad as tg


def rows(x: tg.Tensor, y: tg.Tensor) -> tg.Tensor:
    """A loss of rows that are compiled, all of them."""
    return (2 * x + 3 * y).sum()


def host_rows(x: tg.Tensor, y: tg.Tensor) -> tg.Tensor:
    """The same with derivatives in Python on the way."""
    return tg.cumprod((2 * x + 3 * y).reshape(-1, 1), 1).sum()


def no_matter(gradient: tg.Tensor) -> None:
    """Leave the gradient as it is."""


def count_writes(gradient: tg.Tensor) -> None:
    """Let the gradient have a version, so that Python adds to it."""
    gradient.detach()


@pytest.mark.parametrize("loss", [rows, host_rows])
@pytest.mark.parametrize("prepare", [no_matter, count_writes])
@pytest.mark.parametrize("shape", [(), (2,)])
def test_a_gradient_of_two_leaves_gets_what_both_contribute(
    shape: tuple[int, ...],
    prepare: Callable[[tg.Tensor], None],
    loss: Callable[[tg.Tensor, tg.Tensor], tg.Tensor],
) -> None:
    x, y, g = leaf(np.ones(shape)), leaf(np.ones(shape)), tg.tensor(np.full(shape, 10.0))
    x.grad = y.grad = g
    prepare(g)
    loss(x, y).backward()
    assert x.grad is g and y.grad is g
    assert_values(g, np.full(shape, 15.0))


def read_only() -> tg.Tensor:
    """A gradient in memory that must not be written."""
    given = np.zeros(2)
    given.flags.writeable = False
    return tg.from_numpy(given)


def expanded() -> tg.Tensor:
    """A gradient whose elements share one place."""
    return tg.zeros(1).expand(2)


@pytest.mark.parametrize("gradient", [read_only, expanded])
@pytest.mark.filterwarnings("ignore:.*not writ:UserWarning")
def test_a_pass_that_cannot_add_to_a_gradient_leaves_the_graph_as_it_was(gradient: Callable[[], tg.Tensor]) -> None:
    x, w = leaf([1.0, 2.0]), leaf([3.0, 4.0])
    x.grad = gradient()
    loss = (x * w).sum()
    with pytest.raises(RuntimeError, match="(?i)read-only|single memory location"):
        loss.backward()
    assert w.grad is None
    x.grad = None
    loss.backward()
    assert_values(x.grad, [3.0, 4.0])
