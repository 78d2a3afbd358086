"""Writing into memory that tensors have: what may be written, and the rows and versions that a write changes.

Order of events: compute, check, note that the memory is written (values saved from it before become stale), record, write. A
failure at any point leaves the data unwritten and the graph as it was.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np

from tapegrad.arrays import dtypes
from tapegrad.arrays.floating_point_warnings import quiet
from tapegrad.engine.layout import ALL_BUT_PART, CLOCK, PUT_INTO_PART
from tapegrad.errors import ShapeError
from tapegrad.kernels.opcodes import OPCODES
from tapegrad.ops.indexing import select_again
from tapegrad.ops.view_rows import refresh
from tapegrad.ops.views import Replay, check_memory, is_strided, version_of, view
from tapegrad.recording.apply_rule import apply_rule
from tapegrad.recording.structural import Context, Structural, apply
from tapegrad.tape.tape import TAPE, owner_of
from tapegrad.tensors import untracked_values
from tapegrad.tensors.inference_tensors import check_inference_write
from tapegrad.tensors.retained_gradients import move_watch
from tapegrad.tensors.saved_value_packing import current_packer
from tapegrad.tensors.tensor import Tensor, array_of, is_leaf, is_recording, make
from tapegrad.tensors.tracers import current_tracer

__all__ = [
    "COPY_SLICES",
    "check_graph",
    "check_writable",
    "fit",
    "note_write",
    "overwrite",
    "part_of",
    "replace",
    "take_row",
    "without_part",
]

Array = np.ndarray[Any, Any]
_ADDRESS = TAPE.address


def check_writable(t: Tensor, tracked: bool, repeats: bool = False) -> None:
    """Raise unless `t` may be written now.

    Parameters
    ----------
    tracked : bool
        Whether the new value is tracked.
    repeats : bool
        Whether elements may share memory, since all of them get one untracked value.

    Raises
    ------
    RuntimeError
        For leaves that require grad and their views while recording, read-only or expanded memory, and views that may not be
        written; for inference tensors outside inference mode.
    """
    check_graph(t, tracked)
    if type(t._data) is not float:
        check_memory(t._data, repeats)


def check_graph(t: Tensor, tracked: bool) -> None:
    """The part of `check_writable` that does not concern the memory."""
    check_inference_write(t)
    meta = t._meta
    if is_recording():
        base = meta.base if meta is not None else None
        if is_leaf(t) and t._row:
            raise RuntimeError(f"a leaf Variable that requires grad is being used in an in-place operation. {_instead(t)}")
        if meta is not None and base is not None and (tracked or base._row):
            if meta.one_of_many:
                raise RuntimeError(
                    f"Output {meta.output_nr} of {meta.one_of_many} is a view and is being modified inplace. This view is the "
                    "output of a function that returns multiple views. Such functions do not allow the output views to be "
                    "modified inplace. Write to a clone() instead."
                )
            if meta.made_without_grad:
                raise RuntimeError(
                    f"A view was created in {meta.made_without_grad} mode and is being modified inplace "
                    f"{'with grad mode enabled' if meta.made_without_grad == 'no_grad' else 'in normal mode'}. "
                    "Take the view with grad mode enabled, or write under no_grad()."
                )
        if base is not None and (base._row or t._row) and is_leaf(base):  # the leaf is the base, or itself a view of it
            raise RuntimeError(
                f"a view of a leaf Variable that requires grad is being used in an in-place operation. {_instead(base)}"
            )


def _instead(leaf: Tensor) -> str:
    """What to do; the variable of a driver must not be changed unseen."""
    link = leaf._meta.leaf if leaf._meta is not None else None
    if hasattr(link, "of_call"):
        return "It is the argument of a function that is being differentiated: write into a copy of it, x.clone() or np.copy(x)."
    return "Do it under no_grad(), or on a clone()."


def fit(t: Tensor, z: Any, dtype: np.dtype[Any]) -> Any:
    """The new value in the target's dtype.

    Raises
    ------
    RuntimeError
        If the shape differs or the dtype is of a higher kind.
    """
    target = t._data
    shape = () if type(target) is float else target.shape
    own = dtypes.float64 if type(target) is float else target.dtype
    if np.shape(z) != shape:
        raise ShapeError(f"output with shape {list(shape)} doesn't match the broadcast shape {list(np.shape(z))}")
    if not dtypes.can_cast(dtype, own):
        raise RuntimeError(
            f"result type {dtypes.type_name(dtype)} can't be cast to the desired output type {dtypes.type_name(own)}"
        )
    if type(z) is float or z.dtype == own:
        return z
    with quiet():  # beyond float32 is inf, as in PyTorch
        return z.astype(own)


def replace(t: Tensor, row: int) -> None:
    """Let `t` (or its family of views) go on from a new row; 0 is untracked."""
    meta = t._meta
    base = meta.base if meta is not None else None
    if base is None:
        t._row, before = row, t._row
        if meta is not None and meta.retained and row:
            move_watch(t, before)
        if before > 0:
            TAPE.drop(_ADDRESS, before)
        refresh(t)
        return
    assert meta is not None
    written = make(t._data, row)
    result = apply(COPY_SLICES, (base, written), base._data, meta.replay)
    base._row, result._row = result._row, base._row
    if base._meta is not None and base._meta.retained and base._row > 0:
        move_watch(base, result._row)
    refresh(base)


def _copy_slices_vjp(g: Tensor, ctx: Context) -> tuple[Tensor | None, ...]:
    on, replay = ctx.on, ctx.attrs
    return on.without_part(g, replay) if ctx.needs[0] else None, on.part_of(g, replay) if ctx.needs[1] else None


def without_part(g: Tensor, replay: Replay) -> Tensor:
    """`g` with zeros where a view of it is."""
    mask = np.zeros(array_of(g).shape, bool)
    if is_strided(replay, mask.shape):
        replay(mask)[...] = True
    else:
        mask.reshape(-1)[replay(np.arange(mask.size).reshape(mask.shape))] = True
    return apply_rule(OPCODES["where"], make(mask, 0), 0.0, g)


def part_of(g: Tensor, replay: Replay) -> Tensor:
    """The view itself, or a copy where that is none in this memory."""
    return view(g, "AsStridedBackward0", replay) if is_strided(replay, array_of(g).shape) else select_again(g, replay)


def _places_of(replay: Replay, shape: tuple[int, ...]) -> Array:
    """Flat places of a view in an array of this shape."""
    size = math.prod(shape)
    return replay(np.arange(size).reshape(shape)).reshape(-1)


def _many_without_part(many: Array, context: Context, shape: tuple[int, ...]) -> Array:
    kept = many.copy()
    kept.reshape(-1, many.shape[-1])[_places_of(context.attrs, shape)] = 0.0
    return kept


def _many_as_part(many: Array, context: Context, shape: tuple[int, ...]) -> Array:
    whole = np.zeros((*shape, many.shape[-1]))
    whole.reshape(-1, many.shape[-1])[_places_of(context.attrs, shape)] = many.reshape(-1, many.shape[-1])
    return whole


COPY_SLICES = Structural(
    "CopySlices", ((), ()), _copy_slices_vjp, linear=(_many_without_part, _many_as_part), takes_stretched=True,
    moves=(ALL_BUT_PART, PUT_INTO_PART),
)  # fmt: skip


def overwrite(t: Tensor, z: Any, row_of: Callable[[], int] | None) -> Tensor:
    """Write a computed value into `t`.

    Parameters
    ----------
    z : ndarray, float or callable
        New value, of the target's shape and dtype; or what writes it into the target's array when everything is noted.
    row_of : callable or None
        Records the row of the new value and gives its handle; None leaves the graph alone.
    """
    tracer = current_tracer() if TAPE.tracers else None
    note_write(t)
    if type(t._data) is float:
        row = row_of() if row_of is not None else None
        if tracer is not None:
            tracer.overwriting(t, z, row or 0)
        if t._row > 0 and not (TAPE.packers and (packer := current_packer()) is not None and packer.keeps_numbers):
            TAPE.mark_overwritten(_ADDRESS, t._row)
        t._data = float(z)
    else:
        row = row_of() if row_of is not None else None
        if tracer is not None:
            tracer.overwriting(t, z, row or 0)
        if callable(z):
            z(t._data)
        elif type(z) is np.ndarray and z.dtype is t._data.dtype:
            np.copyto(t._data, z)
        else:
            with quiet():
                np.copyto(t._data, z, casting="same_kind")
    if row is not None:
        replace(t, row)
    else:
        # A view of a view starts from the base after any write, so that gradients with respect to views do not depend on
        # whether the write was recorded.
        refresh(t if t._meta is None or t._meta.base is None else t._meta.base, recorded=False)
    return t


def note_write(t: Tensor) -> None:
    """Count a write, after which values that were saved from this memory are stale."""
    untracked_values.count_write()
    counter = version_of(t)
    counter.note(int(TAPE.header[CLOCK]))
    if type(t._data) is not float:
        TAPE.note_written(t._data)
        TAPE.versions[owner_of(t._data)] = counter


def take_row(result: Tensor) -> int:
    """The handle of a result whose tensor is not needed."""
    row, result._row = result._row, 0
    return row
