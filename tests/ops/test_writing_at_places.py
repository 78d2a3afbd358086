"""In-place forms of operations that write at places: identity, versions, views, leaves; repeated places; errors."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from engine_fixtures import assert_values, leaf
from numerical import check_gradients

import tapegrad as tg

MATRIX = np.arange(12.0).reshape(3, 4) / 7.0
MASK = np.random.default_rng(3).random((3, 4)) > 0.5
I = tg.tensor
over = pytest.mark.parametrize

# name of the node, what is called with the target and a tracked matrix of its shape
FORMS: dict[str, tuple[str, Callable[[tg.Tensor, tg.Tensor], tg.Tensor]]] = {
    "scatter_": ("ScatterBackward0", lambda t, v: t.scatter_(0, I([[2, 0, 1, 1]]), v)),
    "scatter_ of a number": ("ScatterBackward1", lambda t, v: t.scatter_(0, I([[2, 0, 1, 1]]), 0.5)),
    "scatter_add_": ("ScatterAddBackward0", lambda t, v: t.scatter_add_(1, I([[3, 3], [0, 1]]), v)),
    "index_add_": ("IndexAddBackward0", lambda t, v: t.index_add_(0, I([1, 1, 0]), v, alpha=2.0)),
    "index_copy_": ("IndexCopyBackward0", lambda t, v: t.index_copy_(0, I([2, 0]), v[:2])),
    "index_fill_": ("IndexFillBackward1", lambda t, v: t.index_fill_(1, I([0]), v[0, 0])),
    "index_put_": ("IndexPutBackward0", lambda t, v: t.index_put_((I([2, 0]),), v[:2])),
    "masked_fill_": ("MaskedFillBackward1", lambda t, v: t.masked_fill_(I(MASK), v[0, 0])),
    "masked_scatter_": ("MaskedScatterBackward0", lambda t, v: t.masked_scatter_(I(MASK), v)),
    "put_": ("PutBackward0", lambda t, v: t.put_(I([3, -1]), v[0, :2])),
    "tril_": ("TrilBackward0", lambda t, v: t.tril_()),
    "triu_": ("TriuBackward0", lambda t, v: t.triu_(1)),
}
WRITES = {name: write for name, (_, write) in FORMS.items()}


@over(("name", "write"), FORMS.values(), ids=FORMS)
def test_writing_form_returns_the_object_with_the_node_of_pytorch(name: str, write: Any) -> None:
    y = leaf(MATRIX) * 1.0
    assert write(y, leaf(MATRIX)) is y
    assert y.grad_fn.name() == name


@over("write", WRITES.values(), ids=WRITES)
def test_writing_form_raises_the_version_by_one(write: Any) -> None:
    x = tg.tensor(MATRIX)
    write(x, tg.ones(3, 4))
    assert x._version == 1


@over("write", WRITES.values(), ids=WRITES)
def test_writing_form_refuses_a_leaf_and_leaves_it_alone(write: Any) -> None:
    x = leaf(MATRIX)
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad is being used in an in-place operation"):
        write(x, tg.ones(3, 4))
    assert_values(x, MATRIX)
    assert x._version == 0


@over("write", WRITES.values(), ids=WRITES)
def test_writing_form_writes_a_leaf_without_recording(write: Any) -> None:
    x = leaf(MATRIX)
    with tg.no_grad():
        write(x, tg.ones(3, 4))
    assert x.is_leaf and x.requires_grad and x._version == 1


@over("write", WRITES.values(), ids=WRITES)
def test_writing_form_through_a_view_reaches_the_base(write: Any) -> None:
    def f(x: tg.Tensor, v: tg.Tensor) -> tg.Tensor:
        y = x * x
        write(y.t()[1:].t(), v * v)
        return y * y

    check_gradients(f, np.arange(15.0).reshape(3, 5) / 7.0, MATRIX)


@over("write", WRITES.values(), ids=WRITES)
def test_writing_form_makes_saved_values_stale(write: Any) -> None:
    y = leaf(MATRIX) * 1.0
    z = y * y
    write(y, tg.ones(3, 4))
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.sum().backward()


def test_written_tensor_becomes_tracked_by_what_is_written() -> None:
    v = leaf([5.0])
    y = tg.zeros(3)
    y.index_copy_(0, I([1]), v)
    y.sum().backward()
    assert_values(v.grad, [1.0])


def test_source_that_is_the_target_is_read_before_it_is_written() -> None:
    x = leaf([1.0, 2.0])
    y = x * 1.0
    y.index_add_(0, I([1, 0]), y)
    (y * I([1.0, 10.0])).sum().backward()
    assert_values(y, [3.0, 3.0])
    assert_values(x.grad, [11.0, 11.0])


def test_writing_form_keeps_the_dtype() -> None:
    x = tg.zeros(2, dtype=tg.float32)
    assert x.masked_fill_(I([True, False]), 1.5).dtype == tg.float32


def test_writing_form_does_not_change_the_shape() -> None:
    with pytest.raises(RuntimeError, match="doesn't match the broadcast shape"):
        tg.zeros(3).masked_fill_(I([[True] * 3] * 2), 0.0)


@over("write", [WRITES["index_add_"], WRITES["put_"]])
def test_writing_form_refuses_shared_memory(write: Any) -> None:
    with pytest.raises(RuntimeError, match="more than one element of the written-to tensor refers to a single memory location"):
        write(tg.zeros(1, 4).expand(3, 4), tg.ones(3, 4))


@over(
    "f",
    [
        lambda x, v: x.scatter(0, I([1, 1, 0]), v),
        lambda x, v: x.index_copy(0, I([1, 1, 0]), v),
        lambda x, v: x.put(I([1, -2, 0]), v),
        lambda x, v: x.index_put((I([1, -2, 0]),), v),
    ],
)
def test_of_repeated_places_the_last_value_stays_and_alone_has_a_gradient(f: Any) -> None:
    x, v = leaf([0.0, 0.0, 9.0]), leaf([1.0, 2.0, 3.0])
    z = f(x, v)
    z.sum().backward()
    assert_values(z, [3.0, 2.0, 9.0])
    assert_values(v.grad, [0.0, 1.0, 1.0])
    assert_values(x.grad, [0.0, 0.0, 1.0])


def test_source_larger_than_the_index_has_zeros_in_its_gradient() -> None:
    v = leaf(np.ones((2, 3)))
    tg.zeros(3, 3).scatter(0, I([[0, 2]]), v).sum().backward()
    assert_values(v.grad, [[1.0, 1.0, 0.0], [0.0, 0.0, 0.0]])


def test_integers_are_added_exactly() -> None:
    large = 2**53 + 1
    assert tg.zeros(1, dtype=tg.int64).index_add(0, I([0, 0]), I([large, 1])).item() == large + 1


def test_products_at_places_have_values_and_no_derivative() -> None:
    z = leaf([2.0, 3.0]).scatter(0, I([1, 1]), tg.tensor([5.0, 7.0]), reduce="multiply")
    assert_values(z, [2.0, 105.0])
    with pytest.raises(NotImplementedError, match="derivative for 'scatter' .* is not implemented"):
        z.sum().backward()


def test_index_that_is_written_after_its_use_does_no_harm() -> None:
    x, v, index = leaf([1.0, 2.0, 3.0]), leaf([4.0]), I([2])
    z = x.index_add(0, index, v)
    index.fill_(0)
    (z * I([1.0, 10.0, 100.0])).sum().backward()
    assert_values(v.grad, [100.0])


ERRORS: list[tuple[Callable[[tg.Tensor], Any], type[Exception], str]] = [
    (lambda x: x.scatter(0, I([[3]]), x), RuntimeError, "index 3 is out of bounds for dimension 0 with size 3"),
    (lambda x: x.scatter(0, I([[-1]]), 1.0), RuntimeError, "index -1 is out of bounds for dimension 0 with size 3"),
    (lambda x: x.scatter(0, I([0]), x), RuntimeError, "Index tensor must have the same number of dimensions as self tensor"),
    (lambda x: x.scatter(0, I([[0]]), x[0]), RuntimeError, "Index tensor must have the same number of dimensions as src tensor"),
    (lambda x: x.scatter(0, I([[0] * 5]), x), RuntimeError, "Expected index [1, 5] to be no larger than self [3, 4] apart from"),
    (lambda x: x.scatter(0, I([[0] * 2]), x[:, :1]), RuntimeError, "and to be no larger size than src [3, 1]"),
    (lambda x: x.scatter(0, I([[0.0]]), x), RuntimeError, "Expected dtype int32 or int64 for index"),
    (lambda x: x.scatter(0, I([[0]]), x.float()), RuntimeError, "scatter(): Expected self.dtype to be equal to src.dtype"),
    (lambda x: x.scatter(0, I([[0]]), x, reduce="max"), RuntimeError, "reduce argument must be either add or multiply"),
    (lambda x: x.scatter(2, I([[0]]), x), IndexError, "Dimension out of range"),
    (lambda x: x.scatter_add(0, I([[0]]), 1.0), TypeError, "argument 'src' (position 3) must be Tensor, not float"),
    (lambda x: x.index_add(0, I([3]), x[:1]), RuntimeError, "index 3 is out of bounds for dimension 0 with size 3"),
    (lambda x: x.index_add(0, I([0]), x), RuntimeError, "Number of indices (1) should be equal to source.size(dim): (3)"),
    (lambda x: x.index_add(0, I([0]), x[:1, :2]), RuntimeError, "source tensor shape must match self tensor shape"),
    (lambda x: x.index_add(0, I([[0]]), x[:1]), IndexError, "is supposed to be a vector"),
    (lambda x: x.index_add(0, I([0.0]), x[:1]), RuntimeError, "Expected dtype int32/int64 for index but got: Double"),
    (lambda x: x.index_add(0, I([0]), x[:1].float()), RuntimeError, "must have the same scalar type"),
    (lambda x: x.index_copy(0, I([-1]), x[:1]), IndexError, "index -1 is out of bounds for dimension 0 with size 3"),
    (lambda x: x.index_copy(0, I([0]), x), IndexError, "Number of indices (1) should be equal to source.size(dim) (3)"),
    (lambda x: x.index_copy(0, I([0], dtype=tg.int32), x[:1]), RuntimeError, "Expected a long tensor for index, but got Int"),
    (lambda x: x.index_copy(0, I([0]), x[:1, :2]), RuntimeError, "must have same slice shapes"),
    (lambda x: x.index_copy(0, I([0]), x[0]), IndexError, "their dimensionality must match"),
    (lambda x: x.index_fill(0, I([3]), 1.0), IndexError, "index 3 is out of bounds for dimension 0 with size 3"),
    (lambda x: x.index_fill(0, I([0]), x), RuntimeError, "only supports a 0-dimensional value tensor, but got tensor with 2"),
    (lambda x: x.index_fill(0, I([0.0]), 1.0), IndexError, "Expected dtype int64 for index"),
    (lambda x: x.index_put((I([3]),), x[:1]), IndexError, "index 3 is out of bounds for dimension 0 with size 3"),
    (lambda x: x.index_put((I([3]),), x[:1], True), IndexError, "index 3 is out of bounds for dimension 0 with size 3"),
    (lambda x: x.index_put((I([0]),) * 3, x[0, 0]), IndexError, "too many indices for tensor of dimension 2"),
    (lambda x: x.index_put(I([0]), x[:1]), TypeError, "argument 'indices' (position 1) must be tuple of Tensors, not Tensor"),
    (lambda x: x.index_put((0,), x[:1]), TypeError, "expected Tensor as element 0 in argument 0, but got int"),
    (lambda x: x.index_put((I([0]),), 1.0), TypeError, "argument 'values' (position 2) must be Tensor, not float"),
    (lambda x: x.index_put((I([0]),), x[:2], True), RuntimeError, "value tensor of shape [2, 4] cannot be broadcast to indexing"),
    (lambda x: x.index_put((I([0]),), x[:1].float()), RuntimeError, "Index put requires the source and destination dtypes match"),
    (lambda x: x.masked_scatter(I(MASK), x[0, :1]), RuntimeError, "Number of elements of source < number of ones in mask"),
    (lambda x: x.masked_scatter(I([1]), x), RuntimeError, "only supports boolean masks, but got mask with dtype Long"),
    (lambda x: x.masked_scatter(I(MASK), x.float()), RuntimeError, "expected self and source to have same dtypes"),
    (lambda x: x.put(I([12]), x[0, :1]), IndexError, "out of range: tried to access index 12 on a tensor of 12 elements."),
    (lambda x: x.put(I([0]), x), IndexError, "Expected source and index to have the same number of elements"),
    (lambda x: x.put(I([0.0]), x[0, :1]), RuntimeError, "Expected a long tensor for index, but got Double"),
    (lambda x: x.take(I([-13])), IndexError, "out of range: tried to access index -13 on a tensor of 12 elements."),
    (lambda x: x.take(I([0.0])), RuntimeError, "take(): Expected a long tensor for index, but got Double"),
]


@over(("f", "error", "message"), ERRORS)
def test_errors_of_writing_name_the_places(f: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=re.escape(message)):
        f(leaf(MATRIX))


@over("dtype", [tg.int64, tg.int8, tg.bool, tg.float32])
def test_nothing_is_added_at_no_places(dtype: Any) -> None:
    none, x = tg.tensor([], dtype=tg.int64), tg.ones((2, 3), dtype=dtype)
    assert x.index_add(0, none, x[:0]).tolist() == x.tolist()
    assert x.scatter_add(1, none.reshape(2, 0), x).tolist() == x.tolist()


@pytest.mark.parametrize(
    ("reduce", "own", "alone"),
    [("sum", [9, -2], [12, -2]), ("prod", [60, -2], [-20, -2]), ("amax", [5, -2], [5, -2]), ("amin", [-4, -2], [-4, -2])],
)
def test_integers_are_reduced_with_nothing_added_to_them(reduce: str, own: list[int], alone: list[int]) -> None:
    x, index, src = tg.tensor([-3, -2]), tg.tensor([0, 0, 0]), tg.tensor([5, -4, 1])
    if reduce == "sum":
        src = tg.tensor([5, 6, 1])
    for include, expected in ((True, own), (False, alone)):
        assert tg.scatter_reduce(x, 0, index, src, reduce, include_self=include).tolist() == expected


@over("reduce", ["prod", "mean", "amax", "amin"])
def test_reductions_into_a_number(reduce: str) -> None:
    row = tg.index_reduce(tg.tensor([2.0]), 0, I([0]), tg.tensor([5.0]), reduce)
    assert_values(tg.index_reduce(tg.tensor(2.0), 0, I([0]), tg.tensor(5.0), reduce), row.item())


@over(("reduce", "expected"), [("amax", [False, False, True]), ("amin", [False, True, True])])
def test_extremes_of_bools_without_those_that_are_there(reduce: str, expected: list[bool]) -> None:
    places, values = I([0, 0, 1]), I([False, False, reduce == "amin"])
    assert tg.scatter_reduce(I([True] * 3), 0, places, values, reduce, include_self=False).tolist() == expected


def test_means_of_bools_are_refused() -> None:
    with pytest.raises(NotImplementedError, match="means of bools are not implemented"):
        tg.scatter_reduce(I([True]), 0, I([0]), I([False]), "mean")


def test_means_of_integers_are_rounded_down() -> None:
    places, values = I([0, 0, 1]), I([-4, -6, 4])
    for means in (tg.scatter_reduce(I([-1, 3]), 0, places, values, "mean"), tg.index_reduce(I([-1, 3]), 0, places, values, "mean")):
        assert (means.tolist(), means.dtype) == ([-11 // 3, 7 // 2], tg.int64)


@over("strided", [False, True])
def test_values_that_lie_in_the_target_are_read_before_it_is_written(strided: bool) -> None:
    base = np.arange(8.0)
    target = tg.tensor(np.repeat(base, 2))[::2] if strided else tg.tensor(base)
    target.index_copy_(0, I([1, 2, 3]), target[:3])
    np.testing.assert_array_equal(target.numpy(), [0, 0, 1, 2, 4, 5, 6, 7])


@over("write", WRITES.values(), ids=WRITES)
def test_values_that_a_derivative_needs_are_missed_when_they_were_overwritten(write: Any) -> None:
    x = leaf(MATRIX)
    y = x * 1.0
    z = (y * y).sum()
    write(y, tg.ones(3, 4))
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.backward()


@over("write", WRITES.values(), ids=WRITES)
def test_writing_into_a_part_of_a_base_gives_the_gradient_of_the_copy(write: Any) -> None:
    found = []
    for in_part in (True, False):
        x, v = leaf(np.r_[MATRIX, MATRIX]), leaf(MATRIX + 0.5)
        y = x * 1.0
        part = y[1:4] if in_part else y[1:4].clone()
        write(part, v)
        whole = y if in_part else tg.cat([y[:1], part, y[4:]])
        (whole * tg.arange(24.0).reshape(6, 4)).sum().backward()
        found.append((whole.detach().numpy().copy(), x.grad.numpy().copy(), None if v.grad is None else v.grad.numpy().copy()))
    for one, other in zip(*found, strict=True):
        np.testing.assert_array_equal(one, other)


@over("flip", [lambda t: t.t(), lambda t: t[:, ::2], lambda t: t.t()[1:]])
def test_writing_into_memory_of_another_order_gives_the_gradient_of_the_copy(flip: Any) -> None:
    found = []
    for in_part in (True, False):
        x = leaf(np.arange(36.0).reshape(6, 6))
        y = x * 1.0
        target = flip(y) if in_part else flip(y).clone().contiguous()
        target.fill_diagonal_(3.0)
        target[I([0, 1, 1]), I([1, 0, 0])] = leaf([5.0, 6.0, 7.0])
        found.append((target.detach().numpy().copy(), tg.autograd.grad((target * target).sum(), x)[0].numpy()))
    for one, other in zip(*found, strict=True):
        np.testing.assert_array_equal(one, other)


@over("write", [tg.index_put, lambda x, *rest: x.clone().index_put_(*rest)], ids=["index_put", "index_put_"])
@over("at", [(1,), (-1,), (2, -2)])
@over("dtype", [np.float64, np.float32])
def test_values_are_added_where_all_indices_are_numbers(write: Any, at: tuple[int, ...], dtype: Any) -> None:
    x, v = leaf(MATRIX.astype(dtype)), leaf(np.array(1.5, dtype))
    y = write(x, tuple(I(k) for k in at), v, True)
    expected = MATRIX.astype(dtype)
    expected[at] += dtype(1.5)
    np.testing.assert_array_equal(y.detach().numpy(), expected)
    weights = np.arange(12.0).reshape(3, 4).astype(dtype)
    y.backward(I(weights))
    np.testing.assert_array_equal(x.grad.numpy(), weights)
    np.testing.assert_array_equal(v.grad.numpy(), weights[at].sum())


def test_values_that_do_not_broadcast_are_not_added_at_a_number() -> None:
    with pytest.raises(
        RuntimeError, match=re.escape("value tensor of shape [2, 4] cannot be broadcast to indexing result of shape [4]")
    ):
        tg.index_put(I(MATRIX), (I(0),), I(MATRIX[:2]), accumulate=True)


NOWHERE = {
    "scatter": lambda x, i, v: tg.scatter(x, 0, i, v),
    "scatter of a number": lambda x, i, v: tg.scatter(x, 0, i, 2.0) + 0.0 * v.sum(),
    "scatter_add": lambda x, i, v: tg.scatter_add(x, 0, i, v),
    "scatter_reduce": lambda x, i, v: tg.scatter_reduce(x, 0, i, v, "sum"),
    "scatter_reduce without self": lambda x, i, v: tg.scatter_reduce(x, 0, i, v, "amax", include_self=False),
}


@over("name", NOWHERE)
@over(("index", "values"), [((0,), (2, 2)), ((0, 4), (0, 4)), ((0, 4), (3,)), ((2, 0), (2, 2))])
def test_an_index_without_elements_fits_to_values_of_any_shape(name: str, index: tuple[int, ...], values: tuple[int, ...]) -> None:
    x, v = leaf([[1.0, 2.0], [3.0, 4.0]]), leaf(np.ones(values))
    result = NOWHERE[name](x, tg.zeros(index, dtype=tg.int64), v)
    assert result.tolist() == x.tolist()
    result.sum().backward()
    assert_values(x.grad, np.ones((2, 2)))
    assert_values(v.grad, np.zeros(values))


def test_an_index_without_elements_fits_to_a_number() -> None:
    assert tg.scatter_reduce(I(5.0), 0, tg.zeros(0, dtype=tg.int64), tg.zeros(0), "sum").item() == 5.0


@over("dtype", [tg.float32, tg.int64, tg.bool])
def test_what_is_reduced_has_the_dtype_of_its_target(dtype: Any) -> None:
    for call in (
        lambda x, v: tg.scatter_reduce(x, 0, I([0, 1]), v, "sum"),
        lambda x, v: tg.index_reduce(x, 0, I([0, 1]), v, "prod"),
        lambda x, v: x.scatter_reduce_(0, I([0, 1]), v, "sum"),
    ):
        with pytest.raises(RuntimeError, match=r"Expected self\.dtype to be equal to src\.dtype"):
            call(tg.zeros(2), tg.ones(2, dtype=dtype))
