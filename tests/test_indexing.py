"""Indexing and index assignment: PyTorch's semantics against NumPy where they agree, derivatives, names, errors."""

import re
from typing import Any

import numpy as np
import pytest
from numerical import check_gradients

import tapegrad as tg
from tapegrad.index_keys import parse
from tapegrad.indexing import index_put

RNG = np.random.default_rng(3)
MATRIX = RNG.normal(size=(3, 4))
MASK = MATRIX > 0.0
FIVE = RNG.normal(size=(2, 3, 2, 3, 2))
EMPTY: list[int] = []


def leaf(values: Any) -> tg.Tensor:
    return tg.tensor(values, requires_grad=True)


# Keys that mean the same in NumPy and in PyTorch.
BASIC: list[Any] = [
    0, -1, (0, 1), (-1, -1), slice(1, None), slice(None, None, 2), slice(-100, 100), slice(2, 1), (slice(None), 0),
    (slice(None), slice(1, 3)), (0, slice(1, None)), None, (None, 0), (0, None), Ellipsis, (Ellipsis, 0), (0, Ellipsis),
    (Ellipsis, None, 0), (None, Ellipsis, None), (), (slice(0, 2), None, slice(0, 3, 2)),
]  # fmt: skip
ADVANCED: list[Any] = [
    [0, 2], [2, 0, 2], [-1, 0], EMPTY, [[0, 1], [2, 0]], ([0, 1], [1, 3]), ([0, 0], [1, 1]), ([[0], [1]], [0, 2, 2]),
    (slice(None), [3, 0, 3]), ([0, 2], slice(1, 3)), ([0, 1], None), (None, [0, 1]), (Ellipsis, [0, 2]),
    ([0, 2], Ellipsis), (slice(None), None, [1, 2]), [True, False, True], ([0], [True, False, True, True]), MASK,
    (MASK, None), (slice(None), np.array([True, False, True, False])), np.array([1, 0, 1], np.int16), range(2),
    (slice(0, 2), [True, True, False, False]),
]  # fmt: skip
# Mixtures in which NumPy moves dimensions because it takes a number for an index array.
MIXED: list[tuple[Any, tuple[int, ...]]] = [
    ((0, slice(None), [0, 1]), (3, 2, 3, 2)),
    ((slice(None), 0, slice(None), [0, 1]), (2, 2, 2, 2)),
    (([0, 1], slice(None), 0), (2, 3, 3, 2)),
    (([0, 1], slice(None), [0, 1]), (2, 3, 3, 2)),
    ((slice(None), [0, 1], slice(None), [0, 2]), (2, 2, 2, 2)),
    ((slice(None), [0, 1], [0, 1]), (2, 2, 3, 2)),
    ((Ellipsis, [0, 1], 0), (2, 3, 2, 2)),
    (([0, 1], None, [1, 2]), (2, 1, 2, 3, 2)),
    ((True, [0, 1]), (2, 3, 2, 3, 2)),
    (([0, 1], True), (2, 3, 2, 3, 2)),
    ((slice(None), np.ones((3, 2), bool), 0), (2, 6, 2)),
    ((0, 0, [1]), (1, 3, 2)),
]


@pytest.mark.parametrize("key", BASIC + ADVANCED, ids=str)
def test_indexing_equals_numpy(key: Any) -> None:
    got = tg.tensor(MATRIX)[key]
    assert got.shape == MATRIX[key].shape
    np.testing.assert_array_equal(got.numpy(), MATRIX[key])


@pytest.mark.parametrize(("key", "shape"), MIXED, ids=str)
def test_numbers_beside_index_arrays_leave_dimensions_in_place(key: Any, shape: tuple[int, ...]) -> None:
    assert tg.tensor(FIVE)[key].shape == shape


def test_mixed_index_selects_from_the_view() -> None:
    got = tg.tensor(FIVE)[0, :, [1, 0], 2]
    np.testing.assert_array_equal(got.numpy(), FIVE[0, :, :, 2][:, [1, 0]])


@pytest.mark.parametrize("key", BASIC, ids=str)
def test_basic_keys_give_views(key: Any) -> None:
    x = tg.tensor(MATRIX)
    y = x[key]
    assert y.numpy().size == 0 or np.shares_memory(y.numpy(), x.numpy())


@pytest.mark.parametrize("key", ADVANCED, ids=str)
def test_advanced_keys_give_contiguous_copies(key: Any) -> None:
    x = tg.tensor(MATRIX)
    got = x[key].numpy()
    assert got.flags.c_contiguous
    assert not np.shares_memory(got, x.numpy())


