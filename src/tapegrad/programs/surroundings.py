"""What a function sees besides its arguments: closure, defaults, globals that its code names, the object that it is a method of.

Arrays found there are compared by their contents, numbers, text and the like by value, and every other object must be the same
one. Containers, instances and their classes are followed, and so are modules that are not installed, as far as code names what is
in them; Python functions that are not of an installed package are functions like the first one, and of installed ones the user's
functions and objects that they hold are followed. What nobody can look into, such as iterators, refuses the program.
"""

from __future__ import annotations

import collections
import datetime
import decimal
import fractions
import functools
import logging
import pathlib
import re
import threading
import types
from collections.abc import Iterator
from typing import Any

import numpy as np

from tapegrad.frames import PACKAGE
from tapegrad.programs.classes import is_installed_class, is_of_python, is_of_words
from tapegrad.programs.names_in_code import NamesInCode, all_of, is_installed_file, is_installed_module
from tapegrad.programs.snapshots import MISSING
from tapegrad.tensors.tensor import Tensor, array_of

__all__ = ["MAPPINGS", "PLAIN", "Arrays", "Surroundings", "Unseen", "held_in_cells", "is_fixed", "users_in"]

DEPTH = 100
MOST_OBJECTS = 100_000
PLAIN = (bool, int, float, complex, str, bytes, type(None))
# Objects that cannot change.
FIXED = (
    np.ufunc, np.dtype, range, type(Ellipsis), type(NotImplemented), type(np.sum), re.Pattern,
    decimal.Decimal, fractions.Fraction,
    datetime.date, datetime.time, datetime.timedelta, types.CodeType, types.GenericAlias, pathlib.PurePath,
    # and those that only act on others
    logging.Logger, type(threading.Lock()), type(threading.RLock()),
)  # fmt: skip
OF_C = (np.ufunc, types.BuiltinFunctionType, type(np.sum))  # functions that installed modules have
Arrays = list[tuple[str, np.ndarray[Any, Any]]]
SEQUENCES = (list, tuple, set, frozenset, collections.deque)
USUAL = frozenset([types.FunctionType, types.MethodType, property, staticmethod, classmethod, type, list, tuple, dict])
MAPPINGS = (dict, types.MappingProxyType)
HOLDING = (
    object,
    *SEQUENCES,
    *MAPPINGS,
    collections.defaultdict,
    collections.OrderedDict,
    types.SimpleNamespace,
)  # all of them in C


class Unseen(Exception):  # noqa: N818 - it never reaches a user
    """Something that a function sees and programs cannot look into."""


def is_fixed(value: Any) -> bool:
    """Whether an object cannot change; classes of the user's may have attributes, and ufuncs of objects call Python functions."""
    if isinstance(value, np.ufunc):
        return value.ntypes > 1 or "O" not in value.types[0]
    return isinstance(value, FIXED) and is_installed_class(type(value))


class _View:
    """What is seen at one time: key, objects whose identity is in it, arrays, and what was looked at."""

    __slots__ = ("arrays", "key", "objects", "seen")

    def __init__(self) -> None:
        self.key: list[Any] = []
        self.objects: list[Any] = []
        self.arrays: Arrays = []
        self.seen: set[int] = set()


