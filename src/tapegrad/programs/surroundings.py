"""What a function sees besides its arguments: closure, defaults, globals that its code names, the object that it is a method of.

Arrays found there are compared by their contents, numbers, text and the like by value, and every other object must be the same
one. Containers, instances and their classes are followed three levels deep, and so are modules that are not installed, as far as
code names what is in them; Python functions that are not of an installed package are functions like the first one. What nobody can
look into, such as iterators, refuses the program.
"""

from __future__ import annotations

import collections
import datetime
import decimal
import enum
import fractions
import functools
import logging
import os
import pathlib
import re
import site
import sys
import sysconfig
import threading
import types
from collections.abc import Iterator
from typing import Any

import numpy as np

from tapegrad.frames import PACKAGE
from tapegrad.tensors.tensor import Tensor, array_of

__all__ = ["PLAIN", "Arrays", "Snapshot", "Surroundings", "Unseen", "same_bits"]

DEPTH = 3
PLAIN = (bool, int, float, complex, str, bytes, type(None))
# Objects that cannot change.
FIXED = (
    np.ufunc, np.dtype, range, slice, type(Ellipsis), type(NotImplemented), type(np.sum), re.Pattern,
    decimal.Decimal, fractions.Fraction,
    datetime.date, datetime.time, datetime.timedelta, enum.Enum, np.generic, types.CodeType, types.GenericAlias, pathlib.PurePath,
    # and those that only act on others
    logging.Logger, type(threading.Lock()), type(threading.RLock()),
)  # fmt: skip
Arrays = list[tuple[str, np.ndarray[Any, Any]]]
_INSTALLED = tuple(
    {
        os.path.realpath(path) + os.sep
        for path in [
            *site.getsitepackages(),
            site.getusersitepackages(),
            *map(sysconfig.get_path, ("stdlib", "purelib", "platlib")),
        ]
        if path
    }
    | {PACKAGE}
)
_MISSING = object()
WORDS = {1: np.uint8, 2: np.uint16, 4: np.uint32, 8: np.uint64}  # whose comparison knows no nan
SMALL = 4096  # bytes up to which a copy costs less than two views
HEAP_TYPE = 1 << 9  # flag of classes that are made while a program runs
SEQUENCES = (list, tuple, set, frozenset, collections.deque)
MAPPINGS = (dict, types.MappingProxyType)
HOLDING = (
    object,
    *SEQUENCES,
    *MAPPINGS,
    collections.defaultdict,
    collections.OrderedDict,
    types.SimpleNamespace,
)  # all of them in C
WORD = tuple.__itemsize__


class Unseen(Exception):  # noqa: N818 - it never reaches a user
    """Something that a function sees and programs cannot look into."""


@functools.cache
def is_installed_file(name: str | None) -> bool:
    """Whether a file belongs to an installed package, to Python or to this package; what has no file does."""
    return name is None or name.startswith("<frozen") or os.path.realpath(name).startswith(_INSTALLED)


@functools.cache
def is_installed_module(name: str | None) -> bool:
    """The same of a module by its name; one that has no file is Python's or somebody's own."""
    module = sys.modules.get(name or "")
    file = getattr(module, "__file__", None)
    return (name or "").partition(".")[0] in sys.stdlib_module_names if file is None else is_installed_file(file)


def names_of(code: types.CodeType) -> set[str]:
    """Names that code, and what is defined in it, may read from its globals or as attributes."""
    found = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            found |= names_of(constant)
    return found


def same_bits(a: Any, b: Any) -> bool:
    """Whether two arrays have the same contents."""
    if a.shape != b.shape or a.dtype != b.dtype:
        return False
    if a.nbytes > SMALL and a.flags.c_contiguous and b.flags.c_contiguous and a.itemsize in WORDS and a.dtype.kind != "O":
        word = WORDS[a.itemsize]
        return bool(np.array_equal(a.reshape(-1).view(word), b.reshape(-1).view(word)))
    return bool(a.tobytes() == b.tobytes())


