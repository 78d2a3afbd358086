"""What has to be the same in each call, of all that a function sees: what `Surroundings` looks at, once more as a snapshot."""

from __future__ import annotations

import functools
import types
from typing import Any

import numpy as np

from tapegrad.programs.classes import is_installed_class, is_of_python, is_of_words
from tapegrad.programs.names_in_code import NamesInCode, is_installed_module
from tapegrad.programs.snapshots import MISSING, Snapshot, parts_in
from tapegrad.programs.surroundings import MAPPINGS, PLAIN, Surroundings, held_in_cells, is_fixed, users_in
from tapegrad.tensors.tensor import Tensor

__all__ = ["snapshot_of"]

MOST_OBJECTS = 1000  # beyond, it takes longer to write conditions out than it saves


def snapshot_of(surroundings: Surroundings, *others: Any) -> Snapshot | None:
    """A snapshot of what a function sees, and of other objects; None if there is something that is not compared quickly."""
    contents = _Contents(surroundings)
    return contents.snapshot if all(map(contents.add, (surroundings.function, *others))) else None


class _Contents:
    """What belongs to a snapshot, added object by object; False wherever only a longer look tells."""

    def __init__(self, surroundings: Surroundings) -> None:
        self._surroundings = surroundings
        self.snapshot = Snapshot()
        self._seen: set[int] = set()

    def add(self, value: Any) -> bool:
        """An object, and what it holds."""
        kind = type(value)
        if kind in PLAIN or id(value) in self._seen:
            return True
        self._seen.add(id(value))
        if len(self._seen) > MOST_OBJECTS:
            return False
        if kind is np.ndarray:
            self.snapshot.arrays.append((value, value.copy()))
            return value.dtype.kind != "O"
        if issubclass(kind, np.generic):
            return not issubclass(kind, np.void)  # which is written into
        if isinstance(value, Tensor):
            return False  # with which nothing is run again
        if kind in (tuple, list, dict):
            return self._add_container(value)
        if isinstance(value, types.ModuleType):
            return is_installed_module(value.__name__)
        if isinstance(value, types.BuiltinFunctionType):
            own = value.__self__
            return own is None or isinstance(own, types.ModuleType) or (isinstance(own, type) and self.add(own))
        if isinstance(value, types.FunctionType):
            return self._add_function(value)
        if isinstance(value, type):
            return is_installed_class(value) or self._add_class(value)
        if is_fixed(value) or kind is object:
            return True
        if hasattr(kind, "attributes_of_others"):
            return self._add_program(value)
        if kind is functools.cached_property:
            self.snapshot.ask("{0}.func is {1}", value, value.func)
            return self.add(value.func)
        parts = _parts_that_stay(value)
        if kind is functools.partial:
            is_same = "{0}.func is {1} and {0}.args is {2} and {0}.keywords is {3}"
            self.snapshot.ask(is_same, value, value.func, value.args, value.keywords)
            self._ask_of_attributes(value, vars(value))
            parts = [*(parts or ()), value.keywords, *vars(value).values()]
        return self._add_instance(value) if parts is None else all(map(self.add, parts))

    def _add_program(self, program: Any) -> bool:
        """The function of a program, whose state is none of what it gives."""
        if program.attributes_of_others():
            return False
        self.snapshot.ask("{0}.function is {1} and len({0}.__dict__) == {2}", program, program.function, len(vars(program)))
        return self.add(program.function)

    def _add_container(self, value: Any) -> bool:
        parts = list(parts_in(value))
        self.snapshot.ask("has_parts({0}, {1})", value, parts)
        return all(map(self.add, parts))

    def _add_function(self, function: types.FunctionType) -> bool:
        names = self._surroundings.names_of(function)
        if names is None:
            return self._add_closure(function)
        if names.imports or names.finds:
            return False
        found = self.snapshot
        is_same = "{0}.__code__ is {1} and {0}.__defaults__ is {2} and {0}.__kwdefaults__ is {3}"
        found.ask(is_same, function, function.__code__, function.__defaults__, function.__kwdefaults__)
        defaults = function.__defaults__ or ()
        held = function.__dict__
        if held:
            self._ask_of_attributes(function, held)
        else:
            found.ask("not {0}.__dict__", function)
        named = function.__kwdefaults__
        if not all(map(self.add, [*defaults, *held.values(), *([named] if named else [])])):
            return False
        space = function.__globals__
        skipped = self._surroundings.skipped if function is self._surroundings.function else ()
        for name in names.names:
            if name in skipped:
                continue
            part = space.get(name, MISSING)
            found.ask_of_name(space, name, part)
            if type(part) is types.ModuleType and not is_installed_module(part.__name__):
                if not self._add_module(part, names):
                    return False
            elif part is not MISSING and not self.add(part):
                return False
        for within, name, part in names.of_installed([*map(space.get, names.names), *held_in_cells(function), *defaults]):
            found.ask_of_name(within, name, part)
            if not self.add(part):
                return False
        for inner, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
            if inner not in skipped and not self._add_cell(cell):
                return False
        return True

    def _ask_of_attributes(self, value: Any, held: Any) -> None:
        self.snapshot.ask("has_attributes({0}.__dict__, {1}, {2})", value, tuple(held), tuple(held.values()))

    def _add_cell(self, cell: Any) -> bool:
        try:
            part = cell.cell_contents
        except ValueError:
            return False
        self.snapshot.ask("{0}.cell_contents is {1}", cell, part)
        return self.add(part)

    def _add_closure(self, function: types.FunctionType) -> bool:
        """What is the user's in the closure of a function of an installed package, or may be: other functions, that it wraps."""
        parts = [part for _, part in users_in(function)]
        if not parts:
            return True
        found = self.snapshot
        found.ask("has_parts({0}, {1})", vars(function), list(parts_in(vars(function))))
        for cell in function.__closure__ or ():
            try:
                found.ask("{0}.cell_contents is {1}", cell, part := cell.cell_contents)
            except ValueError:
                return False
            if isinstance(part, (*MAPPINGS, list, tuple)):
                if type(part) not in (tuple, list, dict):
                    return False
                found.ask("has_parts({0}, {1})", part, list(parts_in(part)))
        return all(map(self.add, parts))

    def _add_module(self, module: types.ModuleType, names: NamesInCode) -> bool:
        """What code names of a module of the user's; not what modules in it hold, nor what is found by text."""
        for name in (*names.names, "__getattr__"):
            part = vars(module).get(name, MISSING)
            self.snapshot.ask_of_name(vars(module), name, part)
            if part is not MISSING and not self.add(part):
                return False
        return not names.reads_attributes

    def _add_instance(self, value: Any) -> bool:
        """Attributes of an instance, and its class."""
        kind, found = type(value), self.snapshot
        if not all(base is object or is_of_words(base) for base in kind.__mro__) or not _has_usual_attributes(kind):
            return False
        found.ask("type({0}) is {1}", value, kind)
        parts: list[Any] = []
        if kind.__dictoffset__:
            held = vars(value)
            self._ask_of_attributes(value, held)
            parts += held.values()
        for base in kind.__mro__:
            for name, part in vars(base).items():
                if isinstance(part, types.MemberDescriptorType):
                    if not hasattr(value, name):
                        return False
                    own = part.__get__(value, kind)
                    found.ask("{0}({1}) is {2}", part.__get__, value, own)
                    parts.append(own)
        return self.add(kind) and all(map(self.add, parts))

    def _add_class(self, kind: type) -> bool:
        """A class of the user's, with its bases."""
        if not is_installed_class(type(kind)):
            return False
        found = self.snapshot
        found.ask("type({0}) is {1} and {0}.__bases__ is {2}", kind, type(kind), kind.__bases__)
        self._ask_of_attributes(kind, vars(kind))
        parts = [part for name, part in vars(kind).items() if not is_of_python(name, part)]
        return all(map(self.add, kind.__bases__)) and all(map(self.add, parts))


def _parts_that_stay(value: Any) -> list[Any] | None:
    """What an object of Python's own holds that is the same always; None for others."""
    if isinstance(value, types.MethodType):
        return [value.__func__, value.__self__]
    if type(value) is functools.partial:
        return [value.func, value.args]
    if type(value) in (staticmethod, classmethod):
        return [value.__func__]
    if type(value) is property:
        return [value.fget, value.fset]
    return [value.start, value.stop, value.step] if type(value) is slice else None


def _has_usual_attributes(kind: type) -> bool:
    """Whether attributes are found where they stand."""
    own = [vars(base) for base in kind.__mro__ if base is not object]
    held = [names["__dict__"] for names in own if "__dict__" in names]
    return not any("__getattribute__" in names for names in own) and all(
        isinstance(one, types.GetSetDescriptorType) for one in held
    )
