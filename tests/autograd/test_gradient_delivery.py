"""What leaves get at the end of a pass, whatever they had before."""

from typing import Any

import numpy as np
import pytest

import tapegrad as tg


def leaf(data: Any, dtype: Any = np.float64) -> tg.Tensor:
    return tg.tensor(np.asarray(data, dtype), requires_grad=True)


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
@pytest.mark.parametrize("shape", [(), (1,), (0,), (3,), (2, 3), (0, 2), (700,)])
@pytest.mark.parametrize("hosted", [False, True])
def test_gradients_have_shape_and_dtype_of_their_leaf(dtype: Any, shape: tuple[int, ...], hosted: bool) -> None:
    x = leaf(np.ones(shape), dtype)
    y = x * 2.0
    for passes in (1, 2):
        (y.cumsum(0).sum() if hosted else y.sum()).backward(retain_graph=True)
        assert x.grad.shape == shape
        assert x.grad.dtype == dtype
        assert passes == 1 or not x.grad.numel() or float(x.grad.reshape(-1)[-1]) == 4.0


def test_a_gradient_is_added_to_in_its_own_memory() -> None:
    x = leaf([1.0, 2.0])
    (x * x).sum().backward()
    before = x.grad
    memory = before.numpy()
    (x * x).prod().backward()  # a row whose derivative is Python
    assert x.grad is before
    assert memory.tolist() == [2.0 + 8.0, 4.0 + 4.0]


def test_a_number_is_added_to_in_its_own_tensor() -> None:
    x = leaf(3.0)
    (x * x).backward()
    before = x.grad
    (x * x).backward()
    assert x.grad is before
    assert before.item() == 12.0


def test_a_strided_gradient_is_added_to() -> None:
    x = leaf([[1.0, 2.0], [3.0, 4.0]])
    x.grad = tg.tensor(np.asarray([[1.0, 2.0], [3.0, 4.0]])).t()
    (x * x).sum().backward()
    assert x.grad.tolist() == [[3.0, 7.0], [8.0, 12.0]]


def test_a_write_into_a_gradient_is_seen_by_graphs_that_saved_it() -> None:
    x, y = leaf([1.0, 2.0]), leaf([1.0, 1.0])
    (x * x).sum().backward()
    z = (x.grad * y * y).sum()
    (x * x).sum().backward()
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.backward()


def test_a_gradient_that_was_watched_counts_the_pass_as_a_write() -> None:
    x = leaf([1.0, 2.0])
    (x * x).sum().backward()
    x.grad.mul_(2.0)
    version = x.grad._version
    (x * x).sum().backward()
    assert x.grad._version == version + 1
    assert x.grad.tolist() == [6.0, 12.0]


def test_a_leaf_that_is_not_tracked_any_more_gets_nothing() -> None:
    x, y = leaf([1.0, 2.0]), leaf([1.0, 2.0])
    z = (x * y).sum()
    x.requires_grad_(False)
    z.backward()
    assert x.grad is None
    assert y.grad.tolist() == [1.0, 2.0]


def test_a_leaf_that_died_gets_nothing() -> None:
    x, y = leaf([1.0, 2.0]), leaf([1.0, 2.0])
    z = (x * y).sum()
    del x
    z.backward()
    assert y.grad.tolist() == [1.0, 2.0]


def test_a_gradient_of_another_shape_is_refused_and_nothing_is_delivered() -> None:
    x, y = leaf([1.0, 2.0]), leaf([1.0, 2.0])
    (x * y).sum().backward()
    x.grad.data = tg.tensor([1.0, 2.0, 3.0])
    with pytest.raises(RuntimeError, match="shape"):
        (x * y).sum().backward()
    assert y.grad.tolist() == [1.0, 2.0]


def test_a_vjp_that_sets_a_gradient_is_added_to() -> None:
    x = leaf([1.0, 2.0])

    class Sets(tg.autograd.Function):
        @staticmethod
        def forward(ctx: Any, t: tg.Tensor) -> tg.Tensor:
            return t * 2.0

        @staticmethod
        def backward(ctx: Any, g: tg.Tensor) -> tg.Tensor:
            x.grad = tg.tensor([10.0, 10.0])
            return g * 2.0

    Sets.apply(x).cumsum(0).sum().backward()
    assert x.grad.tolist() == [14.0, 12.0]


def test_a_vjp_of_the_wrong_shape_leaves_gradients_alone() -> None:
    from tapegrad.recording.structural import Structural, apply

    wrong = Structural("WrongBackward0", ((),), lambda g, ctx: (tg.ones(3),))
    x = leaf([1.0, 2.0])
    z = apply(wrong, (x * 1.0,), np.ones(2)).sum()
    with pytest.raises(RuntimeError, match=r"WrongBackward0 returned an invalid gradient: got shape \[3\] but expected"):
        z.backward()
    assert x.grad is None


@pytest.mark.parametrize("kind", [tuple, list, iter])
def test_cotangents_may_be_any_sequence(kind: Any) -> None:
    from tapegrad.recording.structural import Structural, apply

    twice = Structural("TwiceBackward0", ((),), lambda g, ctx: kind((g * 2.0, None)))
    x, y = leaf([1.0, 2.0]), leaf(1.0)
    apply(twice, (x, y), np.asarray([2.0, 4.0])).sum().backward()
    assert x.grad.tolist() == [2.0, 2.0]
    assert y.grad is None


def test_cotangents_of_other_dtypes_are_converted() -> None:
    from tapegrad.recording.structural import Structural, apply

    whole = Structural("WholeBackward0", ((),), lambda g, ctx: (tg.tensor([3, 4]), g.float()))
    x, y = leaf([1.0, 2.0]), leaf([1.0, 2.0])
    apply(whole, (x, y), np.asarray([2.0, 4.0])).sum().backward()
    assert (x.grad.tolist(), x.grad.dtype) == ([3.0, 4.0], np.float64)
    assert (y.grad.tolist(), y.grad.dtype) == ([1.0, 1.0], np.float64)