@pytest.mark.parametrize("key", BASIC + ADVANCED, ids=str)
def test_indexing_derivatives(key: Any) -> None:
    check_gradients(lambda x: x[key] * x[key], MATRIX)


@pytest.mark.parametrize("key", [key for key, _ in MIXED], ids=str)
def test_mixed_indexing_derivatives(key: Any) -> None:
    check_gradients(lambda x: x[key] * x[key], FIVE, order=1)


@pytest.mark.parametrize("key", [[0, 2, 0], (slice(None), [1, 1]), MASK], ids=str)
def test_indexing_derivatives_to_third_order(key: Any) -> None:
    check_gradients(lambda x: x[key] * x[key] * x[key], MATRIX, order=3, tolerance=1e-5)


@pytest.mark.parametrize("dtype", [np.float32, np.int64, np.bool_])
@pytest.mark.parametrize("key", [0, slice(1, None), [0, 2], MASK], ids=str)
def test_indexing_keeps_the_dtype(dtype: Any, key: Any) -> None:
    assert tg.tensor(MASK.astype(dtype))[key].dtype == dtype


def test_gradient_of_float32_indexing_is_float32() -> None:
    x = leaf(MATRIX.astype(np.float32))
    x[[0, 0, 1]].sum().backward()
    assert x.grad.dtype == np.float32
    np.testing.assert_array_equal(x.grad.numpy(), np.outer([2, 1, 0], np.ones(4)))


def test_indexing_of_strided_tensors_derivatives() -> None:
    check_gradients(lambda x: x.T[[0, 2, 2], 1:] * 2.0, MATRIX)


@pytest.mark.parametrize(
    ("key", "expected"),
    [
        (lambda: tg.tensor(1), MATRIX[1]),
        (lambda: tg.tensor([1, 0]), MATRIX[[1, 0]]),
        (lambda: tg.tensor([1, 0], dtype=tg.int32), MATRIX[[1, 0]]),
        (lambda: tg.tensor([True, False, True]), MATRIX[[0, 2]]),
        (lambda: (tg.tensor([0, 1]), tg.tensor([1, 1])), MATRIX[[0, 1], [1, 1]]),
        (lambda: (tg.tensor(2), slice(1, None)), MATRIX[2, 1:]),
        (lambda: slice(tg.tensor(0), tg.tensor(2)), MATRIX[:2]),
        (lambda: tg.tensor(MASK), MATRIX[MASK]),
        (lambda: np.int64(1), MATRIX[1]),
        (lambda: np.array(1), MATRIX[1]),
        (lambda: [tg.tensor(0), tg.tensor(2)], MATRIX[[0, 2]]),
    ],
)
def test_tensors_and_numpy_scalars_index(key: Any, expected: np.ndarray) -> None:
    np.testing.assert_array_equal(tg.tensor(MATRIX)[key()].numpy(), expected)


@pytest.mark.parametrize(("key", "shape"), [(True, (1, 3, 4)), (False, (0, 3, 4)), ((0, True), (1, 4))], ids=str)
def test_bools_add_a_dimension(key: Any, shape: tuple[int, ...]) -> None:
    assert tg.tensor(MATRIX)[key].shape == shape


@pytest.mark.parametrize("key", [(), Ellipsis, None, True], ids=str)
def test_derivatives_of_indexing_a_number(key: Any) -> None:
    check_gradients(lambda x: x[key] * x[key], 0.7)


def test_bytes_are_masks_and_warn() -> None:
    with pytest.warns(UserWarning, match="indexing with dtype uint8 is now deprecated"):
        got = tg.tensor(MATRIX)[tg.tensor([1, 0, 1], dtype=tg.uint8)]
    np.testing.assert_array_equal(got.numpy(), MATRIX[[0, 2]])


@pytest.mark.parametrize("kind", ["tensor", "array"])
def test_writing_into_the_index_later_leaves_the_gradient_alone(kind: str) -> None:
    x, index = leaf(MATRIX), np.array([0, 1])
    y = x[tg.from_numpy(index) if kind == "tensor" else index]
    index[...] = 2
    y.sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), np.outer([1, 1, 0], np.ones(4)))


def test_repeated_places_sum_in_a_fixed_order() -> None:
    x = leaf(np.zeros(5))
    index = RNG.integers(0, 5, 1000)
    weights = tg.tensor(RNG.normal(size=1000))
    gradients = [tg.autograd.grad((x[index] * weights).sum(), x)[0].numpy().tobytes() for _ in range(3)]
    assert len(set(gradients)) == 1


