"""Second derivatives of programs by their machine code, where there is any."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tapegrad.drivers.leaves import Call

__all__ = ["ProgramHessians"]


class ProgramHessians:
    """What the machine code of a function gives, if the function is a program.

    Parameters
    ----------
    f : callable
    """

    def __init__(self, f: Callable[..., Any]) -> None:
        self._replay: Any = getattr(f, "__replay__", None)
        self._has_code: Any = getattr(f, "__has_code__", None)
        self._refused: set[str] = set()

    def matrix(self, arguments: tuple[Any, ...], *needs: Any) -> np.ndarray | None:
        """Products of the Hessian by the first argument; None if there is no code for them, or none yet.

        Parameters
        ----------
        arguments : tuple
        *needs
            "hessian" for products with all unit vectors, or "hvp" and one vector.
        """
        what = needs[0]
        if self._has_code is None or what in self._refused:
            return None
        if not (has_code := self._has_code(what)):
            if has_code is None:
                self._refused.add(what)
            return None
        done = self._replay(arguments, {}, 0, False, _matrix_of, what if len(needs) == 1 else needs)
        return None if done is None else done[1]


def _matrix_of(made: Call) -> Any:
    return made.matrix
