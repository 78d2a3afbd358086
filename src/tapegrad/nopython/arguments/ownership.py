"""Memory of the caller that arguments reach: what shares it is found, what can be copied is copied, what is unknown is refused.

A recording runs on arrays that it may not write into and on copies of everything else, but for instances: it runs on the caller's
own, and these are put back (`tapegrad.nopython.arguments.instances`).
"""

from __future__ import annotations

import array
import mmap
from collections.abc import Iterator
from typing import Any, NamedTuple

import numba
import numpy as np
from numba.core import types
from numba.core.typing.typeof import typeof
from numpy.lib.array_utils import byte_bounds
from numpy.polynomial import Polynomial

from tapegrad.nopython.arguments.classes import (
    IMMUTABLE,
    INSTANCES,
    LISTS,
    TYPED,
    has_fixed_memory,
    identity,
    item_type,
    plain_items,
)
from tapegrad.nopython.arguments.instances import fields

__all__ = ["kept", "lies_apart", "owned", "shared_memory"]

WORK: Any = 10_000  # how long NumPy may search for a common byte before two arrays count as sharing one


class Region(NamedTuple):
    """Memory that an argument reaches.

    `how` says what a recording does with it. Arrays can be protected from writes; "listed" ones are copied, and what is one array
    stays one; "fixed" memory is copied as well, but cannot be protected; "own" memory is that of an instance, on which the
    recording runs.
    """

    memory: Any  # an array, or a typed container
    how: str
    kind: type


def regions(function: str, value: Any, seen: set[Any], how: str = "array") -> Iterator[Region]:
    """All memory that a value reaches.

    Raises
    ------
    TypeError
        If it holds something of a class that is not known.
    """
    if has_fixed_memory(value):
        for part in _memory(value):
            yield Region(part, "own" if how == "own" else "fixed", type(value))
    elif isinstance(value, np.ndarray):
        yield Region(value, how, np.ndarray)
    elif isinstance(value, (tuple, list, *TYPED)):
        if isinstance(value, TYPED):
            yield Region(value, how, type(value))
        if not plain_items(value):
            inner = "listed" if isinstance(value, LISTS) and how != "own" else how
            for item in value.values() if isinstance(value, numba.typed.Dict) else value:
                yield from regions(function, item, seen, inner)
    elif isinstance(value, INSTANCES):
        place = value._numba_type_, identity(value)
        if place not in seen:  # an instance may hold itself
            seen.add(place)
            for _, item in fields(value):
                yield from regions(function, item, seen, "own")
    elif not isinstance(value, (*IMMUTABLE, set)) and _known_to_numba(value):
        raise TypeError(
            f"{function}: an argument holds {described(type(value))}, and what compiled code writes into it could not be kept from "
            "the caller; pass its numbers and arrays in its place (np.asarray(...) of a buffer, a tuple of what it holds)"
        )


def _known_to_numba(value: Any) -> bool:
    """Whether Numba takes a value; if it does not, it says why."""
    try:
        return typeof(value) is not None
    except Exception:  # a class of the user's may say what its type is by code of its own
        return False


def described(kind: type) -> str:
    """A class with its article."""
    return f"{'an' if kind.__name__[0].lower() in 'aeiou' else 'a'} {kind.__name__}"


def _memory(value: Any) -> list[Any]:
    """Arrays that stand where the memory of a value is."""
    if isinstance(value, Polynomial):
        return [value.coef, value.domain, value.window]
    return [np.asarray(value if isinstance(value, (np.void, np.ndarray)) else memoryview(value))]


def _place(array: Any) -> Any:
    """Equal for arrays that are one: typed lists give a new object for an item at every access."""
    return array.__array_interface__["data"][0], array.shape, array.strides, array.dtype


def lies_apart(array: Any) -> bool:
    """Whether no two elements of an array stand in one place; what is not seen at its strides counts as if some did."""
    if array.flags.forc or array.size <= 1:
        return True
    if array.ndim == 1:
        return bool(abs(array.strides[0]) >= array.itemsize)
    reach = array.itemsize
    for stride, length in sorted((abs(stride), length) for stride, length in zip(array.strides, array.shape, strict=True)):
        if length > 1:
            if stride < reach:
                return False
            reach += stride * (length - 1)
    return True


def _share(a: Any, b: Any) -> bool:
    try:
        return bool(np.shares_memory(a, b, max_work=WORK))
    except np.exceptions.TooHardError:
        return True


