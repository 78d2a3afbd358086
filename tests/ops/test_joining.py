"""Joining and splitting: values against NumPy, memory, derivatives against differences, names, errors."""

import re
from typing import Any

import numpy as np
import pytest
from numerical import check_gradients

import tapegrad as tg

RNG = np.random.default_rng(2)
MATRIX = RNG.normal(size=(3, 4))
OTHER = RNG.normal(size=(3, 4))
VECTOR = RNG.normal(size=4)


def leaf(values: Any) -> tg.Tensor:
    return tg.tensor(values, requires_grad=True)


def tensors(*arrays: Any) -> list[tg.Tensor]:
    return [tg.tensor(array) for array in arrays]


@pytest.mark.parametrize("dim", [0, 1, -1, -2])
def test_cat_equals_numpy(dim: int) -> None:
    got = tg.cat(tensors(MATRIX, OTHER, MATRIX), dim)
    np.testing.assert_array_equal(got.numpy(), np.concatenate([MATRIX, OTHER, MATRIX], dim))


@pytest.mark.parametrize("dim", [0, 1, 2, -1])
def test_stack_equals_numpy(dim: int) -> None:
    got = tg.stack(tensors(MATRIX, OTHER), dim)
    np.testing.assert_array_equal(got.numpy(), np.stack([MATRIX, OTHER], dim))


@pytest.mark.parametrize("name", ["concat", "concatenate"])
def test_other_names_of_cat(name: str) -> None:
    got = getattr(tg, name)(tensors(MATRIX, OTHER), dim=1)
    np.testing.assert_array_equal(got.numpy(), np.hstack([MATRIX, OTHER]))


@pytest.mark.parametrize("arrays", [(MATRIX, OTHER), (VECTOR, VECTOR), (1.0, 2.0), (1.0, VECTOR)], ids=str)
def test_hstack_equals_numpy(arrays: Any) -> None:
    np.testing.assert_array_equal(tg.hstack(tensors(*arrays)).numpy(), np.hstack(arrays))


@pytest.mark.parametrize("arrays", [(MATRIX, OTHER), (VECTOR, MATRIX), (VECTOR, VECTOR), (1.0, 2.0)], ids=str)
def test_vstack_equals_numpy(arrays: Any) -> None:
    np.testing.assert_array_equal(tg.vstack(tensors(*arrays)).numpy(), np.vstack(arrays))


@pytest.mark.parametrize("dim", [0, 1])
def test_cat_derivatives(dim: int) -> None:
    check_gradients(lambda x, y: tg.cat([x, y * x, x], dim), MATRIX, OTHER)


@pytest.mark.parametrize("dim", [0, 1, 2])
def test_stack_derivatives(dim: int) -> None:
    check_gradients(lambda x, y: tg.stack([x, y * x, x], dim), MATRIX, OTHER)


def test_stack_of_numbers_derivatives() -> None:
    check_gradients(lambda x, y: tg.stack([x, y, x * y]) * tg.stack([y, y, x]), 0.7, 1.3)


@pytest.mark.parametrize("f", [tg.hstack, tg.vstack], ids=["hstack", "vstack"])
@pytest.mark.parametrize("arrays", [(MATRIX, OTHER), (VECTOR, VECTOR), (0.5, 2.0)], ids=str)
def test_stacking_derivatives(f: Any, arrays: Any) -> None:
    check_gradients(lambda x, y: f([x, y]) * f([y, x]), *arrays)


def test_cat_of_strided_tensors_derivatives() -> None:
    check_gradients(lambda x: tg.cat([x.T, x.T[::2]]) * 2.0, MATRIX)


def test_cat_of_tracked_and_untracked_tensors() -> None:
    x = leaf(VECTOR)
    tg.cat([tg.ones(2), x, tg.ones(3)]).sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), np.ones(4))


@pytest.mark.parametrize("f", [tg.cat, tg.stack], ids=["cat", "stack"])
@pytest.mark.parametrize(("dtype", "expected"), [("float32", "float64"), ("int64", "float64")])
def test_joining_promotes_dtypes(f: Any, dtype: str, expected: str) -> None:
    x, y = leaf(VECTOR), tg.tensor(VECTOR.astype(dtype))
    z = f([x, y])
    z.sum().backward()
    assert (z.dtype.name, x.grad.dtype.name) == (expected, "float64")


