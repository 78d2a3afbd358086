"""PyTorch's names of the parameters of elementwise operations."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

__all__ = ["bound", "names_of", "with_names"]

NAMES = {
    "pow": ("input", "exponent"), "clamp_min": ("input", "min"), "clamp_max": ("input", "max"), "polygamma": ("n", "input"),
    "lerp": ("input", "end", "weight"), "where": ("condition", "input", "other"),
}  # fmt: skip


def names_of(operation: str) -> tuple[str, ...]:
    """Names of the operands of an operation with several."""
    return NAMES.get(operation, ("input", "other"))


def with_names(function: Any, names: Sequence[str]) -> Any:
    """The function, its first parameters called by other names: a function around it would cost a tenth of a microsecond a call."""
    code = function.__code__
    function.__code__ = code.replace(co_varnames=(*names, *code.co_varnames[len(names) :]))
    return function


def bound(function: str, names: Sequence[str], given: tuple[Any, ...], named: dict[str, Any]) -> tuple[Any, ...]:
    """All operands in their order, where the last ones are given by name.

    Raises
    ------
    TypeError
        If there is no such name, or one is given twice or left out.
    """
    wanted = [name for name in names[len(given) :] if name in named]
    for name in named.keys() - set(wanted):
        what = "multiple values for" if name in names else "an unexpected keyword"
        raise TypeError(f"{function}() got {what} argument '{name}'")
    return (*given, *(named[name] for name in wanted))
