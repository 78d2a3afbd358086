"""Shapes, transposes and views: values and memory as NumPy's, derivatives against differences, names, errors."""

import re
from typing import Any

import numpy as np
import pytest
from many_cases import each
from numerical import check_gradients

import tapegrad as tg

CUBE = np.arange(24.0).reshape(2, 3, 4)


def leaf(values: Any) -> tg.Tensor:
    return tg.tensor(values, requires_grad=True)


def memory(x: tg.Tensor) -> np.ndarray:
    return x.detach().numpy()


# name, operation on a tensor, the same on an array
VIEWS: list[tuple[str, Any, Any]] = [
    ("view", lambda x: x.view(4, 6), lambda a: a.reshape(4, 6)),
    ("view_tuple", lambda x: x.view((6, -1)), lambda a: a.reshape(6, 4)),
    ("view_as", lambda x: x.view_as(tg.zeros(8, 3)), lambda a: a.reshape(8, 3)),
    ("reshape", lambda x: x.reshape(-1, 2, 3), lambda a: a.reshape(4, 2, 3)),
    ("reshape_as", lambda x: x.reshape_as(tg.zeros(24)), lambda a: a.reshape(24)),
    ("flatten", lambda x: x.flatten(), lambda a: a.reshape(24)),
    ("flatten_some", lambda x: x.flatten(1), lambda a: a.reshape(2, 12)),
    ("flatten_first", lambda x: x.flatten(0, 1), lambda a: a.reshape(6, 4)),
    ("ravel", lambda x: x.ravel(), lambda a: a.reshape(24)),
    ("unsqueeze", lambda x: x.unsqueeze(1), lambda a: a[:, None]),
    ("unsqueeze_last", lambda x: x.unsqueeze(-1), lambda a: a[..., None]),
    ("squeeze", lambda x: x[:1].squeeze(), lambda a: a[0]),
    ("squeeze_dim", lambda x: x[:1].squeeze(0), lambda a: a[0]),
    ("squeeze_dims", lambda x: x[:1, :, :1].squeeze((0, 2)), lambda a: a[0, :, 0]),
    ("squeeze_wide_dim", lambda x: x.squeeze(1), lambda a: a),
    ("expand", lambda x: x.unsqueeze(1).expand(-1, 5, 3, 4), lambda a: np.broadcast_to(a[:, None], (2, 5, 3, 4))),
    ("expand_more", lambda x: x.expand(2, 2, 3, 4), lambda a: np.broadcast_to(a, (2, 2, 3, 4))),
    ("expand_as", lambda x: x[:1].expand_as(x), lambda a: np.broadcast_to(a[:1], a.shape)),
    ("broadcast_to", lambda x: tg.broadcast_to(x, (2, 2, 3, 4)), lambda a: np.broadcast_to(a, (2, 2, 3, 4))),
    ("transpose", lambda x: x.transpose(0, -1), lambda a: a.swapaxes(0, 2)),
    ("swapaxes", lambda x: x.swapaxes(0, 1), lambda a: a.swapaxes(0, 1)),
    ("swapdims", lambda x: x.swapdims(1, 2), lambda a: a.swapaxes(1, 2)),
    ("permute", lambda x: x.permute(2, 0, 1), lambda a: a.transpose(2, 0, 1)),
    ("permute_tuple", lambda x: x.permute((-1, 0, 1)), lambda a: a.transpose(2, 0, 1)),
    ("t", lambda x: x[0].t(), lambda a: a[0].T),
    ("T", lambda x: x.T, lambda a: a.T),
    ("mT", lambda x: x.mT, lambda a: a.swapaxes(1, 2)),
    ("movedim", lambda x: x.movedim(0, -1), lambda a: np.moveaxis(a, 0, -1)),
    ("movedim_tuple", lambda x: x.movedim((0, 2), (1, 0)), lambda a: np.moveaxis(a, (0, 2), (1, 0))),
    ("moveaxis", lambda x: x.moveaxis(2, 0), lambda a: np.moveaxis(a, 2, 0)),
]
IDS = [name for name, *_ in VIEWS]
CASES = [case[1:] for case in VIEWS]


@each(("f", "expected"), CASES, ids=IDS)
def test_shape_operation_equals_numpy(f: Any, expected: Any) -> None:
    got = f(tg.tensor(CUBE))
    assert got.shape == expected(CUBE).shape
    np.testing.assert_array_equal(got.numpy(), expected(CUBE))