def shared_memory(function: str, arguments: list[Any]) -> bool:
    """Whether arrays share memory, so that what is written into one would have to be seen in the other.

    One array that lists hold twice does not count: their copies hold one copy twice.

    Raises
    ------
    TypeError
        If an argument holds something of a class that is not known.
    ValueError
        If memory is shared that can neither be protected from writes nor be copied as one.
    """
    seen: set[Any] = set()
    found = [region for argument in arguments for region in regions(function, argument, seen)]
    _refuse_shared_containers(function, found)
    arrays = [region for region in found if isinstance(region.memory, np.ndarray) and region.memory.size]
    shared = False
    for region in arrays:
        if region.how != "own" and not lies_apart(region.memory):
            if region.how == "fixed":
                raise ValueError(f"{function}: elements of {described(region.kind)} share memory; pass a copy of it")
            shared = True
    # In the order of addresses, only what began and has not ended yet can share something with the next one.
    current: list[tuple[int, Region]] = []
    for low, high, k in sorted((*byte_bounds(region.memory), k) for k, region in enumerate(arrays)):
        region = arrays[k]
        current = [pair for pair in current if pair[0] > low]
        for _, other in current:
            if region.how == other.how == "own" or not _share(region.memory, other.memory) or _copied_as_one(region, other):
                continue
            if "own" in (region.how, other.how) or "fixed" in (region.how, other.how):
                raise ValueError(
                    f"{function}: {_named(other)} and {_named(region)} in its arguments share memory; pass a copy of one of them"
                )
            shared = True
        current.append((high, region))
    return shared


def _refuse_shared_containers(function: str, found: list[Region]) -> None:
    owners: dict[int, bool] = {}
    for region in found:
        if isinstance(region.memory, TYPED):
            own = region.how == "own"
            if owners.setdefault(identity(region.memory), own) != own:
                raise ValueError(
                    f"{function}: an instance and an argument share {described(region.kind)}; pass a copy of one of them"
                )


def _copied_as_one(a: Region, b: Region) -> bool:
    return a.how == b.how != "array" and a.kind is b.kind and _place(a.memory) == _place(b.memory)


def _named(region: Region) -> str:
    if region.how == "own":
        return "an array of an instance"
    return "an array" if region.kind is np.ndarray else described(region.kind)


def owned(arguments: list[Any], shared: bool) -> list[Any]:
    """Arguments that the function may overwrite without the caller seeing it, in all depth; arrays are protected when it runs.

    If arrays share memory, copies of them do not, so code that writes into them is not to be compiled: they are read-only.
    """
    memo: dict[Any, Any] = {}
    return [argument if _is_protected(argument) else _copy(argument, shared, memo) for argument in arguments]


def _is_protected(argument: Any) -> bool:
    return isinstance(argument, np.ndarray) and not has_fixed_memory(argument)


def kept(arguments: list[Any]) -> list[Any]:
    """Arguments as they are now: what is one array or container stays one."""
    memo: dict[Any, Any] = {}
    return [_copy(argument, False, memo) for argument in arguments]


def _copy(value: Any, shared: bool, memo: dict[Any, Any]) -> Any:
    if isinstance(value, tuple):
        items = [_copy(item, shared, memo) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
    if isinstance(value, np.ndarray):
        key: Any = _place(value)
    elif isinstance(value, (list, set)):
        key = id(value)
    elif isinstance(value, TYPED):
        key = identity(value)
    elif has_fixed_memory(value):
        key = (type(value), *map(_place, _memory(value)))
    else:
        return value
    if key not in memo:
        memo[key] = _copied(value, shared, memo)
    return memo[key]


def _copied(value: Any, shared: bool, memo: dict[Any, Any]) -> Any:
    if isinstance(value, np.ndarray):
        made = value.copy(order="K")
        made.flags.writeable = value.flags.writeable and (not shared or has_fixed_memory(value))
        return made
    if isinstance(value, list):
        return [_copy(item, shared, memo) for item in value]
    if isinstance(value, TYPED):
        return _copy_of_typed(value, shared, memo)
    if isinstance(value, Polynomial):
        return type(value)(value.coef.copy(), value.domain.copy(), value.window.copy())
    if isinstance(value, mmap.mmap):
        return _copy_of_mmap(value)
    if isinstance(value, memoryview):
        view = np.array(np.asarray(value), order="K").data
        return view.toreadonly() if value.readonly else view
    return value[:] if isinstance(value, (bytearray, array.array)) else value.copy()  # records and sets


def _copy_of_mmap(value: Any) -> Any:
    if memoryview(value).readonly:
        return value
    made = mmap.mmap(-1, len(value))
    made[:] = value[:]
    return made


def _copy_of_typed(value: Any, shared: bool, memo: dict[Any, Any]) -> Any:
    if not value._typed:
        return value
    if plain_items(value):
        return value.copy()
    kind = _copied_type(item_type(value), shared)
    if isinstance(value, numba.typed.Dict):
        table = numba.typed.Dict.empty(value._dict_type.key_type, kind)
        for key, item in value.items():
            table[key] = _copy(item, shared, memo)
        return table
    made = numba.typed.List.empty_list(kind)
    for item in value:
        made.append(_copy(item, shared, memo))
    return made


def _copied_type(kind: Any, shared: bool) -> Any:
    """The type of copies of items."""
    if isinstance(kind, types.Array):
        return kind.copy(readonly=True) if shared and not isinstance(kind.dtype, types.Record) else kind
    if isinstance(kind, types.ListType):
        return types.ListType(_copied_type(kind.item_type, shared))
    if isinstance(kind, types.DictType):
        return types.DictType(kind.key_type, _copied_type(kind.value_type, shared))
    if isinstance(kind, types.BaseTuple):
        return types.BaseTuple.from_types([_copied_type(item, shared) for item in kind], getattr(kind, "instance_class", None))
    return kind
