"""Properties that every reverse sweep must have, whatever the program: adjointness, linearity, fan-out, depth."""

import gc

import numpy as np
import pytest
from engine_fixtures import assert_values, central_difference, leaf, live_rows, numbers
from hypothesis import given, settings
from hypothesis import strategies as st

import tapegrad as tg

vectors = st.lists(st.floats(-2.0, 2.0), min_size=3, max_size=3)
MIX = [[1.0, -2.0, 0.5], [0.25, 3.0, -1.0], [0.0, 1.0, 1.0], [-1.0, 0.5, 0.0]]


def mixed(x: tg.Tensor) -> tg.Tensor:
    """A function from three to four numbers through elementwise, matrix, reduction and indexing rows."""
    h = tg.tanh(tg.tensor(MIX) @ x) + tg.sin(x).sum()
    return h * h[1] + tg.cat([x[:2] * x[2], tg.exp(-x[1:])])


def dot(a: np.ndarray, b: np.ndarray) -> float:
    return float(np.dot(a, b))


def products(x: list[float], u: list[float], v: list[float]) -> tuple[np.ndarray, np.ndarray]:
    """J u by differentiating the vjp with respect to its cotangent, and the vjp itself."""
    point, cotangent = leaf(x), leaf(v)
    (pulled,) = tg.autograd.grad(mixed(point), point, cotangent, create_graph=True)
    (pushed,) = tg.autograd.grad(pulled, cotangent, tg.tensor(u))
    return numbers(pushed), numbers(pulled)


@settings(max_examples=50, deadline=None)
@given(vectors, vectors, st.lists(st.floats(-2.0, 2.0), min_size=4, max_size=4))
def test_pushing_a_tangent_and_pulling_a_cotangent_are_adjoint(x: list[float], u: list[float], v: list[float]) -> None:
    pushed, pulled = products(x, u, v)
    np.testing.assert_allclose(dot(np.array(v), pushed), dot(pulled, np.array(u)), rtol=1e-9, atol=1e-9)


@settings(max_examples=25, deadline=None)
@given(vectors, vectors)
def test_pushed_tangent_is_the_directional_derivative(x: list[float], u: list[float]) -> None:
    pushed, _ = products(x, u, [1.0, 0.0, 0.0, 0.0])

    def along(step: float, k: int) -> float:
        return float(numbers(mixed(tg.tensor(np.array(x) + step * np.array(u))))[k])

    expected = [central_difference(lambda step, k=k: along(step, k), [0.0], 0) for k in range(4)]
    np.testing.assert_allclose(pushed, expected, rtol=1e-7, atol=1e-7)


@settings(max_examples=50, deadline=None)
@given(vectors, st.lists(st.floats(-2.0, 2.0), min_size=4, max_size=4), st.floats(-3.0, 3.0))
def test_gradient_is_linear_in_the_seed(x: list[float], v: list[float], factor: float) -> None:
    point = leaf(x)
    result = mixed(point)
    w = np.array([1.0, -1.0, 2.0, 0.5])

    def pull(seed: np.ndarray) -> np.ndarray:
        return numbers(tg.autograd.grad(result, point, tg.tensor(seed), retain_graph=True)[0])

    combined = pull(factor * np.array(v) + w)
    np.testing.assert_allclose(combined, factor * pull(np.array(v)) + pull(w), rtol=1e-9, atol=1e-9)


def test_zero_seed_gives_zero_gradient() -> None:
    x = leaf([0.3, -1.0, 2.0])
    (gradient,) = tg.autograd.grad(mixed(x), x, tg.zeros(4))
    assert_values(gradient, [0.0, 0.0, 0.0])


def test_same_inputs_give_the_same_bits() -> None:
    def once() -> bytes:
        x = leaf(np.linspace(-1.0, 1.0, 1003))
        y = tg.tanh(x) * tg.exp(x.sum() / 7.0) + (x * x).cumsum(0)
        (y * y).sum().backward()
        return numbers(x.grad).tobytes()

    assert once() == once()


def test_fan_out_of_a_hundred_thousand_uses_of_a_scalar() -> None:
    x = leaf(1.5)
    total = x * 1.0
    for _ in range(99_999):
        total = total + x * 1.0
    total.backward()
    assert_values(x.grad, 100_000.0)


def test_fan_out_of_ten_thousand_uses_of_an_array() -> None:
    x = leaf([1.5, -2.0, 0.0])
    total = x * 1.0
    for _ in range(9_999):
        total = total + x * 1.0
    total.backward(tg.ones(3))
    assert_values(x.grad, [10_000.0] * 3)


@pytest.mark.point(75)
def test_doubling_paths_sixty_times_visits_each_row_once() -> None:
    x = leaf(1.0)
    y = x
    for _ in range(60):
        y = y + y
    y.backward()
    assert x.grad.item() == 2.0**60


@pytest.mark.point(75)
def test_doubling_paths_of_arrays_visits_each_row_once() -> None:
    x = leaf([1.0, -1.0])
    y = x
    for _ in range(60):
        y = y + y
    y.backward(tg.tensor([1.0, 0.5]))
    assert_values(x.grad, [2.0**60, 2.0**59])


def test_doubling_paths_with_recorded_gradient() -> None:
    x = leaf(1.0)
    y = x
    for _ in range(60):
        y = y + y
    (gradient,) = tg.autograd.grad(y * x, x, create_graph=True)
    assert gradient.item() == 2.0**61


@pytest.mark.point(75)
def test_chain_of_a_million_scalar_rows_runs_backward() -> None:
    x = leaf(0.5)
    y = x
    for _ in range(1_000_000):
        y = y * 0.999999
    y.backward()
    np.testing.assert_allclose(x.grad.item(), 0.999999**1_000_000, rtol=1e-9)


@pytest.mark.point(75)
def test_chain_of_a_hundred_thousand_array_rows_runs_backward() -> None:
    x = leaf([0.5, -1.0])
    y = x
    for _ in range(100_000):
        y = y * 0.99999
    y.sum().backward()
    np.testing.assert_allclose(numbers(x.grad), [0.99999**100_000] * 2, rtol=1e-9)


@pytest.mark.point(75)
def test_unused_chain_of_a_million_scalar_rows_is_freed_without_backward() -> None:
    gc.collect()
    before = live_rows()
    x = leaf(0.5)
    y = x
    for _ in range(1_000_000):
        y = y + 1.0
    del y
    z = x * 2.0
    for _ in range(1000):
        z = x * 2.0
    z.backward()
    assert live_rows() - before < 200_000


@pytest.mark.point(75)
def test_unused_chain_of_a_hundred_thousand_array_rows_is_freed_without_backward() -> None:
    gc.collect()
    before = live_rows()
    x = leaf([0.5, -1.0])
    y = x
    for _ in range(100_000):
        y = y + 1.0
    del y
    z = x * 2.0
    for _ in range(1000):
        z = x * 2.0
    z.sum().backward()
    assert live_rows() - before < 50_000


def test_chain_of_ten_thousand_rows_runs_with_a_recorded_gradient() -> None:
    x = leaf(0.5)
    y = x
    for _ in range(10_000):
        y = y * 1.0001
    (gradient,) = tg.autograd.grad(y * y, x, create_graph=True)
    (second,) = tg.autograd.grad(gradient, x)
    np.testing.assert_allclose(second.item(), 2.0 * 1.0001**20_000, rtol=1e-9)
