"""Huge, many and overlapping dimensions: right, lazy, or a clear error before anything is written."""

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from engine_fixtures import leaf, live_rows, numbers
from numerical import check_gradients

import tapegrad as tg

HUGE = 2**40


def test_an_expanded_tensor_is_lazy_whatever_its_size() -> None:
    x = leaf(2.0)
    wide = x.expand(HUGE)
    part = wide[HUGE - 5 :][::2]
    assert wide.shape == (HUGE,) and part.tolist() == [2.0, 2.0, 2.0]


@pytest.mark.parametrize("entry", [tg.as_tensor, tg.from_numpy])
def test_a_broadcast_array_is_lazy_whatever_its_size(entry: Callable[[np.ndarray], tg.Tensor]) -> None:
    t = entry(np.broadcast_to(np.float64(3.0), (HUGE,)))
    assert t.shape == (HUGE,) and t[7].item() == 3.0 and "3." in repr(t)


BEYOND_MEMORY: dict[str, Callable[[], Any]] = {
    "copy": lambda: tg.tensor(np.broadcast_to(1.0, (2**50,))),
    "zeros": lambda: tg.zeros(2**50),
    "operand": lambda: leaf([1.0]) * tg.as_tensor(np.broadcast_to(1.0, (2**50,))),
    "array operand": lambda: leaf([1.0]) * np.broadcast_to(1.0, (2**50,)),
    "cat": lambda: tg.cat([tg.ones(1).expand(2**50)] * 2),
}


@pytest.mark.parametrize("name", BEYOND_MEMORY)
def test_what_does_not_fit_into_memory_raises_memory_error(name: str) -> None:
    with pytest.raises(MemoryError, match="Unable to allocate"):
        BEYOND_MEMORY[name]()


BEYOND_ADDRESSES: dict[str, Callable[[], Any]] = {
    "zeros": lambda: tg.zeros(2**62),
    "product of sizes": lambda: tg.ones(2**31, 2**31, 2**31),
    "beside a zero": lambda: tg.zeros(0, 2**62),
    "beyond int64": lambda: tg.empty(2**70),
    "full": lambda: tg.full((2**62,), 1.0),
    "rand": lambda: tg.rand(2**62),
    "arange": lambda: tg.arange(2**62),
    "linspace": lambda: tg.linspace(0.0, 1.0, 2**62),
    "eye": lambda: tg.eye(2**40),
    "expand": lambda: leaf(1.0).expand(2**62),
    "expand beyond int64": lambda: leaf(1.0).expand(2**70),
    "reshape of nothing": lambda: tg.zeros(0).reshape(0, 2**62),
    "broadcast": lambda: tg.ones(1).expand(2**31, 1) * tg.ones(1).expand(1, 2**31),
    "broadcast of tracked": lambda: leaf([1.0]).expand(2**31, 1) * leaf([1.0]).expand(1, 2**31),
    "cat whose size wraps round": lambda: tg.cat([tg.ones(1).expand(2**59)] * 32),
    "stack whose size wraps round": lambda: tg.stack([tg.ones(1).expand(2**59)] * 32),
}


@pytest.mark.parametrize("name", BEYOND_ADDRESSES)
def test_sizes_that_overflow_are_refused(name: str) -> None:
    with pytest.raises(RuntimeError, match=r"overflowed with sizes=|no tensor can have the shape"):
        BEYOND_ADDRESSES[name]()


def test_number_of_elements_does_not_wrap_round() -> None:
    size = type(tg.zeros(2).shape)
    assert size((2**40, 2**40)).numel() == 2**80


@pytest.mark.parametrize("size", [2**41, 2**59])
def test_a_view_that_no_gradient_could_fit_is_not_recorded(size: int) -> None:
    x = leaf(2.0)
    (x * x).backward()
    before = live_rows()
    with pytest.raises(RuntimeError, match=f"{size} elements cannot be differentiated"):
        x.expand(size)
    assert live_rows() == before and x.detach().expand(size)[size - 1].item() == 2.0


def test_a_leaf_that_no_gradient_could_fit_is_not_used() -> None:
    x = tg.from_numpy(np.broadcast_to(1.0, (2**50,))).requires_grad_()
    with pytest.raises(RuntimeError, match="cannot be differentiated"):
        x[0] * 2.0


def test_gradients_beyond_memory_raise_and_leave_every_gradient() -> None:
    x = leaf(2.0)
    y = x.expand(HUGE)[5]
    with pytest.raises(MemoryError):
        y.backward()
    assert x.grad is None
    (x * x).backward()
    assert x.grad.item() == 4.0


