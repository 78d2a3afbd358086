"""The call of one of several functions, by its number."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tapegrad.nopython.numba_interface.linking import overload
from tapegrad.nopython.twins.recording_twin import twin

__all__ = ["chosen_call"]


def chosen_call(functions: tuple[Any, ...], level: int) -> Callable[..., Any]:
    """A function of the tape, the number of a function and its arguments, which records the call of that one."""

    def call(tape, number, *args):
        raise NotImplementedError

    space: dict[str, Any] = {f"f{k}": twin(function, level) for k, function in enumerate(functions)}
    last = len(functions) - 1
    lines = ["def impl(tape, number, *args):"]
    lines += [f"    if number == {k}:\n        return f{k}(tape, *args)" for k in range(last)]
    exec("\n".join([*lines, f"    return f{last}(tape, *args)"]), space)

    @overload(call, complex_too=True)
    def _define(tape, number, *args):
        return space["impl"]

    return call
