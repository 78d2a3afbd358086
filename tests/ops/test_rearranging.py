"""Copies in other orders and shapes: empty and 0-d tensors, node names, values that are not finite, errors."""

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from engine_fixtures import assert_values, leaf

import tapegrad as tg

MATRIX = np.arange(6.0).reshape(2, 3)
F = tg.nn.functional
over = pytest.mark.parametrize


@over(
    ("f", "name"),
    [
        (lambda x: x.flip(0), "FlipBackward0"),
        (lambda x: x.roll(1, 0), "RollBackward0"),
        (lambda x: x.rot90(), "Rot90Backward0"),
        (lambda x: x.tile(2), "RepeatBackward0"),
        (lambda x: x.repeat_interleave(tg.tensor([1, 2]), 0), "IndexSelectBackward0"),
        (lambda x: x.tril(), "TrilBackward0"),
        (lambda x: x[0].diag(), "DiagEmbedBackward0"),
        (lambda x: tg.block_diag(x, x), "BlockDiagBackward0"),
        (lambda x: F.pad(x, (1, 1)), "ConstantPadNdBackward0"),
        (lambda x: F.pad(x, (1, 1), "reflect"), "ReflectionPad1DBackward0"),
        (lambda x: F.pad(x[None], (1, 1, 0, 0), "replicate"), "ReplicationPad2DBackward0"),
        (lambda x: tg.meshgrid(x[0], x[1])[0], "ExpandBackward0"),
        (lambda x: tg.cartesian_prod(x[0], x[1]), "StackBackward0"),
    ],
)
def test_node_names_of_copies_are_those_of_pytorch(f: Any, name: str) -> None:
    assert f(leaf(MATRIX)).grad_fn.name() == name


@over(
    ("f", "shape"),
    [
        (lambda x: x.flip(0, 1), (0, 3)),
        (lambda x: x.roll(1, 0), (0, 3)),
        (lambda x: x.roll(2), (0, 3)),
        (lambda x: x.rot90(), (3, 0)),
        (lambda x: x.repeat(2, 2), (0, 6)),
        (lambda x: x.repeat_interleave(2, 1), (0, 6)),
        (lambda x: x.unfold(0, 0, 1), (1, 3, 0)),
        (lambda x: x.diagonal(), (0,)),
        (lambda x: x.diag(1), (0,)),
        (lambda x: x.diag_embed(), (0, 3, 3)),
        (lambda x: x.diagflat(), (0, 0)),
        (lambda x: x.tril(), (0, 3)),
        (lambda x: tg.block_diag(x, x), (0, 6)),
        (lambda x: F.pad(x, (0, 1)), (0, 4)),
        (lambda x: tg.combinations(x.flatten()), (0, 2)),
        (lambda x: x.sort(0)[0], (0, 3)),
        (lambda x: x.topk(0)[0], (0, 0)),
        (lambda x: x.take(tg.zeros(0, dtype=tg.int64)), (0,)),
        (lambda x: x.scatter_add(0, tg.zeros(0, dtype=tg.int64), x), (0, 3)),
        (lambda x: x.masked_scatter(x > 0, x), (0, 3)),
    ],
)
@over("create_graph", [False, True])
def test_empty_tensors_have_empty_gradients(f: Any, shape: tuple[int, ...], create_graph: bool) -> None:
    x = leaf(np.zeros((0, 3)))
    y = f(x)
    (g,) = tg.autograd.grad(y.sum(), x, create_graph=create_graph)
    assert (tuple(y.shape), tuple(g.shape)) == (shape, (0, 3))