# Many dimensions

FEW, MOST = 3, 64
MANY: dict[str, Callable[[tg.Tensor], tg.Tensor]] = {
    "elementwise": lambda t: tg.sin(t) * t,
    "broadcast": lambda t: t * tg.tensor([1.0, 2.0, 3.0]),
    "transposed": lambda t: t.mT * 3.0,
    "reshaped": lambda t: t.reshape(-1) ** 2,
    "sum over the last": lambda t: t.sum(-1) ** 2,
    "sum over the last but one": lambda t: t.sum(-2) ** 2,
    "sum over all but the last": lambda t: t.sum(tuple(range(t.ndim - 1))) ** 2,
    "mean": lambda t: t.mean(-1, True) * t,
    "var": lambda t: t.var(-1),
    "prod": lambda t: t.prod(-1),
    "amax": lambda t: t.amax(-1) ** 2,
    "max": lambda t: t.max(-1).values ** 2,
    "softmax": lambda t: t.softmax(-1) ** 2,
    "cumsum": lambda t: t.cumsum(-1) ** 2,
    "cat": lambda t: tg.cat([t, t * t], -1) ** 2,
    "matmul": lambda t: t @ t.mT,
    "index": lambda t: t[..., 1] ** 2,
    "index array": lambda t: t[..., [1, 1, 0]] ** 2,
    "mask": lambda t: t[t > 2.0] ** 2,
    "gather": lambda t: t.gather(-1, tg.ones(t.shape, dtype=tg.int64)) ** 2,
    "expand": lambda t: t.expand(2, *t.shape[1:]) ** 2,
}


@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.parametrize("name", MANY)
def test_as_many_dimensions_as_numpy_has_act_like_few(name: str, create_graph: bool) -> None:
    results = []
    for ndim in (FEW, MOST):
        x = leaf(np.arange(1.0, 7.0).reshape((1,) * (ndim - 2) + (2, 3)))
        y = MANY[name](x)
        (g,) = tg.autograd.grad(y.sum(), x, create_graph=create_graph)
        assert g.shape == x.shape
        results.append((numbers(y).ravel(), numbers(g).ravel()))
    np.testing.assert_allclose(results[1][0], results[0][0], rtol=1e-14)
    np.testing.assert_allclose(results[1][1], results[0][1], rtol=1e-14)


@pytest.mark.parametrize(
    "f",
    [
        lambda t: t.unsqueeze(0),
        lambda t: t[None],
        lambda t: tg.stack([t, t]),
        lambda t: t.expand(2, *t.shape),
        lambda t: t.reshape(1, *t.shape),
        lambda t: tg.zeros(*t.shape, 1),
    ],
)
def test_one_dimension_more_is_refused(f: Callable[[tg.Tensor], Any]) -> None:
    with pytest.raises((RuntimeError, IndexError, ValueError), match="dimension"):
        f(leaf(np.ones((1,) * MOST)))


# Overlap: a write reads all its operands first. The weights tell the elements apart.

VECTOR, SQUARE = np.array([1.0, 2.0, 3.0, 4.0, 5.0]), np.array([[1.0, 2.0], [3.0, 4.0]])


def shifted_copy(y: Any) -> Any:
    y[1:].copy_(y[:-1]) if isinstance(y, tg.Tensor) else y.__setitem__(slice(1, None), y[:-1].copy())
    return y


def shifted_back(y: Any) -> Any:
    y[:-1].copy_(y[1:]) if isinstance(y, tg.Tensor) else y.__setitem__(slice(None, -1), y[1:].copy())
    return y


def shifted_sum(y: Any) -> Any:
    y[1:] += y[:-1] if isinstance(y, tg.Tensor) else y[:-1].copy()
    return y


def shifted_assignment(y: Any) -> Any:
    y[1:] = y[:-1] if isinstance(y, tg.Tensor) else y[:-1].copy()
    return y


def assignment_by_index(y: Any) -> Any:
    y[[0, 1, 2]] = y[2:] if isinstance(y, tg.Tensor) else y[2:].copy()
    return y


def transposed_copy(y: Any) -> Any:
    y.T.copy_(y) if isinstance(y, tg.Tensor) else y.T.__setitem__(..., y.copy())
    return y


def transposed_sum(y: Any) -> Any:
    y += y.T if isinstance(y, tg.Tensor) else y.T.copy()
    return y


def own_row_added(y: Any) -> Any:
    y += y[0] if isinstance(y, tg.Tensor) else y[0].copy()
    return y


