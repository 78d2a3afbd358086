"""Programs in files: the paths that have machine code, with all that they need."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from typing import IO, Any

import numpy as np

from tapegrad.arrays.dtypes import get_default_dtype
from tapegrad.drivers.calling import take_apart
from tapegrad.drivers.leaves import Argnums, Call, check_argnums
from tapegrad.drivers.mapping import InAxes, mapped
from tapegrad.errors import ProgramError
from tapegrad.files.saving import load, save
from tapegrad.programs.fused.expressions import NUMBERS
from tapegrad.programs.fused.machine_code import MachineCode
from tapegrad.programs.fused.rule_text import Unfused
from tapegrad.programs.fused.saved_graphs import SavedPath, decoded, encoded, need
from tapegrad.programs.keys import describe
from tapegrad.programs.recorded_paths import Finish, as_asked
from tapegrad.programs.surroundings import PLAIN
from tapegrad.programs.traces import all_after
from tapegrad.tensors.tensor import make
from tapegrad.tensors.tracing import settle

__all__ = ["LoadedProgram", "load_program", "save_program"]

File = str | os.PathLike[str] | IO[bytes]
FORMAT, VERSION, OF_DOUBLES = "tapegrad program", 2, 1  # and what is written where all is of float64, as it was before
KINDS: dict[str, Callable[[float], Any]] = {"float": float, "float64": np.float64, "float32": np.float32}


def key_text(parts: Sequence[Any], dtype: Any) -> str:
    """The key of a call's arguments as text."""
    return f"{dtype.name} {list(parts)!r}"


def _is_plain(part: Any) -> bool:
    """Whether a part of a key is the same in another process: no class of an object that is there by its identity."""
    return not isinstance(part, type) or part in (*PLAIN, np.ndarray, tuple, list, dict) or issubclass(part, np.generic)


def save_program(program: Any, file: File) -> None:
    """What `Program.save` does."""
    saved: list[dict[str, Any]] = []
    if program.fast:
        raise ProgramError(f"{program._name()} cannot be saved: what is fast has last digits of its own. Save one without `fast`")
    for (argnums, rest), several in program._paths.items():
        (*parts, _), _, dtype, has_aux = rest
        for paths in several:
            if paths.refused or has_aux or not all(map(_is_plain, parts)):
                raise ProgramError(f"{program._name()} cannot be saved: {paths.refused or 'objects are among its arguments'}")
            for trace in [] if paths.first is None else all_after(paths.first):
                try:
                    path, kind = trace.fused.expressions(), trace.kind_of_value()
                    for value in reversed(program._live_values()):
                        path.arrays.append((path.inputs.pop()[0], value))
                    graph = encoded(path, trace.leaf_shapes())
                except Unfused as error:
                    raise ProgramError(f"{program._name()} cannot be saved: there is no machine code of a path: {error}") from None
                if kind not in ("", *KINDS):
                    raise ProgramError(f"{program._name()} cannot be saved: it returns {kind}")
                saved.append({"key": key_text(parts, dtype), "argnums": list(argnums), "kind": kind, "graph": graph})
    if not saved:
        raise ProgramError(f"{program._name()} cannot be saved: nothing of it has been recorded; call it first")
    version = VERSION if any(one["graph"]["singles"].size for one in saved) else OF_DOUBLES
    save({"format": FORMAT, "version": version, "name": program._name(), "paths": saved}, file)


def load_program(file: File) -> LoadedProgram:
    """Read a program that `Program.save` wrote; its function is not needed.

    Parameters
    ----------
    file : str, path, or binary file object

    Returns
    -------
    LoadedProgram
        To be called, and to be given to `value_and_grad` and `grad`, as the program that was saved.

    Raises
    ------
    ProgramError
        If the file is damaged or incomplete, of a later version, or would read or write outside of its memory: all of it is checked
        before anything runs.
    FileNotFoundError
        If there is no such file.

    Notes
    -----
    Reading takes time and memory proportional to the size of the file; machine code is made by the first call of each path.

    Examples
    --------
    >>> import io
    >>> f = tg.program(lambda x: (x * x).sum())
    >>> tg.value_and_grad(f)(np.array([1.0, 2.0]))
    (5.0, array([2., 4.]))
    >>> file = io.BytesIO()
    >>> f.save(file)
    >>> _ = file.seek(0)
    >>> tg.value_and_grad(tg.load_program(file))(np.array([3.0, 1.0]))
    (10.0, array([6., 2.]))
    """
    try:
        state = load(file)
        need(isinstance(state, dict) and state.get("format") == FORMAT, "it is not a program")
    except ValueError as error:
        raise ProgramError(f"this is no file that a program was saved to: {error}") from error
    if state.get("version") not in (OF_DOUBLES, VERSION):
        raise ProgramError(
            f"the program is of version {state.get('version')!r} of the format, and this tapegrad reads versions up to {VERSION}; "
            "load it with the one that wrote it"
        )
    return _made_of(state)


