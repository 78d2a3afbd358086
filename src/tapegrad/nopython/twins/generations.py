"""Which functions a recording was compiled from, and whether Numba calls other ones now."""

from __future__ import annotations

import weakref
from collections.abc import Callable, Iterable
from typing import Any

import numba.core.event as event
import numpy as np
from numba.core import ir
from numba.core.compiler_machinery import FunctionPass, register_pass

from tapegrad.nopython.twins.compiled_versions import changed, constants_of, overload_of
from tapegrad.nopython.twins.constants import (
    Constants,
    StandIn,
    constants_now,
    is_data,
    is_frozen,
    lines_of,
    names_of,
    places_of,
    same,
)

__all__ = ["COMPILATIONS", "COMPILING", "NODES", "Freeze", "FreezeInlined", "Node", "outdate", "reached", "watch"]


class Compilations(event.Listener):  # type: ignore[misc]
    """Counts how often Numba has compiled something, or taken it from its cache."""

    count = 0

    def on_start(self, event: Any) -> None:
        """Nothing has changed yet."""

    def on_end(self, event: Any) -> None:
        """Something may have been compiled."""
        self.count += 1


COMPILATIONS = Compilations()
event.register("numba:compiler_lock", COMPILATIONS)


class Node:
    """A function as it was when its recording form was compiled for some types.

    Parameters
    ----------
    primal : Dispatcher
        The user's function.
    kinds : tuple
        The types that it has in the plain call.
    """

    def __init__(self, primal: Any, kinds: tuple[Any, ...]) -> None:
        self.primal, self.kinds = primal, kinds
        self.callees: set[Node] = set()
        self.constants: Constants | None = None  # not known
        self.library: Any = None

    def freeze(self) -> Constants:
        """The values that it is compiled with."""
        found = overload_of(self.primal, self.kinds)
        self.constants = constants_of(self.primal, found) if found else constants_now(self.primal.py_func)
        self.library = found[0].library if found else None
        return self.constants

    def is_current(self) -> bool:
        """Whether Numba calls the same function now."""
        if self.constants is None:
            return False
        found = overload_of(self.primal, self.kinds)
        library = found[0].library if found else None
        if library is not None and library is self.library:
            return True
        now = constants_of(self.primal, found) if found else constants_now(self.primal.py_func)
        self.library = library
        return same(self.constants, now)

    def check_calls(self) -> None:
        """Raise if the code that Numba calls has other code of a function in it than that which Numba calls for the latter itself.

        Raises
        ------
        TypingError
            If a function that is called was compiled anew since.
        """
        linked = getattr(self.library, "_linking_libraries", None) or ()
        names = {library.name for library in linked}
        for node in self.callees:
            other = node.library
            if other is not None and other is not self.library and other not in linked and other.name in names:
                raise changed(self.primal)


COMPILING: list[Node] = []  # the innermost last; only one thread compiles at a time
NODES: weakref.WeakSet[Node] = weakref.WeakSet()  # of all recordings


def outdate() -> None:
    """Make all recordings anew where they are asked for again."""
    for node in list(NODES):
        node.constants = None
    COMPILATIONS.count += 1


def _set(func_ir: Any, code: Any, constants: Constants) -> None:
    """Give globals and closure values of a function's text the values that it has in the code which Numba calls."""
    lines = lines_of(code)
    for block in func_ir.blocks.values():
        for statement in block.find_insts(ir.Assign):
            value = statement.value
            if isinstance(value, (ir.Global, ir.FreeVar)) and value.loc.filename == code.co_filename and value.loc.line in lines:
                known = constants.cells if isinstance(value, ir.FreeVar) else constants.names
                if value.name in known:
                    value.value = known[value.name]


@register_pass(mutates_CFG=False, analysis_only=False)
class Freeze(FunctionPass):  # type: ignore[misc]
    """Globals and closure values are those of the code that Numba calls."""

    _name = "tapegrad_freeze"

    def __init__(self) -> None:
        super().__init__()

    def run_pass(self, state: Any) -> bool:
        node = COMPILING[-1]
        assert node.constants is not None
        _set(state.func_ir, node.primal.py_func.__code__, node.constants)
        return True


@register_pass(mutates_CFG=False, analysis_only=False)
class FreezeInlined(FunctionPass):  # type: ignore[misc]
    """The same for functions whose text has been put into this one."""

    _name = "tapegrad_freeze_inlined"

    def __init__(self) -> None:
        super().__init__()

    def run_pass(self, state: Any) -> bool:
        node = COMPILING[-1]
        assert node.constants is not None
        functions = [node.primal, *node.constants.inlined]
        for dispatcher, constants in node.constants.inlined.items():
            if same(constants, constants_now(dispatcher.py_func)._replace(inlined={})):
                continue  # the text has them, and does not say which of two functions that one factory made it is from
            code = dispatcher.py_func.__code__
            if any(other is not dispatcher and other.py_func.__code__ is code for other in functions):
                raise changed(dispatcher)
            _set(state.func_ir, code, constants)
        return True


def reached(twins: Iterable[Any]) -> list[Node]:
    """All functions that recordings were compiled from."""
    found: dict[Node, None] = {}
    waiting = [node for made in twins for node in made._compiler.nodes.values()]
    while waiting:
        node = waiting.pop()
        if node not in found:
            found[node] = None
            waiting.extend(node.callees)
    return list(found)


def watch(nodes: Iterable[Node]) -> Callable[[], bool] | None:
    """A function that tells whether a value has changed that Numba has not frozen yet."""
    space: dict[str, Any] = {}
    tests: dict[tuple[int, str], str] = {}

    def named(value: Any) -> str:
        space[f"v{len(space)}"] = value
        return f"v{len(space) - 1}"

    def contents(value: Any, kept: Any) -> str:
        if isinstance(value, np.ndarray) and is_frozen(value):
            return f" or {named(value)}.tobytes() != {named(kept.tobytes())}"
        if isinstance(value, tuple):
            return "".join(map(contents, value, kept))
        return ""

    def add(place: Any, key: str, value: Any, kept: Any) -> None:
        if isinstance(kept, StandIn):
            for name, item in vars(kept)["$found"].items():
                add(vars(value), name, vars(value).get(name), item)
        elif is_data(value):
            read = f"{named(place)}.{key}" if key == "cell_contents" else f"{named(place)}.get({key!r})"
            tests[(id(place), key)] = f"{read} is not {named(value)}" + contents(value, kept)

    def look_at(function: Any, constants: Constants) -> None:
        for kind, name, place, key in places_of(function):
            known = constants[kind == "cell"]
            if name in known:
                add(place, key, place[key] if kind == "global" else place.cell_contents, known[name])
        for name in names_of(function.__code__)[0] - function.__globals__.keys():
            add(function.__globals__, name, None, None)

    for node in nodes:
        if node.library is None and node.constants is not None:
            look_at(node.primal.py_func, node.constants)
            for dispatcher, constants in node.constants.inlined.items():
                look_at(dispatcher.py_func, constants)
    if not tests:
        return None
    exec(f"def changed():\n    return {' or '.join(tests.values())}", space)
    made: Callable[[], bool] = space["changed"]
    return made
