"""Programs of methods: the object is their first argument."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapegrad.drivers.leaves import check_argnums
from tapegrad.drivers.mapping import InAxes, mapped

__all__ = ["ProgramOfObject"]


class ProgramOfObject:
    """A program as the method of an object."""

    __slots__ = ("_program", "owner")

    def __init__(self, program: Any, owner: Any) -> None:
        self._program, self.owner = program, owner

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        """Its value for that object."""
        return self._program(self.owner, *args, **kwargs)

    @property
    def __called__(self) -> Any:
        called = self._program.__called__
        return self if called is self._program else called.__get__(self.owner)

    def map(self, *args: Any, in_axes: InAxes | None = None, executor: Any = None, **kwargs: Any) -> Any:
        """As `Program.map`, of the arguments besides the object."""
        return mapped(self, args, kwargs, in_axes, executor=executor)

    def __settled__(self, *args: Any, **kwargs: Any) -> Any:
        return self._program.__settled__(self.owner, *args, **kwargs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._program, name)

    def __replay__(
        self, args: Any, kwargs: Any, argnums: Any = None, has_aux: bool = False, finish: Any = None, needs: Any = ""
    ) -> tuple[bool, Any] | None:
        if argnums is not None:
            numbers = check_argnums(argnums, len(args), "grad")
            argnums = [n + 1 for n in numbers] if not isinstance(argnums, (int, np.integer)) else numbers[0] + 1
        return self._program.__replay__((self.owner, *args), kwargs, argnums, has_aux, finish, needs)