class Surroundings:
    """What a function sees, looked at each time.

    Parameters
    ----------
    function : callable

    Attributes
    ----------
    function : callable
    skipped : frozenset of str
        Names in its code whose values are no part of it.
    recurs : bool
        Whether the function was met again, by what it sees.
    """

    __slots__ = ("_names", "function", "recurs", "skipped")

    def __init__(self, function: Any) -> None:
        self.function = function
        self.skipped: frozenset[str] = frozenset()  # names of the function itself that are not looked at
        self.recurs = False  # whether the function was met again
        self._names: dict[types.CodeType, NamesInCode | None] = {}  # None for code of installed packages
        while isinstance(function, (functools.partial, types.MethodType)):
            function = function.func if isinstance(function, functools.partial) else function.__func__
        code = getattr(function, "__code__", None)
        if isinstance(code, types.CodeType) and not code.co_filename.startswith(PACKAGE):
            self._names[code] = NamesInCode(code)  # wherever it is from

    def look(self, *others: Any) -> tuple[tuple[Any, ...], list[Any], Arrays]:
        """What there is, of other objects too: a key that is equal while it is the same, objects whose identity is in it, arrays.

        Raises
        ------
        Unseen
            If something cannot be looked into.
        """
        view = _View()
        for value in (self.function, *others):
            self._follow(value, "", 0, view)
        return tuple(view.key), view.objects, view.arrays

    def _follow(self, value: Any, path: str, depth: int, view: _View, names: NamesInCode | None = None) -> None:
        kind = type(value)
        if kind in PLAIN:
            view.key += (kind, value if kind is not float and kind is not complex else repr(value))
            return
        held = kind in USUAL
        if not held and issubclass(type(value), np.generic) and not value.dtype.hasobject:
            view.key += (kind, value.dtype, value.tobytes())
            return
        view.objects.append(value)
        view.key.append(id(value))
        if id(value) in view.seen:
            self.recurs |= value is self.function
            return
        view.seen.add(id(value))
        if depth > DEPTH or len(view.seen) > MOST_OBJECTS:
            raise Unseen(f"{path} is {kind.__name__}, and there is too much to look into")
        if kind is types.FunctionType:
            view.objects.append(value.__code__)
            view.key.append(id(value.__code__))
        if not held and issubclass(type(value), np.ndarray):
            self._add_array(value, path, view)
            if kind is not np.ndarray:
                raise Unseen(f"{path or 'it'} is {kind.__name__}, an array of another class")
        elif not held and isinstance(value, Tensor):
            if value._row:
                raise Unseen(f"{path} is a tensor that requires grad")
            self._add_array(array_of(value), path, view)
        elif not held and (is_fixed(value) or kind is object):
            return
        else:
            for name, part in self._inside(value, path, names):
                if not name:
                    view.objects.append(part)
                    view.key.append(id(part))
                    continue
                if not name.startswith("["):  # what has no order: names may come and go
                    view.key.append(name)
                self._follow(part, f"{path}.{name}" if path else name, depth + 1, view, names)

    def _add_array(self, array: np.ndarray[Any, Any], path: str, view: _View) -> None:
        if array.dtype.hasobject:
            raise Unseen(f"{path or 'it'} is an array of objects")
        view.key.append((array.shape, array.dtype, array.strides))
        view.arrays.append((path, np.asarray(array)))

    def _inside(self, value: Any, path: str, names: NamesInCode | None) -> Iterator[tuple[str, Any]]:
        """What an object holds, with its name in it, which is empty where nothing more is to be looked at."""
        if isinstance(value, types.FunctionType):
            seen = self.names_of(value)
            yield from users_in(value) if seen is None else self._seen_by(value, seen)
        elif isinstance(value, types.MethodType):
            yield from (("__func__", value.__func__), ("self", value.__self__))
        elif isinstance(value, types.BuiltinFunctionType):
            if value.__self__ is not None and not isinstance(value.__self__, types.ModuleType):
                yield "__self__", value.__self__
        elif hasattr(type(value), "__replay__"):  # a program, whose state is none of what it gives
            yield from (("function", value.function), ("self", getattr(value, "owner", None)))
            yield from value.attributes_of_others().items()
        elif isinstance(value, functools.partial):
            yield from (("func", value.func), ("args", value.args), ("keywords", value.keywords))
            yield from vars(value).items()
            if type(value) is not functools.partial:
                yield "class", type(value)
        elif isinstance(value, slice):
            yield from (("start", value.start), ("stop", value.stop), ("step", value.step))
        elif isinstance(value, types.ModuleType):
            if not is_installed_module(value.__name__):
                yield from ((name, vars(value)[name]) for name in (all_of(value) if names is None else names.of_module(value)))
        elif isinstance(value, (staticmethod, classmethod)):
            yield "__func__", value.__func__
        elif isinstance(value, property):
            yield from (("fget", value.fget), ("fset", value.fset))
        elif isinstance(value, functools.cached_property):
            yield "func", value.func
        elif isinstance(value, type):
            if not is_installed_class(value):
                yield from (
                    (f"{value.__name__}.{name}", part) for name, part in vars(value).items() if not is_of_python(name, part)
                )
                yield from (("base", base) for base in value.__bases__)
                yield "metaclass", type(value)
        else:
            yield from self._held(value, path)

    def _held(self, value: Any, path: str) -> Iterator[tuple[str, Any]]:
        """What a container or an instance holds."""
        if isinstance(value, MAPPINGS):
            for name, part in list(value.items()):
                yield f"[{name!r}]", name
                yield f"[{name!r}]", part
        elif isinstance(value, SEQUENCES):
            yield from ((f"[{k}]", part) for k, part in enumerate(value))
        if not all(base in HOLDING or is_of_words(base) for base in type(value).__mro__) or type(value) is object:
            raise Unseen(f"{path or 'it'} is {type(value).__name__}, which programs cannot look into")
        yield "class", type(value)
        if isinstance(value, collections.defaultdict):
            yield "default_factory", value.default_factory
        yield from list(getattr(value, "__dict__", {}).items())
        for kind in type(value).__mro__:
            for name, part in vars(kind).items() if kind not in HOLDING else ():  # of slots, whose names may be mangled
                if isinstance(part, types.MemberDescriptorType) and hasattr(value, name):
                    yield name, getattr(value, name)

    def names_of(self, function: types.FunctionType) -> NamesInCode | None:
        """What the code of a function names; None for functions of installed packages."""
        code = function.__code__
        if code not in self._names:
            self._names[code] = None if is_installed_file(code.co_filename) else NamesInCode(code)
        return self._names[code]

    def _seen_by(self, function: types.FunctionType, names: NamesInCode) -> Iterator[tuple[str, Any]]:
        code = function.__code__
        space = function.__globals__
        if names.finds_globals(space):
            raise Unseen(f"{code.co_qualname} finds by {names.finds} what programs cannot see")
        skipped = self.skipped if function is self.function else ()
        for name in names.names:
            part = MISSING if name in skipped else space.get(name, MISSING)
            if isinstance(part, types.ModuleType):
                if not is_installed_module(part.__name__):
                    yield from ((f"{name}.{inner}", vars(part)[inner]) for inner in names.of_module(part))
            elif part is not MISSING:
                yield name, part
        imported = names.imported(space)
        for module in imported:
            if not is_installed_module(module.__name__):
                yield from ((f"{module.__name__}.{inner}", vars(module)[inner]) for inner in names.of_module(module))
        modules = *map(space.get, names.names), *imported, *held_in_cells(function), *(function.__defaults__ or ())
        for _, name, part in names.of_installed(modules):
            yield "" if isinstance(part, OF_C) else name, part
        for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
            if name in skipped:
                continue
            try:
                yield name, cell.cell_contents
            except ValueError:  # not yet bound
                yield name, Ellipsis
        yield from ((str(k), part) for k, part in enumerate(function.__defaults__ or ()))
        yield from (function.__kwdefaults__ or {}).items()
        yield from function.__dict__.items()