def test_joining_does_not_widen_floats_by_integers() -> None:
    assert tg.cat([tg.ones(2, dtype=tg.float32), tg.tensor([1, 2])]).dtype == tg.float32


def test_gradients_of_mixed_dtypes_come_in_the_dtype_of_the_leaf() -> None:
    x, y = leaf(VECTOR.astype(np.float32)), leaf(VECTOR)
    (tg.cat([x, y]) * tg.cat([y, x])).sum().backward()
    assert (x.grad.dtype, y.grad.dtype) == (np.float32, np.float64)


def test_cat_passes_over_the_empty_vector() -> None:
    np.testing.assert_array_equal(tg.cat([tg.zeros(0), tg.tensor(MATRIX)]).numpy(), MATRIX)


@pytest.mark.parametrize(
    ("f", "shape"),
    [
        (lambda e: tg.cat([e, tg.ones(2, 2)], 1), (2, 2)),
        (lambda e: tg.cat([tg.ones(2), e]), (2,)),
        (lambda e: tg.cat([e, tg.ones(2, dtype=tg.float32)]), (2,)),
        (lambda e: tg.cat([e, e]), (0,)),
        (lambda e: tg.stack([tg.zeros(0), e]), (2, 0)),
    ],
    ids=["before a matrix", "after a vector", "with another dtype", "alone", "stacked"],
)
@pytest.mark.parametrize("create_graph", [False, True])
def test_tracked_empty_vector_stays_in_the_graph(f: Any, shape: tuple[int, ...], create_graph: bool) -> None:
    empty = leaf(np.zeros(0))
    joined = f(empty)
    (g,) = tg.autograd.grad(joined.sum(), empty, create_graph=create_graph)
    assert (tuple(joined.shape), tuple(g.shape)) == (shape, (0,))


def test_empty_vector_does_not_move_the_gradients_of_what_it_is_joined_to() -> None:
    empty, x, y = leaf(np.zeros(0)), leaf(MATRIX), leaf(OTHER)
    weights = tg.tensor(np.arange(24.0).reshape(3, 8))
    got = tg.autograd.grad((tg.cat([empty, x, empty, y], 1) * weights).sum(), [x, y])
    np.testing.assert_array_equal(np.hstack([g.numpy() for g in got]), weights.numpy())


def test_operands_of_cat_are_those_it_was_given() -> None:
    joined = tg.cat([tg.ones(2), leaf(np.zeros(0))])
    assert [node is None for node, _ in joined.grad_fn.next_functions] == [True, False]


@pytest.mark.parametrize(
    ("sizes", "dim", "expected"),
    [(2, 0, [2, 1]), (3, 0, [3]), (5, 0, [3]), (1, 1, [1, 1, 1, 1]), ([1, 2], 0, [1, 2]), ((0, 3), -2, [0, 3])],
    ids=str,
)
def test_split_sizes(sizes: Any, dim: int, expected: list[int]) -> None:
    pieces = tg.tensor(MATRIX).split(sizes, dim)
    assert [piece.shape[dim] for piece in pieces] == expected
    np.testing.assert_array_equal(np.concatenate([piece.numpy() for piece in pieces], dim), MATRIX)


@pytest.mark.parametrize(("count", "expected"), [(1, [5]), (2, [3, 2]), (3, [2, 2, 1]), (4, [2, 2, 1]), (9, [1] * 5)])
def test_chunk_sizes(count: int, expected: list[int]) -> None:
    assert [len(piece) for piece in tg.arange(5).chunk(count)] == expected


@pytest.mark.parametrize("dim", [0, 1, -1])
def test_unbind_equals_numpy(dim: int) -> None:
    got = tg.unbind(tg.tensor(MATRIX), dim)
    np.testing.assert_array_equal([piece.numpy() for piece in got], np.moveaxis(MATRIX, dim, 0))


@pytest.mark.parametrize("f", [lambda x: x.split(2), lambda x: x.chunk(2), lambda x: x.unbind(1)])
def test_pieces_share_memory(f: Any) -> None:
    x = tg.tensor(MATRIX)
    assert all(np.shares_memory(piece.numpy(), x.numpy()) for piece in f(x))


