"""Containers of arrays as one vector, and back."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

import tapegrad.numpy as tnp
from tapegrad.tensors.tensor import Tensor

__all__ = ["flatten", "flatten_func"]


def flatten(value: Any) -> tuple[Any, Callable[[Any], Any]]:
    """Vector of all numbers in a container, and a function that makes such a container of a vector.

    Parameters
    ----------
    value : array, number, or lists, tuples and dicts of these, in each other
        Values of dicts follow each other in the order of their sorted keys.

    Returns
    -------
    tuple
        ``(vector, unflatten)``.
    """
    leaves: list[Any] = []
    _collect(value, leaves)
    shapes = [np.shape(leaf) for leaf in leaves]
    parts = [np.ravel(leaf) for leaf in leaves]
    vector = tnp.concatenate(parts) if len(parts) > 1 else tnp.array(parts[0]) if parts else np.array([])
    kinds = [_kind(leaf) for leaf in leaves]

    def unflatten(vector: Any) -> Any:
        rest = []
        done = 0
        for shape, kind in zip(shapes, kinds, strict=True):
            size = int(np.prod(shape))
            part = np.reshape(vector[done : done + size], shape) if shape else vector[done]
            rest.append(part if isinstance(part, Tensor) or kind is None else part.astype(kind))
            done += size
        return _rebuild(value, iter(rest))

    # Only the structure is kept of the value, and no arrays.
    value = _rebuild(value, iter([None] * len(leaves)))
    return vector, unflatten


def _kind(leaf: Any) -> Any:
    """The dtype that an array gets back; None for numbers."""
    return leaf.dtype if isinstance(leaf, (np.ndarray, Tensor)) and leaf.dtype.kind == "f" else None


def _collect(value: Any, leaves: list[Any]) -> None:
    if isinstance(value, (list, tuple)):
        for part in value:
            _collect(part, leaves)
    elif isinstance(value, dict):
        for name in sorted(value):
            _collect(value[name], leaves)
    else:
        leaves.append(value)


def _rebuild(value: Any, rest: Any) -> Any:
    if isinstance(value, (list, tuple)):
        parts = [_rebuild(part, rest) for part in value]
        return type(value)._make(parts) if hasattr(value, "_make") else type(value)(parts)
    if isinstance(value, dict):
        made = {name: _rebuild(value[name], rest) for name in sorted(value)}
        return {name: made[name] for name in value}
    return next(rest)


def flatten_func(func: Callable[..., Any], example: Any) -> tuple[Callable[..., Any], Callable[[Any], Any], Any]:
    """A function of containers as one of vectors, what makes containers of vectors, and the example as a vector."""
    vector, unflatten = flatten(example)

    def of_vector(x: Any, *args: Any) -> Any:
        return flatten(func(unflatten(x), *args))[0]

    return of_vector, unflatten, vector
