"""The walk of a plain pass over its planned rows: stops for Python, and steps whose derivative is Python."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapegrad.autograd.decoded_rows import Argument, as_float, object_at, shape_of
from tapegrad.autograd.host_rows import context_of
from tapegrad.autograd.messages import explain, saved_record_of
from tapegrad.autograd.pass_state import Finished
from tapegrad.autograd.sweep_memory import Sweep
from tapegrad.engine import layout as at
from tapegrad.recording.structural import Payload
from tapegrad.tape.tape import TAPE
from tapegrad.tensors.grad_mode import without_recording
from tapegrad.tensors.tensor import Tensor, make

__all__ = ["resume", "run"]

_ADDRESS = TAPE.address


def run(state: Sweep, releases: bool, captured: dict[int, np.ndarray]) -> list[Finished]:
    """Walk the planned rows; requested rows' adjoints are copied to `captured`. Leaves with hooks to call at the end."""
    return resume(state, TAPE.run(_ADDRESS, state.address, int(releases)), releases, captured)


def resume(state: Sweep, status: int, releases: bool, captured: dict[int, np.ndarray]) -> list[Finished]:
    """Go on with a walk that stopped at a row for Python; leaves with hooks to call at the end."""
    words = state.words
    while status != at.DONE:
        slot = words[at.CURRENT]
        if status == at.FREED_ROW:
            raise explain(status, slot)
        if status == at.WATCHED_ROW:
            if TAPE.columns["flags"][slot] & at.HOOKED:
                from tapegrad.autograd.hooked_rows import stop_plain

                stop_plain(state, slot, captured)
            else:
                state.show(slot, captured)
        else:
            _host(state, slot)
            words[at.CURRENT] = slot - 1
        status = TAPE.run(_ADDRESS, state.address, int(releases))
    seen, state.seen = state.seen, None
    return [] if seen is None else seen.finished


def _host(state: Sweep, slot: int) -> None:
    """The step of a row whose derivative is Python."""
    record = saved_record_of(slot)
    payload: Payload = object_at(record.payload)
    adjoint = state.adjoint_of(record, slot)
    g = make(adjoint if adjoint.ndim or record.dtype.itemsize == 4 else adjoint.item(), 0)
    if payload.runs_itself:
        g = make(g._data if type(g._data) is float else g._data.copy(), 0)  # it may be kept
        for argument, c in without_recording(payload.contributions, state, slot, (g,), state.is_wanted):
            state.contribute(argument.slot, c, shape_of(argument.slot), payload.op.name)
        return
    needs = tuple(bool(TAPE.wants(_ADDRESS, state.address, a.slot)) for a in record.arguments[: payload.inputs])
    cotangents = without_recording(payload.op.vjp, g, context_of(slot, record, needs, _saved, _untracked))
    for argument, wanted, shape, cotangent in zip(record.arguments, needs, payload.shapes, cotangents, strict=False):
        if wanted and cotangent is not None:
            state.contribute(argument.slot, cotangent, shape, payload.op.name)


def _saved(argument: Argument) -> Tensor | None:
    if argument.kind == at.ARRAY:
        return make(object_at(argument.saved), 0)
    return make(as_float(argument.saved), 0) if argument.kind == at.NUMBER else None


def _untracked(value: Any) -> Tensor:
    return make(value, 0)