@pytest.mark.parametrize(
    "f",
    [
        lambda x: x.split(2),
        lambda x: x.split([1, 2]),
        lambda x: x.chunk(2, 1),
        lambda x: x.unbind(),
        lambda x: x.unbind(1),
    ],
)
def test_splitting_derivatives(f: Any) -> None:
    check_gradients(lambda x: tuple(piece * piece for piece in f(x)), MATRIX)


def test_gradient_of_one_piece_is_zero_elsewhere() -> None:
    x = leaf(VECTOR)
    x.split(3)[1].sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), [0.0, 0.0, 0.0, 1.0])


def test_pieces_share_a_node_and_differ_in_output_number() -> None:
    pieces = leaf(VECTOR).split(2)
    total = pieces[0] * pieces[1]
    (first, zero), (second, one) = total.grad_fn.next_functions
    assert first is second
    assert (zero, one) == (0, 1)


def test_splitting_nothing() -> None:
    assert [piece.shape for piece in tg.zeros(0, 3).split(2)] == [(0, 3)]
    assert tg.zeros(0, 3).unbind() == ()


@pytest.mark.parametrize(
    ("f", "name"),
    [
        (lambda x: tg.cat([x, x]), "CatBackward0"),
        (lambda x: tg.stack([x, x]), "StackBackward0"),
        (lambda x: x.split(2)[0], "SplitBackward0"),
        (lambda x: x.split([1, 2])[0], "SplitWithSizesBackward0"),
        (lambda x: x.chunk(2)[0], "SplitBackward0"),
        (lambda x: x.unbind()[0], "UnbindBackward0"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_node_names_are_those_of_pytorch(f: Any, name: str) -> None:
    assert f(leaf(MATRIX)).grad_fn.name() == name


@pytest.mark.parametrize(
    ("f", "error", "message"),
    [
        (lambda x: tg.cat([]), ValueError, "expected a non-empty list of Tensors"),
        (lambda x: tg.cat(x), TypeError, "must be tuple of Tensors, not Tensor"),
        (lambda x: tg.cat([x, 3]), TypeError, "expected Tensor as element 1 in argument 0, but got int"),
        (lambda x: tg.cat([x, x[:, :3]]), RuntimeError, "Sizes of tensors must match except in dimension 0."),
        (lambda x: tg.cat([x, x[0]]), RuntimeError, "Tensors must have same number of dimensions: got 2 and 1"),
        (lambda x: tg.cat([x[0, 0], x[0, 0]]), RuntimeError, "zero-dimensional tensor (at position 0) cannot be"),
        (lambda x: tg.cat([x, x], 2), IndexError, "Dimension out of range"),
        (lambda x: tg.stack([]), RuntimeError, "stack expects a non-empty TensorList"),
        (lambda x: tg.stack([x, x[0]]), RuntimeError, "stack expects each tensor to be equal size"),
        (lambda x: tg.hstack([]), RuntimeError, "hstack expects a non-empty TensorList"),
        (lambda x: x.split(-1), RuntimeError, "split expects split_size be non-negative, but got split_size=-1"),
        (lambda x: x.split(0), RuntimeError, "split_size can only be 0 if dimension size is 0"),
        (lambda x: x.split([1, 1]), RuntimeError, "expects split_sizes to sum exactly to 3"),
        (lambda x: x.split([4, -1]), RuntimeError, "have only non-negative entries"),
        (lambda x: x.split(1.5), TypeError, "must be int or tuple of ints, not float"),
        (lambda x: x[0, 0].split(1), RuntimeError, "split expects at least a 1-dimensional tensor"),
        (lambda x: x.chunk(0), RuntimeError, "chunk expects `chunks` to be greater than 0, got: 0"),
        (lambda x: x[0, 0].unbind(), IndexError, "Dimension specified as 0 but tensor has no dimensions"),
        (lambda x: x.unbind(2), IndexError, "Dimension out of range"),
    ],
)
def test_errors_name_what_is_wrong(f: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=re.escape(message)):
        f(leaf(MATRIX))
