"""Rows whose derivative is Python: what their vjp is given, in whichever pass."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tapegrad.autograd.decoded_rows import Argument, Record, as_float, object_at
from tapegrad.engine import layout as at
from tapegrad.ops.namespaces import TENSORS
from tapegrad.recording.structural import Context, Payload
from tapegrad.tape.tape import TAPE
from tapegrad.tensors.tensor import Tensor, make

__all__ = ["context_of", "saved_result", "saved_value"]


def context_of(
    payload: Payload, values: Sequence[Tensor | None], result: Tensor | None, needs: Sequence[bool], on: Any = TENSORS
) -> Context:
    """What a structural operation's vjp is given besides the cotangent.

    Compiled code gives the same to the usual rows of a plain pass (`engine.host_steps`).

    Parameters
    ----------
    payload : Payload
    values : sequence of Tensor or None
        Of the inputs where they were saved, and of what was saved besides them.
    result : Tensor or None
        If it was saved.
    needs : sequence of bool
        Which inputs' cotangents are wanted.
    on : object
        The operations that the vjp is to be written with.
    """
    count = payload.inputs
    extra = tuple([t for t in values[count:] if t is not None])
    return Context(tuple(values[:count]), result, extra, payload.attrs, tuple(needs), payload.shapes, payload.dtypes, on)


def saved_result(slot: int, record: Record, own: Callable[[Any], Tensor]) -> Tensor | None:
    """The result of a row, of which `own` makes a tensor; None if it was not saved."""
    if record.result:
        return own(object_at(record.result))
    if not record.shape and record.dtype.itemsize == 8:
        return own(float(TAPE.columns["value"][slot]))
    return None


def saved_value(argument: Argument) -> Tensor | None:
    """What an argument saved, as an untracked tensor; None if that is nothing."""
    if argument.kind == at.ARRAY:
        return make(object_at(argument.saved), 0)
    return make(as_float(argument.saved), 0) if argument.kind == at.NUMBER else None