def held_in_cells(function: types.FunctionType) -> list[Any]:
    """What a function's closure holds; what is not yet bound is left out."""
    found = []
    for cell in function.__closure__ or ():
        try:
            found.append(cell.cell_contents)
        except ValueError:
            continue
    return found


def users_in(function: types.FunctionType) -> Iterator[tuple[str, Any]]:
    """What is the user's among what a function of an installed package holds: its closure, as decorators make it.

    Attributes of a function that is made of one of the user's are the user's.
    """
    own, decorates = function.__code__.co_filename.startswith(PACKAGE), False
    for part in held_in_cells(function):
        held = part.values() if isinstance(part, MAPPINGS) else part if isinstance(part, (list, tuple)) else ()
        for k, one in enumerate((part, *held)):
            if _may_be_users(one) or (issubclass(type(one), np.ndarray) and not own):
                decorates |= not _is_installed(one)
                yield f"cell {k}", one
    for name, part in vars(function).items() if decorates else ():
        if type(part) in PLAIN or isinstance(part, (np.ndarray, *SEQUENCES, *MAPPINGS)) or _may_be_users(part):
            yield name, part


def _is_installed(value: Any) -> bool:
    """Whether a function is of an installed package."""
    while isinstance(value, (functools.partial, types.MethodType)):
        value = value.func if isinstance(value, functools.partial) else value.__func__
    return isinstance(value, types.FunctionType) and is_installed_file(value.__code__.co_filename)


def _may_be_users(value: Any) -> bool:
    if isinstance(value, (types.FunctionType, types.MethodType, functools.partial)):
        return True
    return not is_installed_class(value if isinstance(value, type) else type(value))