def test_indexing_an_empty_tensor() -> None:
    x = leaf(np.zeros((0, 3)))
    y = x[EMPTY]
    y.sum().backward()
    assert y.shape == x.grad.shape == (0, 3)


@pytest.mark.parametrize(
    ("key", "name"),
    [
        (0, "SelectBackward0"),
        (slice(1, None), "SliceBackward0"),
        (slice(None), "SliceBackward0"),
        (None, "UnsqueezeBackward0"),
        (Ellipsis, "AliasBackward0"),
        ((), "AliasBackward0"),
        ((slice(None), slice(None)), "AliasBackward0"),
        ((slice(None), 0), "SelectBackward0"),
        ((0, slice(1, None)), "SliceBackward0"),
        ((slice(1, None), None), "UnsqueezeBackward0"),
        (MASK, "IndexBackward0"),
        ([0, 1], "IndexBackward0"),
        ((0, [1, 2]), "IndexBackward0"),
        (True, "IndexBackward0"),
    ],
    ids=str,
)
def test_node_names_are_those_of_pytorch(key: Any, name: str) -> None:
    assert leaf(MATRIX)[key].grad_fn.name() == name


INDEX_ERRORS: list[tuple[Any, type[Exception], str]] = [
    (5, IndexError, "index 5 is out of bounds for dimension 0 with size 3"),
    ((0, -5), IndexError, "index -5 is out of bounds for dimension 1 with size 4"),
    ([0, 3], IndexError, "index 3 is out of bounds for dimension 0 with size 3"),
    ((slice(None), [4]), IndexError, "index 4 is out of bounds for dimension 1 with size 4"),
    ((0, 0, 0), IndexError, "too many indices for tensor of dimension 2"),
    ((slice(None), slice(None), None, 0), IndexError, "too many indices for tensor of dimension 2"),
    ((MASK, 0), IndexError, "too many indices for tensor of dimension 2"),
    (
        [True, False],
        IndexError,
        "The shape of the mask [2] at index 0 does not match the shape of the indexed",
    ),
    (MASK[:, :2], IndexError, "The shape of the mask [3, 2] at index 1 does not match"),
    (([0, 1], [0, 1, 2]), IndexError, "indexing tensors could not be broadcast together with shapes [2], [3]"),
    (1.0, IndexError, "only integers, slices (`:`), ellipsis (`...`), None"),
    ("a", IndexError, "only integers, slices (`:`), ellipsis (`...`), None"),
    ([1.0], IndexError, "tensors used as indices must be long, int, byte or bool tensors"),
    (np.array([1.0]), IndexError, "tensors used as indices must be long, int, byte or bool tensors"),
    ([0, slice(None)], IndexError, "use a tuple"),
    ((Ellipsis, Ellipsis), IndexError, "single ellipsis"),
    (slice(None, None, -1), ValueError, "step must be greater than zero"),
    ((0, slice(None, None, 0)), ValueError, "step must be greater than zero"),
    ([[0, 1], [2]], ValueError, "expected sequence of length"),
]


@pytest.mark.parametrize(("key", "error", "message"), INDEX_ERRORS, ids=str)
def test_reading_errors_name_the_index(key: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=re.escape(message)):
        leaf(MATRIX)[key]


@pytest.mark.parametrize(("key", "error", "message"), INDEX_ERRORS, ids=str)
def test_writing_errors_name_the_index(key: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=re.escape(message)):
        index_put(leaf(MATRIX), key, 1.0)


def test_float_tensors_do_not_index() -> None:
    with pytest.raises(IndexError, match="tensors used as indices must be long, int, byte or bool tensors"):
        leaf(MATRIX)[tg.tensor([1.0])]


@pytest.mark.parametrize(
    ("key", "message"),
    [
        (0, "invalid index of a 0-dim tensor"),
        (slice(1, None), "slice() cannot be applied to a 0-dim tensor."),
        ((0, 1), "too many indices for tensor of dimension 0"),
    ],
    ids=str,
)
def test_errors_of_indexing_a_number(key: Any, message: str) -> None:
    with pytest.raises(IndexError, match=re.escape(message)):
        leaf(1.0)[key]


# Assignment


@pytest.mark.parametrize("key", BASIC + [key for key in ADVANCED if key is not EMPTY], ids=str)
def test_assignment_equals_numpy(key: Any) -> None:
    expected = MATRIX.copy()
    value = RNG.normal(size=MATRIX[key].shape)
    expected[key] = value
    np.testing.assert_array_equal(index_put(tg.tensor(MATRIX), key, tg.tensor(value)).numpy(), expected)


