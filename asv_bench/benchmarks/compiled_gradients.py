"""Gradients and tangents that compiled code asks for, beside those written by hand and the drivers' calls."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np

import tapegrad as tg
from benchmarks.nopython import rosenbrock, rosenbrock_by_hand

STEPS = 200
WAYS = ["njit_derivative", "by hand", "value_and_grad"]


def _descent(derivative: Any) -> Any:
    def descend(x, steps):  # type: ignore[no-untyped-def]
        for _ in range(steps):
            _, gradient = derivative(x)
            x = x - 1e-4 * gradient
        return x

    return descend


class Descent:
    """Steps of gradient descent on Rosenbrock's function."""

    params: tuple[list[str], list[int]] = (WAYS, [2, 10, 100, 10_000])
    param_names = ("way", "elements")

    def setup(self, way: str, elements: int) -> None:
        self.x = np.linspace(0.0, 1.0, elements)
        if way == "value_and_grad":
            self.descend = _descent(tg.value_and_grad(rosenbrock))
        else:
            derivative = rosenbrock_by_hand if way == "by hand" else tg.njit_derivative(rosenbrock)
            self.descend = numba.njit(_descent(derivative))
        self.descend(self.x, 1)

    def time_steps(self, way: str, elements: int) -> None:
        self.descend(self.x, STEPS)


@numba.njit
def damped(p, t):  # type: ignore[no-untyped-def]
    y = np.empty(t.size)
    for k in range(t.size):
        y[k] = p[0] * np.exp(-p[1] * t[k]) * np.sin(p[2] * t[k]) + p[3]
    return y


@numba.njit
def damped_by_hand(p, t, p_dot):  # type: ignore[no-untyped-def]
    y, y_dot = np.empty(t.size), np.empty((t.size, p_dot.shape[1]))
    for k in range(t.size):
        decay, s, c = np.exp(-p[1] * t[k]), np.sin(p[2] * t[k]), np.cos(p[2] * t[k])
        y[k] = p[0] * decay * s + p[3]
        for j in range(p_dot.shape[1]):
            slope = p_dot[0, j] * s + p[0] * t[k] * (c * p_dot[2, j] - s * p_dot[1, j])
            y_dot[k, j] = decay * slope + p_dot[3, j]
    return y, y_dot


class Jacobian:
    """Value and Jacobian of a damped oscillation by its four parameters."""

    params: tuple[list[str], list[int]] = (["dual", "by hand", "value_and_jacobian"], [10, 1000, 100_000])
    param_names = ("way", "samples")

    def setup(self, way: str, samples: int) -> None:
        self.p, self.t = np.array([1.0, 0.3, 2.0, 0.1]), np.linspace(0.0, 10.0, samples)
        if way == "value_and_jacobian":
            self.both = tg.value_and_jacobian(damped)
        else:
            tangents, unit = tg.dual(damped) if way == "dual" else damped_by_hand, np.eye(4)
            self.both = numba.njit(lambda p, t: tangents(p, t, unit))
        self.both(self.p, self.t)

    def time_both(self, way: str, samples: int) -> None:
        self.both(self.p, self.t)
