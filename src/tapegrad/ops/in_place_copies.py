"""In-place forms of functions that return a copy, and whose derivative does not need what is overwritten."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tapegrad.arrays import dtypes
from tapegrad.arrays.memory_pool import SMALL
from tapegrad.deferred import look_up
from tapegrad.engine.layout import OPERATE
from tapegrad.ops.flat_places import PUT, Places, put_at, written_values
from tapegrad.ops.overwriting import check_writable, fit, overwrite, take_row
from tapegrad.recording.structural import Structural, apply, check_recordable
from tapegrad.tape.array_kernels import ARRAY_KERNELS
from tapegrad.tape.tape import TAPE
from tapegrad.tensors.tensor import Tensor, array_of, is_recording, make

__all__ = ["is_written_directly", "put_into", "write_result", "writes", "written_directly"]

Array = np.ndarray[Any, Any]
_ADDRESS = TAPE.address


def writes(name: str, function: Callable[..., Tensor], into: Callable[..., Tensor] | None = None) -> Callable[..., Tensor]:
    """In-place form of a function of a tensor: its result is computed, then written into the tensor.

    Parameters
    ----------
    function : callable
    into : callable, optional
        Is given the same arguments, and writes into the tensor's memory directly, where `is_written_directly` allows it.
    """

    def write(t: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        if into is not None and is_written_directly(t) and not _is_small(t):
            return into(t, *args, **kwargs)
        return write_result(t, function(t, *args, **kwargs))

    write.__name__ = write.__qualname__ = name
    write.__doc__ = f"In-place form of `Tensor.{name[:-1]}`: writes into the tensor and returns it."
    return write


def write_result(t: Tensor, result: Tensor) -> Tensor:
    """Let a tensor have the value and the row of a result that nobody else has."""
    if not TAPE.recording_off and not TAPE.tracers and _is_written(t, result):
        return t
    tracked = result._row != 0
    z = result._data
    z = fit(t, z, dtypes.float64 if type(z) is float else z.dtype)
    check_writable(t, tracked)
    return overwrite(t, z, (lambda: take_row(result)) if tracked else None)


_knows_views = False  # whether compiled code was told what it needs to know of views


def _is_written(t: Tensor, result: Tensor) -> bool:
    """`write_result` by compiled code, if that does it."""
    global _knows_views
    if not _knows_views:
        if not TAPE.header[OPERATE]:
            return False
        look_up("ops.compiled_writes:prepare_writes")()
        _knows_views = True
    return bool(TAPE.write_value(_ADDRESS, id(t), id(result)))


def is_written_directly(t: Tensor) -> bool:
    """Whether compiled code may write into a tensor's memory, which lies in C order."""
    return type(t._data) is not float and t._data.ndim > 0 and t._data.flags.c_contiguous and not TAPE.tracers


def _is_small(t: Tensor) -> bool:
    """Whether a tensor is small enough for its new value to be computed apart: compiled code does the rest."""
    return t._data.size <= SMALL and t._data.dtype is dtypes.float64 and not TAPE.recording_off


def written_directly(
    t: Tensor,
    op: Structural,
    others: Sequence[Tensor],
    attrs: Any,
    extra: Sequence[Tensor],
    write: Callable[[Array], Any],
) -> Tensor:
    """Write into a tensor's memory by a function of it, recorded as an operation of what was there and other tensors."""
    operands = (t, *others)
    tracked = is_recording() and any(o._row for o in operands)
    check_writable(t, tracked)
    if tracked:
        check_recordable(op.name, t._data.dtype)
    return overwrite(t, write, (lambda: take_row(apply(op, operands, t._data, attrs, extra))) if tracked else None)


def put_into(t: Tensor, places: Places, values: Tensor, op: Structural = PUT) -> Tensor:
    """`put_at` in place."""
    directly = is_written_directly(t)
    if directly and _is_small(t):
        return write_result(t, put_at(t, places, values, op))
    if not directly:
        by_index = type(t._data) is not float and t._data.ndim and places.inner == 1 and not TAPE.tracers
        if not by_index or not places.at.size or places.at.min() < 0:
            return write_result(t, put_at(t, places, values, op))
    given = written_values(array_of(values), places, t._data.dtype)
    if given.size > 1 and np.may_share_memory(given, t._data):
        given = given.copy()
    at, inner, _ = places

    def write(target: Array) -> None:
        if not target.flags.c_contiguous:
            target.flat[at] = given.reshape(-1)
            return
        ARRAY_KERNELS.put_elements(id(target), id(given), id(at), inner, int(given.size != 1))

    return written_directly(t, op, (values,), places[1:], (make(at, 0),), write)
