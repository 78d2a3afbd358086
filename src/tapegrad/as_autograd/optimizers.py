"""Stochastic gradient descent, RMSprop and Adam with autograd's arguments; for layers there is `tapegrad.optim`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from tapegrad.as_autograd.flattening import flatten

__all__ = ["adam", "rmsprop", "sgd", "unflatten_optimizer"]

Gradient = Callable[[Any, int], Any]
Callback = Callable[[Any, int, Any], Any]


def unflatten_optimizer(optimize: Callable[..., Any]) -> Callable[..., Any]:
    """An optimiser of vectors as one of containers of arrays."""

    @functools.wraps(optimize)
    def of_containers(grad: Gradient, x0: Any, callback: Callback | None = None, *args: Any, **kwargs: Any) -> Any:
        vector, unflatten = flatten(x0)

        def gradient(x: Any, i: int) -> Any:
            return flatten(grad(unflatten(x), i))[0]

        def tell(x: Any, i: int, g: Any) -> None:
            if callback:
                callback(unflatten(x), i, unflatten(g))

        return unflatten(optimize(gradient, vector, tell, *args, **kwargs))

    return of_containers


@unflatten_optimizer
def sgd(
    grad: Gradient, x: Any, callback: Callback | None = None, num_iters: int = 200, step_size: float = 0.1, mass: float = 0.9
) -> Any:
    """Gradient descent with momentum; ``grad(x, i)`` is given the number of the step.

    ``v = mass * v - (1 - mass) * g``, ``x = x + step_size * v``.
    """
    velocity = np.zeros(len(x))
    for i in range(num_iters):
        g = grad(x, i)
        if callback:
            callback(x, i, g)
        velocity = mass * velocity - (1.0 - mass) * g
        x = x + step_size * velocity
    return x


@unflatten_optimizer
def rmsprop(
    grad: Gradient,
    x: Any,
    callback: Callback | None = None,
    num_iters: int = 100,
    step_size: float = 0.1,
    gamma: float = 0.9,
    eps: float = 1e-8,
) -> Any:
    """Steps divided by the root of the running mean of squares, which begins with ones."""
    mean_square = np.ones(len(x))
    for i in range(num_iters):
        g = grad(x, i)
        if callback:
            callback(x, i, g)
        mean_square = gamma * mean_square + (1.0 - gamma) * g**2
        x = x - step_size * g / (np.sqrt(mean_square) + eps)
    return x


@unflatten_optimizer
def adam(
    grad: Gradient,
    x: Any,
    callback: Callback | None = None,
    num_iters: int = 100,
    step_size: float = 0.001,
    b1: float = 0.9,
    b2: float = 0.999,
    eps: float = 1e-8,
) -> Any:
    """Adam: both running means are corrected for their beginning at zero [1]_.

    References
    ----------
    .. [1] D. P. Kingma, J. Ba, "Adam: a method for stochastic optimization", ICLR 2015.
    """
    mean, mean_square = np.zeros(len(x)), np.zeros(len(x))
    for i in range(num_iters):
        g = grad(x, i)
        if callback:
            callback(x, i, g)
        mean = b1 * mean + (1.0 - b1) * g
        mean_square = b2 * mean_square + (1.0 - b2) * g**2
        corrected = mean / (1.0 - b1 ** (i + 1)), mean_square / (1.0 - b2 ** (i + 1))
        x = x - step_size * corrected[0] / (np.sqrt(corrected[1]) + eps)
    return x
