"""Large cotangents on their way through rows whose derivative is Python: what they are, and whom their memory belongs to."""

from __future__ import annotations

import gc
import weakref
from typing import Any

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.engine import layout as at

SIZES = [at.LARGEST_BLOCK, at.LARGEST_BLOCK + 1, 3 * at.LARGEST_BLOCK, 40_000]
POINT = np.random.default_rng(4)


class Cube(tg.autograd.Function):
    """The third power, whose derivative is the user's."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        ctx.save_for_backward(x)
        return x**3

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        (x,) = ctx.saved_tensors
        return g * 3.0 * x * x


class Passed(tg.autograd.Function):
    """The identity, which sends its cotangent on as it is."""

    @staticmethod
    def forward(ctx: Any, x: Any) -> Any:
        return x * 1.0

    @staticmethod
    def backward(ctx: Any, g: Any) -> Any:
        return g


def leaf(size: int, dtype: Any = np.float64) -> tuple[Any, np.ndarray]:
    array = POINT.normal(size=size).astype(dtype)
    return tg.tensor(array.copy(), requires_grad=True), array


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("size", SIZES)
def test_a_sum_sends_ones(size: int, dtype: Any) -> None:
    x, a = leaf(size, dtype)
    Cube.apply(x).sum().backward()
    assert x.grad.dtype == x.dtype
    np.testing.assert_allclose(x.grad.numpy(), 3 * a * a, rtol=2e-6)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("size", SIZES)
def test_weights_are_sent(size: int, dtype: Any) -> None:
    x, a = leaf(size, dtype)
    weights = POINT.normal(size=size).astype(dtype)
    (Cube.apply(x) * tg.tensor(weights)).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), 3 * a * a * weights, rtol=2e-6, atol=1e-6)


@pytest.mark.parametrize("count", [2, at.MOST_HANDED + 5])
def test_functions_of_functions_follow_the_chain_rule(count: int) -> None:
    x, a = leaf(SIZES[1])
    y = x * 1.0
    for _ in range(count):
        y = Passed.apply(y)
    Cube.apply(y).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), 3 * a * a)


@pytest.mark.parametrize("count", [3, at.MOST_HANDED + 5])
def test_many_functions_side_by_side_wait_for_their_steps(count: int) -> None:
    x, a = leaf(SIZES[1])
    below = [Passed.apply(x * float(k)) for k in range(count)]
    above = [Cube.apply(y) for y in below]
    total = above[0]
    for y in above[1:]:
        total = total + y
    total.sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), 3 * a * a * sum(float(k) ** 3 for k in range(count)))


def test_a_second_contribution_is_added_to_the_first() -> None:
    x, a = leaf(SIZES[1])
    y = Cube.apply(x)
    (Cube.apply(y) + Cube.apply(y) + y).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), 2 * 9 * a**8 + 3 * a * a)


def test_one_tensor_for_two_arguments_is_no_gradient_of_both() -> None:
    class Sum(tg.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any, y: Any) -> Any:
            return x + y

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            both = 2.0 * g
            return both, both

    x, _ = leaf(SIZES[1])
    y, _ = leaf(SIZES[1])
    Sum.apply(x, y).sum().backward()
    x.grad.mul_(3.0)
    np.testing.assert_array_equal(x.grad.numpy(), 6.0)
    np.testing.assert_array_equal(y.grad.numpy(), 2.0)


@pytest.mark.parametrize("kept", ["given", "returned", "its array", "a view of it"])
def test_what_backward_keeps_is_no_gradient(kept: str) -> None:
    held: list[Any] = []

    class Double(tg.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return 2.0 * x

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            found = 2.0 * g
            held.append({"given": g, "returned": found, "its array": found.numpy(), "a view of it": found[:3]}[kept])
            return found

    x, _ = leaf(SIZES[1])
    Double.apply(Double.apply(x)).sum().backward()
    for one in held:
        one[:3] = 9.0
    np.testing.assert_array_equal(x.grad.numpy(), 4.0)
    expected = np.asarray(held[0]).copy()
    y, _ = leaf(SIZES[1])
    Cube.apply(Double.apply(y)).sum().backward()
    np.testing.assert_array_equal(np.asarray(held[0]), expected)


def test_gradients_of_passes_one_after_the_other_have_memory_of_their_own() -> None:
    x, a = leaf(SIZES[-1])
    Cube.apply(x).sum().backward()
    first, x.grad = x.grad, None
    (2.0 * Cube.apply(x)).sum().backward()
    np.testing.assert_allclose(first.numpy(), 3 * a * a)
    np.testing.assert_allclose(x.grad.numpy(), 6 * a * a)
    Cube.apply(x).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), 9 * a * a)


@pytest.mark.parametrize("form", ["clone", "reshape", "transposed"])
def test_a_leaf_behind_a_copy_or_a_view_gets_its_gradient(form: str) -> None:
    array = POINT.normal(size=(60, 50))
    x = tg.tensor(array, requires_grad=True)
    weights = POINT.normal(size=(60, 50))
    y = {"clone": x.clone(), "reshape": x.reshape(-1), "transposed": x.T}[form]
    w = {"clone": weights, "reshape": weights.reshape(-1), "transposed": weights.T.copy()}[form]
    (Cube.apply(y) * tg.tensor(w)).sum().backward()
    assert x.grad.shape == (60, 50)
    np.testing.assert_allclose(x.grad.numpy(), 3 * array**2 * weights)


def test_hooks_and_retained_gradients_on_the_way_see_the_whole() -> None:
    x, a = leaf(SIZES[1])
    y = Cube.apply(x)
    z = Passed.apply(y)
    seen: list[Any] = []
    y.register_hook(lambda g: seen.append(g.numpy().copy()))
    z.retain_grad()
    Cube.apply(Passed.apply(z)).sum().backward()
    np.testing.assert_allclose(seen[0], 3 * a**6)
    np.testing.assert_allclose(z.grad.numpy(), 3 * a**6)
    np.testing.assert_allclose(x.grad.numpy(), 9 * a**8)


def test_a_backward_that_raises_leaves_gradients_and_memory_alone() -> None:
    held: list[weakref.ref[Any]] = []

    class Raising(tg.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return x * 1.0

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            held.append(weakref.ref(g._data))
            raise ArithmeticError("no")

    x, a = leaf(SIZES[1])
    y = Passed.apply(x * 1.0)
    total = (Cube.apply(y) + Cube.apply(Raising.apply(x))).sum()
    with pytest.raises(ArithmeticError):
        total.backward(retain_graph=True)
    del total, y
    gc.collect()
    assert held[0]() is None
    assert x.grad is None
    Cube.apply(x).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), 3 * a * a)


def test_a_pass_inside_a_pass() -> None:
    class Nested(tg.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            ctx.save_for_backward(x)
            return x * x

        @staticmethod
        def backward(ctx: Any, g: Any) -> Any:
            inner = ctx.saved_tensors[0].detach().requires_grad_()
            with tg.enable_grad():
                Cube.apply(inner).sum().backward()
            return g * inner.grad

    x, a = leaf(SIZES[1])
    Nested.apply(Passed.apply(x)).sum().backward()
    np.testing.assert_allclose(x.grad.numpy(), 3 * a * a)


def test_outputs_without_a_gradient_are_zeros() -> None:
    class Two(tg.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: Any) -> Any:
            return 2.0 * x, 3.0 * x

        @staticmethod
        def backward(ctx: Any, g: Any, h: Any) -> Any:
            return 2.0 * g + 3.0 * h

    for number, slope in ((0, 2.0), (1, 3.0)):
        x, _ = leaf(SIZES[1])
        Two.apply(x)[number].sum().backward()
        np.testing.assert_array_equal(x.grad.numpy(), slope)


def test_gradients_with_respect_to_chosen_tensors() -> None:
    x, a = leaf(SIZES[1])
    y = Cube.apply(x)
    z = Cube.apply(Passed.apply(y))
    by_y, by_x = tg.autograd.grad(z.sum(), (y, x))
    np.testing.assert_allclose(by_y.numpy(), 3 * a**6)
    np.testing.assert_allclose(by_x.numpy(), 9 * a**8)


@pytest.mark.parametrize("how", ["first", "after a number", "after numbers", "before numbers"])
@pytest.mark.parametrize("shape", [(50, 60), (61, 47), (9, 300), (2, 2000)])
def test_transposed_cotangents_are_put_where_they_belong(shape: tuple[int, int], how: str) -> None:
    array, weights = POINT.normal(size=shape), POINT.normal(size=shape[::-1])
    x = tg.tensor(array, requires_grad=True)
    y, expected = x * 1.0, weights.T.copy()
    total = (y.T * tg.tensor(weights)).sum()
    if how == "after a number":
        total, expected = total + 2.0 * y.sum(), expected + 2.0
    elif how == "after numbers":
        total, expected = total + (y * y).sum(), expected + 2.0 * array
    elif how == "before numbers":
        total, expected = (y * y).sum() + total, expected + 2.0 * array
    total.backward()
    np.testing.assert_allclose(x.grad.numpy(), expected)


def test_gradients_of_single_precision_keep_it_where_a_derivative_is_of_double_precision() -> None:
    pytest.importorskip("scipy")
    x, a = leaf(SIZES[1], np.float32)
    tg.special.erfcx(Passed.apply(x)).sum().backward()
    assert x.grad.dtype == tg.float32
    step = 1e-6
    from scipy.special import erfcx

    wide = a.astype(np.float64)
    np.testing.assert_allclose(x.grad.numpy(), (erfcx(wide + step) - erfcx(wide - step)) / (2 * step), rtol=1e-4)


@pytest.mark.parametrize("part", [np.s_[:, :30], np.s_[:, 30:], np.s_[5:40, 7:50], np.s_[:, 10:55]])
def test_one_number_goes_to_the_rows_of_a_part(part: tuple[slice, slice]) -> None:
    x = tg.tensor(POINT.normal(size=(60, 60)), requires_grad=True)
    expected = np.zeros((60, 60))
    expected[part] = 2.0
    (2.0 * x[part].sum()).backward()
    np.testing.assert_array_equal(x.grad.numpy(), expected)
    expected[part] += 1.0
    expected[20:] += 1.0
    x.grad = None
    (x[20:].sum() + 3.0 * x[part].sum()).backward()
    np.testing.assert_array_equal(x.grad.numpy(), expected)
