"""Leaves that were given another row: graphs recorded before still count for them, or are refused if the shape changed."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from engine_fixtures import leaf, numbers

import tapegrad as tg

Tensor = tg.Tensor


def toggle(w: Tensor) -> None:
    w.requires_grad_(False)
    w.requires_grad_(True)


def turn(w: Tensor) -> None:
    with tg.no_grad():
        w.t_()


def replace(w: Tensor) -> None:
    w.data = tg.ones(3)


def before_and_after(change: Callable[[Tensor], None]) -> tuple[Tensor, Tensor, Tensor]:
    w = leaf([[1.0, 2.0], [3.0, 4.0]])
    y = (w * 3.0).sum()
    change(w)
    return w, y, (w * 5.0).sum()


@pytest.mark.parametrize("create_graph", [False, True])
def test_grad_counts_both_rows_of_a_leaf_whose_flag_was_off(create_graph: bool) -> None:
    w, y, z = before_and_after(toggle)
    (g,) = tg.autograd.grad(y + z, w, create_graph=create_graph)
    np.testing.assert_array_equal(numbers(g), np.full((2, 2), 8.0))


def test_grad_of_the_older_graph_alone() -> None:
    w, y, _ = before_and_after(toggle)
    (g,) = tg.autograd.grad(y, w)
    np.testing.assert_array_equal(numbers(g), np.full((2, 2), 3.0))


@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.filterwarnings("ignore:Using backward")
def test_backward_to_a_leaf_counts_both_rows(create_graph: bool) -> None:
    w, y, z = before_and_after(toggle)
    (y + z).backward(inputs=[w], create_graph=create_graph)
    np.testing.assert_array_equal(numbers(w.grad), np.full((2, 2), 8.0))


def test_leaf_given_twice_gets_both_rows_twice() -> None:
    w, y, z = before_and_after(toggle)
    first, second = tg.autograd.grad(y + z, [w, w])
    first += 1.0
    np.testing.assert_array_equal(numbers(second), np.full((2, 2), 8.0))


def test_second_derivative_through_both_rows() -> None:
    w = leaf(2.0)
    y = w**3
    toggle(w)
    (first,) = tg.autograd.grad(y + w**2, w, create_graph=True)
    (second,) = tg.autograd.grad(first, w)
    assert (first.item(), second.item()) == (3 * 4.0 + 2 * 2.0, 6 * 2.0 + 2.0)


def test_unused_leaf_that_was_switched_is_refused_and_the_graph_stays() -> None:
    w, _, _ = before_and_after(toggle)
    x = leaf(1.0)
    root = x * x
    with pytest.raises(RuntimeError, match="at index 1 appears to not have been used"):
        tg.autograd.grad(root, [x, w])
    root.backward()
    assert x.grad.item() == 2.0


def test_unused_leaf_that_was_switched_may_be_none() -> None:
    w, _, _ = before_and_after(toggle)
    x = leaf(1.0)
    assert tg.autograd.grad(x * x, w, allow_unused=True) == (None,)


PASSES: dict[str, Callable[[Tensor, Tensor], Any]] = {
    "grad": lambda root, w: tg.autograd.grad(root, w),
    "grad that may be unused": lambda root, w: tg.autograd.grad(root, w, allow_unused=True),
    "recorded grad": lambda root, w: tg.autograd.grad(root, w, create_graph=True),
    "backward to it": lambda root, w: root.backward(inputs=[w]),
    "backward": lambda root, w: root.backward(),
}


@pytest.mark.parametrize("change", [turn, replace])
@pytest.mark.parametrize("name", PASSES)
def test_graph_of_the_former_shape_is_refused(name: str, change: Callable[[Tensor], None]) -> None:
    w, y, z = before_and_after(change)
    with pytest.raises(RuntimeError, match="Compute the result again"):
        PASSES[name](y + z, w)
    assert w.grad is None


@pytest.mark.parametrize("change", [turn, replace])
def test_graph_of_the_new_shape_is_not(change: Callable[[Tensor], None]) -> None:
    w, _, z = before_and_after(change)
    (g,) = tg.autograd.grad(z, w)
    np.testing.assert_array_equal(numbers(g), np.full(w.shape, 5.0))


def test_shape_form_that_changes_nothing_leaves_the_graph_alone() -> None:
    w = leaf([[1.0, 2.0]])
    y = (w * 3.0).sum()
    with tg.no_grad():
        w.transpose_(1, 1)
    y.backward()
    assert w.grad.tolist() == [[3.0, 3.0]]


def test_former_row_goes_with_its_graph() -> None:
    tape = tg.tape.default_tape()
    w, y, z = before_and_after(toggle)
    del y
    tape.collect()
    (g,) = tg.autograd.grad(z, w)
    np.testing.assert_array_equal(numbers(g), np.full((2, 2), 5.0))


def test_row_in_the_place_of_a_former_one_is_not_taken_for_it() -> None:
    w = leaf(2.0)
    y = w * 3.0
    del y
    toggle(w)
    x = leaf(5.0)
    z = x * w
    assert tg.autograd.grad(z, w)[0].item() == 5.0


def test_leaf_whose_base_became_tracked_still_has_the_gradients_of_what_it_was() -> None:
    base = tg.tensor([0.0, 1.0, 2.0, 3.0])
    x = base.reshape(2, 2).requires_grad_()
    before = (x * 2.0).sum()
    w = tg.tensor([1.0, 1.0, 1.0, 2.0], requires_grad=True)
    base.mul_(w)
    (by_w,) = tg.autograd.grad((x * x).sum(), w)
    assert by_w.tolist() == [0.0, 2.0, 8.0, 36.0]
    before.backward()
    assert w.grad is None
