"""Gradients that compiled code asks for, beside gradients written by hand and the driver's calls; one step of a descent each."""

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
