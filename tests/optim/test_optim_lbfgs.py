"""L-BFGS beside dense matrices, and its line search beside the conditions that it promises."""

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.optim.line_search import Trial, interpolate, strong_wolfe

A = np.array([[4.0, 1.0, 0.5], [1.0, 3.0, 0.25], [0.5, 0.25, 2.0]])
B = np.array([1.0, -2.0, 0.5])


def quadratic_closure(optimizer: tg.optim.LBFGS, params: list[tg.Tensor]) -> Callable[[], Any]:
    def closure() -> Any:
        optimizer.zero_grad()
        x = tg.cat([p.reshape(-1) for p in params])
        loss = 0.5 * (x @ tg.tensor(A) @ x) - (tg.tensor(B) * x).sum()
        loss.backward()
        return loss

    return closure


def parameters() -> list[tg.Tensor]:
    return [tg.tensor(2.0, requires_grad=True), tg.tensor([-1.0, 0.5], requires_grad=True)]


def position(params: list[tg.Tensor]) -> np.ndarray:
    return np.concatenate([np.atleast_1d(p.detach().numpy()) for p in params])


def dense_steps(x: np.ndarray, count: int, lr: float, size: int) -> np.ndarray:
    """Steps with the inverse Hessian as a matrix, updated by the BFGS formula from a multiple of the identity."""
    pairs: list[tuple[np.ndarray, np.ndarray]] = []
    g = A @ x - B
    for k in range(count):
        if pairs:
            s, y = pairs[-1]
            h = (s @ y) / (y @ y) * np.eye(len(x))
            for s, y in pairs[-size:]:
                left = np.eye(len(x)) - np.outer(s, y) / (s @ y)
                h = left @ h @ left.T + np.outer(s, s) / (s @ y)
        else:
            h = np.eye(len(x))
        step = -(lr * min(1.0, 1.0 / np.abs(g).sum()) if k == 0 else lr) * (h @ g)
        x = x + step
        before, g = g, A @ x - B
        pairs.append((step, g - before))
    return x


@pytest.mark.parametrize("size", [1, 2, 100])
@pytest.mark.parametrize("calls", [1, 3])
def test_steps_are_those_of_the_dense_formula(size: int, calls: int) -> None:
    params = parameters()
    start = position(params)
    optimizer = tg.optim.LBFGS(params, lr=0.5, max_iter=6 // calls, history_size=size, tolerance_change=0.0, max_eval=100)
    for _ in range(calls):
        optimizer.step(quadratic_closure(optimizer, params))
    np.testing.assert_allclose(position(params), dense_steps(start, 6, 0.5, size), rtol=1e-10)


def test_quadratic_is_solved() -> None:
    params = parameters()
    optimizer = tg.optim.LBFGS(params, line_search_fn="strong_wolfe", tolerance_grad=1e-12, tolerance_change=0.0)
    optimizer.step(quadratic_closure(optimizer, params))
    np.testing.assert_allclose(position(params), np.linalg.solve(A, B), atol=1e-10)


def test_step_returns_the_loss_at_the_start() -> None:
    params = parameters()
    x = position(params)
    optimizer = tg.optim.LBFGS(params)
    assert optimizer.step(quadratic_closure(optimizer, params)).item() == pytest.approx(0.5 * x @ A @ x - B @ x)


def test_optimum_is_left_alone() -> None:
    x = tg.zeros(2, requires_grad=True)
    optimizer = tg.optim.LBFGS([x])

    def closure() -> Any:
        optimizer.zero_grad()
        loss = x.square().sum()
        loss.backward()
        return loss

    optimizer.step(closure)
    assert x._version == 0


def test_exception_in_the_line_search_leaves_the_point() -> None:
    params = parameters()
    optimizer = tg.optim.LBFGS(params, line_search_fn="strong_wolfe")
    closure = quadratic_closure(optimizer, params)
    calls = 0

    def failing() -> Any:
        nonlocal calls
        calls += 1
        if calls == 2:
            raise ValueError("no loss here")
        return closure()

    before = position(params).tolist()
    with pytest.raises(ValueError, match="no loss here"):
        optimizer.step(failing)
    assert position(params).tolist() == before


FUNCTIONS: dict[str, tuple[Callable[[float], float], Callable[[float], float]]] = {
    "parabola": (lambda t: (t - 3) ** 2, lambda t: 2 * (t - 3)),
    "quartic": (lambda t: (t - 0.01) ** 4 - t, lambda t: 4 * (t - 0.01) ** 3 - 1),
    "waves": (lambda t: math.sin(9 * t) / 4 + (t - 2) ** 2, lambda t: 9 * math.cos(9 * t) / 4 + 2 * (t - 2)),
    "far": (lambda t: -t / (t * t + 2), lambda t: (t * t - 2) / (t * t + 2) ** 2),
}


def trial(name: str, t: float) -> Trial:
    f, slope = FUNCTIONS[name]
    return Trial(t, f(t), np.array([slope(t)]), slope(t))


@pytest.mark.parametrize("first", [0.01, 1.0, 20.0])
@pytest.mark.parametrize("name", FUNCTIONS)
def test_line_search_satisfies_the_strong_wolfe_conditions(name: str, first: float) -> None:
    start = trial(name, 0.0)
    found, count = strong_wolfe(lambda t: trial(name, t), start, first, 1.0, 1e-12, 50)
    assert found.loss <= start.loss + 1e-4 * found.length * start.slope
    assert abs(found.slope) <= 0.9 * abs(start.slope)
    assert count <= 51


def test_line_search_that_gives_up_is_no_worse_than_the_start() -> None:
    start = trial("waves", 0.0)
    found, count = strong_wolfe(lambda t: trial("waves", t), start, 1e-9, 1.0, 1e-12, 2)
    assert count == 3
    assert found.loss <= start.loss


def test_interpolation_is_exact_for_cubics() -> None:
    def at(t: float) -> Trial:  # t^3 - 3t, whose minimum is at 1
        return Trial(t, t**3 - 3 * t, np.zeros(1), 3 * t**2 - 3)

    assert interpolate(at(0.25), at(4.0), (0.25, 4.0)) == pytest.approx(1.0, rel=1e-12)
    assert interpolate(at(4.0), at(0.25), (0.25, 4.0)) == pytest.approx(1.0, rel=1e-12)


@pytest.mark.parametrize(
    ("make", "kind", "message"),
    [
        (lambda p: tg.optim.LBFGS([{"params": p[:1]}, {"params": p[1:]}]), ValueError, "doesn't support per-parameter options"),
        (lambda p: tg.optim.LBFGS(p).step(), TypeError, "needs a closure"),
        (lambda p: tg.optim.LBFGS(p, line_search_fn="armijo").step(lambda: 0.0), RuntimeError, "only 'strong_wolfe' is supported"),
        (lambda p: tg.optim.LBFGS(p, lr=-1.0), ValueError, "Invalid learning rate: -1.0"),
    ],
)
def test_wrong_use(make: Callable[[list[tg.Tensor]], Any], kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        make(parameters())