def _made_of(state: dict[str, Any]) -> LoadedProgram:
    """The program of what a file holds; also where one was pickled, as workers get it."""
    try:
        need(isinstance(state["name"], str) and isinstance(state["paths"], list), "it has no paths")
        return LoadedProgram(state, [_Path(one) for one in state["paths"]])
    except (ValueError, KeyError, TypeError, AttributeError, OverflowError) as error:
        raise ProgramError(f"the program is damaged: {error}") from error


class _Path:
    """A path from a file."""

    __slots__ = ("_code", "argnums", "key", "kind", "path", "sizes")

    def __init__(self, state: Any) -> None:
        need(isinstance(state, dict), "a path is no dict")
        self.key, self.kind, self.argnums = state["key"], state["kind"], tuple(state["argnums"])
        need(isinstance(self.key, str) and self.kind in ("", *KINDS), "a path has no such key")
        need(all(type(k) is int and k >= 0 for k in self.argnums), "a path has no such key")
        self.path: SavedPath = decoded(state["graph"])
        sizes = self.path.graph.sizes
        self.sizes = [1 if buffer == NUMBERS else sizes[buffer] for buffer, _ in self.path.inputs]
        self._code: MachineCode | None = None

    def gradient(self, values: Sequence[Any]) -> tuple[float, list[Any]] | None:
        """Value and gradient; None if the function would go another way."""
        if [np.size(value) for value in values] != self.sizes:
            raise ProgramError("the program is damaged: its key is not that of its inputs")
        if self._code is None:
            try:
                self._code = MachineCode(self.path, self.path.shapes)
            except (Unfused, KeyError, IndexError, RuntimeError) as error:
                raise ProgramError(f"the program is damaged, or cannot be compiled here: {error}") from error
        return self._code.gradient(values)


class LoadedProgram:
    """A program from a file: what was recorded, without its function; made by `load_program`.

    Attributes
    ----------
    traces : list of dict
        The paths as plain data.
    sees_only_arguments : bool
        That its value depends on nothing else.
    """

    sees_only_arguments = True

    def __init__(self, state: dict[str, Any], paths: Sequence[_Path]) -> None:
        self.__name__ = self.__qualname__ = state["name"]
        self._state, self._all = state, list(paths)

    def __reduce__(self) -> Any:
        return _made_of, (self._state,)

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """The function's value.

        Raises
        ------
        ProgramError
            If the function was never called with arguments of these types and shapes, or went another way than at these values.
        """
        path, found, _ = self._found(args, kwargs, None)
        return KINDS[path.kind](found[0])

    def _found(self, args: Any, kwargs: Any, argnums: tuple[int, ...] | None) -> tuple[_Path, tuple[float, list[Any]], list[Any]]:
        parts: list[Any] = []
        values: list[Any] = []
        others: list[Any] = []
        known = describe(args, parts, values, others) and (not kwargs or describe(kwargs, parts, values, others))
        key = key_text(parts, get_default_dtype())
        like = [path for path in self._all if known and not others and path.key == key]
        like = [path for path in like if path.argnums == argnums or (argnums is None and path.kind)]
        for path in like:
            found = path.gradient(values)
            if found is not None:
                return path, found, values
        why = "goes another way at these values" if like else f"was not recorded for arguments like these: {key}"
        raise ProgramError(f"{self.__name__} {why}; it was loaded from a file, so its function cannot be called")

    def __replay__(
        self,
        args: Any,
        kwargs: Any,
        argnums: Argnums | None = None,
        has_aux: bool = False,
        finish: Finish | None = None,
        needs: Any = "",
    ) -> tuple[bool, Any]:
        settle()
        if needs:
            raise ProgramError(f"{self.__name__} was loaded from a file, which has values and gradients and no other derivatives")
        if finish is None or argnums is None or has_aux:
            return True, self(*args, **kwargs)
        numbers = check_argnums(argnums, len(args), "grad")
        _, (value, gradient), _ = self._found(args, kwargs, numbers)
        made = Call()
        made.inside = made.arrays = False
        made.many, made.aux = True, None
        take_apart(made, list(args), numbers, "program", True)
        made.output, made.gradients = make(value, 0), gradient
        return True, finish(as_asked(made, not isinstance(argnums, (int, np.integer))))

    def map(self, *args: Any, in_axes: InAxes | None = None, executor: Any = None, **kwargs: Any) -> Any:
        """As `Program.map`."""
        return mapped(self, args, kwargs, in_axes, executor=executor)

    @property
    def traces(self) -> list[dict[str, Any]]:
        """The paths as plain data: for each its key, what it is differentiated by, and how many expressions it has."""
        return [{"key": path.key, "argnums": path.argnums, "expressions": len(path.path.graph.nodes)} for path in self._all]
