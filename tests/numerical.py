"""Derivatives of every order against central differences of the order below."""

from collections.abc import Callable
from typing import Any

import numpy as np

import tapegrad as tg


def check_gradients(f: Callable[..., Any], *arrays: Any, order: int = 2, step: float = 1e-5, tolerance: float = 1e-6) -> None:
    """Assert that the derivatives of `f` are right at a point.

    The outputs are projected on random weights; `backward` of that number must agree with its central differences in
    every element of every input. Then the gradients themselves are projected, and so on up to `order`.

    Parameters
    ----------
    f : callable
        Maps tensors to a tensor or a tuple of tensors; those that are not tracked are left out.
    *arrays : array_like
        The point. Floating point ones are differentiated, the others passed as they are.
    order : int
        Highest order of derivatives.
    step : float
        Step of the differences.
    tolerance : float
        Relative to the largest element.
    """
    point = [np.asarray(array) for array in arrays]
    for level in range(1, order + 1):
        total, leaves = _projection(f, point, level)
        if total.requires_grad:
            total.backward()
        for which, (leaf, array) in enumerate(zip(leaves, point, strict=True)):
            if array.dtype.kind != "f":
                continue
            assert leaf.grad is None or leaf.grad.shape == array.shape
            got = np.zeros(array.shape) if leaf.grad is None else leaf.grad.numpy()
            expected = _differences(f, point, level, which, step)
            scale = max(1.0, float(np.max(np.abs(expected), initial=0.0)))
            np.testing.assert_allclose(got, expected, rtol=0, atol=tolerance * scale, err_msg=f"order {level}")


def gradient(f: Callable[[tg.Tensor], tg.Tensor], values: Any) -> np.ndarray:
    """Gradient of a scalar function at one array."""
    x = tg.tensor(values, requires_grad=True)
    f(x).backward()
    return np.array(x.grad.numpy())


def _differences(f: Callable[..., Any], point: list[np.ndarray], level: int, which: int, step: float) -> np.ndarray:
    """Central differences of the projection with respect to one of the arrays of the point."""
    result = np.empty(point[which].shape)
    for place in np.ndindex(result.shape):
        values = []
        for sign in (1.0, -1.0):
            moved = [array.copy() for array in point]
            moved[which][place] += sign * step
            values.append(_projection(f, moved, level, to_be_differentiated=False)[0].item())
        result[place] = (values[0] - values[1]) / (2.0 * step)
    return result


def _projection(
    f: Callable[..., Any], point: list[np.ndarray], level: int, to_be_differentiated: bool = True
) -> tuple[Any, list[Any]]:
    """A number whose gradient is the projected derivative of order `level`, and the leaves it was made from."""
    rng = np.random.default_rng(level)
    leaves = [tg.tensor(array, requires_grad=array.dtype.kind == "f") for array in point]
    tracked = [leaf for leaf in leaves if leaf.requires_grad]
    outputs = f(*leaves)
    total = _weighted(outputs if isinstance(outputs, tuple) else (outputs,), rng)
    for order in range(1, level):
        if not total.requires_grad:
            return total * 0.0, leaves
        recorded = to_be_differentiated or order < level - 1
        gradients = tg.autograd.grad(total, tracked, create_graph=recorded, allow_unused=True)
        total = _weighted(gradients, rng)
    return total, leaves


def _weighted(outputs: Any, rng: np.random.Generator) -> Any:
    total = tg.tensor(0.0)
    for output in outputs:
        if output is not None and output.dtype.kind == "f":
            total = total + (output * tg.tensor(rng.uniform(0.5, 1.5, output.shape))).sum()
    return total
