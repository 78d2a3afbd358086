"""Checkpoints: the gradients of the plain call, whatever a function takes, returns and closes over, with fewer rows."""

from typing import Any

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.tape.tape import TAPE


def leaf(*values: float) -> Any:
    return tg.tensor(list(values), requires_grad=True)


def gradients(f: Any, *leaves: Any, call: Any) -> list[list[float]]:
    for t in leaves:
        t.grad = None
    call(f).backward()
    return [t.grad.tolist() for t in leaves]


def both_ways(f: Any, *leaves: Any) -> tuple[list[list[float]], list[list[float]]]:
    return gradients(f, *leaves, call=lambda g: g(*leaves)), gradients(f, *leaves, call=lambda g: tg.checkpoint(g)(*leaves))


def test_several_inputs() -> None:
    plain, again = both_ways(lambda x, y: (x * y.exp()).sum(), leaf(1.0, 2.0), leaf(0.5, -1.0))
    assert plain == again


def test_several_outputs_and_containers() -> None:
    x, y = leaf(1.0, 2.0), leaf(3.0, 4.0)

    def f(p: Any, scale: float = 1.0) -> Any:
        return {"product": p["x"] * p["y"], "rest": [p["x"].sin() * scale, "text", None]}

    for call in (f, tg.checkpoint(f)):
        x.grad = y.grad = None
        result = call({"x": x, "y": y}, scale=2.0)
        assert result["rest"][1:] == ["text", None]
        (result["product"].sum() + (result["rest"][0] ** 2).sum()).backward()
        np.testing.assert_allclose(x.grad.numpy(), [3.0, 4.0] + 4.0 * np.sin([2.0, 4.0]), rtol=1e-14)
        np.testing.assert_array_equal(y.grad.numpy(), [1.0, 2.0])


def test_closed_over_leaves_get_their_gradient() -> None:
    w, x = leaf(3.0, 4.0), leaf(1.0, 2.0)
    tg.checkpoint(lambda x: (w * x).sum())(x).backward()
    assert w.grad.tolist() == [1.0, 2.0]


def test_closed_over_results_get_their_gradient_once() -> None:
    w, x = leaf(3.0, 4.0), leaf(1.0, 2.0)
    doubled = w * 2.0
    tg.checkpoint(lambda x: (w * doubled * x).sum())(x).backward()  # 2 w² x
    assert w.grad.tolist() == [12.0, 32.0]


def test_closed_over_tensors_of_untracked_arguments() -> None:
    w = leaf(3.0, 4.0)
    tg.checkpoint(lambda x: (w * w * x).sum())(np.array([1.0, 2.0])).backward()
    assert w.grad.tolist() == [6.0, 16.0]


def test_hooks_of_what_is_closed_over_run_once() -> None:
    w, x = leaf(3.0), leaf(1.0)
    a = w * 1.0
    seen: list[float] = []
    a.register_hook(lambda g: seen.append(g.item()))
    a.retain_grad()
    (tg.checkpoint(lambda x: a * x)(x) + a).sum().backward()
    assert seen == [2.0]
    assert a.grad.tolist() == [2.0]


def test_parameters_of_a_layer() -> None:
    layer = tg.nn.Linear(3, 2)
    x = tg.randn(4, 3)
    layer(x).square().sum().backward()
    expected = [p.grad.tolist() for p in layer.parameters()]
    layer.zero_grad()
    tg.utils.checkpoint.checkpoint(layer, x, use_reentrant=False).square().sum().backward()
    assert [p.grad.tolist() for p in layer.parameters()] == expected


def test_nested_checkpoints() -> None:
    w = leaf(3.0, 4.0)
    inner = tg.checkpoint(lambda x: (x * w).exp() * 1e-3)
    plain, again = both_ways(lambda x: (inner(x) * x).sum(), leaf(0.5, 0.25))
    assert plain == again


def test_numbers_instead_of_arrays() -> None:
    x, w = tg.tensor(2.0, requires_grad=True), tg.tensor(5.0, requires_grad=True)
    a = w * 3.0
    tg.checkpoint(lambda x: x * x * a)(x).backward()
    assert (x.grad.item(), w.grad.item()) == (60.0, 12.0)


def test_float32() -> None:
    x = tg.tensor([1.0, 2.0], dtype=tg.float32, requires_grad=True)
    tg.checkpoint(lambda x: x.exp().sum())(x).backward()
    np.testing.assert_array_equal(x.grad.numpy(), np.exp(np.array([1.0, 2.0], np.float32)))


