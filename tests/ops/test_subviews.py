"""Views of a part: memory, version and base, writes through them, and what is refused."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from engine_fixtures import assert_values, leaf
from numerical import check_gradients

import tapegrad as tg

CUBE = np.arange(24.0).reshape(2, 3, 4) / 10.0
over = pytest.mark.parametrize

VIEWS: dict[str, tuple[Callable[[tg.Tensor], tg.Tensor], str]] = {
    "narrow": (lambda x: x.narrow(1, 1, 2), "SliceBackward0"),
    "select": (lambda x: x.select(-1, 0), "SelectBackward0"),
    "diagonal": (lambda x: x.diagonal(1, 1, 2), "DiagonalBackward0"),
    "unfold": (lambda x: x.unfold(2, 2, 2), "UnfoldBackward0"),
    "unflatten": (lambda x: x.unflatten(2, (2, 2)), "ViewBackward0"),
    "movedim": (lambda x: x.movedim(0, 2), "PermuteBackward0"),
    "as_strided": (lambda x: x.as_strided((2, 2), (12, 3), 1), "AsStridedBackward0"),
    "as_strided of a transpose": (lambda x: x.transpose(0, 2).as_strided((4,), (5,)), "AsStridedBackward0"),
    "tensor_split": (lambda x: x.tensor_split(3, 2)[1], "SliceBackward0"),
    "hsplit": (lambda x: x.hsplit((1,))[1], "SliceBackward0"),
    "H": (lambda x: x[0].H, "TransposeBackward0"),
    "mH": (lambda x: x.mH, "TransposeBackward0"),
    "adjoint": (lambda x: x.adjoint(), "TransposeBackward0"),
}
TAKES = {name: take for name, (take, _) in VIEWS.items()}


@over("take", TAKES.values(), ids=TAKES)
def test_view_shares_memory(take: Any) -> None:
    x = tg.tensor(CUBE)
    take(x).fill_(-1.0)
    assert (x.numpy() == -1.0).sum() == take(tg.zeros(2, 3, 4)).numel()


@over("take", TAKES.values(), ids=TAKES)
def test_view_shares_version_and_knows_its_base(take: Any) -> None:
    x = tg.tensor(CUBE)
    part = take(x)
    part.mul_(2.0)
    assert part._base is x
    assert x._version == part._version == 1


@over(("take", "name"), VIEWS.values(), ids=VIEWS)
def test_node_of_a_view_is_that_of_pytorch(take: Any, name: str) -> None:
    assert take(leaf(CUBE)).grad_fn.name() == name


@over("take", TAKES.values(), ids=TAKES)
def test_derivatives_of_a_view(take: Any) -> None:
    check_gradients(lambda x: take(x) * take(x), CUBE)


@over("take", TAKES.values(), ids=TAKES)
def test_derivatives_of_what_is_written_through_a_view(take: Any) -> None:
    def f(x: tg.Tensor, v: tg.Tensor) -> tg.Tensor:
        y = x * x
        part = take(y)
        part.mul_(v)
        return y * part.sum()

    check_gradients(f, CUBE, 0.7)


@over("take", TAKES.values(), ids=TAKES)
def test_view_follows_a_write_to_its_base(take: Any) -> None:
    def f(x: tg.Tensor) -> tg.Tensor:
        y = x * 2.0
        part = take(y)
        y.mul_(x)
        return part * part

    check_gradients(f, CUBE)


def test_write_through_a_view_is_a_copy_slices_node_of_the_base() -> None:
    y = leaf(CUBE) * 2.0
    y.diagonal(0, 1, 2).zero_()
    assert y.grad_fn.name() == "torch::autograd::CopySlices"


@over("take", TAKES.values(), ids=TAKES)
def test_view_of_a_leaf_is_not_written(take: Any) -> None:
    with pytest.raises(RuntimeError, match=re.escape("a view of a leaf Variable that requires grad is being used in an in-place")):
        take(leaf(CUBE)).mul_(2.0)


@over("take", [lambda x: x.unfold(0, 2, 1), lambda x: x.as_strided((3, 3), (1, 1)), lambda x: x.as_strided((4, 3), (2, 3))])
def test_overlapping_windows_are_not_written(take: Any) -> None:
    x = tg.arange(16.0)
    with pytest.raises(RuntimeError, match="more than one element of the written-to tensor refers to a single memory location"):
        take(x).mul_(2.0)
    assert_values(x, np.arange(16.0))


@over("order", [(0, 1, 2), (2, 1, 0), (1, 0, 2), (2, 0, 1)])
def test_windows_of_another_librarys_memory_in_any_order_of_axes(order: tuple[int, ...]) -> None:
    memory = np.asarray(memoryview(CUBE.copy().transpose(order)))
    x = tg.from_numpy(memory)
    windows = x.unfold(1, 2, 1)
    np.testing.assert_array_equal(windows.numpy(), np.lib.stride_tricks.sliding_window_view(memory, 2, 1))
    x.unfold(1, 2, 2).mul_(2.0)
    np.testing.assert_array_equal(windows.numpy(), np.lib.stride_tricks.sliding_window_view(memory, 2, 1))


def test_windows_of_another_librarys_memory_with_gaps_are_refused() -> None:
    x = tg.from_numpy(np.asarray(memoryview(np.arange(10.0))[::2]))
    with pytest.raises(RuntimeError, match="clone"):
        x.unfold(0, 2, 1)
    assert x.clone().unfold(0, 2, 2).tolist() == [[0.0, 2.0], [4.0, 6.0]]


@over("take", [lambda x: x.unfold(0, 2, 2), lambda x: x.as_strided((3, 2), (2, 3)), lambda x: x.as_strided((2, 3), (1, 4))])
def test_windows_that_do_not_overlap_are_written(take: Any) -> None:
    x = tg.ones(16)
    take(x).mul_(2.0)
    assert x.sum().item() == 16 + take(x).numel()


@pytest.mark.parametrize("take", [lambda t: t.unfold(0, 2, 2), lambda t: t.as_strided((3, 2), (2, 1))])
def test_windows_of_memory_that_became_read_only(take: Any) -> None:
    memory = np.arange(6.0)
    whole = memory[:]  # which stays writeable
    memory.flags.writeable = False
    assert take(tg.from_numpy(whole)).tolist() == [[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]]


def test_overlapping_windows_may_be_filled_with_a_number() -> None:
    x = tg.arange(5.0)
    x.unfold(0, 2, 1).zero_()
    assert_values(x, np.zeros(5))


def test_gradient_of_overlapping_windows_is_summed() -> None:
    x = leaf(np.arange(5.0))
    x.unfold(0, 3, 1).sum().backward()
    assert_values(x.grad, [1.0, 2.0, 3.0, 2.0, 1.0])


def test_windows_of_a_number() -> None:
    assert tg.tensor(2.0).unfold(0, 1, 1).tolist() == [2.0]


def test_as_strided_counts_from_the_beginning_of_the_base() -> None:
    x = leaf(np.arange(6.0))
    z = (x * 1.0)[2:].as_strided((3,), (1,), 0)
    z.sum().backward()
    assert_values(z, [0.0, 1.0, 2.0])
    assert_values(x.grad, [1.0, 1.0, 1.0, 0.0, 0.0, 0.0])


def test_as_strided_of_no_elements_begins_anywhere() -> None:
    assert tg.tensor([1.0]).as_strided((0, 3), (1, 1), 2).shape == (0, 3)


def test_as_strided_begins_where_the_tensor_does() -> None:
    assert tg.arange(6.0)[2:].as_strided((2,), (2,)).tolist() == [2.0, 4.0]


def test_storage_offset_is_in_elements() -> None:
    x = tg.zeros(3, 4)
    assert [x.storage_offset(), x[1, 2:].storage_offset(), x.t()[1].storage_offset()] == [0, 6, 1]


def test_pieces_of_a_split_are_refused_but_those_of_a_tensor_split_are_written() -> None:
    y = leaf(np.arange(4.0)) * 1.0
    y.tensor_split(2)[0].zero_()
    assert_values(y, [0.0, 0.0, 2.0, 3.0])
    with pytest.raises(RuntimeError, match="is a view and is being modified inplace"):
        y.split_with_sizes((1, 3))[0].zero_()


ERRORS: list[tuple[Callable[[tg.Tensor], Any], type[Exception], str]] = [
    (lambda x: x.narrow(0, 1, 2), RuntimeError, "start (1) + length (2) exceeds dimension size (2)"),
    (lambda x: x.narrow(0, 3, 0), IndexError, "start out of range (expected to be in range of [-2, 2], but got 3)"),
    (lambda x: x.narrow(0, 0, -1), RuntimeError, "narrow(): length must be non-negative"),
    (lambda x: x.sum().narrow(0, 0, 1), RuntimeError, "narrow() cannot be applied to a 0-dim tensor"),
    (lambda x: x.select(0, 2), IndexError, "select(): index 2 out of range for tensor of size [2, 3, 4] at dimension 0"),
    (lambda x: x.sum().select(0, 0), IndexError, "select() cannot be applied to a 0-dim tensor"),
    (lambda x: x.diagonal(0, 1, -2), RuntimeError, "diagonal dimensions cannot be identical 1, -2"),
    (lambda x: x.diagonal(0, 0, 3), IndexError, "Dimension out of range (expected to be in range of [-3, 2], but got 3)"),
    (lambda x: x.unfold(0, 3, 1), RuntimeError, "maximum size for tensor at dimension 0 is 2 but size is 3"),
    (lambda x: x.unfold(0, 1, 0), RuntimeError, "step is 0 but must be > 0"),
    (lambda x: x.unfold(0, -1, 1), RuntimeError, "size is -1 but must be >= 0"),
    (lambda x: x.unflatten(2, (3, 2)), RuntimeError, "don't multiply up to the size of dim 2 (4)"),
    (lambda x: x.unflatten(2, ()), RuntimeError, "unflatten: sizes must be non-empty"),
    (lambda x: x.unflatten(2, 2), TypeError, "must be tuple of ints, not int"),
    (lambda x: x.as_strided((9, 9), (4, 1)), RuntimeError, "out of bounds for storage"),
    (lambda x: x.as_strided((2,), (1, 1)), RuntimeError, "mismatch in length of strides and shape"),
    (lambda x: x.as_strided((2,), (-1,)), RuntimeError, "Negative strides are not supported"),
    (lambda x: x.tensor_split(0), RuntimeError, "number of sections must be larger than 0, got 0"),
    (lambda x: x.hsplit(2), RuntimeError, "dimension 1, but the size of the dimension 3 is not divisible by the split_size 2"),
    (lambda x: x[0].dsplit(1), RuntimeError, "requires a tensor with at least 3 dimension, but got a tensor with 2 dimensions"),
    (lambda x: x.H, RuntimeError, "only supported on matrices (2-D tensors). Got 3-D tensor."),
    (lambda x: x.select_scatter(x, 0, 0), RuntimeError, "expected src to have a size equal to the slice of self"),
    (lambda x: x.slice_scatter(x, 0, 0, 1), RuntimeError, "expected src to have a size equal to the slice of self"),
]


@over(("f", "error", "message"), ERRORS)
def test_errors_of_views_name_the_sizes(f: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=re.escape(message)):
        f(leaf(CUBE))


PARTS = {
    "whole": lambda t: t, "transpose": lambda t: t.T, "rows": lambda t: t[1:3], "columns": lambda t: t[:, ::2],
    "rest": lambda t: t[1:, 1:],
}  # fmt: skip


@pytest.mark.parametrize("part", list(PARTS))
@pytest.mark.parametrize("offset", [0, 1, 9])
def test_as_strided_scatter_replaces_what_as_strided_shows(part: str, offset: int) -> None:
    memory, values = np.arange(24.0).reshape(4, 6), -np.arange(1.0, 5.0).reshape(2, 2)
    expected = memory.copy()
    np.ndarray((2, 2), np.float64, expected, 8 * offset, (24, 8))[...] = values
    base = tg.tensor(memory)
    found = tg.as_strided_scatter(PARTS[part](base), tg.tensor(values), (2, 2), (3, 1), offset)
    np.testing.assert_array_equal(found.numpy(), PARTS[part](expected))
    np.testing.assert_array_equal(base.numpy(), memory)


def test_as_strided_scatter_of_columns_gives_nothing_to_what_falls_between() -> None:
    x, src = tg.ones(2, 4, requires_grad=True), tg.tensor([10.0, 20.0, 30.0], requires_grad=True)
    weights = tg.tensor([[1.0, 2.0], [3.0, 4.0]])
    (tg.as_strided_scatter((x * 1.0)[:, ::2], src, (3,), (1,), 2) * weights).sum().backward()
    assert x.grad.tolist() == [[1.0, 0.0, 0.0, 0.0], [0.0, 0.0, 4.0, 0.0]]
    assert src.grad.tolist() == [2.0, 0.0, 3.0]


@over("start", [tg.tensor([0]), tg.tensor([[1]])])
def test_start_of_a_part_has_no_dimensions(start: tg.Tensor) -> None:
    with pytest.raises(RuntimeError, match="start must be an 0-dim integral Tensor"):
        tg.ones(3).narrow(0, start, 1)


def test_an_empty_piece_of_repeated_elements_has_a_recorded_gradient() -> None:
    def square(x: Any) -> Any:
        nothing = np.broadcast_to(x, (2, 3, 5))[:0][:, :, :4]
        return (nothing**2).sum() + (x**2).sum()

    found = tg.grad(lambda x: (tg.grad(square)(x) ** 2).sum())(np.ones((3, 5)))
    np.testing.assert_array_equal(found, np.full((3, 5), 8.0))
