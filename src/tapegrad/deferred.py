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


# Of each `Deferred`, by its number: the class, the name, what makes it, and of what.
_owners: list[type] = []
_names: list[str] = []
_makers: list[Callable[[Any], Any]] = []
_sources: list[Any] = []


class Deferred(int):
    """An attribute of a class that is made when it is first asked for, of the class or an instance, and then takes its own place.

    There is one of these for each of a thousand attributes, in every process. They are numbers, which hold no objects, so that no
    collection of cycles looks at them, and those at the end of a process are as soon done as without them.

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

    __slots__ = ()

    def __new__(cls, owner: type, name: str, make: Callable[[Any], Any], of: Any) -> Deferred:
        """The next one."""
        _owners.append(owner)
        _names.append(name)
        _makers.append(make)
        _sources.append(of)
        return int.__new__(cls, len(_owners) - 1)

    @classmethod
    def attach(cls, owner: type, table: Mapping[str, tuple[Callable[[Any], Any], Any]]) -> None:
        """Give a class attributes that are made when they are asked for: by name, what makes each, and of what."""
        first = len(_owners)
        _owners.extend([owner] * len(table))
        _names.extend(table)
        _makers.extend([make for make, _ in table.values()])
        _sources.extend([of for _, of in table.values()])
        for number, name in enumerate(table, first):
            setattr(owner, name, int.__new__(cls, number))

    def __repr__(self) -> str:
        return f"<{_owners[self].__name__}.{_names[self]}, not asked for yet>"

    def _settle(self) -> Any:
        owner, name = _owners[self], _names[self]
        made = _makers[self](_sources[self])
        if vars(owner).get(name) is self:  # else another thread was first, or the user put something there
            setattr(owner, name, made)
        return made

    def __get__(self, t: Any, owner: Any) -> Any:
        return self._settle().__get__(t, owner)

    def __set__(self, t: Any, value: Any) -> None:
        self._settle()
        setattr(t, _names[self], value)

    def __delete__(self, t: Any) -> None:
        self._settle()
        delattr(t, _names[self])


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
