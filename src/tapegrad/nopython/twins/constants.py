"""Values of globals and closures that compiled code holds: Numba freezes them, for each signature when it compiles it."""

from __future__ import annotations

import builtins
import dis
import functools
import os
import sys
import types as python_types
from collections.abc import Iterator
from typing import Any, NamedTuple

import numpy as np
from numba.core.dispatcher import Dispatcher

__all__ = [
    "Constants", "StandIn", "constants_now", "is_data", "is_distributed", "is_frozen", "kept", "lines_of", "names_of", "places_of",
    "same",
]  # fmt: skip

LIVE = 10**6  # bytes of an array from which on Numba reads the array itself instead of a copy
PACKAGES = frozenset(["numpy", "numba", "scipy", "llvmlite", "tapegrad"])


@functools.cache
def _is_standard(name: str) -> bool:
    """Whether a module is Python's own, and not one of the user's that has its name."""
    spec = getattr(sys.modules.get(name), "__spec__", None)
    if name not in sys.stdlib_module_names or spec is None:
        return False
    folder = os.path.dirname(os.path.abspath(os.__file__))
    inside = os.path.relpath(spec.origin, folder).split(os.sep)[0] if spec.has_location else ""
    return spec.origin in ("built-in", "frozen") or (spec.has_location and inside not in ("..", "site-packages", "dist-packages"))


def is_distributed(module: str | None) -> bool:
    """Whether a module belongs to Python or to packages whose values do not change."""
    top = (module or "").partition(".")[0]
    return top in PACKAGES or _is_standard(top)


class Constants(NamedTuple):
    """What a function reads from outside: by the name of a global, and by that of a variable of an outer function."""

    names: dict[str, Any]
    cells: dict[str, Any]
    inlined: dict[Any, Constants]  # the same of functions whose text Numba puts into this one


class StandIn(python_types.ModuleType):
    """A module whose attributes are as they were."""

    def __init__(self, module: Any, found: dict[str, Any]) -> None:
        super().__init__(module.__name__)
        self.__dict__.update(vars(module) | found)
        self.__dict__["$module"], self.__dict__["$found"] = module, found


@functools.lru_cache(1000)
def names_of(code: Any) -> tuple[frozenset[str], frozenset[str]]:
    """Globals that code reads, with functions inside of it, and all names of attributes."""
    read = {step.argval for step in dis.get_instructions(code) if step.opname in ("LOAD_GLOBAL", "LOAD_NAME")}
    attributes = set(code.co_names)
    for constant in code.co_consts:
        if isinstance(constant, python_types.CodeType):
            inner, more = names_of(constant)
            read |= inner
            attributes |= more
    return frozenset(read), frozenset(attributes)


def places_of(function: Any) -> Iterator[tuple[str, str, Any, str]]:
    """Where a function finds what it reads: kind, name, the dictionary or cell, and the key in it; attributes of modules too."""
    for name in sorted(names_of(function.__code__)[0] & function.__globals__.keys()):
        yield "global", name, function.__globals__, name
    for name, cell in zip(function.__code__.co_freevars, function.__closure__ or (), strict=True):
        yield "cell", name, cell, "cell_contents"


def lines_of(code: Any) -> frozenset[int]:
    """The lines that code was made of, with functions inside of it."""
    lines = {line for _, _, line in code.co_lines() if line is not None}
    inner = [lines_of(constant) for constant in code.co_consts if isinstance(constant, python_types.CodeType)]
    return frozenset(lines.union(*inner))


def constants_now(function: Any) -> Constants:
    """The values that a function would be compiled with now."""
    return _constants(function, {})


def _constants(function: Any, inlined: dict[Any, Constants]) -> Constants:
    found = Constants({}, {}, inlined)
    for name in names_of(function.__code__)[0] & vars(builtins).keys():  # a global of the same name may come, or go
        found.names[name] = vars(builtins)[name]
    for kind, name, place, key in places_of(function):
        if kind == "global":
            found.names[name] = kept(function, place[key])
        elif _is_set(place):
            found.cells[name] = kept(function, place.cell_contents)
    for value in _functions_in((*found.names.values(), *found.cells.values())):
        if value.targetoptions.get("inline", "never") != "never" and value not in inlined:
            inlined[value] = Constants({}, {}, {})  # it may call itself
            inlined[value] = _constants(value.py_func, inlined)._replace(inlined={})
    return found


def _functions_in(value: Any) -> Iterator[Any]:
    """Compiled functions that a value is or holds."""
    if isinstance(value, Dispatcher):
        yield value
    elif isinstance(value, (tuple, StandIn)):
        for item in value if isinstance(value, tuple) else vars(value)["$found"].values():
            yield from _functions_in(item)


def _is_set(cell: Any) -> bool:
    try:
        cell.cell_contents  # noqa: B018
    except ValueError:
        return False
    return True


def is_frozen(array: Any) -> bool:
    """Whether Numba copies an array into the code."""
    return bool(array.flags.forc and array.nbytes <= LIVE)


def kept(function: Any, value: Any) -> Any:
    """What a function reads, as it is now."""
    return _kept(value, names_of(function.__code__)[1])


def _kept(value: Any, attributes: frozenset[str], within: tuple[Any, ...] = ()) -> Any:
    if any(value is module for module in within):
        return value  # modules of a package import each other
    if isinstance(value, np.ndarray):
        return value.copy(order="K") if is_frozen(value) else value
    if isinstance(value, tuple):
        items = [_kept(item, attributes, within) for item in value]
        if all(map(_is, items, value)):
            return value
        return type(value)(*items) if hasattr(value, "_fields") else tuple(items)
    if isinstance(value, python_types.ModuleType) and not is_distributed(value.__name__):
        found = {name: _kept(vars(value)[name], attributes, (*within, value)) for name in sorted(attributes & vars(value).keys())}
        found = {name: item for name, item in found.items() if is_data(item) or isinstance(item, Dispatcher)}
        return StandIn(value, found) if found else value
    return value


def _is(a: Any, b: Any) -> bool:
    return a is b


def is_data(value: Any) -> bool:
    """Whether a value may become another one: it is no module, class or function of Python's."""
    return isinstance(value, (StandIn, Dispatcher)) or not (
        isinstance(value, (python_types.ModuleType, type, np.ufunc)) or callable(value)
    )


def same(a: Any, b: Any) -> bool:
    """Whether code that is compiled with two values is the same."""
    if a is b:
        return True
    if isinstance(a, Constants):
        return isinstance(b, Constants) and all(map(same, a, b))
    if type(a) is not type(b):
        return False
    if isinstance(a, np.ndarray):
        return (
            is_frozen(a) and is_frozen(b) and a.shape == b.shape and a.dtype == b.dtype
            and a.flags.c_contiguous == b.flags.c_contiguous and a.tobytes("A") == b.tobytes("A")
        )  # fmt: skip
    if isinstance(a, tuple):
        return len(a) == len(b) and all(map(same, a, b))
    if isinstance(a, StandIn):
        return vars(a)["$module"] is vars(b)["$module"] and same(vars(a)["$found"], vars(b)["$found"])
    if isinstance(a, dict):
        return a.keys() == b.keys() and all(same(a[name], b[name]) for name in a)
    if isinstance(a, np.generic):
        return a.dtype == b.dtype and a.tobytes() == b.tobytes()
    return isinstance(a, (bool, int, float, complex, str, bytes)) and repr(a) == repr(b)
