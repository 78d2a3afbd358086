"""Messages for passes that cannot run."""

from __future__ import annotations

from tapegrad.autograd.rows import name_of, object_at, opcode_of, record_of
from tapegrad.engine import layout as at

__all__ = ["explain"]

FREED = (
    "Trying to backward through the graph a second time (or directly access saved tensors after they have already been freed). "
    "Saved intermediate values of the graph are freed when you call .backward() or autograd.grad(). Specify retain_graph=True if "
    "you need to backward through the graph a second time or if you need to access saved tensors after calling backward."
)


def explain(status: int, slot: int) -> RuntimeError:
    """The error for a row that the plan stopped at."""
    if status == at.FREED_ROW:
        return RuntimeError(f"{FREED} [{name_of(slot)}]")
    return RuntimeError(
        f"one of the variables needed for gradient computation has been modified by an inplace operation: a value of shape "
        f"{list(_saved_shape(slot))} that {name_of(slot)} saved is at a later version; expected the version at which it was saved "
        "instead. Hint: write to a clone(), or do the in-place operation before the value is used."
    )


def _saved_shape(slot: int) -> tuple[int, ...]:
    opcode, wide = opcode_of(slot)
    if not wide:
        return ()
    record = record_of(slot)
    for argument in record.arguments:
        if argument.kind == at.ARRAY:
            shape: tuple[int, ...] = object_at(argument.saved).shape
            return shape
    return record.shape
