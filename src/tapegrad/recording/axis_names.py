"""Other names of parameters, which PyTorch takes as well: NumPy's `axis` for `dim`, `keepdims` for `keepdim`."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, TypeVar

__all__ = ["numpy_names", "renamed", "with_numpy_names"]

F = TypeVar("F", bound=Callable[..., Any])

NAMES = {"axis": "dim", "keepdims": "keepdim", "sections": "indices_or_sections", "indices": "indices_or_sections"}


def numpy_names(function: Callable[..., Any]) -> dict[str, str]:
    """NumPy's name of a parameter: the function's own."""
    code = getattr(function, "__code__", None)
    if code is None:  # compiled; those of one element at a time have no dimensions
        return {}
    own = code.co_varnames[: code.co_argcount + code.co_kwonlyargcount]
    return {theirs: name for theirs, name in NAMES.items() if name in own and theirs not in own}


def renamed(function: str, given: dict[str, Any], names: dict[str, str]) -> dict[str, Any]:
    """Keyword arguments by the function's own names.

    Raises
    ------
    TypeError
        If one is given by both names.
    """
    found: dict[str, Any] = {}
    for name, value in given.items():
        own = names.get(name, name)
        if own in found:
            raise TypeError(f"{function}() got multiple values for argument '{own}'")
        found[own] = value
    return found


def with_numpy_names(function: F) -> F:
    """The same function, which takes NumPy's names as well."""
    names = numpy_names(function)
    if not names:
        return function

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        return function(*args, **renamed(function.__name__, kwargs, names)) if kwargs else function(*args)

    return call  # type: ignore[return-value]
