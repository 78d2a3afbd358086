"""In-place forms that change the shape: transpose_, swapaxes_, swapdims_, t_, squeeze_, unsqueeze_."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest
from engine_fixtures import assert_values, leaf, node_name, parents

import tapegrad as tg

Tensor = tg.Tensor
# Name, call, the same on an array, node; all of them change the shape (1, 3).
FORMS: list[tuple[str, Callable[[Tensor], Tensor], Callable[[np.ndarray], np.ndarray], str]] = [
    ("transpose_", lambda t: t.transpose_(0, -1), lambda a: a.T, "TransposeBackward1"),
    ("swapaxes_", lambda t: t.swapaxes_(0, 1), lambda a: a.T, "TransposeBackward1"),
    ("swapdims_", lambda t: t.swapdims_(0, 1), lambda a: a.T, "TransposeBackward1"),
    ("t_", lambda t: t.t_(), lambda a: a.T, "TBackward1"),
    ("squeeze_", lambda t: t.squeeze_(), lambda a: a[0], "SqueezeBackward3"),
    ("squeeze_ of a dimension", lambda t: t.squeeze_(0), lambda a: a[0], "SqueezeBackward4"),
    ("squeeze_ of dimensions", lambda t: t.squeeze_((0, 1)), lambda a: a[0], "SqueezeBackward5"),
    ("unsqueeze_", lambda t: t.unsqueeze_(-1), lambda a: a[..., None], "UnsqueezeBackward1"),
]
CALLS = [pytest.param(form, on_array, id=name) for name, form, on_array, _ in FORMS]
START = np.array([[1.0, 2.0, 3.0]])
Form = Callable[[Tensor], Tensor]
OnArray = Callable[[np.ndarray], np.ndarray]


def weights(shape: tuple[int, ...]) -> np.ndarray:
    return np.cos(np.arange(float(np.prod(shape)))).reshape(shape)


def weighed(t: Tensor) -> Tensor:
    return (t * tg.tensor(weights(t.shape))).sum()


@pytest.mark.parametrize(("form", "on_array"), CALLS)
def test_the_tensor_itself_gets_the_shape_on_the_same_memory(form: Form, on_array: OnArray) -> None:
    t = tg.tensor(START)
    memory = t.numpy()
    assert form(t) is t
    assert_values(t, on_array(START))
    memory[0, 1] = 7.0
    assert t.numpy().reshape(-1)[1] == 7.0


@pytest.mark.parametrize(("form", "on_array"), CALLS)
def test_it_counts_as_a_write(form: Form, on_array: OnArray) -> None:
    base = tg.ones(2, 3)
    t = base[:1]
    form(t)
    assert (t._version, base._version) == (1, 1)
    assert t._base is base and base.shape == (2, 3)


@pytest.mark.parametrize(("form", "on_array", "node"), [pytest.param(*row[1:], id=row[0]) for row in FORMS])
def test_a_result_is_recorded_and_differentiates(form: Form, on_array: OnArray, node: str) -> None:
    x = leaf(START)
    y = x * x
    form(y)
    assert node_name(y) == node and parents(y.grad_fn) == ["MulBackward0"]
    weighed(y).backward()
    assert_values(x.grad, 2 * START * weights(on_array(START).shape).reshape(1, 3))


@pytest.mark.parametrize(("form", "on_array"), CALLS)
def test_second_derivatives(form: Form, on_array: OnArray) -> None:
    x = leaf(START)
    y = x**3
    form(y)
    (g,) = tg.autograd.grad(weighed(y * y), x, create_graph=True)
    (h,) = tg.autograd.grad(g.sum(), x)
    assert_values(h, 30 * START**4 * weights(on_array(START).shape).reshape(1, 3))


@pytest.mark.parametrize(("form", "on_array"), CALLS)
def test_a_view_is_recorded_and_its_base_stays(form: Form, on_array: OnArray) -> None:
    x = leaf(np.ones((2, 3)))
    y = x * 2.0
    part = y[:1]
    form(part)
    assert parents(part.grad_fn) == ["SliceBackward0"] and node_name(y) == "MulBackward0"
    (weighed(part) + y.sum()).backward()
    expected = np.full((2, 3), 2.0)
    expected[0] += 2.0 * weights(part.shape).reshape(3)
    assert_values(x.grad, expected)


@pytest.mark.parametrize(("form", "on_array"), CALLS)
def test_writing_to_a_view_afterwards_reaches_its_base(form: Form, on_array: OnArray) -> None:
    x = leaf(np.ones((2, 3)))
    y = x * 2.0
    part = y[:1]
    form(part)
    factor = weights(part.shape)
    part.mul_(tg.tensor(factor))
    expected = np.full((2, 3), 2.0)
    expected[0] *= factor.reshape(3)
    assert_values(y, expected)
    y.sum().backward()
    assert_values(x.grad, expected)


@pytest.mark.parametrize(("form", "on_array"), CALLS)
def test_views_of_the_tensor_stay_and_follow_later_writes(form: Form, on_array: OnArray) -> None:
    x = leaf(START)
    y = x * 2.0
    part = y[:, 1:]
    form(y)
    factor = weights(y.shape)
    y.mul_(tg.tensor(factor))
    assert_values(part, (2.0 * START * factor.reshape(1, 3))[:, 1:])
    weighed(part).backward()
    expected = 2.0 * factor.reshape(1, 3)
    expected[:, 1:] *= weights((1, 2))
    expected[:, 0] = 0.0
    assert_values(x.grad, expected)


def test_forms_in_a_row() -> None:
    x = leaf(START)
    y = x * x
    part = y[0]
    y.unsqueeze_(0).transpose_(0, 2).squeeze_().unsqueeze_(1).t_()
    part.unsqueeze_(1).mul_(2.0)
    assert_values(y, 2.0 * START**2)
    y.sum().backward()
    assert_values(x.grad, 4.0 * START)


@pytest.mark.parametrize("saves", [lambda y: y * y, lambda y: y.sin(), lambda y: y.norm()])
@pytest.mark.parametrize(("form", "on_array"), CALLS)
def test_what_was_saved_before_is_stale(form: Form, on_array: OnArray, saves: Callable[[Tensor], Tensor]) -> None:
    x = leaf(START)
    y = x * 1.0
    z = saves(y)
    form(y)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.sum().backward()
    assert x.grad is None


def test_a_number_may_get_dimensions() -> None:
    x = leaf(3.0)
    y = x * 2.0
    y.t_().squeeze_().transpose_(0, -1).unsqueeze_(0).unsqueeze_(1)
    assert y.shape == (1, 1)
    (y * y).backward()
    assert_values(x.grad, 24.0)


def test_expanded_memory_may_be_turned() -> None:
    t = tg.ones(1).expand(2, 3)
    assert t.t_().shape == (3, 2)


def test_a_retained_gradient_has_the_new_shape() -> None:
    y = leaf(START) * 2.0
    y.retain_grad()
    y.t_()
    weighed(y).backward()
    assert_values(y.grad, weights((3, 1)))


# What is refused.


def raises(message: str, form: Form, t: Tensor) -> None:
    before, version = t.tolist(), t._version
    with pytest.raises(RuntimeError, match=message):
        form(t)
    assert t.tolist() == before and t._version == version


@pytest.mark.parametrize(("form", "on_array"), CALLS)
def test_a_leaf_that_requires_grad_is_refused(form: Form, on_array: OnArray) -> None:
    raises("a leaf Variable that requires grad is being used in an in-place operation", form, leaf(START))
    raises("a view of a leaf Variable that requires grad is being used", form, leaf(START)[:])


@pytest.mark.parametrize(("form", "on_array"), CALLS)
def test_views_that_may_not_be_written_are_refused(form: Form, on_array: OnArray) -> None:
    y = leaf(np.ones((2, 3))) * 2.0
    raises("Output 0 of Split is a view and is being modified inplace", form, y.split(1)[0])
    with tg.no_grad():
        part = y[:1]
    raises("A view was created in no_grad mode", form, part)


@pytest.mark.parametrize(("form", "on_array"), CALLS)
def test_a_result_is_refused_while_nothing_is_recorded(form: Form, on_array: OnArray) -> None:
    x = leaf(START)
    y = x * 2.0
    with tg.no_grad():
        raises("the shape of a result of a recorded operation cannot be changed in place", form, y)
    y.sum().backward()
    assert_values(x.grad, 2.0 * np.ones((1, 3)))


@pytest.mark.parametrize(("form", "on_array"), CALLS)
def test_inference_tensors_are_refused_outside(form: Form, on_array: OnArray) -> None:
    with tg.inference_mode():
        t = tg.tensor(START)
        u = tg.tensor(START)
        form(u)
    assert_values(u, on_array(START))
    with pytest.raises(RuntimeError, match="Inplace update to inference tensor outside InferenceMode"):
        form(t)


@pytest.mark.parametrize(
    ("form", "error"),
    [
        (lambda t: t.transpose_(0, 2), IndexError),
        (lambda t: t.unsqueeze_(4), IndexError),
        (lambda t: t.squeeze_(2), IndexError),
        (lambda t: t.squeeze_((0, 0)), RuntimeError),
        (lambda t: t.unsqueeze_(0).t_(), tg.ShapeError),
    ],
)
def test_bad_dimensions(form: Form, error: type[Exception]) -> None:
    with pytest.raises(error):
        form(tg.tensor(START))


# Leaves, under no_grad.


@pytest.mark.parametrize(("form", "on_array"), CALLS)
def test_a_leaf_goes_on_in_its_new_shape(form: Form, on_array: OnArray) -> None:
    x = leaf(START)
    (x * x).sum().backward()
    x.grad = None
    with tg.no_grad():
        form(x)
    assert x.is_leaf and x.requires_grad
    weighed(x * x).backward()
    assert_values(x.grad, 2.0 * on_array(START) * weights(x.shape))


@pytest.mark.parametrize("again", [False, True])
@pytest.mark.filterwarnings("ignore:Using backward")
def test_a_graph_on_the_former_shape_is_refused(again: bool) -> None:
    x = leaf([[1.0, 2.0], [3.0, 4.0]])
    y = (x * 2.0).sum()
    with tg.no_grad():
        x.t_()
    if again:
        x * 2.0
    with pytest.raises(RuntimeError, match="the shape of a leaf was changed in place after it was used"):
        y.backward()
    with pytest.raises(RuntimeError, match="the shape of a leaf was changed in place after it was used"):
        y.backward(create_graph=True)
    assert x.grad is None


@pytest.mark.parametrize("create_graph", [False, True])
@pytest.mark.filterwarnings("ignore:Using backward")
def test_a_gradient_of_the_former_shape_is_not_added_to(create_graph: bool) -> None:
    x = leaf(START)
    x.grad = tg.ones(1, 3)
    with tg.no_grad():
        x.t_()
    y = (x * x).sum()
    with pytest.raises(RuntimeError):
        y.backward(create_graph=create_graph)
    assert_values(x.grad, np.ones((1, 3)))


def test_views_of_a_leaf_follow_it() -> None:
    x = leaf([[1.0, 2.0], [3.0, 4.0]])
    part = x[0]
    with tg.no_grad():
        x.t_()
    (part * tg.tensor([10.0, 20.0])).sum().backward()
    assert_values(x.grad, [[10.0, 0.0], [20.0, 0.0]])