class Snapshot:
    """What functions saw at one time, by identity, and the contents of arrays."""

    __slots__ = ("arrays", "cells", "functions", "names")

    def __init__(self) -> None:
        self.arrays: list[tuple[np.ndarray[Any, Any], np.ndarray[Any, Any]]] = []
        self.names: list[tuple[dict[str, Any], str, Any]] = []
        self.cells: list[tuple[Any, Any]] = []
        self.functions: list[tuple[Any, Any, Any, Any]] = []

    def holds(self) -> bool:
        """Whether everything is the same still."""
        for space, name, part in self.names:
            if space.get(name, _MISSING) is not part:
                return False
        for cell, part in self.cells:
            if cell.cell_contents is not part:
                return False
        for function, code, defaults, named in self.functions:
            if function.__code__ is not code or function.__defaults__ is not defaults or function.__kwdefaults__ is not named:
                return False
        return all(same_bits(array, kept) for array, kept in self.arrays)


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
    """

    __slots__ = ("_function", "_names")

    def __init__(self, function: Any) -> None:
        self._function = function
        self._names: dict[types.CodeType, tuple[str, ...] | None] = {}  # None for code of installed packages

    def look(self, *others: Any) -> tuple[tuple[Any, ...], list[Any], Arrays]:
        """What there is, of other objects too: a key that is equal while it is the same, objects whose identity is in it, arrays.

        Raises
        ------
        Unseen
            If something cannot be looked into.
        """
        view = _View()
        for value in (self._function, *others):
            self._follow(value, "", 0, view)
        return tuple(view.key), view.objects, view.arrays

    def snapshot(self) -> Snapshot | None:
        """What is there now, if it can be compared quickly: numbers, text and functions, no containers, arrays or instances."""
        found = Snapshot()
        return found if self._add(self._function, found, set()) else None

    def _add(self, value: Any, found: Snapshot, seen: set[int]) -> bool:
        if type(value) in PLAIN or id(value) in seen:
            return True
        seen.add(id(value))
        if type(value) is np.ndarray:
            found.arrays.append((value, value.copy()))
            return value.dtype.kind != "O"
        if isinstance(value, types.ModuleType):
            return is_installed_module(value.__name__)
        if isinstance(value, types.BuiltinFunctionType):
            return value.__self__ is None or isinstance(value.__self__, types.ModuleType)
        if not isinstance(value, types.FunctionType):
            return isinstance(value, FIXED) or (isinstance(value, type) and is_installed_module(value.__module__))
        names = self._names_of(value)
        if names is None:
            return True
        found.functions.append((value, value.__code__, value.__defaults__, value.__kwdefaults__))
        if value.__dict__ or value.__kwdefaults__ or any(type(part) not in PLAIN for part in value.__defaults__ or ()):
            return False
        space = value.__globals__
        for name in names:
            part = space.get(name, _MISSING)
            found.names.append((space, name, part))
            if part is not _MISSING and not self._add(part, found, seen):
                return False
        for cell in value.__closure__ or ():
            try:
                part = cell.cell_contents
            except ValueError:
                return False
            found.cells.append((cell, part))
            if not self._add(part, found, seen):
                return False
        return True

    def _follow(self, value: Any, path: str, depth: int, view: _View, names: tuple[str, ...] = ()) -> None:
        kind = type(value)
        if kind in PLAIN:
            view.key += (kind, value if kind is not float and kind is not complex else repr(value))
            return
        view.objects.append(value)
        view.key.append(id(value))
        if id(value) in view.seen:
            return
        view.seen.add(id(value))
        if isinstance(value, np.ndarray):
            view.key.append((value.shape, value.dtype, value.strides))
            view.arrays.append((path, np.asarray(value)))
            if kind is not np.ndarray:
                raise Unseen(f"{path or 'it'} is {kind.__name__}, an array of another class")
        elif isinstance(value, Tensor):
            if value._row:
                raise Unseen(f"{path} is a tensor that requires grad")
            view.arrays.append((path, array_of(value)))
        elif isinstance(value, FIXED):
            return
        else:
            for name, part in self._inside(value, path, depth, names):
                self._follow(part, f"{path}.{name}" if path else name, depth + (not callable(value)), view, names)

    def _inside(self, value: Any, path: str, depth: int, names: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
        """What an object holds, with its name in it."""
        if isinstance(value, types.FunctionType):
            seen = self._names_of(value)
            if seen is not None:
                yield from self._seen_by(value, seen)
        elif isinstance(value, types.MethodType):
            yield from (("__func__", value.__func__), ("self", value.__self__))
        elif isinstance(value, types.BuiltinFunctionType):
            if value.__self__ is not None and not isinstance(value.__self__, types.ModuleType):
                yield "__self__", value.__self__
        elif hasattr(type(value), "__replay__"):  # a program, whose state is none of what it gives
            yield from (("function", value.function), ("self", getattr(value, "owner", None)))
        elif isinstance(value, functools.partial):
            yield from (("func", value.func), ("args", value.args), ("keywords", value.keywords))
        elif isinstance(value, types.ModuleType):
            if not is_installed_module(value.__name__):
                for name in names:
                    if name in vars(value):
                        yield name, vars(value)[name]
        elif isinstance(value, (staticmethod, classmethod)):
            yield "__func__", value.__func__
        elif isinstance(value, property):
            yield "fget", value.fget
        elif isinstance(value, functools.cached_property):
            yield "func", value.func
        elif isinstance(value, type):
            if not is_installed_module(value.__module__):
                yield from (
                    (f"{value.__name__}.{name}", part) for name, part in vars(value).items() if not _is_of_python(name, part)
                )
                yield from (("base", base) for base in value.__bases__)
        elif depth < DEPTH:
            yield from self._held(value, path)

    def _held(self, value: Any, path: str) -> Iterator[tuple[str, Any]]:
        """What a container or an instance holds."""
        if isinstance(value, MAPPINGS):
            for name, part in list(value.items()):
                yield f"[{name!r}]", name
                yield f"[{name!r}]", part
        elif isinstance(value, SEQUENCES):
            yield from ((f"[{k}]", part) for k, part in enumerate(value))
        if not all(base in HOLDING or _is_of_words(base) for base in type(value).__mro__) or type(value) is object:
            raise Unseen(f"{path or 'it'} is {type(value).__name__}, which programs cannot look into")
        yield "class", type(value)
        yield from list(getattr(value, "__dict__", {}).items())
        for kind in type(value).__mro__:
            slots = vars(kind).get("__slots__", ())
            for name in (slots,) if isinstance(slots, str) else slots:
                if hasattr(value, name) and not name.startswith("__"):
                    yield name, getattr(value, name)

    def _names_of(self, function: types.FunctionType) -> tuple[str, ...] | None:
        code = function.__code__
        if code not in self._names:
            self._names[code] = None if is_installed_file(code.co_filename) else tuple(sorted(names_of(code)))
        return self._names[code]

    def _seen_by(self, function: types.FunctionType, names: tuple[str, ...]) -> Iterator[tuple[str, Any]]:
        code = function.__code__
        space = function.__globals__
        for name in names:
            part = space.get(name, _MISSING)
            if isinstance(part, types.ModuleType):
                if not is_installed_module(part.__name__):
                    for inner in names:
                        if inner in vars(part):
                            yield f"{name}.{inner}", vars(part)[inner]
            elif part is not _MISSING:
                yield name, part
        for name, cell in zip(code.co_freevars, function.__closure__ or (), strict=True):
            try:
                yield name, cell.cell_contents
            except ValueError:  # not yet bound
                yield name, None
        yield from ((str(k), part) for k, part in enumerate(function.__defaults__ or ()))
        yield from (function.__kwdefaults__ or {}).items()
        yield from function.__dict__.items()


# What Python, its dataclasses, abstract classes and generic ones write into classes.
_MADE_BY_PYTHON = """
__dict__ __weakref__ __doc__ __module__ __annotations__ __annotate__ __annotate_func__ __annotations_cache__ __slots__
__firstlineno__ __static_attributes__ __dataclass_params__ __dataclass_fields__ __match_args__ __abstractmethods__ _abc_impl
__orig_bases__ __parameters__ __type_params__ __protocol_attrs__ __non_callable_proto_members__
"""
_OF_PYTHON = frozenset(_MADE_BY_PYTHON.split())
_TUPLE_GETTER = type(vars(collections.namedtuple("_Pair", "first"))["first"])


def _is_of_python(name: str, part: Any) -> bool:
    """Whether an attribute of a class is one that Python made."""
    return name in _OF_PYTHON or isinstance(part, (types.MemberDescriptorType, types.GetSetDescriptorType, _TUPLE_GETTER))


def _is_of_words(kind: type) -> bool:
    """Whether instances hold attributes only: classes made by C code have memory of their own beside them."""
    base = kind.__base__
    if not kind.__flags__ & HEAP_TYPE or base is None:
        return False
    slots = sum(type(part) is types.MemberDescriptorType for part in vars(kind).values())
    dicts = (kind.__dictoffset__ > 0) - (base.__dictoffset__ > 0)
    references = (kind.__weakrefoffset__ > 0) - (base.__weakrefoffset__ > 0)
    return kind.__basicsize__ == base.__basicsize__ + WORD * (slots + dicts + references)
