"""Indexing: PyTorch's semantics against NumPy where they agree, derivatives, node names, errors."""

import re
from typing import Any

import numpy as np
import pytest
from index_samples import ADVANCED, BASIC, EMPTY, INDEX_ERRORS, MASK, MATRIX
from many_cases import each
from numerical import check_gradients

import tapegrad as tg

RNG = np.random.default_rng(3)
FIVE = RNG.normal(size=(2, 3, 2, 3, 2))


def leaf(values: Any) -> tg.Tensor:
    return tg.tensor(values, requires_grad=True)


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


@each("key", BASIC + ADVANCED, ids=str)
def test_indexing_equals_numpy(key: Any) -> None:
    got = tg.tensor(MATRIX)[key]
    assert got.shape == MATRIX[key].shape
    np.testing.assert_array_equal(got.numpy(), MATRIX[key])


@each(("key", "shape"), MIXED, ids=str)
def test_numbers_beside_index_arrays_leave_dimensions_in_place(key: Any, shape: tuple[int, ...]) -> None:
    assert tg.tensor(FIVE)[key].shape == shape


def test_mixed_index_selects_from_the_view() -> None:
    got = tg.tensor(FIVE)[0, :, [1, 0], 2]
    np.testing.assert_array_equal(got.numpy(), FIVE[0, :, :, 2][:, [1, 0]])


@each("key", BASIC, ids=str)
def test_basic_keys_give_views(key: Any) -> None:
    x = tg.tensor(MATRIX)
    y = x[key]
    assert y.numpy().size == 0 or np.shares_memory(y.numpy(), x.numpy())


@each("key", ADVANCED, ids=str)
def test_advanced_keys_give_contiguous_copies(key: Any) -> None:
    x = tg.tensor(MATRIX)
    got = x[key].numpy()
    assert got.flags.c_contiguous
    assert not np.shares_memory(got, x.numpy())


@each("key", BASIC + ADVANCED, ids=str)
def test_indexing_derivatives(key: Any) -> None:
    check_gradients(lambda x: x[key] * x[key], MATRIX)


@each("key", [key for key, _ in MIXED], ids=str)
def test_mixed_indexing_derivatives(key: Any) -> None:
    check_gradients(lambda x: x[key] * x[key], FIVE, order=1)


@each("key", [[0, 2, 0], (slice(None), [1, 1]), MASK], ids=str)
def test_indexing_derivatives_to_third_order(key: Any) -> None:
    check_gradients(lambda x: x[key] * x[key] * x[key], MATRIX, order=3, tolerance=1e-5)


@each("dtype", [np.float32, np.int64, np.bool_])
@each("key", [0, slice(1, None), [0, 2], MASK], ids=str)
def test_indexing_keeps_the_dtype(dtype: Any, key: Any) -> None:
    assert tg.tensor(MASK.astype(dtype))[key].dtype == dtype


def test_gradient_of_float32_indexing_is_float32() -> None:
    x = leaf(MATRIX.astype(np.float32))
    x[[0, 0, 1]].sum().backward()
    assert x.grad.dtype == np.float32
    np.testing.assert_array_equal(x.grad.numpy(), np.outer([2, 1, 0], np.ones(4)))


def test_indexing_of_strided_tensors_derivatives() -> None:
    check_gradients(lambda x: x.T[[0, 2, 2], 1:] * 2.0, MATRIX)


@each(
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


@each(("key", "shape"), [(True, (1, 3, 4)), (False, (0, 3, 4)), ((0, True), (1, 4))], ids=str)
def test_bools_add_a_dimension(key: Any, shape: tuple[int, ...]) -> None:
    assert tg.tensor(MATRIX)[key].shape == shape


@each("key", [(), Ellipsis, None, True], ids=str)
def test_derivatives_of_indexing_a_number(key: Any) -> None:
    check_gradients(lambda x: x[key] * x[key], 0.7)


def test_bytes_are_masks_and_warn() -> None:
    with pytest.warns(UserWarning, match="indexing with dtype uint8 is now deprecated"):
        got = tg.tensor(MATRIX)[tg.tensor([1, 0, 1], dtype=tg.uint8)]
    np.testing.assert_array_equal(got.numpy(), MATRIX[[0, 2]])


@each("kind", ["tensor", "array"])
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


@each(
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


@each(("key", "error", "message"), INDEX_ERRORS, ids=str)
def test_reading_errors_name_the_index(key: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=re.escape(message)):
        leaf(MATRIX)[key]


def test_float_tensors_do_not_index() -> None:
    with pytest.raises(IndexError, match="tensors used as indices must be long, int, byte or bool tensors"):
        leaf(MATRIX)[tg.tensor([1.0])]


@each(
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