@over(
    ("f", "expected"),
    [
        (lambda x: x.flip(0), 2.0),
        (lambda x: x.roll(1), 2.0),
        (lambda x: x.repeat(2, 1), [[2.0], [2.0]]),
        (lambda x: x.tile(2), [2.0, 2.0]),
        (lambda x: x.repeat_interleave(2), [2.0, 2.0]),
        (lambda x: x.diagflat(1), [[0.0, 2.0], [0.0, 0.0]]),
        (lambda x: tg.atleast_3d(x), [[[2.0]]]),
        (lambda x: tg.hstack((x, x)), [2.0, 2.0]),
        (lambda x: tg.column_stack((x, x)), [[2.0, 2.0]]),
        (lambda x: tg.block_diag(x, x), [[2.0, 0.0], [0.0, 2.0]]),
        (lambda x: tg.meshgrid(x, x)[1], [[2.0]]),
        (lambda x: x.sort().values, 2.0),
        (lambda x: x.topk(1).values, 2.0),
        (lambda x: x.kthvalue(1).values, 2.0),
        (lambda x: x.take(tg.tensor([[0, -1]])), [[2.0, 2.0]]),
        (lambda x: x.put(tg.tensor(0), x * 1.0), 2.0),
        (lambda x: x.scatter(0, tg.tensor(0), x * 1.0), 2.0),
        (lambda x: x.scatter_add(0, tg.tensor([0, 0]), tg.zeros(2)), 2.0),
        (lambda x: x.index_add(0, tg.tensor(0), tg.tensor(0.0)), 2.0),
        (lambda x: x.index_copy(0, tg.tensor([0]), x * 1.0), 2.0),
        (lambda x: x.masked_scatter(tg.tensor(True), x.repeat(1)), 2.0),
    ],
)
def test_tensors_without_dimensions(f: Any, expected: Any) -> None:
    x = leaf(2.0)
    y = f(x)
    y.sum().backward()
    assert_values(y, expected)
    assert x.grad.item() == np.count_nonzero(expected)


def test_roll_without_dims_goes_over_the_rows() -> None:
    assert tg.tensor(MATRIX).roll(1).tolist() == [[5.0, 0.0, 1.0], [2.0, 3.0, 4.0]]


def test_triangle_is_zero_where_the_matrix_is_not_finite() -> None:
    x = leaf([[1.0, np.inf], [2.0, np.nan]])
    y = x.tril(-1)
    y.sum().backward()
    assert_values(y, [[0.0, 0.0], [2.0, 0.0]])
    assert_values(x.grad, [[0.0, 0.0], [1.0, 0.0]])


@over(("row", "col", "offset"), [(3, 4, 0), (3, 4, 2), (4, 3, -1), (2, 2, -5), (2, 2, 5), (0, 3, 0)])
def test_indices_of_triangles_equal_numpy(row: int, col: int, offset: int) -> None:
    np.testing.assert_array_equal(tg.tril_indices(row, col, offset).numpy(), np.tril_indices(row, offset, col))
    np.testing.assert_array_equal(tg.triu_indices(row, col, offset).numpy(), np.triu_indices(row, offset, col))


@over("f", [lambda x: x.flip(0), lambda x: x.repeat(2, 1), lambda x: F.pad(x, (0, 0)), lambda x: x.rot90(4), lambda x: x.tril(9)])
def test_copies_share_no_memory(f: Any) -> None:
    x = tg.tensor(MATRIX)
    f(x).zero_()
    assert_values(x, MATRIX)


def test_what_circular_padding_cuts_off_does_not_come_in_at_the_other_end() -> None:
    assert F.pad(tg.tensor([[1.0, 2.0, 3.0]]), (-1, 2), "circular").tolist() == [[2.0, 3.0, 2.0, 3.0]]


@over("dtype", [tg.int64, tg.bool, tg.float32])
def test_shape_copies_keep_the_dtype(dtype: Any) -> None:
    x = tg.ones(2, 2, dtype=dtype)
    copies = [x.flip(0), x.roll(1), x.repeat(2, 2), x.diag(), x.diagflat(), x.tril(), tg.block_diag(x, x), F.pad(x, (1, 1))]
    assert {copy.dtype for copy in copies} == {dtype}


