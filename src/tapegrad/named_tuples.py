"""Tuples whose items have names, for what is passed around inside: their classes are made in a tenth of the time of others.

A class of `typing.NamedTuple` is put together from a text that Python compiles, 0.2 ms of each process that imports it. Those that
users get are still that.
"""

from __future__ import annotations

from operator import itemgetter
from typing import Any, Self

__all__ = ["Named"]


class Named(tuple[Any, ...]):
    """A tuple whose items have the names that are annotated in the class, in their order."""

    __slots__ = ()

    def __init_subclass__(cls) -> None:
        """Give each item its name."""
        for number, name in enumerate(cls.__annotations__):
            setattr(cls, name, property(itemgetter(number)))

    def __new__(cls, *items: Any) -> Self:
        """The tuple of these."""
        assert len(items) == len(cls.__annotations__), f"{cls.__name__} has {len(cls.__annotations__)} items"
        return tuple.__new__(cls, items)

    def __repr__(self) -> str:
        pairs = (f"{name}={item!r}" for name, item in zip(type(self).__annotations__, self, strict=True))
        return f"{type(self).__name__}({', '.join(pairs)})"

    def replace(self, **items: Any) -> Self:
        """Another one, with these items in the place of its own."""
        return type(self)(*(items.get(name, item) for name, item in zip(type(self).__annotations__, self, strict=True)))
