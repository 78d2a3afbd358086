"""A pass while anomalies are looked for: row by row, with the arguments, results and effects of a plain one."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial

import numpy as np

from tapegrad.autograd.decoded_rows import object_at, opcode_of, record_of
from tapegrad.autograd.gradient_delivery import add_gradients, check_leaf
from tapegrad.autograd.recorded_sweep import recorded_sweep
from tapegrad.autograd.sweep import call_finished, release
from tapegrad.engine import layout as at
from tapegrad.tape.tape import TAPE
from tapegrad.tensors.tensor import Tensor, array_of

__all__ = ["walk"]


def walk(
    slots: Sequence[int],
    seeds: Sequence[Tensor],
    requested: Sequence[int] | None,
    retain: bool,
    demand: bool = False,
    into: Sequence[tuple[Tensor, int]] = (),
) -> dict[int, np.ndarray]:
    """A pass that is not recorded, row by row: arguments, results and effects are those of `tapegrad.autograd.sweep.sweep`."""
    found, shown, finished = recorded_sweep(
        slots, seeds, requested, demand, accumulates=requested is None or bool(into), records=False
    )
    # A gradient shares memory with nothing: neither with a seed nor with another gradient.
    adjoints = {slot: np.array(array_of(g), order="C") for slot, g in found.items()}
    pairs = [(t, np.array(array_of(g), order="C")) for t, g in shown]
    if requested is None:
        for slot, array in adjoints.items():
            t: Tensor | None = object_at(record_of(slot).payload)() if opcode_of(slot)[0] == at.LEAF else None
            if t is not None and t._row:
                if TAPE.reshaped:
                    check_leaf(t, record_of(slot), None if t._meta is None or t._meta.grad is None else t._meta.grad._data)
                pairs.append((t, array))
    else:
        pairs += [(t, adjoints[slot].copy()) for t, slot in into if slot in adjoints]
    add_gradients(pairs, before=None if retain else partial(release, slots, requested))
    if finished:
        call_finished(finished)
    return adjoints