@pytest.mark.parametrize("key", BASIC + ADVANCED, ids=str)
def test_assignment_of_a_number_equals_numpy(key: Any) -> None:
    expected = MATRIX.copy()
    expected[key] = 2.5
    np.testing.assert_array_equal(index_put(tg.tensor(MATRIX), key, 2.5).numpy(), expected)


@pytest.mark.parametrize("key", BASIC + ADVANCED, ids=str)
def test_assignment_derivatives(key: Any) -> None:
    value = RNG.normal(size=MATRIX[key].shape)
    check_gradients(lambda x, v: index_put(x * x, key, v * v), MATRIX, value)


@pytest.mark.parametrize(
    ("key", "shape"),
    [
        (0, (1,)),
        (0, (1, 4)),
        (slice(0, 2), (2, 1)),
        ([0, 2], (4,)),
        ([0, 2], (2, 1)),
        ([0, 2], (1, 2, 4)),
        (MASK, (1,)),
        (MASK, ()),
        ((slice(None), [1, 3]), (1, 2)),
    ],
    ids=str,
)
def test_derivatives_of_broadcast_assignment(key: Any, shape: tuple[int, ...]) -> None:
    check_gradients(lambda x, v: index_put(x * x, key, v * v), MATRIX, RNG.normal(size=shape))


def test_only_the_last_of_values_for_one_place_has_a_gradient() -> None:
    x, value = leaf(np.zeros(3)), leaf([1.0, 2.0, 3.0])
    y = index_put(x, [0, 2, 0], value)
    y.sum().backward()
    np.testing.assert_array_equal(y.detach().numpy(), [3.0, 0.0, 2.0])
    np.testing.assert_array_equal(value.grad.numpy(), [0.0, 1.0, 1.0])
    np.testing.assert_array_equal(x.grad.numpy(), [0.0, 1.0, 0.0])


def test_assignment_leaves_the_operand_alone() -> None:
    x = tg.tensor(MATRIX)
    index_put(x, 0, 7.0)
    np.testing.assert_array_equal(x.numpy(), MATRIX)


def test_numbers_are_cast_to_the_dtype_of_the_tensor() -> None:
    got = index_put(tg.tensor([1, 2, 3]), [0, 2], 1.5)
    assert (got.numpy().tolist(), got.dtype) == ([1, 2, 1], np.int64)


@pytest.mark.parametrize(
    ("key", "value", "message"),
    [
        (MASK, np.ones(2), "cannot be broadcast to indexing result of shape"),
        ([0, 1], np.ones(3), "value tensor of shape [3] cannot be broadcast to indexing result of shape [2, 4]"),
        (MASK, np.ones((2, 3)), "cannot be broadcast to indexing result of shape"),
        (0, np.ones(3), "The expanded size of the tensor (4) must match the existing size (3)"),
        (0, np.ones((2, 4)), "the number of sizes provided (1) must be greater or equal to the number of dimensions"),
        ([0], np.ones(4, np.float32), "Index put requires the source and destination dtypes match, got Double"),
    ],
    ids=str,
)
def test_assignment_errors_name_the_shapes(key: Any, value: np.ndarray, message: str) -> None:
    with pytest.raises(RuntimeError, match=re.escape(message)):
        index_put(leaf(MATRIX), key, tg.tensor(value))


@pytest.mark.parametrize(
    ("key", "basic"), [(0, True), ((0, slice(1)), True), (None, True), ([0], False), (MASK, False)]
)
def test_parse_says_whether_a_key_is_basic(key: Any, basic: bool) -> None:
    assert (parse(key, MATRIX.shape).advanced is None) == basic


# Functions


@pytest.mark.parametrize("dim", [0, 1, -1])
@pytest.mark.parametrize("index", [[0], [2, 0, 2], EMPTY], ids=str)
def test_index_select_equals_numpy(dim: int, index: list[int]) -> None:
    got = tg.index_select(tg.tensor(MATRIX), dim, tg.tensor(index, dtype=tg.int64))
    np.testing.assert_array_equal(got.numpy(), np.take(MATRIX, np.array(index, int), dim))


GATHERED = [(0, [[0, 1, 2, 0]]), (0, [[2, 2], [0, 2]]), (1, [[3], [0], [3]]), (1, [[0, 0, 1, 1, 2]])]


