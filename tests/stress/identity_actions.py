"""What may happen to tensors: the same operations and views for tensors and for NumPy arrays."""

from collections.abc import Callable
from typing import Any

import numpy as np

import tapegrad as tg

SHAPES = [(), (1,), (2,), (3,), (2, 2), (2, 3)]
UNARY = ("neg", "sin", "exp", "tanh", "double", "shift", "sum", "clone")
BINARY = ("add", "sub", "mul")

VIEWS: dict[str, tuple[Callable[[tuple[int, ...]], bool], Callable[[Any], Any]]] = {
    "first": (lambda s: len(s) > 0, lambda t: t[0]),
    "but one": (lambda s: len(s) > 0 and s[0] > 1, lambda t: t[1:]),
    "step": (lambda s: len(s) > 0, lambda t: t[::2]),
    "last": (lambda s: len(s) > 0, lambda t: t[..., -1]),
    "whole": (lambda s: len(s) > 0, lambda t: t[:]),
    "new axis": (lambda s: True, lambda t: t[None]),
    "transpose": (lambda s: len(s) == 2, lambda t: t.T),
    "flat": (lambda s: len(s) == 1, lambda t: t.reshape(-1, 1)),
    "swap": (lambda s: len(s) == 2, lambda t: t.transpose(1, 0)),
}
OPERATE: dict[str, Callable[..., Any]] = {
    "double": lambda x: x * 2.0,
    "shift": lambda x: x + 2.0,
    **{name: getattr(tg, name) for name in ("neg", "sin", "exp", "tanh", "sum", "clone", *BINARY)},
}
WRITES: dict[str, Callable[..., Any]] = {
    "double": lambda t: t.mul_(2.0),
    "shift": lambda t: t.add_(2.0),
    "neg": lambda t: t.neg_(),
    "sin": lambda t: t.sin_(),
    "exp": lambda t: t.exp_(),
    "tanh": lambda t: t.tanh_(),
    "add": lambda t, y: t.add_(y),
    "sub": lambda t, y: t.sub_(y),
    "mul": lambda t, y: t.mul_(y),
}

OPERATION_ON_ARRAYS: dict[str, Callable[..., Any]] = {
    "neg": np.negative, "sin": np.sin, "exp": np.exp, "tanh": np.tanh, "double": lambda x: x * 2.0, "shift": lambda x: x + 2.0,
    "sum": np.sum, "clone": np.copy, "add": np.add, "sub": np.subtract, "mul": np.multiply,
}  # fmt: skip


def as_view(take: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """The view of an array, also where indexing would give an element."""

    def view(array: Any) -> Any:
        found = take(array)
        if isinstance(found, np.ndarray):
            return found
        return take_element(array, take)

    return view


def repeated(array: np.ndarray, count: int) -> np.ndarray:
    """`count` times the same memory; NumPy's own form cannot be written."""
    return np.lib.stride_tricks.as_strided(array, (count, *array.shape), (0, *array.strides))


def take_element(array: np.ndarray, take: Callable[[Any], Any]) -> np.ndarray:
    numbered = take(np.arange(array.size).reshape(array.shape))
    place = np.unravel_index(int(numbered), array.shape)
    return array[(*place, Ellipsis)]


def broadcasts_to(shape: tuple[int, ...], target: tuple[int, ...]) -> bool:
    try:
        return np.broadcast_shapes(shape, target) == target
    except ValueError:
        return False