@each(("f", "expected"), CASES, ids=IDS)
def test_shape_operation_shares_memory(f: Any, expected: Any) -> None:
    x = tg.tensor(CUBE)
    assert np.shares_memory(f(x).numpy(), x.numpy())


@each(("f", "expected"), CASES, ids=IDS)
def test_shape_operation_derivatives(f: Any, expected: Any) -> None:
    check_gradients(lambda x: f(x) * f(x), CUBE / 10.0)


@each(("f", "expected"), CASES, ids=IDS)
def test_shape_operation_on_float32_and_integers_keeps_the_dtype(f: Any, expected: Any) -> None:
    assert [f(tg.tensor(CUBE.astype(dtype))).dtype for dtype in ("float32", "int64")] == [np.float32, np.int64]


@each("f", [lambda x: x.reshape(24), lambda x: x.flatten(), lambda x: x.contiguous()])
def test_reshape_of_incompatible_strides_copies(f: Any) -> None:
    x = tg.tensor(CUBE).transpose(0, 2)
    got = f(x)
    assert not np.shares_memory(got.numpy(), x.numpy())
    np.testing.assert_array_equal(got.numpy().ravel(), CUBE.swapaxes(0, 2).ravel())


@each("f", [lambda x: x.reshape(24), lambda x: x.flatten(), lambda x: x.contiguous()])
def test_derivatives_of_copies_of_strided_tensors(f: Any) -> None:
    check_gradients(lambda x: f(x.transpose(0, 2)) * f(x.transpose(0, 2)), CUBE / 10.0)


def test_view_of_compatible_strides_shares_memory() -> None:
    x = tg.tensor(CUBE)
    strided = x[:, :2]
    assert np.shares_memory(strided.view(2, 8).numpy(), x.numpy())


def test_contiguous_of_a_contiguous_tensor_is_the_tensor() -> None:
    x = tg.tensor(CUBE)
    assert x.contiguous() is x


def test_views_of_a_number_share_its_memory() -> None:
    x = tg.tensor(2.0)
    y = x.reshape(1, 1)
    y.fill_(5.0)
    assert x.item() == 5.0


@each("f", [lambda x: x.reshape(1), lambda x: x.expand(2, 3), lambda x: x.unsqueeze(0), lambda x: x.T])
def test_derivatives_of_views_of_a_number(f: Any) -> None:
    check_gradients(lambda x: f(x) * f(x), 0.7)


@each(
    ("f", "shape"),
    [
        (lambda x: x.reshape(-1), (0,)),
        (lambda x: x.view(3, 0), (3, 0)),
        (lambda x: x.T, (3, 0)),
        (lambda x: x.flatten(), (0,)),
        (lambda x: x.unsqueeze(0), (1, 0, 3)),
        (lambda x: x.expand(2, 0, 3), (2, 0, 3)),
    ],
)
def test_shapes_and_gradients_of_empty_tensors(f: Any, shape: tuple[int, ...]) -> None:
    x = leaf(np.zeros((0, 3)))
    y = f(x)
    y.sum().backward()
    assert (y.shape, x.grad.shape) == (shape, (0, 3))


