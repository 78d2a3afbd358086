"""Arrays that belong to the caller: containers of them are copied before a recording, and what shares memory is found."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numba
import numpy as np
from numba.core import types

__all__ = ["CONTAINERS", "kept", "overlap", "owned"]

LISTS = (list, numba.typed.List, numba.typed.Dict)
CONTAINERS = (tuple, *LISTS)
WORK: Any = 10_000  # how long NumPy may search for a common byte before two arrays count as sharing one


def _place(array: Any) -> Any:
    """Equal for arrays that are one: typed lists give a new object for an item at every access."""
    return array.__array_interface__["data"][0], array.shape, array.strides, array.dtype


def _arrays(value: Any, in_list: bool) -> Iterator[tuple[Any, bool]]:
    """All arrays in a value, and whether a list or dictionary holds them."""
    if isinstance(value, np.ndarray):
        yield value, in_list
    elif isinstance(value, numba.typed.Dict):
        if not _plain(value._dict_type.value_type):
            for item in value.values():
                yield from _arrays(item, True)
    elif isinstance(value, CONTAINERS) and not (isinstance(value, numba.typed.List) and _plain(_item_type(value))):
        for item in value:
            yield from _arrays(item, in_list or isinstance(value, LISTS))


def _share(a: Any, b: Any) -> bool:
    if not np.may_share_memory(a, b):
        return False
    try:
        return bool(np.shares_memory(a, b, max_work=WORK))
    except np.exceptions.TooHardError:
        return True


def overlap(arguments: list[Any]) -> bool:
    """Whether two arrays share memory, so that what is written into one would have to be seen in the other.

    One array that lists hold twice does not count: their copies hold one copy twice.
    """
    found: list[tuple[Any, bool]] = []
    for argument in arguments:
        if isinstance(argument, np.ndarray):
            found.append((argument, False))
        elif isinstance(argument, CONTAINERS):
            found.extend(_arrays(argument, False))
    for k, (a, in_list) in enumerate(found):
        for b, also_in_list in found[:k]:
            if _share(a, b) and not (in_list and also_in_list and _place(a) == _place(b)):
                return True
    return False


def _item_type(value: Any) -> Any:
    return value._list_type.item_type if value._typed else types.none


def _plain(kind: Any) -> bool:
    """Whether items of a type cannot be written into."""
    return isinstance(kind, (types.Number, types.Boolean, types.UnicodeType, types.NoneType))


def owned(arguments: list[Any], shared: bool) -> list[Any]:
    """Containers as copies that the function may overwrite without the caller seeing it, in all depth.

    If arrays share memory, the copies do not, so code that writes into them is not to be compiled: they are read-only.
    """
    memo: dict[Any, Any] = {}
    return [_copy(argument, shared, memo) if isinstance(argument, CONTAINERS) else argument for argument in arguments]


def kept(arguments: list[Any]) -> list[Any]:
    """Arguments as they are now: arrays and containers are copied, and what is one array stays one."""
    memo: dict[Any, Any] = {}
    return [_copy(argument, False, memo) for argument in arguments]


def _copy(value: Any, shared: bool, memo: dict[Any, Any]) -> Any:
    if isinstance(value, np.ndarray):
        place = _place(value)
        if place not in memo:
            memo[place] = value.copy(order="K")
            memo[place].flags.writeable = not shared and value.flags.writeable
        return memo[place]
    if isinstance(value, tuple):
        items = [_copy(item, shared, memo) for item in value]
        return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
    if not isinstance(value, LISTS):
        return value
    if id(value) not in memo:
        memo[id(value)] = _copy_of_list(value, shared, memo)
    return memo[id(value)]


def _copy_of_list(value: Any, shared: bool, memo: dict[Any, Any]) -> Any:
    if isinstance(value, list):
        return [_copy(item, shared, memo) for item in value]
    if isinstance(value, numba.typed.Dict):
        kind = value._dict_type.value_type if value._typed else types.none
        if _plain(kind):
            return value.copy()
        made = numba.typed.Dict.empty(value._dict_type.key_type, _copied_type(kind, shared))
        for key, item in value.items():
            made[key] = _copy(item, shared, memo)
        return made
    if _plain(_item_type(value)):
        return value.copy()
    made = numba.typed.List.empty_list(_copied_type(_item_type(value), shared))
    for item in value:
        made.append(_copy(item, shared, memo))
    return made


def _copied_type(kind: Any, shared: bool) -> Any:
    """The type of copies of items."""
    if isinstance(kind, types.Array):
        return kind.copy(readonly=True) if shared else kind
    if isinstance(kind, types.ListType):
        return types.ListType(_copied_type(kind.item_type, shared))
    if isinstance(kind, types.DictType):
        return types.DictType(kind.key_type, _copied_type(kind.value_type, shared))
    if isinstance(kind, types.BaseAnonymousTuple):
        return types.Tuple([_copied_type(item, shared) for item in kind])
    return kind
