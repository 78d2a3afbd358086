"""Compilation told from running: whatever is raised while a function is compiled is a failure to compile, and nothing else is.

Numba compiles a function in the middle of its first call. What the compiler raises there may be anything, as extensions of packages
run in it. So the two are told apart by where they happen, not by what an exception looks like.
"""

from __future__ import annotations

from typing import Any

from numba.core.registry import CPUDispatcher

from tapegrad.compilation.compiler_room import with_few_collections

__all__ = ["CompilingFirst", "UncompiledError"]


class UncompiledError(Exception):
    """A function was not compiled; the error that says why is the cause."""

    @property
    def reason(self) -> BaseException:
        """What the compiler raised."""
        assert self.__cause__ is not None
        return self.__cause__


class CompilingFirst(CPUDispatcher):  # type: ignore[misc]
    """A compiled function whose calls raise `UncompiledError` for what is wrong before it runs.

    A lack of memory says nothing about the function, and comes through as it is.
    """

    def _compile_for_args(self, *args: Any, **kws: Any) -> Any:
        return _guarded(with_few_collections, super()._compile_for_args, *args, **kws)

    def typeof_pyval(self, val: Any) -> Any:
        """The type of an argument that Numba's own table does not have."""
        return _guarded(super().typeof_pyval, val)


def _guarded(function: Any, *args: Any, **kws: Any) -> Any:
    try:
        return function(*args, **kws)
    except (MemoryError, UncompiledError):
        raise
    except Exception as error:
        raise UncompiledError from error
