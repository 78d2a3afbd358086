"""Nested containers of arrays and scalars: taken apart into a flat list of leaves, and put together again around other ones.

Dicts, lists, tuples, named tuples and dataclasses are containers, ``None`` is an empty one, everything else is a leaf.
"""

from __future__ import annotations

import functools
from collections.abc import Collection, Iterable, Iterator, Sequence
from typing import Any

import numpy as np

from tapegrad.numpy_arrays.array import Array
from tapegrad.tensors.tensor import Tensor

__all__ = [
    "Node", "Structure", "around", "flat_structure", "flatten", "flatten_like", "items_of", "numbers_in", "places_in",
    "refuse_computed_attributes", "restore",
]  # fmt: skip


class Node:
    """A container: what it is like, the keys of what it holds, the structures of that, and whether all of these are leaves."""

    __slots__ = ("children", "flat", "keys", "like")

    def __init__(self, like: Any, keys: tuple[Any, ...], children: tuple[Structure, ...]) -> None:
        self.like, self.keys, self.children = like, keys, children
        self.flat = not any(children)


Structure = Node | None  # None is a leaf
_CONTAINERS = (dict, list, tuple)
_NUMBERS = frozenset([float, np.ndarray])  # of which no one is tracked
_LEAVES = frozenset([Array, Tensor, float, np.float64, np.ndarray])  # the common ones


def _is_dataclass(value: Any) -> bool:
    return hasattr(type(value), "__dataclass_fields__")  # what `dataclasses.is_dataclass` asks, without importing it


def _parts(value: Any) -> tuple[tuple[Any, ...], Iterable[Any]] | None:
    """Keys and values of a container; None for a leaf."""
    kind = type(value)
    if kind is dict:
        return tuple(value), value.values()
    if kind is tuple or kind is list:
        return tuple(range(len(value))), value
    if value is None:
        return (), []
    if isinstance(value, dict):
        return tuple(value), list(value.values())
    if isinstance(value, (list, tuple)):
        return tuple(range(len(value))), list(value)
    if _is_dataclass(value):
        import dataclasses  # who made the value has imported it

        names = tuple(field.name for field in dataclasses.fields(value))
        return names, [getattr(value, name) for name in names]
    return None


def items_of(value: Any) -> list[Any]:
    """What a container holds; nothing where it is none."""
    parts = None if type(value) in _LEAVES else _parts(value)
    return [] if parts is None else list(parts[1])


def flatten(value: Any, leaves: list[Any]) -> Structure:
    """Append the leaves of a container to a list; the structure.

    Parameters
    ----------
    value : object
    leaves : list
        What the leaves are appended to.
    """
    if type(value) in _LEAVES or (parts := _parts(value)) is None:
        leaves.append(value)
        return None
    keys, values = parts
    if _LEAVES.issuperset(map(type, values)):
        leaves.extend(values)
        return Node(value, keys, (None,) * len(keys))
    children: list[Structure] = []
    for part in values:
        if type(part) in _LEAVES:
            leaves.append(part)
            children.append(None)
        else:
            children.append(flatten(part, leaves))
    return Node(value, keys, tuple(children))


def numbers_in(value: Any) -> Collection[Any] | None:
    """Leaves of a dict, list or tuple of NumPy's arrays and of floats alone; None for what is something else."""
    kind = type(value)
    values = value.values() if kind is dict else value if kind is list or kind is tuple else None
    return values if values is not None and _NUMBERS.issuperset(map(type, values)) else None


def flat_structure(value: Any) -> Node:
    """Structure of a dict, list or tuple of leaves."""
    count = len(value)
    return Node(value, tuple(value) if type(value) is dict else tuple(range(count)), (None,) * count)


def places_in(structure: Structure, path: str) -> list[str]:
    """Where the leaves of a container stand, as one would write it in Python; `path` is where the container itself stands."""
    if structure is None:
        return [path]
    below = zip(structure.keys, structure.children, strict=True)
    return [place for key, child in below for place in places_in(child, _step(structure.like, path, key))]