def test_second_derivatives() -> None:
    x, w = leaf(2.0), leaf(3.0)
    y = tg.checkpoint(lambda x: w * x**3)(x)
    first = tg.autograd.grad(y, x, create_graph=True)[0]
    second = tg.autograd.grad(first, (x, w), create_graph=True)
    assert [g.item() for g in second] == [36.0, 12.0]
    assert tg.autograd.grad(second[0], x)[0].item() == 18.0


def test_drivers() -> None:
    x = np.array([1.0, 2.0])
    f = tg.checkpoint(lambda x: x**3)
    np.testing.assert_array_equal(tg.jacobian(f, mode="forward")(x), np.diag(3.0 * x**2))
    np.testing.assert_array_equal(tg.jacobian(f, mode="reverse")(x), np.diag(3.0 * x**2))
    np.testing.assert_array_equal(tg.hessian(lambda x: f(x).sum())(x), np.diag(6.0 * x))


def test_drivers_inside_of_a_checkpoint() -> None:
    f = tg.checkpoint(lambda x: tg.grad(lambda y: (y**3).sum())(x).sum())
    np.testing.assert_array_equal(tg.grad(f)(np.array([1.0, 2.0])), [6.0, 12.0])


def test_drivers_of_constants_inside_of_a_checkpoint() -> None:
    c = np.array([3.0, 5.0])
    f = tg.checkpoint(lambda x: (tg.grad(lambda y: (x * y * y).sum())(c) * x).sum())
    x = np.array([1.0, 2.0])
    np.testing.assert_allclose(tg.grad(f)(x), 4.0 * c * x, rtol=1e-14)
    np.testing.assert_allclose(tg.hessian(f)(x), np.diag(4.0 * c), rtol=1e-14)


def test_without_recording_it_is_the_function_itself() -> None:
    calls = []
    x = leaf(1.0)
    with tg.no_grad():
        y = tg.checkpoint(lambda x: calls.append(x) or x * 2.0)(x)
    assert not y.requires_grad
    assert calls[0] is x


def test_what_is_not_recorded_comes_back_as_it_is() -> None:
    x = leaf(1.0)
    same, constant = tg.checkpoint(lambda x: (x, np.ones(2)))(x)
    assert same is x
    assert type(constant) is np.ndarray


def test_no_grad_inside() -> None:
    x = leaf(2.0)

    def f(x: Any) -> Any:
        with tg.no_grad():
            y = x * 10.0
        return (x * y).sum()

    tg.checkpoint(f)(x).backward()
    assert x.grad.item() == 20.0


def test_two_passes_over_a_retained_graph() -> None:
    x = leaf(2.0)
    y = tg.checkpoint(lambda x: (x * x).sum())(x)
    y.backward(retain_graph=True)
    y.backward()
    assert x.grad.item() == 8.0
    with pytest.raises(RuntimeError, match="second time"):
        y.backward()


def test_results_that_would_be_views_are_copies() -> None:
    x = leaf(1.0, 2.0)
    base = x * 1.0
    y = tg.checkpoint(lambda b: b[:1])(base)
    y.mul_(5.0)
    assert base.tolist() == [1.0, 2.0]
    y.sum().backward()
    assert x.grad.tolist() == [5.0, 0.0]


@pytest.mark.parametrize("draw", [lambda: tg.rand(3), lambda: tg.tensor(np.random.rand(3))])  # noqa: NPY002
def test_random_numbers_are_the_same_in_the_second_run(draw: Any) -> None:
    x, drawn = leaf(1.0, 1.0, 1.0), []

    def f(x: Any) -> Any:
        drawn.append(draw())
        return (x * drawn[-1]).sum()

    y = tg.checkpoint(f)(x)
    between = draw()
    y.backward()
    assert drawn[0].tolist() == drawn[1].tolist() == x.grad.tolist()
    assert draw().tolist() != between.tolist()


def test_rows_at_a_time_are_fewer() -> None:
    def piece(x: Any) -> Any:
        for _ in range(200):
            x = x * 1.001
        return x

    def rows(step: Any) -> int:
        TAPE.collect()
        before = TAPE.rows
        x = tg.tensor(1.0, requires_grad=True)
        y = x
        for _ in range(20):
            y = step(y)
        used = TAPE.rows - before
        y.backward()
        assert x.grad.item() == pytest.approx(1.001**4000, rel=1e-9)
        return used

    assert rows(piece) >= 4000
    assert rows(tg.checkpoint(piece)) < 400


