"""Functions that select by index tensors and masks: values, derivatives, node names, errors."""

import re
from typing import Any

import numpy as np
import pytest
from index_samples import EMPTY, MASK, MATRIX
from numerical import check_gradients

import tapegrad as tg


def leaf(values: Any) -> tg.Tensor:
    return tg.tensor(values, requires_grad=True)


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


@pytest.mark.parametrize("dtype", [tg.uint8, tg.bool, tg.float64])
def test_gather_of_nothing_takes_any_dtype(dtype: Any) -> None:
    found = tg.gather(leaf(MATRIX), 1, tg.zeros(0, 1, dtype=dtype))
    assert found.shape == (0, 1) and found.grad_fn.name() == "GatherBackward0"


def test_indices_along_a_dimension_count_round_and_round() -> None:
    x = leaf([[1.0, 3.0], [4.0, 2.0]])
    found = tg.take_along_dim(x, tg.tensor([[-1], [5]]), 1)
    assert found.tolist() == [[3.0], [2.0]]
    found.sum().backward()
    assert x.grad.tolist() == [[0.0, 1.0], [0.0, 1.0]]


@pytest.mark.parametrize(
    ("f", "error", "message"),
    [
        (lambda x: tg.gather(x, 0, tg.tensor([[0]], dtype=tg.uint8)), RuntimeError, "Expected dtype int32 or int64 for index"),
        (lambda x: tg.take_along_dim(x, tg.tensor([-1])), RuntimeError, "index -1 is out of bounds"),
        (lambda x: tg.take_along_dim(x, tg.tensor([[0]], dtype=tg.int32), 0), RuntimeError, "should be Long but got Int"),
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
