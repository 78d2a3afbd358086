"""Operands of NumPy's functions as tensors, and what is said of functions and arguments that have no counterpart."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tapegrad.deferred import look_up
from tapegrad.surface import functions as tg
from tapegrad.tensors.tensor import Tensor, as_operand

__all__ = ["NotCovered", "as_tensors", "holds_tensors", "named", "one", "stacked", "with_large_matrix"]

LARGE_MATRIX = 1 << 16  # elements from which a product looks whether it is worth blocks


class NotCovered(Exception):  # noqa: N818 - it never reaches a user
    """A NumPy function, or an argument of it, that has no counterpart."""


def named(name: str) -> Callable[..., Any]:
    """A function of the package, as ``"sum"`` or ``"linalg.inv"``."""
    found: Any = tg
    for part in name.split("."):
        found = getattr(found, part, None)
    if found is None:
        raise NotCovered
    return found


def as_tensors(*values: Any) -> list[Any]:
    """Arrays and lists as tensors; tensors and numbers as they are."""
    return [x if isinstance(x, (Tensor, bool, int, float)) else one(x) for x in values]


def one(x: Any) -> Tensor:
    """An operand as a tensor."""
    if isinstance(x, Tensor):
        return x
    return stacked(x) if isinstance(x, (list, tuple)) else as_operand(x if isinstance(x, np.ndarray) else np.asarray(x))


def holds_tensors(values: Any) -> bool:
    """Whether there is a tensor in nested lists and tuples."""
    if not issubclass(type(values), (list, tuple)):
        return False
    for value in values:  # a shape in a third of the time of a generator
        kind = type(value)
        if kind is not int and kind is not float and (isinstance(value, Tensor) or holds_tensors(value)):
            return True
    return False


def stacked(values: Any) -> Tensor:
    """Nested lists, which may hold tensors, as one tensor."""
    if not any(isinstance(value, (Tensor, list, tuple)) for value in values):
        return as_operand(np.asarray(values))
    return tg.stack([one(value) for value in values])


def with_large_matrix(x: Any, y: Any) -> Tensor | None:
    """``x @ y`` where it is made together with the copy of an array of NumPy's; else None."""
    if type(x) is not np.ndarray or x.size <= LARGE_MATRIX or not isinstance(y, Tensor):
        return None
    found: Tensor | None = look_up("linalg.copied_products:product_with_copy")(x, y)
    return found
