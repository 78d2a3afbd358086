"""Derivatives of solutions of differential equations: closed forms, differences, and both ways beside each other."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import pytest
import scipy.integrate

import tapegrad as tg

FINE: dict[str, Any] = {"rtol": 1e-10, "atol": 1e-12}
WAYS = ["forward", "adjoint"]
METHODS = ["RK45", "DOP853", "LSODA", "BDF"]


def predators(t: float, y: Any, a: Any, b: Any) -> Any:
    return np.stack([a * y[0] - b[0] * y[0] * y[1], -b[1] * y[1] + b[2] * y[0] * y[1]])


@numba.njit
def compiled_predators(t: float, y: Any, a: float, b: Any) -> Any:
    r = np.empty(2)
    r[0] = a * y[0] - b[0] * y[0] * y[1]
    r[1] = -b[1] * y[1] + b[2] * y[0] * y[1]
    return r


@numba.njit
def compiled_decay(y: Any, t: float, k: float) -> Any:
    return -k * y


ARGUMENTS = np.array([1.0, 0.5]), 1.1, np.array([0.4, 0.4, 0.1]), np.linspace(0.05, 2.0, 5), 0.01


def loss(y0: Any, a: Any, b: Any, times: Any, start: Any, function: Any = predators, **options: Any) -> Any:
    solution = tg.integrate.solve_ivp(function, (start, 2.5), y0, t_eval=times, args=(a, b), **{**FINE, **options})
    return (solution.y**2 * np.arange(1.0, 6.0)).sum()


def differences(k: int) -> Any:
    arguments: list[Any] = list(ARGUMENTS)
    base = np.asarray(arguments[k], float)
    found = np.zeros(base.shape)
    for place in np.ndindex(base.shape):
        for sign in (1.0, -1.0):
            moved = base.copy()
            moved[place] += sign * 1e-5
            arguments[k] = moved if base.ndim else float(moved)
            found[place] += sign * loss(*arguments) / 2e-5
    return found


@pytest.fixture(scope="module")
def expected() -> list[Any]:
    return [differences(k) for k in range(5)]


@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize("way", WAYS)
def test_gradients_agree_with_differences(way: str, method: str, expected: list[Any]) -> None:
    found = tg.grad(loss, (0, 1, 2, 3, 4))(*ARGUMENTS, sensitivity=way, method=method)
    for own, difference in zip(found, expected, strict=True):
        np.testing.assert_allclose(own, difference, rtol=1e-6)


@pytest.mark.parametrize("way", WAYS)
def test_compiled_functions_have_the_gradients_of_pythons(way: str) -> None:
    own = tg.grad(loss, (0, 1, 2, 3, 4))(*ARGUMENTS, sensitivity=way)
    found = tg.grad(loss, (0, 1, 2, 3, 4))(*ARGUMENTS, sensitivity=way, function=compiled_predators)
    for a, b in zip(found, own, strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-7)


def test_one_of_several_parameters_of_a_compiled_function() -> None:
    found = tg.grad(lambda b: loss(ARGUMENTS[0], ARGUMENTS[1], b, *ARGUMENTS[3:], function=compiled_predators))(ARGUMENTS[2])
    np.testing.assert_allclose(found, tg.grad(loss, 2)(*ARGUMENTS), rtol=1e-7)


@pytest.mark.parametrize("way", WAYS)
def test_a_decay_by_rate_start_and_last_time(way: str) -> None:
    def last(k: Any, y0: Any, stop: Any) -> Any:
        return tg.integrate.solve_ivp(lambda t, y, k: -k * y, (0.0, stop), [y0], args=(k,), sensitivity=way, **FINE).y[0, -1]

    k, y0, stop = 0.7, 2.0, 1.3
    value = y0 * np.exp(-k * stop)
    np.testing.assert_allclose(tg.grad(last, (0, 1, 2))(k, y0, stop), [-stop * value, value / y0, -k * value], rtol=1e-7)


@pytest.mark.parametrize("way", WAYS)
def test_an_oscillator_backwards_in_time(way: str) -> None:
    def states(y0: Any) -> Any:
        times = [-0.5, -2.0]
        return tg.integrate.solve_ivp(
            lambda t, y: np.stack([y[1], -y[0]]), (0.0, -2.0), y0, t_eval=times, sensitivity=way, **FINE
        ).y

    found = tg.jacobian(states)(np.array([0.3, 0.9]))
    for k, t in enumerate((-0.5, -2.0)):
        np.testing.assert_allclose(found[:, k], [[np.cos(t), np.sin(t)], [-np.sin(t), np.cos(t)]], atol=1e-8)


def test_robertsons_stiff_reactions_by_their_rates() -> None:
    def reactions(t: float, y: Any, k: Any) -> Any:
        fast, slow = k[1] * y[1] * y[2], k[0] * y[0]
        return np.stack([-slow + fast, slow - fast - k[2] * y[1] ** 2, k[2] * y[1] ** 2])

    def last(k: Any, way: str = "forward") -> Any:
        options = {"method": "BDF", "rtol": 1e-8, "atol": 1e-11}
        return tg.integrate.solve_ivp(reactions, (0.0, 40.0), [1.0, 0.0, 0.0], args=(k,), sensitivity=way, **options).y[0, -1]

    rates = np.array([0.04, 1e4, 3e7])
    steps = 1e-4 * rates
    expected = [(last(rates + step) - last(rates - step)) / (2.0 * step.sum()) for step in np.diag(steps)]
    for way in WAYS:
        np.testing.assert_allclose(tg.grad(last)(rates, way=way), expected, rtol=2e-3)


def test_values_are_scipys() -> None:
    own = tg.integrate.solve_ivp(predators, (0.0, 2.0), ARGUMENTS[0], args=ARGUMENTS[1:3])
    theirs = scipy.integrate.solve_ivp(predators, (0.0, 2.0), ARGUMENTS[0], args=ARGUMENTS[1:3])
    np.testing.assert_array_equal(own.y, theirs.y)
    assert type(own.y) is np.ndarray
    times = np.linspace(0.0, 1.0, 4)
    np.testing.assert_array_equal(
        tg.integrate.odeint(lambda y, t: -y, [1.0, 2.0], times), scipy.integrate.odeint(lambda y, t: -y, [1.0, 2.0], times)
    )


@pytest.mark.parametrize("function", [lambda y, t, k: -k * y, compiled_decay])
def test_odeint_by_rate_state_and_times(function: Any) -> None:
    times = np.array([0.0, 0.4, 1.0])

    def states(y0: Any, k: Any, t: Any) -> Any:
        return tg.integrate.odeint(function, y0, t, (k,), **FINE)[:, 0]

    by_state, by_rate, by_time = tg.jacobian(states, (0, 1, 2))(np.array([2.0]), 0.7, times)
    value = 2.0 * np.exp(-0.7 * times)
    np.testing.assert_allclose(by_state[:, 0], value / 2.0, rtol=1e-7)
    np.testing.assert_allclose(by_rate, -times * value, rtol=1e-7, atol=1e-9)
    assert_times = np.diag(-0.7 * value) + np.outer(0.7 * value, [1.0, 0.0, 0.0])
    np.testing.assert_allclose(by_time, assert_times, rtol=1e-6, atol=1e-8)


def test_tensors_have_their_gradients() -> None:
    k = tg.tensor(2.0, requires_grad=True)
    tg.integrate.solve_ivp(lambda t, y, k: -k * y, (0.0, 1.0), [1.0], args=({"rate": k}["rate"],), **FINE).y[0, -1].backward()
    np.testing.assert_allclose(k.grad.item(), -np.exp(-2.0), rtol=1e-7)


def test_parameters_may_stand_in_containers() -> None:
    def last(p: Any) -> Any:
        f = lambda t, y, p, n: -p["k"] * y ** n["power"]  # noqa: E731
        return tg.integrate.solve_ivp(f, (0.0, 1.0), [1.0], args=(p, {"power": 1}), **FINE).y[0, -1]

    assert tg.grad(last)({"k": 2.0, "unused": 1.0}) == {"k": pytest.approx(-np.exp(-2.0)), "unused": 0.0}


def test_a_sparse_jacobian_for_an_implicit_method() -> None:
    def heat(t: float, u: Any, k: Any) -> Any:
        edge = u[:1] * 0.0
        whole = np.concatenate([edge, u, edge])
        return k * (whole[2:] - 2.0 * u + whole[:-2])

    u = np.sin(np.linspace(0.1, 3.0, 40))
    plain, sparse = (
        tg.integrate.solve_ivp(heat, (0.0, 1.0), u, "BDF", args=(2.0,), sparse=sparse, rtol=1e-8) for sparse in (False, True)
    )
    np.testing.assert_allclose(sparse.y[:, -1], plain.y[:, -1], rtol=1e-6)
    assert sparse.njev == plain.njev


def test_second_derivatives_are_refused() -> None:
    def last(k: Any) -> Any:
        return tg.integrate.solve_ivp(lambda t, y, k: -k * y, (0.0, 1.0), [1.0], args=(k,)).y[0, -1]

    with pytest.raises(RuntimeError, match="first derivatives by reverse mode only"):
        tg.hessian(last)(2.0)


@pytest.mark.parametrize(("run", "kind", "message"), [
    (lambda k: tg.integrate.solve_ivp(lambda t, y: -k * y, (0, 1), [1.0]), NotImplementedError, "pass it in args="),
    (lambda k: tg.integrate.odeint(lambda y, t: -k * y, [1.0], [0.0, 1.0]), NotImplementedError, "pass it in args="),
    (lambda k: tg.integrate.solve_ivp(lambda t, y, k: y, (0, 1), [k], args=(k,), dense_output=True), NotImplementedError, "dense"),
    (lambda k: tg.integrate.solve_ivp(lambda t, y, k: y[:1], (0, 1), [1.0, k], args=(k,)), ValueError, "returns 1 numbers"),
    (lambda k: tg.integrate.solve_ivp(lambda t, y, k: k * y**2, (0, 10), [1.0], args=(k,)), RuntimeError, "solver failed"),
    (lambda k: tg.integrate.solve_ivp(lambda t, y: y, (0, 1), [np.nan]), ValueError, "y0 has elements that are not finite"),
    (lambda k: tg.integrate.solve_ivp(lambda t, y: y, (0, 1), ["a"]), TypeError, "y0 must be of floats"),
    (lambda k: tg.integrate.solve_ivp(lambda t, y: y, (0, 1), [[1.0]]), ValueError, "one dimension"),
    (lambda k: tg.integrate.solve_ivp(lambda t, y: y, (0, 1), [1.0], sensitivity="both"), ValueError, "sensitivity must be"),
    (lambda k: tg.integrate.solve_ivp(lambda t, y: y, (0, 1), [1.0], sparse=True), ValueError, "Radau and BDF"),
])  # fmt: skip
@pytest.mark.filterwarnings("ignore::RuntimeWarning")
def test_what_cannot_be_done_is_said(run: Any, kind: type[Exception], message: str) -> None:
    with pytest.raises(kind, match=message):
        tg.grad(lambda k: run(k) and k)(2.0)


def test_events_see_the_arguments() -> None:
    def half(t: float, y: Any, k: float) -> Any:
        return y[0] - 0.5 * k

    half.terminal = True  # type: ignore[attr-defined]
    found = tg.integrate.solve_ivp(lambda t, y, k: -k * y, (0.0, 5.0), [1.0], args=(1.0,), events=half, **FINE)
    np.testing.assert_allclose(found.t_events[0], [np.log(2.0)], rtol=1e-8)
