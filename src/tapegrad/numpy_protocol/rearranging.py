"""What only moves elements, with NumPy's names and arguments.

NumPy moves the numbers of the elements, and these say which to take: so all its ways of naming places are here as they are there.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tapegrad.numpy_protocol.functions import NotCovered, one
from tapegrad.surface import functions as tg
from tapegrad.tensors.tensor import Tensor, array_of

__all__ = ["REARRANGING"]

Array = np.ndarray[Any, Any]
COPYING_MODES = frozenset(["edge", "reflect", "symmetric", "wrap"])


def _numbered(x: Tensor, first: int = 0) -> Array:
    return np.arange(first, first + x.numel()).reshape(x.shape)


def _taken(parts: Sequence[Tensor], places: Array) -> Any:
    """The elements of all parts, one after another, by their numbers."""
    flat = [x.reshape(-1) for x in parts]
    return (tg.cat(flat, 0) if len(flat) > 1 else flat[0])[tg.tensor(places)]


def _delete(arr: Any, obj: Any, axis: int | None = None) -> Any:
    x = one(arr)
    return _taken([x], np.delete(_numbered(x), _places(obj), axis))


def _insert(arr: Any, obj: Any, values: Any, axis: int | None = None) -> Any:
    x = one(arr)
    new = one(values).to(x.dtype)
    return _taken([x, new], np.insert(_numbered(x), _places(obj), _numbered(new, x.numel()), axis))


def _places(obj: Any) -> Any:
    return np.asarray(obj) if isinstance(obj, Tensor) else obj


def _pad(array: Any, pad_width: Any, mode: str = "constant", *, constant_values: Any = 0, reflect_type: str = "even") -> Any:
    x = one(array)
    numbers = _numbered(x)
    if mode == "constant":
        new = one(constant_values).to(x.dtype)
        return _taken([x, new], np.pad(numbers, pad_width, constant_values=_numbered(new, x.numel())))
    if mode not in COPYING_MODES or reflect_type != "even":
        raise NotCovered(f"mode={mode!r}" if mode not in COPYING_MODES else f"reflect_type={reflect_type!r}")
    return _taken([x], np.pad(numbers, pad_width, mode))  # type: ignore[call-overload]


def _block(arrays: Any) -> Any:
    parts: list[Tensor] = []

    def numbered(x: Any) -> Any:
        if isinstance(x, list):
            return [numbered(y) for y in x]
        if isinstance(x, tuple):
            raise TypeError("np.block takes lists, not tuples")
        parts.append(one(x))
        return _numbered(parts[-1], sum(y.numel() for y in parts[:-1]))

    numbers = numbered(arrays)
    return _taken(parts, np.block(numbers))


def _sliding_window_view(x: Any, window_shape: Any, axis: Any = None) -> Any:
    x = one(x)
    return _taken([x], np.lib.stride_tricks.sliding_window_view(_numbered(x), window_shape, axis))


def _unique(
    ar: Any,
    return_index: bool = False,
    return_inverse: bool = False,
    return_counts: bool = False,
    axis: int | None = None,
    *,
    equal_nan: bool = True,
) -> Any:
    x = one(ar)
    find: Any = np.unique
    found = find(array_of(x), True, return_inverse, return_counts, axis, equal_nan=equal_nan)
    # Of equal elements the first is taken, and gets the gradient.
    first = tg.tensor(found[1])
    values = x.reshape(-1)[first] if axis is None else x[(*[slice(None)] * (axis % x.ndim), first)]
    rest = [one(y) for y in found[1 if return_index else 2 :]]
    return (values, *rest) if rest else values


_NAMES = "block delete insert pad unique"
REARRANGING: dict[str, Callable[..., Any]] = {name: globals()[f"_{name}"] for name in _NAMES.split()}
REARRANGING["lib.stride_tricks.sliding_window_view"] = _sliding_window_view
