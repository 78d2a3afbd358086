"""What is imported when it is first asked for: attributes of modules and of classes that stand for what another file defines."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, partial
from importlib import import_module
from typing import Any

__all__ = ["Deferred", "MadeOnDemand", "NamesOnDemand", "look_up", "places"]


@cache
def look_up(place: str) -> Any:
    """A module of the package, or what one defines: ``"file"`` or ``"file:name"``."""
    file, _, name = place.partition(":")
    module = import_module(f"tapegrad.{file}")
    return getattr(module, name) if name else module


def places(files: Mapping[str, str]) -> dict[str, Callable[[], Any]]:
    """What gives each name of a table of files and the names in them, among which a dot stands for the file itself."""
    found: dict[str, Callable[[], Any]] = {}
    for file, names in files.items():
        for name in names.split():
            if name == ".":
                found[file.rpartition(".")[2]] = partial(look_up, file)
            else:
                found[name] = partial(look_up, f"{file}:{name}")
    return found


class MadeOnDemand(dict[Any, Any]):
    """A table whose values are made, each from its key, when they are first asked for.

    Parameters
    ----------
    make : callable
        Raises `KeyError` for a key that has none.
    """

    __slots__ = ("_make",)

    def __init__(self, make: Callable[[Any], Any]) -> None:
        super().__init__()
        self._make = make

    def __missing__(self, key: Any) -> Any:
        return self.setdefault(key, self._make(key))  # another thread may have been first


class Deferred:
    """An attribute of a class that is made when it is first asked for, of the class or an instance, and then takes its own place.

    Parameters
    ----------
    owner : type
        The class.
    name : str
        Name of the attribute.
    make : callable
        Gives what the attribute is to be: a function, a property.
    """

    __slots__ = ("make", "name", "owner")

    def __init__(self, owner: type, name: str, make: Callable[[], Any]) -> None:
        self.owner, self.name, self.make = owner, name, make

    def _settle(self) -> Any:
        made = self.make()
        if vars(self.owner).get(self.name) is self:  # else another thread was first, or the user put something there
            setattr(self.owner, self.name, made)
        return made

    def __get__(self, t: Any, owner: Any) -> Any:
        return self._settle().__get__(t, owner)

    def __set__(self, t: Any, value: Any) -> None:
        self._settle()
        setattr(t, self.name, value)

    def __delete__(self, t: Any) -> None:
        self._settle()
        delattr(t, self.name)


class NamesOnDemand:
    """Names of a module that are made when they are first asked for, and then are attributes like others.

    Parameters
    ----------
    space : dict
        The module's namespace.
    made : mapping of str to callable
        What gives each.
    """

    def __init__(self, space: dict[str, Any], made: Mapping[str, Callable[[], Any]]) -> None:
        self._space, self._made = space, made

    def get(self, name: str) -> Any:
        """For the module's ``__getattr__``."""
        make = self._made.get(name)
        if make is None:
            raise AttributeError(f"module {self._space['__name__']!r} has no attribute {name!r}")
        return self._space.setdefault(name, make())  # another thread may have been first

    def listed(self) -> list[str]:
        """For the module's ``__dir__``."""
        return sorted({*self._space, *self._made})
