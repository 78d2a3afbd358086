"""Custom functions whose ``backward`` cannot be differentiated itself, and the passes that may not take it for a constant."""

from __future__ import annotations

import functools
import threading
from collections.abc import Callable
from typing import Any, TypeVar

from tapegrad.autograd.decoded_rows import arguments_of
from tapegrad.autograd.subgraph import tensors_at
from tapegrad.recording.structural import Context, Structural, apply
from tapegrad.tape.tape import TAPE
from tapegrad.tensors.grad_mode import without_recording
from tapegrad.tensors.modes import is_recording_on
from tapegrad.tensors.tensor import Tensor

__all__ = ["once_differentiable", "strictly"]

T = TypeVar("T")


def _refuse(g: Tensor, ctx: Context) -> tuple[Tensor, ...]:
    raise RuntimeError("trying to differentiate twice a function that was marked with @once_differentiable")


class _Strict(threading.local):
    """How many passes there are whose results count as depending on what custom functions were given."""

    depth = 0


strict = _Strict()


def strictly(function: Callable[..., T], *args: Any, **kwargs: Any) -> T:
    """The result of a pass in which a ``backward`` that cannot be differentiated is never taken for a constant.

    PyTorch's passes do take it for one where the incoming gradient is untracked, and fail where the result is differentiated;
    drivers would give zeros.
    """
    strict.depth += 1
    try:
        return function(*args, **kwargs)
    finally:
        strict.depth -= 1


_ERROR = Structural("Error", ((),), _refuse)


def once_differentiable(function: Callable[..., Any]) -> Callable[..., Any]:
    """Decorator for a ``backward`` that cannot be differentiated itself.

    It runs with recording off; whoever differentiates its results gets an error and not a wrong derivative.
    """

    @functools.wraps(function)
    def call(ctx: Any, *gradients: Any) -> Any:
        results = without_recording(function, ctx, *gradients)
        tracked = [g for g in gradients if isinstance(g, Tensor) and g._row]
        if not tracked and strict.depth and ctx._row > 0:
            with TAPE.claim():
                tracked = tensors_at([argument.slot for argument in arguments_of(TAPE.slot(ctx._row)) if argument.slot >= 0])
        if not tracked or not is_recording_on():
            return results
        marked = tuple(
            apply(_ERROR, tracked, r._data if type(r._data) is float else r._data.copy()) if isinstance(r, Tensor) else r
            for r in (results if isinstance(results, tuple) else (results,))
        )
        return marked if isinstance(results, tuple) else marked[0]

    return call
