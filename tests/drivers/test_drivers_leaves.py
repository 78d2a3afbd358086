"""Leaves of drivers beside other leaves: which gradients there are, and whose `.grad` stays as it is."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tapegrad as tg

X, Y = np.array([0.5, -1.0, 2.0]), np.array([3.0, 0.25, -2.0])


def product(x: Any, y: Any) -> Any:
    return (x * y * y).sum()


def test_gradients_by_several_arguments() -> None:
    value, (by_x, by_y) = tg.value_and_grad(product, (0, 1))(X, Y)
    assert value == product(X, Y)
    assert np.array_equal(by_x, Y * Y)
    assert np.array_equal(by_y, X * Y + X * Y)


def test_gradients_by_many_leaves_in_another_order() -> None:
    numbers = [1.0 + k for k in range(40)]

    def f(parts: Any) -> Any:
        total = 0.0
        for k in (*range(39, 20, -1), *range(0, 21, 2)):
            total = total + (k + 1.0) * parts[k] * parts[k]
        return total

    expected = [2.0 * (k + 1.0) * numbers[k] if k > 20 or k % 2 == 0 else 0.0 for k in range(40)]
    assert tg.grad(f)(numbers) == pytest.approx(expected, rel=1e-15)


def test_a_leaf_that_the_result_does_not_depend_on_gets_zeros() -> None:
    found = tg.grad(lambda p: (p["a"] * p["a"]).sum())({"a": X, "b": Y, "c": 2.0})
    assert np.array_equal(found["a"], 2.0 * X)
    assert np.array_equal(found["b"], np.zeros(3))
    assert found["c"] == 0.0


@pytest.mark.parametrize("argnums", [0, (0,), (0, 1)])
def test_a_tracked_tensor_of_the_users_is_a_constant(argnums: Any) -> None:
    w = tg.tensor([1.0, 2.0, 3.0], requires_grad=True)
    found = tg.grad(lambda x, y: (x * w).sum() + y.sum(), argnums)(X, Y)
    assert np.array_equal(found if argnums == 0 else found[0], [1.0, 2.0, 3.0])
    assert w.grad is None
    (w * w).sum().backward()
    assert w.grad is not None
    assert w.grad.tolist() == [2.0, 4.0, 6.0]


@pytest.mark.parametrize("nothing", [None, {}, [None, ()]])
def test_arguments_without_numbers_reach_nothing(nothing: Any) -> None:
    w = tg.tensor([1.0, 2.0, 3.0], requires_grad=True)
    assert tg.value_and_grad(lambda nothing: (w * w).sum())(nothing) == (14.0, nothing)
    assert w.grad is None


def test_gradients_of_the_users_tensors_stay_as_they_are() -> None:
    w = tg.tensor([1.0, 2.0, 3.0], requires_grad=True)
    loss = (w * w).sum()
    loss.backward(retain_graph=True)
    assert np.array_equal(tg.grad(lambda x: (x * w).sum() + (x * x * loss).sum())(X), [1.0, 2.0, 3.0] + 2.0 * X * 14.0)
    assert np.array_equal(tg.grad(product)(X, Y), Y * Y)
    assert w.grad is not None
    assert w.grad.tolist() == [2.0, 4.0, 6.0]


def test_drivers_beside_a_graph_that_waits_for_its_pass() -> None:
    w = tg.tensor([1.0, 2.0, 3.0], requires_grad=True)
    loss = (w * w).sum()
    assert np.array_equal(tg.grad(product)(X, Y), Y * Y)
    loss.backward()
    assert w.grad is not None
    assert w.grad.tolist() == [2.0, 4.0, 6.0]


def test_a_pass_inside_of_the_function_is_its_own() -> None:
    def f(x: Any, y: Any) -> Any:
        w = tg.tensor([2.0], requires_grad=True)
        (w * w).sum().backward()
        assert w.grad is not None
        return (x * y).sum() * w.grad.item()

    found = tg.grad(f, (0, 1))(X, Y)
    assert np.array_equal(found[0], 4.0 * Y)
    assert np.array_equal(found[1], 4.0 * X)


def test_a_hook_of_the_functions_on_its_leaf_is_called() -> None:
    seen = []

    def f(x: Any, y: Any) -> Any:
        x.register_hook(lambda g: seen.append(g.tolist()))
        return (x * y).sum()

    found = tg.grad(f, (0, 1))(tg.tensor(X), tg.tensor(Y))
    assert np.array_equal(found[0], Y)
    assert seen == [Y.tolist()]


@pytest.mark.parametrize("dtype", [np.float32, np.float64])
def test_errors_name_the_place_of_a_leaf(dtype: Any) -> None:
    with pytest.raises(TypeError, match=r"got int64 for argument 1\['b'\]\[1\]"):
        tg.grad(lambda x, p: x.sum(), (0, 1))(X.astype(dtype), {"a": X, "b": [1.0, np.arange(3)]})