def own_element_subtracted(y: Any) -> Any:
    y -= y[0, 1] if isinstance(y, tg.Tensor) else y[0, 1].copy()
    return y


OVERLAPPING: dict[str, tuple[Callable[[Any], Any], np.ndarray]] = {
    "copy_ forward": (shifted_copy, VECTOR),
    "copy_ backward": (shifted_back, VECTOR),
    "+=": (shifted_sum, VECTOR),
    "slice = slice": (shifted_assignment, VECTOR),
    "index = slice": (assignment_by_index, VECTOR),
    "copy_ of the transpose": (transposed_copy, SQUARE),
    "+= of the transpose": (transposed_sum, SQUARE),
    "+= of a row": (own_row_added, SQUARE),
    "-= of an element": (own_element_subtracted, SQUARE),
}


@pytest.mark.parametrize("name", OVERLAPPING)
def test_overlapping_writes_have_the_value_of_separate_memory(name: str) -> None:
    write, start = OVERLAPPING[name]
    assert write(tg.tensor(start)).tolist() == write(start.copy()).tolist()


@pytest.mark.parametrize("name", OVERLAPPING)
def test_overlapping_writes_have_the_gradient_of_separate_memory(name: str) -> None:
    write, start = OVERLAPPING[name]
    check_gradients(lambda x: write(x * x), start)


def test_overlapping_writes_into_large_arrays_have_the_gradient_of_separate_memory() -> None:
    w = np.cos(np.arange(3000.0))
    x = leaf(np.ones(3000))
    shifted_sum(x * 1.0).backward(tg.tensor(w))
    np.testing.assert_allclose(x.grad.numpy(), w + np.append(w[1:], 0.0), rtol=1e-14)
    x = leaf(np.ones(3000))
    shifted_copy(x * 1.0).backward(tg.tensor(w))
    np.testing.assert_allclose(x.grad.numpy(), np.append([w[0] + w[1], *w[2:]], 0.0), rtol=1e-14)


def test_products_with_own_rows_raise_or_are_right() -> None:
    for row in (lambda y: y[0], lambda y: y[:, :1], lambda y: y.T):
        x = leaf(SQUARE)
        y = x * 1.0
        with pytest.raises(RuntimeError, match="modified by an inplace operation"):
            y.mul_(row(y)).sum().backward()
        assert x.grad is None


@pytest.mark.parametrize("write", ["add_", "mul_", "copy_", "__setitem__"])
@pytest.mark.parametrize(
    "array",
    [
        np.lib.stride_tricks.sliding_window_view(np.arange(4.0), 2, writeable=True),
        np.lib.stride_tricks.as_strided(np.arange(4.0), (2, 3), (8, 8)),
        np.lib.stride_tricks.as_strided(np.arange(4.0), (3, 2), (0, 8)),
        np.lib.stride_tricks.as_strided(np.arange(4.0)[2:], (3, 2), (-8, 8)),
        np.lib.stride_tricks.as_strided(np.zeros(4), (3,), (4,)),
    ],
    ids=["windows", "windows by strides", "zero stride", "negative stride", "half a number apart"],
)
def test_memory_whose_elements_overlap_is_not_written(array: np.ndarray, write: str) -> None:
    before = array.copy()
    t, v = tg.from_numpy(array), leaf(np.ones(array.shape))
    with pytest.raises(RuntimeError, match="more than one element of the written-to tensor"):
        getattr(t, write)(*([..., v] if write == "__setitem__" else [v]))
    np.testing.assert_array_equal(array, before)


@pytest.mark.parametrize(
    "take", [lambda t: t[::2, 1:], lambda t: t.T, lambda t: t[1:3].T, lambda t: t[:, None], lambda t: t[..., 1]]
)
def test_strided_memory_whose_elements_are_apart_is_written(take: Callable[[Any], Any]) -> None:
    a = np.arange(12.0).reshape(4, 3)
    expected = a.copy()
    take(expected)[...] += 1.0
    take(tg.from_numpy(a)).add_(1.0)
    np.testing.assert_array_equal(a, expected)


def test_out_may_be_an_operand_or_overlap_one() -> None:
    t = tg.tensor(VECTOR)
    tg.add(t[:-1], t[1:], out=t[1:])
    assert t.tolist() == [1.0, 3.0, 5.0, 7.0, 9.0]
    tg.mul(t, t, out=t)
    assert t.tolist() == [1.0, 9.0, 25.0, 49.0, 81.0]