def _step(value: Any, path: str, key: Any) -> str:
    return f"{path}.{key}" if _is_dataclass(value) else f"{path}[{key!r}]"


def flatten_like(structure: Structure, value: Any, leaves: list[Any], what: str) -> None:
    """Append the leaves of a container that must have a given structure.

    Raises
    ------
    TypeError
        If it has another one; `what` names it.
    """
    if structure is None:
        if _parts(value) is not None:
            raise TypeError(f"{what} must be an array or a number here, as in the structure that it belongs to, not {value!r}")
        leaves.append(value)
        return
    parts = _parts(value)
    same_kind = parts is not None and type(value) is type(structure.like)
    if parts is None or not same_kind or set(parts[0]) != set(structure.keys):
        raise TypeError(
            f"{what} must have the same structure as what it belongs to: expected {_described(structure)}, but got "
            f"{type(value).__name__}" + (f" with {list(parts[0])}" if parts is not None else "")
        )
    by_key = dict(zip(*parts, strict=True))
    for key, child in zip(structure.keys, structure.children, strict=True):
        flatten_like(child, by_key[key], leaves, _step(structure.like, what, key))


def _described(structure: Node) -> str:
    return "None" if structure.like is None else f"{type(structure.like).__name__} with {list(structure.keys)}"


def _cached_properties(value: Any) -> list[str]:
    """Names of the cached properties that an object has computed."""
    return [name for name in getattr(value, "__dict__", ()) if _is_cached_property(value, name)]


def _is_cached_property(value: Any, name: str) -> bool:
    return isinstance(getattr(type(value), name, None), functools.cached_property)


def refuse_computed_attributes(structure: Structure, name: str) -> None:
    """Raise for containers with numbers outside of their items or fields: a copy with other items would keep the old ones.

    Raises
    ------
    TypeError
        If there is one; `name` is that of the function, for the message.
    """
    if structure is None:
        return
    if not structure.flat:
        for child in structure.children:
            refuse_computed_attributes(child, name)
    like = structure.like
    if type(like) in _CONTAINERS:
        return
    fields = structure.keys if _is_dataclass(like) else ()
    for attribute, value in getattr(like, "__dict__", {}).items():
        if attribute in fields or _is_cached_property(like, attribute):
            continue
        if isinstance(value, float) or getattr(getattr(value, "dtype", None), "kind", "") == "f":
            raise TypeError(
                f"{name}: {type(like).__name__}.{attribute} is a number but no item or field of the container, so it would stay "
                "as it is while these change. Make it a property, or a field, which is differentiated by on its own."
            )


def restore(structure: Structure, leaves: Iterator[Any]) -> Any:
    """A container of this structure around the next leaves."""
    if structure is None:
        return next(leaves)
    return around(structure, [next(leaves) if child is None else restore(child, leaves) for child in structure.children])


def around(structure: Node, values: Sequence[Any]) -> Any:
    """A container of this structure around the values of its items."""
    kind = type(structure.like)
    if kind in _CONTAINERS:
        return dict(zip(structure.keys, values)) if kind is dict else kind(values)  # noqa: B905
    return _filled(structure, values)


def _filled(structure: Node, values: Sequence[Any]) -> Any:
    """One of a class of the user's, or None."""
    like: Any = structure.like
    if like is None:
        return None
    kind: Any = type(like)
    if isinstance(like, tuple):
        return getattr(kind, "_make", kind)(values)
    if isinstance(like, list):
        return kind(values)
    import copy

    # A copy keeps what the class has besides (a default factory, slots); frozen dataclasses are set past their own `__setattr__`.
    changed = copy.copy(like)
    for name in _cached_properties(like):  # computed from what the copied one holds
        del changed.__dict__[name]
    for key, value in zip(structure.keys, values, strict=True):
        if isinstance(like, dict):
            changed[key] = value
        else:
            object.__setattr__(changed, key, value)
    return changed
