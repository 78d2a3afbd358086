"""Rows whose derivative is Python: what they saved for their vjp."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tapegrad.autograd.decoded_rows import Argument, Record, as_float, object_at
from tapegrad.engine import layout as at
from tapegrad.tape.tape import TAPE
from tapegrad.tensors.tensor import Tensor, make

__all__ = ["saved_result", "saved_value"]


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