@pytest.mark.parametrize(("dim", "index"), GATHERED, ids=str)
def test_gather_equals_its_definition(dim: int, index: list[list[int]]) -> None:
    places = np.array(index)
    expected = np.empty(places.shape)
    for i, j in np.ndindex(places.shape):
        expected[i, j] = MATRIX[places[i, j], j] if dim == 0 else MATRIX[i, places[i, j]]
    np.testing.assert_array_equal(tg.gather(tg.tensor(MATRIX), dim, tg.tensor(places)).numpy(), expected)


@pytest.mark.parametrize("dim", [0, 1])
def test_take_along_dim_equals_numpy(dim: int) -> None:
    index = np.argsort(MATRIX, dim)
    got = tg.take_along_dim(tg.tensor(MATRIX), tg.tensor(index), dim)
    np.testing.assert_array_equal(got.numpy(), np.take_along_axis(MATRIX, index, dim))


def test_masked_select_equals_numpy() -> None:
    np.testing.assert_array_equal(tg.masked_select(tg.tensor(MATRIX), tg.tensor(MASK)).numpy(), MATRIX[MASK])


def test_masked_fill_equals_numpy() -> None:
    got = tg.masked_fill(tg.tensor(MATRIX), tg.tensor(MASK), 9.0)
    np.testing.assert_array_equal(got.numpy(), np.where(MASK, 9.0, MATRIX))


@pytest.mark.parametrize(
    "f",
    [
        lambda x: tg.index_select(x, 1, tg.tensor([2, 0, 2])),
        lambda x: tg.gather(x, 0, tg.tensor([[2, 2], [0, 2]])),
        lambda x: tg.take_along_dim(x, tg.tensor([[2, 0, 0, 1]]), 0),
        lambda x: tg.take_along_dim(x, tg.tensor([5, 0, 5])),
        lambda x: tg.masked_select(x, tg.tensor(MASK)),
        lambda x: tg.masked_select(x[0], tg.tensor(MASK)),
        lambda x: tg.masked_fill(x, tg.tensor(MASK), 2.0),
        lambda x: tg.masked_fill(x[0], tg.tensor(MASK), x[1, 1]),
    ],
)
def test_selecting_derivatives(f: Any) -> None:
    check_gradients(lambda x: f(x) * f(x), MATRIX)


@pytest.mark.parametrize(
    ("f", "name"),
    [
        (lambda x: tg.index_select(x, 0, tg.tensor([0])), "IndexSelectBackward0"),
        (lambda x: tg.gather(x, 0, tg.tensor([[0]])), "GatherBackward0"),
        (lambda x: tg.masked_fill(x, tg.tensor(MASK), 1.0), "MaskedFillBackward0"),
        (lambda x: tg.masked_fill(x, tg.tensor(MASK), tg.tensor(1.0)), "MaskedFillBackward1"),
        (lambda x: tg.masked_select(x, tg.tensor(MASK)), "MaskedSelectBackward0"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_node_names_of_selecting_functions(f: Any, name: str) -> None:
    assert f(leaf(MATRIX)).grad_fn.name() == name


@pytest.mark.parametrize(
    ("f", "error", "message"),
    [
        (lambda x: tg.index_select(x, 0, tg.tensor([3])), IndexError, "index out of range in self"),
        (lambda x: tg.index_select(x, 0, tg.tensor([[0]])), IndexError, "Index is supposed to be a vector"),
        (lambda x: tg.index_select(x, 0, tg.tensor([0.0])), RuntimeError, "Expected dtype int32 or int64 for index"),
        (
            lambda x: tg.gather(x, 0, tg.tensor([[-1]])),
            RuntimeError,
            "index -1 is out of bounds for dimension 0 with size 3",
        ),
        (lambda x: tg.gather(x, 0, tg.tensor([0])), RuntimeError, "same number of dimensions as input tensor"),
        (lambda x: tg.gather(x, 1, tg.tensor([[0]] * 4)), RuntimeError, "Size does not match at dimension 0"),
        (lambda x: tg.take_along_dim(x, tg.tensor([0]), 0), RuntimeError, "should have the same number of dimensions"),
        (
            lambda x: tg.masked_fill(x, tg.tensor(MASK), x[0]),
            RuntimeError,
            "only supports a 0-dimensional value",
        ),
        (lambda x: tg.masked_fill(x, tg.tensor([1]), 0.0), RuntimeError, "masked_fill_ only supports boolean masks"),
        (lambda x: tg.masked_fill(x, tg.tensor(MASK[:2]), 0.0), RuntimeError, "at non-singleton dimension 0"),
        (lambda x: tg.masked_select(x, tg.tensor([1])), RuntimeError, "expected BoolTensor for mask"),
    ],
)
def test_errors_of_selecting_functions(f: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=re.escape(message)):
        f(leaf(MATRIX))
