"""Instances of compiled classes and structures as arguments: a recording runs on the caller's, which are put back as they were."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

import numba
import numpy as np
from numba.core.errors import NumbaError
from numba.experimental.jitclass import _box

from tapegrad.nopython.arguments.classes import IMMUTABLE, INSTANCES, TYPED, has_fixed_memory, identity, plain_items

__all__ = ["fields", "restored"]


@functools.cache
def _of_structure(name: str) -> tuple[Any, Any]:
    """Compiled functions that read and write a field of a structure; only some fields have attributes in Python."""
    space: dict[str, Any] = {}
    exec(f"def read(s):\n    return s.{name}\ndef write(s, v):\n    s.{name} = v", space)
    return numba.njit(space["read"]), numba.njit(space["write"])


def _get(instance: Any, name: str) -> Any:
    return getattr(instance, name) if isinstance(instance, _box.Box) else _of_structure(name)[0](instance)


def _set(instance: Any, name: str, value: Any) -> None:
    if isinstance(instance, _box.Box):
        setattr(instance, name, value)
    else:
        _of_structure(name)[1](instance, value)


def fields(instance: Any) -> Iterator[tuple[str, Any]]:
    """Names and values of everything that an instance holds."""
    kind = instance._numba_type_
    for name in kind.struct if isinstance(instance, _box.Box) else kind.field_dict:
        yield name, _get(instance, name)


@contextmanager
def restored(function: str, arguments: list[Any]) -> Iterator[None]:
    """Give all instances in the arguments back what they hold now.

    Raises
    ------
    TypeError
        If one holds what cannot be put back.
    """
    before = _Before(function)
    for argument in arguments:
        before.look_for(argument)
    before.put_back()  # what cannot be put back is found before anything has changed
    try:
        yield
    finally:
        before.put_back()


class _Before:
    """What instances held, in all depth."""

    def __init__(self, function: str) -> None:
        self.function = function
        self.steps: list[tuple[str, Callable[[], None]]] = []
        self.seen: set[Any] = set()

    def put_back(self) -> None:
        for place, step in self.steps:
            try:
                step()
            except (NumbaError, TypeError, AttributeError) as error:
                raise self.refused(place) from error

    def refused(self, place: str) -> TypeError:
        return TypeError(
            f"{self.function}: {place} is nothing that can be put back as it was after the call: numbers, arrays, tuples, "
            "instances and typed containers can; pass it as an argument of its own"
        )

    def look_for(self, value: Any) -> None:
        """Instances in a container, which is a copy itself."""
        if isinstance(value, (tuple, list, *TYPED)) and not plain_items(value):
            for item in value.values() if isinstance(value, numba.typed.Dict) else value:
                self.look_for(item)
        elif isinstance(value, INSTANCES):
            self.keep(value, "")

    def keep(self, value: Any, place: str) -> None:
        """Anything that an instance holds."""
        if isinstance(value, np.ndarray):
            if value.flags.writeable:
                self.steps.append((place, functools.partial(np.copyto, value, value.copy())))
        elif isinstance(value, tuple):
            for item in value:
                self.keep(item, place)
        elif isinstance(value, (*INSTANCES, *TYPED)):
            key = value._numba_type_, identity(value)
            if key in self.seen:  # an instance may hold itself
                return
            self.seen.add(key)
            if isinstance(value, TYPED):
                self.keep_items(value, place)
                return
            for name, item in fields(value):
                inner = f"the attribute {name} of an instance of {type(value).__name__}"
                self.steps.append((inner, functools.partial(_set, value, name, item)))
                self.keep(item, inner)
        elif not isinstance(value, IMMUTABLE) or has_fixed_memory(value):
            raise self.refused(f"{place}, {type(value).__name__},")

    def keep_items(self, value: Any, place: str) -> None:
        """Items of a typed container, and what these hold."""
        items = list(value.items()) if isinstance(value, numba.typed.Dict) else list(value)
        self.steps.append((place, functools.partial(_refill, value, items)))
        if not plain_items(value):
            for item in items:
                self.keep(item[1] if isinstance(value, numba.typed.Dict) else item, place)


def _refill(container: Any, items: list[Any]) -> None:
    container.clear()
    for item in items:
        if isinstance(container, numba.typed.Dict):
            container[item[0]] = item[1]
        elif isinstance(container, numba.typed.List):
            container.append(item)
        else:
            container.add(item)
