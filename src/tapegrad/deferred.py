"""What is imported when it is first asked for: attributes of modules and of classes that stand for what another file defines."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from functools import cache
from importlib import import_module
from typing import Any

__all__ = ["Deferred", "MadeOnDemand", "NamesOnDemand", "look_up", "places"]


@cache
def look_up(place: str) -> Any:
    """A module of the package, or what one defines: ``"file"`` or ``"file:name"``."""
    file, _, name = place.partition(":")
    module = import_module(f"tapegrad.{file}")
    return getattr(module, name) if name else module


def places(files: Mapping[str, str]) -> dict[str, str]:
    """Place of each name of a table of files and the names in them, among which a dot stands for the file itself."""
    found: dict[str, str] = {}
    for file, names in files.items():
        for name in names.split():
            if name == ".":
                found[file.rpartition(".")[2]] = file
            else:
                found[name] = f"{file}:{name}"
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

    There is one of these for each of a thousand attributes, in every process: they hold no objects of their own.

    Parameters
    ----------
    owner : type
        The class.
    name : str
        Name of the attribute.
    make : callable
        Gives what the attribute is to be: a function, a property.
    of : object
        What `make` is called with.
    """

    __slots__ = ("make", "name", "of", "owner")

    def __init__(self, owner: type, name: str, make: Callable[[Any], Any], of: Any) -> None:
        self.owner, self.name, self.make, self.of = owner, name, make, of

    def _settle(self) -> Any:
        made = self.make(self.of)
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
    places : mapping of str to str
        Where each is found.
    own : collection of str
        Further names, which no place has.
    make : callable
        Gives what one of these stands for.
    """

    def __init__(
        self, space: dict[str, Any], places: Mapping[str, str], own: Collection[str] = (), make: Callable[[str], Any] = look_up
    ) -> None:
        self._space, self._places, self._own, self._make = space, places, own, make

    def get(self, name: str) -> Any:
        """For the module's ``__getattr__``."""
        if name in self._places:
            found = look_up(self._places[name])
        elif name in self._own:
            found = self._make(name)
        else:
            own = self._space["__name__"]
            instead = look_up("absent_names:advice")(own).get(name)
            raise AttributeError(f"module {own!r} has no attribute {name!r}{'' if instead is None else f'; {instead}'}")
        return self._space.setdefault(name, found)  # another thread may have been first

    def listed(self) -> list[str]:
        """For the module's ``__dir__``."""
        return sorted({*self._space, *self._places, *self._own})
