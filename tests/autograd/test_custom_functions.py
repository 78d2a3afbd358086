"""`autograd.Function`: what forward and backward are given, what they may return, and how long things live."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapegrad as tg

Tensor = tg.Tensor


class Held:
    """Something that can be watched."""


def function(
    forward: Callable[..., Any] = lambda ctx, x: x * 2.0, backward: Callable[..., Any] = lambda ctx, *g: g[0], name: str = "F"
) -> Any:
    """A custom function called F."""
    return type(name, (tg.autograd.Function,), {"forward": staticmethod(forward), "backward": staticmethod(backward)})


class Product(tg.autograd.Function):
    """Product and shifted sine, with the cotangents of both."""

    @staticmethod
    def forward(ctx: Any, x: Tensor, y: Tensor, shift: float = 0.5) -> tuple[Tensor, Tensor]:
        product = x * y
        ctx.save_for_backward(x, y, product)
        return product, tg.sin(x + shift * product)

    @staticmethod
    def backward(ctx: Any, g: Tensor, h: Tensor) -> tuple[Tensor, Tensor]:
        x, y, product = ctx.saved_tensors
        inner = h * tg.cos(x + 0.5 * product)
        return g * y + inner * (1 + 0.5 * y), g * x + inner * 0.5 * x


@pytest.fixture
def x() -> Tensor:
    return tg.tensor([1.0, 2.0, 3.0], requires_grad=True)


# Names and context


@pytest.mark.point(57)
def test_node_has_the_name_of_the_function(x: Tensor) -> None:
    y = function(name="Cube").apply(x)
    assert type(y.grad_fn).__name__ == y.grad_fn.name() == "CubeBackward"
    assert repr(y).endswith("grad_fn=<CubeBackward>)")


@pytest.mark.point(57)
def test_ctx_is_grad_fn(x: Tensor) -> None:
    kept: list[Any] = []

    def forward(ctx: Any, x: Tensor) -> Tensor:
        kept.append(ctx)
        ctx.factor = 2.0
        return x * 2.0

    def backward(ctx: Any, g: Tensor) -> Tensor:
        kept.append(ctx)
        return g * ctx.factor

    y = function(forward, backward).apply(x)
    assert kept[0] is y.grad_fn
    assert y.grad_fn.factor == 2.0
    y.sum().backward()
    assert kept[1] is kept[0]


def test_attributes_outlive_the_first_view(x: Tensor) -> None:
    def forward(ctx: Any, x: Tensor) -> Tensor:
        ctx.variable = "mine"
        return x * 2.0

    y = function(forward).apply(x)
    gc.collect()
    assert y.grad_fn.variable == "mine"


def test_next_functions_are_those_of_the_tensor_arguments(x: Tensor) -> None:
    y = x * 1.0
    z = function(lambda ctx, a, n, b: a * n + b).apply(y, 3.0, tg.tensor([1.0, 1.0, 1.0]))
    assert z.grad_fn.next_functions == ((y.grad_fn, 0), (None, 0))


# Forward


@pytest.mark.point(58)
def test_forward_runs_with_recording_off_and_gets_the_very_inputs(x: Tensor) -> None:
    got: list[Any] = []

    def forward(ctx: Any, t: Tensor, n: int) -> Tensor:
        got.extend([t is x, t.requires_grad, tg.is_grad_enabled(), ctx.needs_input_grad, (t * 2).requires_grad])
        return t * n

    function(forward).apply(x, 2)
    assert got == [True, True, False, (True, False), False]


@pytest.mark.point(58)
def test_needs_input_grad_in_backward(x: Tensor) -> None:
    got: list[Any] = []

    def backward(ctx: Any, g: Tensor) -> tuple[Any, ...]:
        got.append(ctx.needs_input_grad)
        return g, None, None

    function(lambda ctx, a, n, b: a * n, backward).apply(x, 2, tg.tensor(1.0)).sum().backward()
    assert got == [(True, False, False)]


@pytest.mark.point(58)
def test_keywords_and_defaults(x: Tensor) -> None:
    def forward(ctx: Any, t: Tensor, n: int = 2) -> Tensor:
        ctx.n = n
        return t * n

    scale = function(forward, lambda ctx, g: (g * ctx.n, None))
    scale.apply(x).sum().backward()
    scale.apply(x, n=5).sum().backward()
    scale.apply(t=x, n=7).sum().backward()
    assert x.grad.tolist() == [14.0] * 3


def test_setup_context(x: Tensor) -> None:
    class Power(tg.autograd.Function):
        @staticmethod
        def forward(x: Tensor, n: int = 3) -> Tensor:
            return x**n

        @staticmethod
        def setup_context(ctx: Any, inputs: tuple[Any, ...], output: Tensor) -> None:
            assert not tg.is_grad_enabled()
            base, ctx.n = inputs
            ctx.save_for_backward(base, output)

        @staticmethod
        def backward(ctx: Any, g: Tensor) -> tuple[Tensor, None]:
            base, output = ctx.saved_tensors
            return g * ctx.n * output / base, None

    Power.apply(x, n=2).sum().backward()
    assert x.grad.tolist() == [2.0, 4.0, 6.0]


def test_untracked_under_no_grad_and_without_tracked_arguments(x: Tensor) -> None:
    double = function()
    with tg.no_grad():
        assert not double.apply(x).requires_grad
    assert not double.apply(x.detach()).requires_grad


@pytest.mark.point(69)
def test_tensors_inside_lists_are_not_tracked(x: Tensor) -> None:
    assert not function(lambda ctx, ts: ts[0] * 2.0).apply([x]).requires_grad


def test_containers_pass_through_untracked(x: Tensor) -> None:
    y, nested, text = function(lambda ctx, t: (t * 2.0, (t * 3.0, 5), "text")).apply(x)
    assert y.requires_grad
    assert not nested[0].requires_grad
    assert (nested[1], text) == (5, "text")
    (inside,) = function(lambda ctx, t: [t * 2.0]).apply(x)
    assert not inside.requires_grad


# Gradients


@pytest.mark.parametrize("which", [0, 1, None])
def test_gradients_of_several_outputs_against_complex_step(which: int | None) -> None:
    def derivative(a: Any, b: Any) -> Any:
        outputs = a * b, np.sin(a + 0.5 * a * b)
        return (sum(outputs) if which is None else outputs[which]).imag / 1e-30

    a, b, step = np.array([0.3, 1.2]), np.array([-0.7, 0.4]), 1e-30j
    x, y = tg.tensor(a, requires_grad=True), tg.tensor(b, requires_grad=True)
    outputs = Product.apply(x, y)
    loss = outputs[0].sum() + outputs[1].sum() if which is None else outputs[which].sum()
    loss.backward()
    np.testing.assert_allclose(x.grad.numpy(), derivative(a + step, b), rtol=1e-13)
    np.testing.assert_allclose(y.grad.numpy(), derivative(a, b + step), rtol=1e-13)


def test_second_order_against_the_same_operations() -> None:
    x, y = tg.tensor([0.3, 1.2], requires_grad=True), tg.tensor([-0.7, 0.4], requires_grad=True)

    def second(outputs: tuple[Tensor, Tensor]) -> Any:
        g, h = tg.autograd.grad((outputs[0] * outputs[1]).sum(), (x, y), create_graph=True)
        return tg.autograd.grad((g * h).sum(), (x, y))

    for got, expected in zip(second(Product.apply(x, y)), second((x * y, tg.sin(x + 0.5 * (x * y)))), strict=True):
        np.testing.assert_allclose(got.numpy(), expected.numpy(), rtol=1e-12)


@pytest.mark.point(4)
def test_outputs_share_the_node_and_differ_in_number(x: Tensor) -> None:
    a, b = Product.apply(x, x)
    assert a.grad_fn is b.grad_fn
    assert (a.output_nr, b.output_nr) == (0, 1)
    assert (b * 2).grad_fn.next_functions[0] == (a.grad_fn, 1)


def test_only_inputs_on_the_path_get_gradients(x: Tensor) -> None:
    y = tg.tensor([1.0, 1.0, 1.0], requires_grad=True)
    loss = sum(output.sum() for output in Product.apply(x, y))
    (g,) = tg.autograd.grad(loss, x)
    assert g.shape == (3,)
    assert x.grad is None
    assert y.grad is None


@pytest.mark.point(59, 60)
@pytest.mark.parametrize(
    ("gradients", "message"),
    [
        (lambda g: g, r"function FBackward returned an incorrect number of gradients \(expected 2, got 1\)"),
        (lambda g: (g, g, g), r"incorrect number of gradients \(expected 2, got 3\)"),
        (lambda g: (g, g), "returned a gradient different than None at position 2, but the corresponding forward input was not a"),
        (
            lambda g: (g[:2], None),
            r"FBackward returned an invalid gradient at index 0 - got \[2\] but expected shape compatible with \[3\]",
        ),
        (lambda g: (g.sum(), None), r"invalid gradient at index 0 - got \[\] but expected shape compatible with \[3\]"),
        (lambda g: (1.5, None), r"expected Variable or None \(got float\)"),
    ],
)
def test_wrong_gradients_raise_and_leave_grad(x: Tensor, gradients: Any, message: str) -> None:
    w = tg.tensor([1.0, 1.0, 1.0], requires_grad=True)
    loss = (function(lambda ctx, t, n: t * n, lambda ctx, g: gradients(g)).apply(x, 2) * w).sum()
    with pytest.raises(RuntimeError, match=message):
        loss.backward()
    assert x.grad is None
    assert w.grad is None


@pytest.mark.point(59)
def test_trailing_none_is_allowed(x: Tensor) -> None:
    function(backward=lambda ctx, g: (g, None, None)).apply(x).sum().backward()
    assert x.grad.tolist() == [1.0] * 3


@pytest.mark.point(60)
def test_gradient_of_a_broadcast_shape_is_summed() -> None:
    x = tg.tensor([[1.0], [2.0]], requires_grad=True)
    function(lambda ctx, t: t.sum(), lambda ctx, g: g * tg.ones(5, 2, 3)).apply(x).backward()
    assert x.grad.tolist() == [[15.0], [15.0]]


@pytest.mark.point(60)
@pytest.mark.parametrize("recorded", [False, True])
def test_gradient_is_cast_to_the_dtype_of_the_input(recorded: bool) -> None:
    x = tg.tensor([1.0, 2.0], dtype=tg.float32, requires_grad=True)
    y = function(lambda ctx, t: t.double(), lambda ctx, g: g * 3.0).apply(x)
    (g,) = tg.autograd.grad(y.sum(), x, create_graph=recorded)
    assert g.dtype == tg.float32
    assert g.tolist() == [3.0, 3.0]


@pytest.mark.point(62)
def test_outputs_of_several_dtypes() -> None:
    x = tg.tensor([1.0, 2.0], requires_grad=True)
    given: list[Any] = []

    def backward(ctx: Any, *g: Tensor) -> Tensor:
        given.extend((one.dtype, one.tolist()) for one in g)
        return g[0]

    a, b, positive, whole = function(lambda ctx, t: (t * 2, t.float(), t > 1, t.long()), backward).apply(x)
    assert [t.requires_grad for t in (a, b, positive, whole)] == [True, True, False, False]
    b.sum().backward()
    assert given == [
        (tg.float64, [0.0, 0.0]), (tg.float32, [1.0, 1.0]), (tg.bool, [False, False]), (tg.int64, [0, 0]),
    ]  # fmt: skip


@pytest.mark.point(62)
@pytest.mark.parametrize("materialize", [True, False])
@pytest.mark.parametrize("recorded", [True, False])
def test_undefined_gradients_of_outputs(x: Tensor, materialize: bool, recorded: bool) -> None:
    given: list[Any] = []

    def forward(ctx: Any, t: Tensor) -> tuple[Any, ...]:
        ctx.set_materialize_grads(materialize)
        return t * 2, t.sum(), "text"

    def backward(ctx: Any, *g: Any) -> Tensor:
        given.extend(one.tolist() if isinstance(one, Tensor) else one for one in g)
        return g[0] * 2

    y, _, _ = function(forward, backward).apply(x)
    tg.autograd.grad(y.sum(), x, create_graph=recorded)
    assert given == [[1.0] * 3, 0.0 if materialize else None, None]


def test_zero_gradient_is_not_undefined(x: Tensor) -> None:
    given: list[Any] = []

    def forward(ctx: Any, t: Tensor) -> tuple[Tensor, Tensor]:
        ctx.set_materialize_grads(False)
        return t * 2, t * 3

    y, z = function(forward, lambda ctx, *g: (given.extend(g), g[0])[1]).apply(x)
    (y + z * 0.0).sum().backward()
    assert [g.tolist() for g in given] == [[1.0] * 3, [0.0] * 3]


@pytest.mark.point(63)
@pytest.mark.parametrize("further", [False, True])
def test_none_leaves_grad_none(x: Tensor, further: bool) -> None:
    y = function(backward=lambda ctx, g: None).apply(x * 2 if further else x)
    y.sum().backward(retain_graph=True)
    assert x.grad is None
    assert tg.autograd.grad(y.sum(), x, allow_unused=True) == (None,)


@pytest.mark.point(63)
def test_none_everywhere_counts_as_unused(x: Tensor) -> None:
    y = function(backward=lambda ctx, g: None).apply(x * 2)
    with pytest.raises(RuntimeError, match="not have been used"):
        tg.autograd.grad(y.sum(), x)


@pytest.mark.point(64)
def test_exceptions_in_backward_keep_their_type(x: Tensor) -> None:
    def backward(ctx: Any, g: Tensor) -> Tensor:
        raise KeyError("mine")

    loss = function(backward=backward).apply(x).sum()
    with pytest.raises(KeyError, match="mine"):
        loss.backward()
    assert x.grad is None


@pytest.mark.point(55)
def test_grad_mode_in_backward(x: Tensor) -> None:
    modes: list[bool] = []
    double = function(backward=lambda ctx, g: (modes.append(tg.is_grad_enabled()), g * 2)[1])
    double.apply(x).sum().backward()
    tg.autograd.grad(double.apply(x).sum(), x, create_graph=True)
    assert modes == [False, True]


@pytest.mark.point(90)
def test_node_can_be_called(x: Tensor) -> None:
    y = function(backward=lambda ctx, g: g * 2).apply(x)
    assert y.grad_fn(tg.ones(3)).tolist() == [2.0] * 3
    a, _ = Product.apply(x, x)
    with pytest.raises(TypeError, match="expected 2 arguments, got 0 instead"):
        a.grad_fn()


# Missing methods


@pytest.mark.point(61)
def test_missing_forward(x: Tensor) -> None:
    class Empty(tg.autograd.Function):
        pass

    with pytest.raises(NotImplementedError, match=r"You must implement the forward function for custom autograd\.Function"):
        Empty.apply(x)


@pytest.mark.point(61)
def test_missing_backward(x: Tensor) -> None:
    class Half(tg.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            return x * 2

    loss = Half.apply(x).sum()
    with pytest.raises(NotImplementedError, match="You must implement either the backward or vjp method"):
        loss.backward()


def test_vjp_is_another_name_of_backward(x: Tensor) -> None:
    class Named(tg.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Tensor) -> Tensor:
            return x * 2

        @staticmethod
        def vjp(ctx: Any, g: Tensor) -> Tensor:
            return g * 2

    Named.apply(x).sum().backward()
    assert x.grad.tolist() == [2.0] * 3


@pytest.mark.point(61)
def test_instances_are_not_called(x: Tensor) -> None:
    with pytest.raises(RuntimeError, match="Legacy autograd function with non-static forward method is deprecated"):
        Product()(x)


# Inputs that are outputs


@pytest.mark.point(65)
def test_returned_input_is_a_view_with_the_node(x: Tensor) -> None:
    y = x * 1.0
    z = function(lambda ctx, t: t, lambda ctx, g: g * 7).apply(y)
    assert z is not y
    assert z._base is y
    assert z.grad_fn.name() == "FBackward"
    z.sum().backward()
    assert x.grad.tolist() == [7.0] * 3


def test_returned_input_may_not_be_written(x: Tensor) -> None:
    z = function(lambda ctx, t: t).apply(x * 1.0)
    with pytest.raises(RuntimeError, match="Output 0 of F is a view and is being modified inplace"):
        z.mul_(2)


def doubled(ctx: Any, t: Tensor) -> Tensor:
    t.mul_(2)
    ctx.mark_dirty(t)
    return t


@pytest.mark.point(65)
@pytest.mark.parametrize("value", [3.0, [1.0, 2.0]])
def test_dirty_input_is_the_same_object(value: Any) -> None:
    x = tg.tensor(value, requires_grad=True)
    y = x * x
    before, version = y.grad_fn, y._version
    z = function(doubled, lambda ctx, g: g * 2).apply(y)
    assert z is y
    assert y.grad_fn.name() == "FBackward"
    assert y.grad_fn.next_functions == ((before, 0),)
    assert y._version > version
    y.sum().backward()
    np.testing.assert_array_equal(x.grad.tolist(), 4 * np.array(value))


def test_dirty_view_changes_its_base(x: Tensor) -> None:
    base = x * 1.0
    part = base[:1]
    assert function(doubled, lambda ctx, g: g * 2).apply(part) is part
    base.sum().backward()
    assert x.grad.tolist() == [2.0, 1.0, 1.0]


def test_values_saved_before_a_dirty_write_are_stale(x: Tensor) -> None:
    y = x * 1.0
    z = tg.sin(y)
    function(doubled, lambda ctx, g: g * 2).apply(y)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        z.sum().backward()


@pytest.mark.point(65)
def test_dirty_leaf_raises(x: Tensor) -> None:
    with pytest.raises(RuntimeError, match="a leaf Variable that requires grad has been used in an in-place operation"):
        function(doubled).apply(x)


def test_dirty_input_must_be_returned(x: Tensor) -> None:
    def forward(ctx: Any, t: Tensor) -> Tensor:
        ctx.mark_dirty(t)
        return t * 2

    y = x * 1.0
    with pytest.raises(RuntimeError, match="Some elements marked as dirty during the forward method were not returned as output"):
        function(forward).apply(y)


def test_marking_what_is_no_input_as_dirty_warns(x: Tensor) -> None:
    def forward(ctx: Any, t: Tensor) -> Tensor:
        made = t * 2
        ctx.mark_dirty(made)
        return made

    with pytest.warns(UserWarning, match="mark_dirty.* received a tensor that was not an input"):
        function(forward).apply(x)


def test_outputs_marked_as_not_differentiable(x: Tensor) -> None:
    def forward(ctx: Any, t: Tensor) -> tuple[Tensor, Tensor]:
        sign = tg.sign(t)
        ctx.mark_non_differentiable(sign)
        return t * 2, sign

    y, sign = function(forward).apply(x)
    assert y.requires_grad
    assert not sign.requires_grad


@pytest.mark.parametrize("others", [False, True])
def test_what_is_written_and_not_differentiable_loses_its_former_derivative(x: Tensor, others: bool) -> None:
    def forward(ctx: Any, t: Tensor) -> tuple[Tensor, ...]:
        ctx.mark_dirty(t.mul_(2.0))
        ctx.mark_non_differentiable(t)
        return (t, t * 1.0) if others else (t,)

    y = x * x
    (y, *more) = function(forward, lambda ctx, *g: g[-1] * 5.0).apply(y)
    assert not y.requires_grad
    (y.sum() + sum(more, x).sum()).backward()
    assert x.grad.tolist() == ([11.0, 21.0, 31.0] if others else [1.0, 1.0, 1.0])


def test_part_that_is_written_and_not_differentiable_gets_no_gradient(x: Tensor) -> None:
    def forward(ctx: Any, t: Tensor) -> Tensor:
        ctx.mark_dirty(t.mul_(2.0))
        ctx.mark_non_differentiable(t)
        return t

    base = x * 3.0
    function(forward).apply(base[:1])
    base.sum().backward()
    assert x.grad.tolist() == [0.0, 3.0, 3.0]


# Saved tensors


@pytest.mark.point(66, 68)
@pytest.mark.parametrize("value", [0.5, [1.0, 2.0]])
def test_saved_tensors_come_back(value: Any) -> None:
    x = tg.tensor(value, requires_grad=True)

    def forward(ctx: Any, t: Tensor) -> Tensor:
        y = tg.exp(t)
        ctx.save_for_backward(t, y, None, t + 1)
        return y

    y = function(forward).apply(x)
    leaf, output, nothing, between = y.grad_fn.saved_tensors
    assert leaf is x
    assert output.grad_fn is y.grad_fn
    assert output.tolist() == y.tolist()
    assert nothing is None
    assert not between.requires_grad
    assert between.tolist() == (x + 1).tolist()


@pytest.mark.parametrize("computed", [False, True])
@pytest.mark.parametrize("several", [False, True])
def test_saved_tensors_that_are_no_arguments_differentiate(x: Tensor, computed: bool, several: bool) -> None:
    given = tg.tensor(3.0, requires_grad=True)
    factor = given * 1.0 if computed else given

    def forward(ctx: Any, t: Tensor) -> Any:
        ctx.save_for_backward(t, factor)
        return (t * t * factor, t * 1.0) if several else t * t * factor

    def backward(ctx: Any, *g: Tensor) -> Tensor:
        t, saved = ctx.saved_tensors
        return 2.0 * t * saved * g[0]

    y = function(forward, backward).apply(x)
    (slope,) = tg.autograd.grad((y[0] if several else y).sum(), x, create_graph=True)
    by_x, by_factor = tg.autograd.grad(slope.sum(), [x, given])
    assert (by_x.tolist(), by_factor.item()) == ([6.0] * 3, 12.0)


@pytest.mark.point(66)
@pytest.mark.parametrize("value", [0.5, [1.0, 2.0]])
def test_saved_output_differentiates(value: Any) -> None:
    x = tg.tensor(value, requires_grad=True)

    def forward(ctx: Any, t: Tensor) -> Tensor:
        y = tg.exp(t)
        ctx.save_for_backward(y)
        return y

    y = function(forward, lambda ctx, g: g * ctx.saved_tensors[0]).apply(x)
    for _ in range(3):
        (y,) = tg.autograd.grad(y.sum(), x, create_graph=True)
    np.testing.assert_allclose(y.tolist(), np.exp(value), rtol=1e-14)


def saving(ctx: Any, t: Tensor, *others: Any) -> Tensor:
    ctx.save_for_backward(t, *others)
    return t * 2


@pytest.mark.point(68)
@pytest.mark.parametrize(("other", "message"), [(5, "argument 1 is of type int"), ([1.0], "argument 1 is of type list")])
def test_only_tensors_are_saved(x: Tensor, other: Any, message: str) -> None:
    with pytest.raises(TypeError, match=f"save_for_backward can only save variables, but {message}"):
        function(saving).apply(x, other)


@pytest.mark.point(68)
def test_saved_tensors_are_freed(x: Tensor) -> None:
    y = function(saving).apply(x)
    y.sum().backward()
    with pytest.raises(RuntimeError, match="Trying to backward through the graph a second time"):
        y.sum().backward()
    with pytest.raises(RuntimeError, match="directly access saved tensors after they have already been freed"):
        _ = y.grad_fn.saved_tensors


def test_function_that_saves_nothing_runs_twice(x: Tensor) -> None:
    y = function(backward=lambda ctx, g: g * 2).apply(x).sum()
    y.backward()
    y.backward()
    assert x.grad.tolist() == [4.0] * 3


@pytest.mark.point(68)
def test_saved_tensors_are_version_checked(x: Tensor) -> None:
    t = x * 1.0
    y = function(saving).apply(t)
    t.add_(1.0)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        _ = y.grad_fn.saved_tensors
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()
    assert x.grad is None


def test_value_that_backward_itself_overwrites_is_stale(x: Tensor) -> None:
    t = x * 1.0

    def backward(ctx: Any, g: Tensor) -> Tensor:
        t.add_(1.0)
        (saved,) = ctx.saved_tensors
        return g * saved

    y = function(saving, backward).apply(t)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.sum().backward()
    assert x.grad is None


@pytest.mark.parametrize("size", [0, 1, 3, 3000])
@pytest.mark.parametrize("outputs", [1, 2])
def test_tensors_among_other_arguments_in_a_pass(size: int, outputs: int) -> None:
    values = np.linspace(-1.0, 2.0, size) if size else np.float64(0.7)

    def forward(ctx: Any, factor: float, a: Tensor, name: str, b: Tensor, unused: Tensor) -> Any:
        product, constant = a * b, tg.tensor(3.0)
        ctx.factor = factor
        ctx.save_for_backward(b, product, a, constant)
        return (product * factor, a * 2.0)[:outputs] if outputs > 1 else product * factor

    def backward(ctx: Any, *g: Tensor) -> tuple[Any, ...]:
        b, product, a, constant = ctx.saved_tensors
        assert constant.item() == 3.0
        np.testing.assert_array_equal(product.tolist(), (a * b).tolist())
        return None, g[0] * b * ctx.factor + (2.0 * g[1] if outputs > 1 else 0.0), None, g[0] * a * ctx.factor, None

    x, y = tg.tensor(values, requires_grad=True), tg.tensor(values + 1.0, requires_grad=True)
    found = function(forward, backward).apply(5.0, x * 1.0, "name", y, tg.tensor(values))
    total = sum((k + 1.0) * part.sum() for k, part in enumerate(found if outputs > 1 else (found,)))
    total.backward()
    np.testing.assert_allclose(x.grad.tolist(), 5.0 * (values + 1.0) + (4.0 if outputs > 1 else 0.0), rtol=1e-15)
    np.testing.assert_allclose(y.grad.tolist(), 5.0 * values, rtol=1e-15)


@pytest.mark.parametrize("value", [1.5, [1.0, 2.0]])
def test_saved_inputs_are_what_they_were_on_the_graph(value: Any) -> None:
    leaf = tg.tensor(value, requires_grad=True)
    seen: list[Any] = []

    def forward(ctx: Any, *tensors: Tensor) -> Tensor:
        ctx.save_for_backward(*tensors)
        return tensors[0] * 1.0

    def backward(ctx: Any, g: Tensor) -> tuple[Any, ...]:
        seen[:] = ctx.saved_tensors
        return g, g, None

    result = leaf * 2.0
    function(forward, backward).apply(leaf, result, tg.tensor(value)).sum().backward()
    assert seen[0] is leaf
    assert seen[1].grad_fn is result.grad_fn
    assert not seen[2].requires_grad


@pytest.mark.parametrize("kept", ["ctx", "grad_fn"])
def test_ctx_that_somebody_holds_is_the_node(x: Tensor, kept: str) -> None:
    held: list[Any] = []

    def forward(ctx: Any, t: Tensor) -> Tensor:
        if kept == "ctx":
            held.append(ctx)
        return t * 2.0

    y = function(forward, lambda ctx, g: held.append(ctx) or g * 2.0).apply(x)
    if kept == "grad_fn":
        held.append(y.grad_fn)
    y.sum().backward()
    assert held[0] is held[1] is y.grad_fn


@pytest.mark.parametrize("kept", ["the tuple", "its tensors", "their arrays"])
def test_gradients_share_no_memory_with_what_backward_keeps(kept: str) -> None:
    seen: list[Any] = []

    def backward(ctx: Any, g: Tensor) -> tuple[Tensor, Tensor]:
        found = g * tg.ones(5000), g * tg.ones(5000)
        seen.append(found if kept == "the tuple" else list(found) if kept == "its tensors" else [part.numpy() for part in found])
        return found

    x, y = (tg.ones(5000, requires_grad=True) for _ in range(2))
    function(lambda ctx, a, b: (a * b).sum(), backward).apply(x, y).backward()
    for gradient, own in zip((x.grad, y.grad), seen[0], strict=True):
        assert not np.shares_memory(gradient.numpy(), np.asarray(own))


@pytest.mark.parametrize("outputs", [1, 2])
def test_backward_that_raises_leaves_everything_for_another_pass(x: Tensor, outputs: int) -> None:
    failing = [True]

    def backward(ctx: Any, *g: Tensor) -> Tensor:
        if failing:
            raise LookupError(failing.pop())
        return g[0] * 2.0

    found = function(lambda ctx, t: (t * 2.0, t * 0.0)[:outputs] if outputs > 1 else t * 2.0, backward).apply(x)
    total = sum(part.sum() for part in (found if outputs > 1 else (found,)))
    with pytest.raises(LookupError):
        total.backward()
    assert x.grad is None
    assert tg.is_grad_enabled()
    total.backward()
    assert x.grad.tolist() == [2.0] * 3


def test_mode_that_forward_leaves_on_ends_with_it(x: Tensor) -> None:
    def forward(ctx: Any, t: Tensor) -> Tensor:
        y = t * 2.0
        tg.inference_mode().__enter__()
        return y

    tape = tg.tape.default_tape()
    before = tape.recording_off, tape.inferring
    y = function(forward).apply(x)
    assert not tg.is_inference_mode_enabled()
    assert tg.is_grad_enabled()
    assert (tape.recording_off, tape.inferring) == before
    assert (y * x).requires_grad


# once_differentiable


@pytest.fixture
def square() -> Any:
    def forward(ctx: Any, t: Tensor) -> Tensor:
        ctx.save_for_backward(t)
        return t * t

    @tg.autograd.function.once_differentiable
    def backward(ctx: Any, g: Tensor) -> Tensor:
        assert not tg.is_grad_enabled()
        return 2 * g * ctx.saved_tensors[0]

    return function(forward, backward)


@pytest.mark.point(67)
def test_once_differentiable_refuses_the_second_time(x: Tensor, square: Any) -> None:
    (g,) = tg.autograd.grad((square.apply(x) ** 2).sum(), x, create_graph=True)
    assert type(g.grad_fn).__name__ == "Error"
    with pytest.raises(RuntimeError, match="trying to differentiate twice a function that was marked with @once_differentiable"):
        g.sum().backward()


@pytest.mark.point(67)
def test_once_differentiable_under_an_untracked_gradient_is_untracked(x: Tensor, square: Any) -> None:
    (g,) = tg.autograd.grad(square.apply(x).sum(), x, create_graph=True)
    assert not g.requires_grad
    assert g.tolist() == [2.0, 4.0, 6.0]


# Reentrance, depth, lifetimes


@pytest.mark.point(70)
def test_reentrant_backward_restores_modes_and_passes_errors_on() -> None:
    x = tg.tensor(1.0, requires_grad=True)

    def backward(ctx: Any, g: Tensor) -> Tensor:
        with tg.enable_grad():
            inner = ctx.inner(x * 1.0)
        inner.backward()
        assert not tg.is_grad_enabled()
        return g

    def forward(ctx: Any, t: Tensor, inner: Any) -> Tensor:
        ctx.inner = inner
        return t * 1.0

    outer = function(forward, lambda ctx, g: (backward(ctx, g), None))
    outer.apply(x, lambda t: t * 3.0).backward()
    assert x.grad.item() == 4.0
    loss = outer.apply(x, lambda t: tg.stack([t, t]))
    with pytest.raises(RuntimeError, match="only for scalar outputs"):
        loss.backward()
    assert tg.is_grad_enabled()
    assert x.grad.item() == 4.0


@pytest.mark.point(70)
def test_reentrant_backward_to_two_hundred_levels() -> None:
    x = tg.tensor(1.0, requires_grad=True)

    def backward(ctx: Any, g: Tensor) -> tuple[Tensor, None]:
        if ctx.level:
            with tg.enable_grad():
                inner = nest.apply(x, ctx.level - 1)
            inner.backward()
        return g, None

    def forward(ctx: Any, t: Tensor, level: int) -> Tensor:
        ctx.level = level
        return t * 1.0

    nest = function(forward, backward)
    nest.apply(x, 200).backward()
    assert x.grad.item() == 201.0


@pytest.mark.point(75)
@pytest.mark.parametrize("used", [False, True])
def test_long_chain_needs_no_recursion(used: bool) -> None:
    x = tg.tensor([1.0, 1.0], requires_grad=True)

    def forward(ctx: Any, t: Tensor) -> Tensor:
        ctx.t = t
        return t + 1.0

    step = function(forward)
    y = x
    for _ in range(20_000):
        y = step.apply(y)
    if used:
        y.sum().backward()
        assert x.grad.tolist() == [1.0, 1.0]
    del y
    assert tg.tape.default_tape().rows < 10_000


@pytest.mark.point(66, 76)
@pytest.mark.parametrize("used", [False, True])
def test_ctx_dies_with_the_graph_without_the_collector(x: Tensor, used: bool) -> None:
    links: list[Any] = []

    def forward(ctx: Any, t: Tensor) -> tuple[Tensor, Tensor]:
        ctx.held = Held()
        links.append(weakref.ref(ctx.held))
        y = t * 2
        ctx.save_for_backward(t, y)
        return y, t * 3

    y, z = function(forward).apply(x)
    loss = (y * z).sum()
    if used:
        loss.backward()
    assert links[0]() is y.grad_fn.held
    del y, z, loss
    assert links[0]() is None


def test_threads_run_one_retained_graph() -> None:
    x = tg.tensor([0.3, 1.2], requires_grad=True)
    a, b = Product.apply(x, x)
    loss = (a * b).sum()
    (expected,) = tg.autograd.grad(loss, x, retain_graph=True)
    results: list[Any] = []

    def run() -> None:
        results.extend(tg.autograd.grad(loss, x, retain_graph=True)[0].tolist() for _ in range(20))

    threads = [threading.Thread(target=run) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert results == [expected.tolist()] * 80


@pytest.mark.parametrize("recorded", [False, True])
def test_hooks_of_a_node_with_several_outputs(x: Tensor, recorded: bool) -> None:
    seen: list[Any] = []
    y, z = Product.apply(x, x)
    y.register_hook(lambda g: seen.append(("y", g)))
    z.register_hook(lambda g: seen.append(("z", g.tolist())))
    y.grad_fn.register_prehook(lambda o: seen.append([g is None for g in o]))
    y.grad_fn.register_hook(lambda i, o: (i[0] * 0.0, i[1] * 0.0))
    (g,) = tg.autograd.grad(z.sum(), x, create_graph=recorded)
    assert seen == [("z", [1.0] * 3), ("y", None), [True, False]]
    assert g.tolist() == [0.0] * 3


def test_hooks_of_one_of_several_outputs_see_what_comes_by_its_saved_value(x: Tensor) -> None:
    def forward(ctx: Any, x: Tensor) -> tuple[Tensor, Tensor]:
        first = tg.exp(x)
        ctx.save_for_backward(first)
        return first, x * 2.0

    def backward(ctx: Any, g: Tensor, h: Tensor) -> Tensor:
        (first,) = ctx.saved_tensors
        return g * first + h * 2.0

    first, _ = function(forward, backward).apply(x)
    first.register_hook(lambda g: 2.0 * g)
    (slope,) = tg.autograd.grad(first.sum(), x, create_graph=True)
    (curvature,) = tg.autograd.grad(slope.sum(), x)
    np.testing.assert_allclose(curvature.numpy(), 4.0 * np.exp(x.detach().numpy()))


def test_hooks_of_a_saved_output_behind_others_that_share_memory_see_what_comes_by_its_value(x: Tensor) -> None:
    def forward(ctx: Any, x: Tensor) -> tuple[Tensor, Tensor, Tensor]:
        ctx.mark_dirty(x.mul_(2.0))
        last = tg.exp(x)
        ctx.save_for_backward(last)
        return x, x.view(-1), last

    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        (last,) = ctx.saved_tensors
        return gradients[2] * last * 2.0

    *_, last = function(forward, backward).apply(x * 1.0)
    last.register_hook(lambda g: 2.0 * g)
    (slope,) = tg.autograd.grad(last.sum(), x, create_graph=True)
    (curvature,) = tg.autograd.grad(slope.sum(), x)
    np.testing.assert_allclose(curvature.numpy(), 16.0 * np.exp(2.0 * x.detach().numpy()))


def test_outputs_that_are_saved_by_a_function_with_several(x: Tensor) -> None:
    def forward(ctx: Any, x: Tensor) -> tuple[Tensor, Tensor]:
        first, second = tg.exp(x), tg.sin(x)
        ctx.save_for_backward(second, first, x)
        return first, second

    def backward(ctx: Any, g: Tensor, h: Tensor) -> Tensor:
        second, first, x = ctx.saved_tensors
        return g * first + h * tg.sqrt(1.0 - second * second) * tg.sign(tg.cos(x))

    first, second = function(forward, backward).apply(x)
    (first.sum() + 3.0 * second.sum()).backward()
    values = x.detach().numpy()
    np.testing.assert_allclose(x.grad.numpy(), np.exp(values) + 3.0 * np.cos(values))


def test_a_large_gradient_belongs_to_the_function_that_was_given_it() -> None:
    """It may be kept and written to, wherever it comes from; that of a sum is one number as long as nobody asks."""
    kept: list[Tensor] = []

    def backward(ctx: Any, g: Tensor) -> Tensor:
        kept.append(g)
        return g * 3.0

    x = tg.ones(6000, requires_grad=True)
    operation = function(lambda ctx, x: x * 3.0, backward)
    for outer in (lambda y: y.sum(), lambda y: (y * 2.0).sum(), lambda y: (operation.apply(y) * y).sum()):
        kept.clear()
        x.grad = None
        outer(operation.apply(x)).backward()
        before = x.grad.numpy().copy()
        for g in kept:
            g.mul_(7.0)
        np.testing.assert_array_equal(x.grad.numpy(), before)
        (y,) = tg.autograd.grad(outer(operation.apply(x)), x)
        np.testing.assert_array_equal(y.numpy(), before)