@each(
    ("f", "name"),
    [
        (lambda x: x.view(24), "ViewBackward0"),
        (lambda x: x.reshape(24), "ViewBackward0"),
        (lambda x: x.flatten(), "ViewBackward0"),
        (lambda x: x.transpose(0, 1).reshape(24), "UnsafeViewBackward0"),
        (lambda x: x.transpose(0, 1).contiguous(), "CloneBackward0"),
        (lambda x: x.transpose(0, 1), "TransposeBackward0"),
        (lambda x: x.permute(2, 1, 0), "PermuteBackward0"),
        (lambda x: x[0].t(), "TBackward0"),
        (lambda x: x.T, "PermuteBackward0"),
        (lambda x: x.mT, "TransposeBackward0"),
        (lambda x: x.squeeze(), "SqueezeBackward0"),
        (lambda x: x.squeeze(0), "SqueezeBackward1"),
        (lambda x: x.unsqueeze(0), "UnsqueezeBackward0"),
        (lambda x: x.expand(2, 2, 3, 4), "ExpandBackward0"),
        (lambda x: x.movedim(0, 1), "PermuteBackward0"),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_node_names_are_those_of_pytorch(f: Any, name: str) -> None:
    assert f(leaf(CUBE)).grad_fn.name() == name


@each(
    ("f", "error", "message"),
    [
        (lambda x: x.view(5), RuntimeError, "shape '[5]' is invalid for input of size 24"),
        (lambda x: x.reshape(-1, 5), RuntimeError, "shape '[-1, 5]' is invalid for input of size 24"),
        (lambda x: x.reshape(-1, -1), RuntimeError, "only one dimension can be inferred"),
        (lambda x: x.reshape(-2, 12), RuntimeError, "invalid shape dimension -2"),
        (lambda x: x.reshape(2.0, 12), TypeError, "sizes must be ints"),
        (lambda x: x.reshape(), TypeError, "missing 1 required positional argument"),
        (lambda x: x[:0].reshape(0, -1), RuntimeError, "cannot reshape tensor of 0 elements into shape [0, -1]"),
        (lambda x: x.T.view(24), RuntimeError, "view size is not compatible with input tensor's size and stride"),
        (lambda x: x.T.view(24), RuntimeError, "Use .reshape(...) instead."),
        (
            lambda x: x.expand(2, 3, 5),
            RuntimeError,
            "The expanded size of the tensor (5) must match the existing size",
        ),
        (lambda x: x.expand(3, 4), RuntimeError, "must be greater or equal to the number of dimensions"),
        (lambda x: x.expand(-1, 2, 3, 4), RuntimeError, "isn't allowed in a leading, non-existing dimension 0"),
        (lambda x: x.flatten(1, 0), RuntimeError, "start_dim"),
        (lambda x: x.squeeze(3), IndexError, "Dimension out of range (expected to be in range of [-3, 2], but got 3)"),
        (
            lambda x: x.unsqueeze(4),
            IndexError,
            "Dimension out of range (expected to be in range of [-4, 3], but got",
        ),
        (lambda x: x.transpose(0, 3), IndexError, "Dimension out of range"),
        (lambda x: x.permute(0, 1), RuntimeError, "number of dimensions in the tensor input does not match"),
        (lambda x: x.permute(0, 1, 1), RuntimeError, "duplicate dims are not allowed"),
        (lambda x: x.t(), RuntimeError, "t() expects a tensor with <= 2 dimensions, but self is 3D"),
        (lambda x: x[0, 0].mT, RuntimeError, "only supported on matrices or batches of matrices. Got 1-D tensor."),
        (lambda x: x.movedim((0, 1), (1,)), RuntimeError, "should contain the same number of dims"),
        (lambda x: x.movedim((0, 0), (1, 2)), RuntimeError, "movedim: repeated dim in `source`"),
    ],
)
def test_errors_name_the_shapes(f: Any, error: type[Exception], message: str) -> None:
    with pytest.raises(error, match=re.escape(message)):
        f(leaf(CUBE))


BY_NAME: dict[str, Any] = {
    "view": (lambda x: x.view(size=(6,)), (6,)),
    "reshape": (lambda x: x.reshape(shape=(3, -1)), (3, 2)),
    "tg.reshape": (lambda x: tg.reshape(x, shape=[6]), (6,)),
    "expand": (lambda x: x.expand(size=(2, 2, 3)), (2, 2, 3)),
    "broadcast_to": (lambda x: tg.broadcast_to(x, size=(2, 2, 3)), (2, 2, 3)),
    "repeat": (lambda x: x.repeat(repeats=(2, 2)), (4, 6)),
    "tile": (lambda x: tg.tile(x, dims=(2,)), (2, 6)),
    "permute": (lambda x: tg.permute(x, dims=(1, 0)), (3, 2)),
    "flip": (lambda x: x.flip(dims=(0,)), (2, 3)),
    "zeros": (lambda x: tg.zeros(size=(3,)), (3,)),
    "randn": (lambda x: tg.randn(size=(3,)), (3,)),
    "new_zeros": (lambda x: x.new_zeros(size=(3,)), (3,)),
    "new_full": (lambda x: x.new_full(size=(3,), fill_value=1.0), (3,)),
}


@each("name", BY_NAME)
def test_shape_may_be_given_by_name(name: str) -> None:
    f, shape = BY_NAME[name]
    assert tuple(f(tg.ones(2, 3)).shape) == shape


@each("f", [lambda x: x.view(6, size=(6,)), lambda x: x.flip(0, dims=(0,)), lambda x: tg.zeros(2, size=(2,))])
def test_shape_given_twice_is_refused(f: Any) -> None:
    with pytest.raises(TypeError, match="got multiple values"):
        f(tg.ones(2, 3))


@each("none", [(), []])
def test_squeeze_of_no_dimensions_drops_none(none: Any) -> None:
    assert tuple(tg.ones(1, 2, 1).squeeze(none).shape) == (1, 2, 1)
    assert tuple(tg.ones(1, 2, 1).squeeze().shape) == (2,)