ERRORS: list[tuple[Callable[[tg.Tensor], Any], type[Exception], str]] = [
    (lambda x: x.flip(0, -2), RuntimeError, "dim 0 appears multiple times in the list of dims"),
    (lambda x: x.flip(2), IndexError, "Dimension out of range (expected to be in range of [-2, 1], but got 2)"),
    (lambda x: x[0].fliplr(), RuntimeError, "Input must be >= 2-d."),
    (lambda x: x.sum().flipud(), RuntimeError, "Input must be >= 1-d."),
    (lambda x: x.roll((1, 2), 0), RuntimeError, "shifts and dimensions must align. shifts: 2, dims:1"),
    (lambda x: x.sum().roll(1, 0), IndexError, "Dimension specified as 0 but tensor has no dimensions"),
    (lambda x: x.rot90(1, (0, -2)), RuntimeError, "expected rotation dims to be different, but got dim0 = 0 and dim1 = -2"),
    (lambda x: x.rot90(1, (0,)), RuntimeError, "expected total rotation dims == 2, but got dims = 1"),
    (lambda x: x[0].rot90(), RuntimeError, "expected total dims >= 2, but got total dims = 1"),
    (lambda x: x.repeat(2), RuntimeError, "Number of dimensions of repeat dims can not be smaller"),
    (lambda x: x.repeat(2, -1), RuntimeError, "Trying to create tensor with negative dimension -3: [4, -3]"),
    (lambda x: x.repeat_interleave(-1), RuntimeError, "Repeats must be non-negative"),
    (lambda x: x.repeat_interleave(tg.tensor([1, 2, 3]), 0), RuntimeError, "repeats must have the same size as input along dim"),
    (lambda x: x.repeat_interleave(tg.tensor([1, -1]), 0), RuntimeError, "repeats can not be negative"),
    (lambda x: x.repeat_interleave(tg.tensor([1.0, 1.0]), 0), RuntimeError, "repeats has to be Long or Int tensor, got Double"),
    (lambda x: x.repeat_interleave(2, 0, output_size=5), RuntimeError, "allocated size does not match required size"),
    (lambda x: tg.diag(x[None]), RuntimeError, "diag(): Supports 1D or 2D tensors. Got 3D"),
    (lambda x: x[0].tril(), RuntimeError, "tril: input tensor must have at least 2 dimensions"),
    (lambda x: tg.tril_indices(-1, 2), RuntimeError, "row must be non-negative, got -1"),
    (lambda x: tg.meshgrid(x), RuntimeError, "Expected 0D or 1D tensor in the tensor list"),
    (lambda x: tg.meshgrid(), RuntimeError, "meshgrid expects a non-empty TensorList"),
    (lambda x: tg.meshgrid(x[0], x[0].float()), RuntimeError, "meshgrid expects all tensors to have the same dtype"),
    (lambda x: tg.meshgrid(x[0], indexing="ab"), RuntimeError, 'indexing must be one of "xy" or "ij", but received: ab'),
    (lambda x: tg.broadcast_tensors(x, tg.ones(2)), RuntimeError, "at non-singleton dimension 1"),
    (lambda x: tg.broadcast_shapes((2,), (3,)), RuntimeError, "at non-singleton dimension 0"),
    (lambda x: tg.cartesian_prod(x), RuntimeError, "Expect a 1D vector, but got shape [2, 3]"),
    (lambda x: tg.combinations(x[0], -1), RuntimeError, "Expect a non-negative number, but got -1"),
    (lambda x: tg.block_diag(x[None]), RuntimeError, "Input 0 has 3 dimensions"),
    (lambda x: tg.dstack([]), RuntimeError, "dstack expects a non-empty TensorList"),
    (lambda x: F.pad(x, (1,)), RuntimeError, "Padding length must be divisible by 2"),
    (lambda x: F.pad(x, (1,) * 6), RuntimeError, "Padding length should be less than or equal to two times the input dimension"),
    (lambda x: F.pad(x, (-2, -2)), RuntimeError, "narrow(): length must be non-negative"),
    (lambda x: F.pad(x, (3, 0), "reflect"), RuntimeError, "Padding size should be less than the corresponding input dimension"),
    (lambda x: F.pad(x, (4, 0), "circular"), RuntimeError, "Padding value causes wrapping around more than once"),
    (lambda x: F.pad(x, (1,) * 4, "reflect"), NotImplementedError, "Padding size 4 is not supported for 2D input tensor."),
    (lambda x: F.pad(x, (1, 1), "foo"), NotImplementedError, "Unrecognised padding mode foo"),
    (lambda x: F.pad(x, (1, 1), "reflect", 2.0), RuntimeError, 'Padding mode "reflect" doesn\'t take in value argument'),
]


@over(("f", "error", "message"), ERRORS)
def test_errors_of_copies_name_the_sizes(f: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=re.escape(message)):
        f(leaf(MATRIX))
