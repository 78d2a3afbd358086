"""Rows whose derivative is Python: what their vjp is given, in whichever pass."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tapegrad.autograd.decoded_rows import Argument, Record, object_at
from tapegrad.ops.namespaces import TENSORS
from tapegrad.recording.structural import Context, Payload
from tapegrad.tape.tape import TAPE
from tapegrad.tensors.tensor import Tensor

__all__ = ["context_of"]


def context_of(
    slot: int,
    record: Record,
    needs: tuple[bool, ...],
    operand: Callable[[Argument], Tensor | None],
    own: Callable[[Any], Tensor],
) -> Context:
    """What a structural operation's vjp is given besides the cotangent.

    Parameters
    ----------
    slot : int
    record : Record
        Of the row.
    needs : tuple of bool
        Which inputs' cotangents are wanted.
    operand : callable
        Gives the value of an argument as a tensor, or None if it was not saved.
    own : callable
        Makes a tensor of the result.
    """
    payload: Payload = object_at(record.payload)
    count = payload.inputs
    result = None
    if record.result:
        result = own(object_at(record.result))
    elif not record.shape and record.dtype.itemsize == 8:
        result = own(float(TAPE.columns["value"][slot]))
    values = list(map(operand, record.arguments))
    extra = tuple(t for t in values[count:] if t is not None)
    return Context(tuple(values[:count]), result, extra, payload.attrs, needs, payload.shapes, payload.dtypes, TENSORS)
