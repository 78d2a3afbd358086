"""Programs of methods: the object is their first argument."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapegrad.drivers.leaves import check_argnums
from tapegrad.drivers.mapping import InAxes, mapped
from tapegrad.programs.quick_calls import Direct

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
            behind = _behind_owner(numbers)
            argnums = behind[0] if isinstance(argnums, (int, np.integer)) else list(behind) if type(argnums) is list else behind
        return self._program.__replay__((self.owner, *args), kwargs, argnums, has_aux, finish, needs)

    def __direct__(self, what: str, argnums: Any) -> Any:
        numbers = (argnums,) if type(argnums) is int else tuple(argnums)
        if any(type(n) is not int or n < 0 for n in numbers):
            return Direct()  # places that depend on how many arguments there are
        behind = _behind_owner(numbers)
        return DirectOfObject(self._program.__direct__(what, behind[0] if type(argnums) is int else behind), self.owner)


class DirectOfObject:
    """Where drivers look first for what is done at once, for the method of an object."""

    __slots__ = ("_direct", "_owner")

    def __init__(self, direct: Direct, owner: Any) -> None:
        self._direct, self._owner = direct, owner

    @property
    def call(self) -> Any:
        """As of `Direct`, of the arguments besides the object."""
        return None if self._direct.call is None else self._run

    def _run(self, args: tuple[Any, ...]) -> Any:
        return None if (run := self._direct.call) is None else run((self._owner, *args))


def _behind_owner(numbers: tuple[int, ...]) -> tuple[int, ...]:
    """Places of arguments where the object is the first one."""
    return tuple([n + 1 for n in numbers])