# What is refused.


def test_arguments_written_in_place_between_are_refused() -> None:
    x = leaf(1.0, 2.0)
    h = x * 1.0
    y = tg.checkpoint(lambda h: (h * h).sum())(h)
    h.mul_(2.0)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.backward()
    assert x.grad is None


def test_parameters_written_in_place_between_are_refused() -> None:
    w, x = leaf(3.0), leaf(1.0)
    y = tg.checkpoint(lambda x: (w * x).sum())(x)
    with tg.no_grad():
        w.mul_(2.0)
    with pytest.raises(RuntimeError, match="modified by an inplace operation"):
        y.backward()


def test_a_variable_that_changed_between_is_refused() -> None:
    scale, x = [2.0], leaf(1.0)
    y = tg.checkpoint(lambda x: (x * scale[0]).sum())(x)
    scale[0] = 3.0
    with pytest.raises(RuntimeError, match="gave other values for tracked result 0"):
        y.backward()


def test_another_tensor_in_its_place_is_refused() -> None:
    around, x = [leaf(2.0)], leaf(1.0)
    y = tg.checkpoint(lambda x: (x * around[0]).sum())(x)
    around[0] = leaf(2.0)
    with pytest.raises(RuntimeError, match="depend on other tensors"):
        y.backward()


def test_an_unknown_check_is_refused() -> None:
    with pytest.raises(ValueError, match="determinism_check must be 'default' or 'none'"):
        tg.checkpoint(lambda x: x, determinism_check="all")


def test_checkpoint_sequential() -> None:
    x = leaf(0.5)
    layers = [tg.sin, tg.exp, tg.square, tg.tanh]
    y = tg.utils.checkpoint.checkpoint_sequential(layers, 2, x, use_reentrant=False)
    y.sum().backward()
    s = np.sin(0.5)
    assert x.grad.item() == pytest.approx((1.0 - np.tanh(np.exp(s) ** 2) ** 2) * 2.0 * np.exp(2.0 * s) * np.cos(0.5), rel=1e-12)


class Fails(tg.autograd.Function):
    """Its derivative raises."""

    @staticmethod
    def forward(ctx, x):
        return x * 2.0

    @staticmethod
    def backward(ctx, g):
        raise ArithmeticError("no derivative")


class Inner(tg.autograd.Function):
    """Its derivative runs another pass."""

    @staticmethod
    def forward(ctx, x, others):
        ctx.others = others
        return x * 2.0

    @staticmethod
    def backward(ctx, g):
        with tg.enable_grad():
            (ctx.others[0] * 3.0).sum().backward()
        return g * 2.0, None


def after_a_checkpoint(of_leaf: bool) -> tuple[tg.Tensor, tg.Tensor]:
    """A leaf, and a result of it; from one of them a pass with a checkpoint has just come."""
    x = tg.tensor([1.0, 2.0], requires_grad=True)
    h = x * 1.0
    tg.checkpoint(lambda t: (t * t).exp())(x if of_leaf else h).sum().backward(retain_graph=True)
    x.grad = None
    return x, h


def fail(x: tg.Tensor) -> None:
    with pytest.raises(ArithmeticError, match="no derivative"):
        Fails.apply(x).sum().backward()


def test_hook_is_called_in_a_pass_inside_of_one_that_follows_a_checkpoint() -> None:
    x, _ = after_a_checkpoint(of_leaf=True)
    x.register_hook(lambda g: 10.0 * g)
    Inner.apply(tg.ones(2, requires_grad=True), [x]).sum().backward()
    assert x.grad.tolist() == [30.0, 30.0]


def test_hook_is_called_after_a_checkpoint_and_a_pass_that_failed() -> None:
    x, _ = after_a_checkpoint(of_leaf=True)
    fail(x)
    x.register_hook(lambda g: 10.0 * g)
    (x * 3.0).sum().backward()
    assert x.grad.tolist() == [30.0, 30.0]


def test_gradient_is_retained_after_a_checkpoint_and_a_pass_that_failed() -> None:
    x, h = after_a_checkpoint(of_leaf=False)
    fail(x)
    h.retain_grad()
    (h * 3.0).sum().backward()
    assert h.grad.tolist() == [3.0, 3.0]
