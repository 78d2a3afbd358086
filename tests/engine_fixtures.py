"""Builders, comparisons and readings of the tape that the engine's tests share."""

import gc
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

import tapegrad as tg


def leaf(values: Any, dtype: Any = None) -> tg.Tensor:
    return tg.tensor(values, dtype=dtype, requires_grad=True)


def numbers(tensor: tg.Tensor) -> np.ndarray:
    return np.array(tensor.detach().numpy())


def assert_values(tensor: tg.Tensor, expected: Any, rtol: float = 1e-12, atol: float = 0.0) -> None:
    """Equal up to rounding, nan where nan is expected, and of the same shape."""
    got = numbers(tensor)
    expected = np.asarray(expected)
    assert got.shape == expected.shape
    np.testing.assert_allclose(got, expected, rtol=rtol, atol=atol)


def live_rows() -> int:
    return tg.tape.default_tape().rows


def settled_rows() -> int:
    """Rows that stay when everything dead is gone: what dies in one collection may hold what can only die in the next."""
    before, rows = -1, live_rows()
    while rows != before:
        gc.collect()
        tg.tape.default_tape().collect()
        before, rows = rows, live_rows()
    return rows


def node_name(tensor: tg.Tensor) -> str:
    assert tensor.grad_fn is not None
    return tensor.grad_fn.name()


def parents(node: Any) -> list[str | None]:
    """Names of the nodes that `node` reads from, in order."""
    return [None if parent is None else parent.name() for parent, _ in node.next_functions]


def central_difference(f: Callable[..., float], point: Sequence[float], k: int, step: float = 1e-3) -> float:
    """df/dx_k by Richardson extrapolation of central differences; error O(step**6)."""

    def slope(h: float) -> float:
        up, down = list(point), list(point)
        up[k] += h
        down[k] -= h
        return (f(*up) - f(*down)) / (up[k] - down[k])

    coarse, middle, fine = slope(step), slope(step / 2), slope(step / 4)
    first, second = (4 * middle - coarse) / 3, (4 * fine - middle) / 3
    return (16 * second - first) / 15
