"""What only moves elements, with NumPy's names and arguments.

NumPy moves the numbers of the elements, and these say which to take: so all its ways of naming places are here as they are there.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any, SupportsIndex

import numpy as np

from tapegrad.numpy_protocol.operands import NotCovered, one
from tapegrad.surface import functions as tg
from tapegrad.tensors.tensor import Tensor, array_of
from tapegrad.tensors.tracers import looks_at_values, makes_constants_of_shapes

__all__ = ["AT_LEAST", "REARRANGING", "numbered", "taken"]

Array = np.ndarray[Any, Any]


def numbered(x: Tensor, first: int = 0) -> Array:
    """The numbers of elements in their order, as an array of that shape."""
    return np.arange(first, first + x.numel()).reshape(x.shape)


@makes_constants_of_shapes
def taken(parts: Sequence[Tensor], places: Array) -> Any:
    """The elements of all parts, one after another, by their numbers."""
    flat = [x.reshape(-1) for x in parts]
    return (tg.cat(flat, 0) if len(flat) > 1 else flat[0])[tg.tensor(places)]


def _delete(arr: Any, obj: Any, axis: int | None = None) -> Any:
    x = one(arr)
    return taken([x], np.delete(numbered(x), _places(obj), axis))


def _insert(arr: Any, obj: Any, values: Any, axis: int | None = None) -> Any:
    x = one(arr)
    new = one(values).to(x.dtype)
    return taken([x, new], np.insert(numbered(x), _places(obj), numbered(new, x.numel()), axis))


def _places(obj: Any) -> Any:
    return np.asarray(obj) if isinstance(obj, Tensor) else obj


def _block(arrays: Any) -> Any:
    parts: list[Tensor] = []

    def nested(x: Any) -> Any:
        if isinstance(x, list):
            return [nested(y) for y in x]
        if isinstance(x, tuple):
            raise TypeError("np.block takes lists, not tuples")
        parts.append(one(x))
        return numbered(parts[-1], sum(y.numel() for y in parts[:-1]))

    numbers = nested(arrays)
    return taken(parts, np.block(numbers))


def _sliding_window_view(x: Any, window_shape: Any, axis: Any = None) -> Any:
    x = one(x)
    dimensions = x.ndim
    np.lib.stride_tricks.sliding_window_view(array_of(x), window_shape, axis)  # which says what is wrong with the arguments
    lengths = (window_shape,) if isinstance(window_shape, SupportsIndex) else tuple(window_shape)
    axes = range(len(lengths)) if axis is None else (axis,) if isinstance(axis, SupportsIndex) else tuple(axis)
    for dim, length in zip(axes, lengths, strict=True):
        x = x.unfold(int(dim) % dimensions, int(length), 1)
    return x


@looks_at_values
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


def _roll(a: Any, shift: Any, axis: Any = None) -> Any:
    x = one(a)
    return taken([x], np.roll(numbered(x), _places(shift), axis))


def _resize(a: Any, new_shape: Any) -> Any:
    x = one(a)
    return taken([x], np.resize(numbered(x), new_shape)) if x.numel() else one(np.resize(array_of(x), new_shape))


@looks_at_values
def _trim_zeros(filt: Any, trim: str = "fb", axis: Any = None) -> Any:
    x = one(filt)
    values = np.ascontiguousarray(array_of(x))
    trimmed: Any = np.trim_zeros
    kept = trimmed(values, trim) if axis is None else trimmed(values, trim, axis)  # which older NumPys do not have
    if not kept.size:
        return x[tuple(slice(0, size) for size in kept.shape)]
    behind = (kept.__array_interface__["data"][0] - values.__array_interface__["data"][0]) // values.itemsize
    first = np.unravel_index(behind, values.shape)
    return x[tuple(slice(int(start), int(start) + size) for start, size in zip(first, kept.shape, strict=True))]


@looks_at_values
def _partition(a: Any, kth: Any, axis: int | None = -1, kind: str = "introselect", order: Any = None) -> Any:
    x = one(a)
    x, k = (x.reshape(-1), 0) if axis is None else (x, axis)
    return tg.take_along_dim(x, tg.tensor(np.argpartition(array_of(x), kth, k)), k)


def _extract(condition: Any, arr: Any) -> Any:
    x = one(arr)
    return x.reshape(-1)[tg.tensor(np.flatnonzero(_places(condition)))]


def _choose(a: Any, choices: Any, out: Any = None, mode: str = "raise") -> Any:
    if out is not None:
        raise NotCovered("give out by its name")
    options = [one(x) for x in choices]
    shape = np.broadcast_shapes(np.shape(_places(a)), *(x.shape for x in options))
    dtype = np.result_type(*(x.dtype for x in options))
    numbers, first = [], 0
    for x in options:
        numbers.append(np.broadcast_to(numbered(x, first), shape))
        first += x.numel()
    return taken([x.to(dtype) for x in options], np.choose(_places(a), numbers, mode=mode))  # type: ignore[call-overload]


def _cut(axis: int) -> Callable[..., Any]:
    def split(ary: Any, indices_or_sections: Any) -> Any:
        x = one(ary)
        if x.ndim <= (axis if axis != 1 else 0):
            raise ValueError(f"{'vhd'[axis]}split only works on arrays of {axis + 1 if axis != 1 else 1} or more dimensions")
        return np.split(x, indices_or_sections, axis if x.ndim > 1 else 0)

    return split


def _unstack(x: Any, /, *, axis: int = 0) -> Any:
    return tuple(tg.unbind(one(x), axis))


def _union1d(ar1: Any, ar2: Any) -> Any:
    return _unique(tg.cat([one(x).reshape(-1) for x in (ar1, ar2)], 0))


def _setdiff1d(ar1: Any, ar2: Any, assume_unique: bool = False) -> Any:
    x = one(ar1).reshape(-1) if assume_unique else _unique(ar1)
    return x[tg.tensor(~np.isin(array_of(x), array_of(one(ar2))))]


def _intersect1d(ar1: Any, ar2: Any, assume_unique: bool = False, return_indices: bool = False) -> Any:
    x = _unique(ar1)
    if return_indices:
        raise NotCovered("its argument 'return_indices' has no counterpart")
    return x[tg.tensor(np.isin(array_of(x), array_of(one(ar2))))]


def _setxor1d(ar1: Any, ar2: Any, assume_unique: bool = False) -> Any:
    return tg.sort(tg.cat([_setdiff1d(ar1, ar2, assume_unique), _setdiff1d(ar2, ar1, assume_unique)]), stable=True)[0]


def _unique_values(x: Any) -> Any:
    return _unique(x, equal_nan=False)


def _of_unique(name: str, *wanted: bool) -> Callable[..., Any]:
    """`unique` in one of its newer forms, whose results have names, and where every nan is a value of its own."""
    kind = functools.cache(lambda: type(getattr(np, name)(np.zeros(1))))

    def unique(x: Any) -> Any:
        x = one(x)
        values, *rest = _unique(x, *wanted, equal_nan=False)
        if wanted[1]:
            place = int(wanted[0])
            rest[place] = rest[place].reshape(x.shape)
        return kind()(values, *rest)

    return unique


def _rollaxis(a: Any, axis: int, start: int = 0) -> Any:
    x = one(a)
    numbered = np.rollaxis(np.empty(range(2, 2 + x.ndim), np.int8), axis, start)
    return x.permute(*(n - 2 for n in numbered.shape))


def _at_least(dims: int) -> Callable[..., Any]:
    def at_least(*arys: Any) -> Any:
        found = [_with_dims(one(x), dims) for x in arys]
        return found[0] if len(found) == 1 else tuple(found)

    return at_least


def _with_dims(x: Tensor, dims: int) -> Any:
    if x.ndim >= dims:
        return x
    if x.ndim == 0:
        return x.reshape(*[1] * dims)
    if x.ndim == 1:
        return x.reshape(*((1, -1) if dims == 2 else (1, -1, 1)))
    return x.reshape(*x.shape, 1)


_NAMES = (
    "block choose delete extract insert intersect1d partition resize roll rollaxis setdiff1d setxor1d trim_zeros union1d unique "
    "unique_values unstack"
)
REARRANGING: dict[str, Callable[..., Any]] = {name: globals()[f"_{name}"] for name in _NAMES.split()}
REARRANGING |= {"vsplit": _cut(0), "hsplit": _cut(1), "dsplit": _cut(2)}
_NEWER = {"unique_all": (True, True, True), "unique_counts": (False, False, True), "unique_inverse": (False, True, False)}
REARRANGING |= {name: _of_unique(name, *wanted) for name, wanted in _NEWER.items()}
# Of arrays in drivers; SciPy converts what the functions that it minimises return by `numpy.atleast_1d`, and needs NumPy's arrays.
AT_LEAST = {getattr(np, f"atleast_{k}d"): _at_least(k) for k in (1, 2, 3)}
REARRANGING["lib.stride_tricks.sliding_window_view"] = _sliding_window_view
