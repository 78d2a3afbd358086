"""What a vjp is given in the plain pass, and where compiled code finds it, payloads and gradients in memory."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from tapegrad.arrays.slots import offset_of
from tapegrad.engine import layout as at
from tapegrad.ops.namespaces import PLAIN
from tapegrad.recording.structural import Context, Payload, Structural
from tapegrad.tape.tape import TAPE
from tapegrad.tensors.tensor import Meta, Tensor

__all__ = ["PlainContext", "new_context"]


class PlainContext(Context):
    """What a vjp is given in the plain pass, and cotangent `g` and operation themselves; compiled code sets the attributes."""

    __slots__ = ("g", "op", "slot", "sweep")
    on = PLAIN
    g: Tensor
    op: Structural
    slot: int  # of the row; only for custom functions
    sweep: int  # address of the pass; in the same way


new_context: Any = partial(object.__new__, PlainContext)

FLOAT64 = np.dtype(np.float64)
OBJECTS: tuple[tuple[Any, int, tuple[str, ...]], ...] = (
    (Meta(), at.META_GRAD, ("grad", "left", "version")),
    (object.__new__(Payload), at.PAYLOAD_OP, ("op", "inputs", "attrs", "shapes", "dtypes")),
    (new_context(), at.GIVEN_OP, ("op", "g", "inputs", "result", "extra", "attrs", "needs", "shapes", "dtypes")),
    (object.__new__(Structural), at.OPERATION_NUMBER, ("number", "uses_at")),
    (object.__new__(Structural), at.OPERATION_PAYLOAD_CLASS, ("payload_class",)),
    (object.__new__(Structural), at.OPERATION_MOVES, ("moves", "takes_stretched")),
    (new_context(), at.GIVEN_SLOT, ("slot",)),
    (new_context(), at.GIVEN_SWEEP, ("sweep",)),
)
for _thing, _first, _slots in OBJECTS:
    for _which, _slot in enumerate(_slots, _first):
        TAPE.header[at.OFFSETS + _which] = offset_of(_thing, _slot)
TAPE.header[at.PAYLOAD_CLASS], TAPE.header[at.DOUBLE] = id(Payload), id(FLOAT64)
TAPE.header[at.PLAIN_TENSOR], TAPE.header[at.CONTEXT_CLASS] = id(Tensor), id(PlainContext)
