"""Compiled derivatives on disk, in the folder where Numba keeps the code of the function, under a key of all that went into them.

Numba's own cache does not see an edited helper, nor a global number that changed; this one does, since its key is the fingerprint
of everything that the function reaches. What has no fingerprint (functions that were typed in, closures over objects) is not kept.
"""

from __future__ import annotations

import contextlib
import hashlib
import pickle
from pathlib import Path
from typing import Any, NamedTuple

from numba.core import caching, serialize
from numba.core.compiler import CompileResult
from numba.core.environment import lookup_environment
from numba.core.errors import TypingError

from tapegrad.interrupts import whole_file
from tapegrad.nopython.numba_interface.linking import ENVIRONMENT
from tapegrad.nopython.twins.constants import constants_now, same
from tapegrad.nopython.twins.fingerprint import UnknownError, fingerprint, is_versioned, type_text
from tapegrad.nopython.twins.generations import Node, reached

__all__ = ["DerivativeCache"]

MOST = 64  # files of one function: of other types, other values of closures and globals, and of former texts
REFUSED = "refused"


class Place(NamedTuple):
    """Where a compiled derivative is kept."""

    path: Path
    key: str
    functions: list[Any]  # that it depends on


class DerivativeCache(caching._Cache):  # type: ignore[misc]
    """What Numba asks before it compiles the recording form of a function, and tells what it compiled.

    Parameters
    ----------
    twin : Dispatcher
        The recording form of the user's function.
    form : tuple
        How it is called: level, arguments, second order.
    """

    def __init__(self, twin: Any, form: tuple[Any, ...]) -> None:
        self._twin, self._dispatcher, self._form = twin, twin._compiler.primal, form
        self._impl: Any = None
        with contextlib.suppress(RuntimeError, OSError):  # no file that the function stands in, or no folder for it
            self._impl = caching.CompileResultCacheImpl(self._dispatcher.py_func)

    @property
    def cache_path(self) -> str | None:
        """The folder."""
        return None if self._impl is None else str(self._impl.locator.get_cache_path())

    def enable(self) -> None:
        """It always is."""

    def disable(self) -> None:
        """It never is."""

    def flush(self) -> None:
        """Nothing waits to be written."""

    def _place(self, sig: Any) -> Place | None:
        """Where the form for some types is kept; None if it cannot be."""
        if self._impl is None:
            return None
        try:
            found = fingerprint(self._dispatcher)
            text = repr((self._form, [type_text(kind) for kind in sig])) + found.text
        except UnknownError:
            return None
        key = hashlib.sha256(text.encode()).hexdigest()
        path = Path(self._impl.locator.get_cache_path(), f"{self._impl.filename_base}.tapegrad-{key[:32]}.nbc")
        return Place(path, key, found.functions)

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        """The compiled form for some types, if it was kept.

        Raises
        ------
        TypingError
            If it was kept that the form does not compile, and another one does.
        """
        target_context.refresh()
        place = self._place(sig)
        found = None if place is None else _read(place)
        if place is None or found is None:
            return None
        if found == REFUSED:
            raise TypingError("[tapegrad] this form of the function did not compile before")
        table, made = found
        nodes = _nodes(table, place.functions)
        if nodes is None:
            return None
        self._twin._compiler.nodes |= {("kept", sig, k): node for k, node in enumerate(nodes)}
        return CompileResult._rebuild(target_context, *made)

    def save_overload(self, sig: Any, data: Any) -> None:
        """Keep what was compiled, where that can be done."""
        place = self._place(sig)
        if place is not None and _can_be_kept(data):
            table = _table(reached([self._twin]), place.functions)
            if table is not None:
                self._write(place, (table, data._reduce()))

    def save_refusal(self, sig: Any) -> None:
        """Keep that this form does not compile for some types: finding that out takes as long as compiling."""
        place = self._place(sig)
        if place is not None:
            self._write(place, REFUSED)

    def _write(self, place: Place, content: Any) -> None:
        """Whole or not at all."""
        path = place.path
        try:
            body = serialize.dumps((place.key, content))
        except (TypeError, AttributeError, pickle.PicklingError):  # such as the type of np.max, with what Numba compiled of it
            return
        with contextlib.suppress(OSError):
            self._impl.locator.ensure_cache_path()
            with whole_file(path) as file:
                file.write(hashlib.sha256(body).digest() + body)
            self._tidy(path.parent)

    def _tidy(self, folder: Path) -> None:
        """Remove the oldest files of the function where there are many."""
        files = sorted(folder.glob(f"{self._impl.filename_base}.tapegrad-*.nbc"), key=lambda path: path.stat().st_mtime)
        for path in files[:-MOST]:
            path.unlink(missing_ok=True)


def _read(place: Place) -> Any:
    """What was kept; None if nothing was, or not that, or it is damaged."""
    try:
        content = place.path.read_bytes()
    except OSError:
        return None
    if hashlib.sha256(content[32:]).digest() != content[:32]:
        return None  # it is compiled and written anew
    key, found = pickle.loads(content[32:])
    return found if key == place.key else None


def _is_as_now(node: Node) -> bool:
    return node.constants is not None and same(node.constants, constants_now(node.primal.py_func))


def _table(nodes: list[Node], functions: list[Any]) -> list[tuple[int, Any, list[int]]] | None:
    """The functions that a recording was compiled from: number, types, and which it calls; None if one cannot be named."""
    kept = [node for node in nodes if not is_versioned(node.primal.py_func.__module__)]
    if not all(node.primal in functions and _is_as_now(node) for node in kept):
        return None
    place = {node: k for k, node in enumerate(kept)}
    return [(functions.index(n.primal), n.kinds, [place[other] for other in n.callees if other in place]) for n in kept]


def _nodes(table: list[tuple[int, Any, list[int]]], functions: list[Any]) -> list[Node] | None:
    """The same for this process; None if Numba calls a function that has other values."""
    nodes = [Node(functions[number], kinds) for number, kinds, _ in table]
    for node, (_, _, callees) in zip(nodes, table, strict=True):
        node.callees = {nodes[k] for k in callees}
        node.freeze()
    return nodes if all(map(_is_as_now, nodes)) else None


def _can_be_kept(made: Any) -> bool:
    """Whether compiled code refers to nothing of this process alone."""
    if made.lifted or made.library.has_dynamic_globals or not made.library.is_closed:
        return False
    names = [v.name for v in made.library._final_module.global_variables if v.name.startswith(ENVIRONMENT)]
    found = [lookup_environment(name) for name in names]
    # Numba gives code that it generated an environment without a module, and leaves it out; nothing is lost if it is empty.
    return all(environment is not None and (environment.can_cache() or not environment.consts) for environment in found)
