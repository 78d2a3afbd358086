"""The functional index assignment: values against NumPy, derivatives against differences, errors."""

import re
from typing import Any

import numpy as np
import pytest
from index_samples import ADVANCED, BASIC, EMPTY, INDEX_ERRORS, MASK, MATRIX
from many_cases import each
from numerical import check_gradients

import tapegrad as tg
from tapegrad.ops.index_keys import parse
from tapegrad.ops.indexing import index_put

RNG = np.random.default_rng(4)


def leaf(values: Any) -> tg.Tensor:
    return tg.tensor(values, requires_grad=True)


@each("key", BASIC + [key for key in ADVANCED if key is not EMPTY], ids=str)
def test_assignment_equals_numpy(key: Any) -> None:
    expected = MATRIX.copy()
    value = RNG.normal(size=MATRIX[key].shape)
    expected[key] = value
    np.testing.assert_array_equal(index_put(tg.tensor(MATRIX), key, tg.tensor(value)).numpy(), expected)


@each("key", BASIC + ADVANCED, ids=str)
def test_assignment_of_a_number_equals_numpy(key: Any) -> None:
    expected = MATRIX.copy()
    expected[key] = 2.5
    np.testing.assert_array_equal(index_put(tg.tensor(MATRIX), key, 2.5).numpy(), expected)


@each("key", BASIC + ADVANCED, ids=str)
def test_assignment_derivatives(key: Any) -> None:
    value = RNG.normal(size=MATRIX[key].shape)
    check_gradients(lambda x, v: index_put(x * x, key, v * v), MATRIX, value)


@each(
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


@each(
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


@each(("key", "basic"), [(0, True), ((0, slice(1)), True), (None, True), ([0], False), (MASK, False)])
def test_parse_says_whether_a_key_is_basic(key: Any, basic: bool) -> None:
    assert (parse(key, MATRIX.shape).advanced is None) == basic


@each(("key", "error", "message"), INDEX_ERRORS, ids=str)
def test_writing_errors_name_the_index(key: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=re.escape(message)):
        index_put(leaf(MATRIX), key, 1.0)


def test_a_part_that_was_written_in_place_is_assigned_to_itself_without_another_row() -> None:
    x = leaf(np.arange(1.0, 6.0))
    y = x * 1.0
    y[1:3] *= 3.0
    assert y.grad_fn.next_functions[1][0].name() == "MulBackward0"
    (y * y).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), 2.0 * np.array([1, 9, 9, 1, 1]) * np.arange(1.0, 6.0))


def test_a_part_that_is_assigned_to_itself_counts_as_a_write() -> None:
    y = leaf(np.arange(1.0, 6.0)) * 1.0
    z = (y * y).sum()
    before = y._version
    y[1:3] = y[1:3]
    assert y._version == before + 1
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.backward()


def test_a_part_without_its_graph_cuts_the_gradient_where_it_is_assigned() -> None:
    x = leaf(np.arange(1.0, 6.0))
    y = x * 1.0
    y[1:3] = y[1:3].detach()
    y.sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), [1, 0, 0, 1, 1])


def test_a_part_of_a_leaf_is_not_assigned_to_itself() -> None:
    x = leaf(np.arange(3.0))
    with pytest.raises(RuntimeError, match="a view of a leaf Variable that requires grad"):
        x[:2] = x[:2]
