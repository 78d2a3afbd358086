"""A program that somebody wrote for Numba, and what is needed to check its gradient."""

from __future__ import annotations

import copy
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

STEP = 1e-30  # of the complex step, which subtracts nothing and has no rounding of differences


class Program(NamedTuple):
    """A compiled function, arguments, which of them are differentiated, and the same function written anew for NumPy.

    The twin is written for complex numbers: it compares real parts and never takes an absolute value.
    """

    name: str
    function: Any
    args: tuple[Any, ...]
    argnums: tuple[int, ...]
    twin: Callable[..., Any]

    def value(self) -> float:
        """What the undifferentiated function returns; it may overwrite its arguments."""
        return float(self.function(*copy.deepcopy(self.args)))

    def gradients_by_complex_step(self) -> list[np.ndarray]:
        """Of the twin, an element at a time."""
        gradients = []
        for k in self.argnums:
            gradient = np.empty(np.shape(self.args[k]))
            for place in np.ndindex(gradient.shape):
                args = list(copy.deepcopy(self.args))
                for j in self.argnums:
                    args[j] = np.array(args[j], complex)
                args[k][place] += STEP * 1j
                gradient[place] = self.twin(*args).imag / STEP
            gradients.append(gradient)
        return gradients
