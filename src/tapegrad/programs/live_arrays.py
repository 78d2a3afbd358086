"""Large arrays in a function's closure and globals, which a program reads where they are, as if they were arguments.

Others are compared with what they were at each call, since nobody sees what NumPy alone computes of them. Of these a recording gets
tensors in their places, so it does see that; where it finds such a computation, they are compared like the others.
"""

from __future__ import annotations

import dis
import types
from collections.abc import Sequence
from typing import Any

import numpy as np

from tapegrad.frames import PACKAGE
from tapegrad.programs.names_in_code import NamesInCode

__all__ = ["LiveArrays", "live_arrays"]

LARGE = 1 << 15  # bytes from which on a comparison costs more than the rest of a call
FLOAT64 = np.dtype(np.float64)
WRITING = frozenset(["STORE_GLOBAL", "DELETE_GLOBAL", "STORE_DEREF", "DELETE_DEREF"])


class LiveArrays:
    """Names of a function that stand for large arrays.

    Attributes
    ----------
    names : frozenset of str
    """

    __slots__ = ("_cells", "_function", "_globals", "names")

    def __init__(self, function: types.FunctionType, cells: list[int], names: list[str]) -> None:
        self._function, self._cells, self._globals = function, cells, names
        self.names = frozenset([*(function.__code__.co_freevars[k] for k in cells), *names])

    def values(self) -> list[Any]:
        """What the names stand for now; what is gone is Ellipsis."""
        cells: Any = self._function.__closure__
        found = []
        for k in self._cells:
            try:
                found.append(cells[k].cell_contents)
            except ValueError:
                found.append(Ellipsis)
        return found + [self._function.__globals__.get(name, Ellipsis) for name in self._globals]

    def function_of(self, values: Sequence[Any]) -> Any:
        """The function where the names stand for other values."""
        function = self._function
        cells, space = list(function.__closure__ or ()), function.__globals__
        for k, value in zip(self._cells, values, strict=False):
            cells[k] = types.CellType(value)
        if self._globals:
            space = space | dict(zip(self._globals, values[len(self._cells) :], strict=True))
        made = types.FunctionType(function.__code__, space, function.__name__, function.__defaults__, tuple(cells) or None)
        made.__kwdefaults__, made.__dict__ = function.__kwdefaults__, function.__dict__
        made.__qualname__, made.__module__ = function.__qualname__, function.__module__
        return made


def live_arrays(function: Any) -> LiveArrays | None:
    """The large arrays of float64 that the code of a function names, if it is a Python function and there are any."""
    if not isinstance(function, types.FunctionType) or function.__code__.co_filename.startswith(PACKAGE):
        return None
    code = function.__code__
    names = NamesInCode(code)
    if names.finds_globals(function.__globals__):
        return None
    written = _written(code)
    cells = []
    for k, (name, cell) in enumerate(zip(code.co_freevars, function.__closure__ or (), strict=True)):
        try:
            if name not in written and _is_large(cell.cell_contents):
                cells.append(k)
        except ValueError:  # not yet bound
            pass
    own = [name for name in names.names if name not in written and _is_large(function.__globals__.get(name))]
    return LiveArrays(function, cells, own) if cells or own else None


def _is_large(value: Any) -> bool:
    return type(value) is np.ndarray and value.dtype == FLOAT64 and value.nbytes >= LARGE and value.flags.c_contiguous


def _written(code: types.CodeType) -> set[str]:
    """Names that code, or what is defined in it, gives other values."""
    found: set[str] = set()
    pending = [code]
    while pending:
        part = pending.pop()
        pending += [constant for constant in part.co_consts if isinstance(constant, types.CodeType)]
        found.update(step.argval for step in dis.get_instructions(part) if step.opname in WRITING)
    return found
