"""What a custom function saved, as tensors: the inputs and outputs that they were, on the graph as it is."""

from tapegrad.compilation.jit import entry, inline
from tapegrad.engine.handles import slot_of, take_handle
from tapegrad.engine.layout import *
from tapegrad.engine.memory import float_of, float_value, is_float, release, retain, store_i64
from tapegrad.engine.objects import (
    allocate,
    append_to_list,
    call_object0,
    clear_error,
    data_of,
    new_float,
    prepared,
    set_handle,
)
from tapegrad.engine.owned import argument_count, argument_kind, argument_row
from tapegrad.engine.plan import record_of, written_since


@inline
def saved_data(tape, record, k):
    """A new reference to what argument k saved; 0 if that is nothing, or was written since."""
    if k >= argument_count(record):
        return 0
    kind, word = argument_kind(record, k), record[ARGUMENTS + 2 * k + 1]
    if kind == ARRAY and not written_since(tape, word, record.serial):
        retain(word)
        return word
    if kind == NUMBER:
        return new_float(float_of(word))
    return 0


@inline
def same_data(tape, one, other):
    """Whether data are the same object, or equal numbers."""
    if one == other:
        return True
    return is_float(tape, one) and is_float(tape, other) and float_value(one) == float_value(other)


@inline
def leaf_with(tape, slot, data):
    """A new reference to the leaf of a row if it lives and has these data; else 0."""
    leaf = call_object0(record_of(tape, slot).payload)
    if leaf == 0:
        clear_error()
        return 0
    if leaf == tape.none or not same_data(tape, data_of(tape, leaf), data):
        release(leaf)
        return 0
    return leaf


@inline
def tracked_as(tape, t, data, to):
    """A tensor with data as the result of a row: with a handle, or the leaf that it is. It is taken over; 0 if that fails."""
    if to < 0:
        return t
    if tape.opcode[to] == LEAF | WIDE:
        leaf = leaf_with(tape, to, data)
        release(t)
        return leaf
    if tape.handle_free < 0 or not set_handle(tape, t, take_handle(tape, to)):
        release(t)
        return 0
    return t


@entry("int64(Tape,int64,int64,int64,int64)")
def unpack_saved(tape, handle, was, k, found):
    """Append what argument k of a row saved to a list, as the tensor that it was; `UNSUPPORTED` if this is left to Python."""
    if tape.tensor_type != tape.plain_tensor:
        return UNSUPPORTED
    t = prepared(tape, allocate(tape.plain_tensor, 0))  # first: the collector may run, and rows move
    if t == 0:
        clear_error()
        return UNSUPPORTED
    slot = slot_of(tape, handle)
    record = record_of(tape, slot)
    data = saved_data(tape, record, k) if tape.flags[slot] & FREED == 0 else 0
    if data == 0:
        release(t)
        return UNSUPPORTED
    store_i64(t + tape.data_at, data)
    to = -1
    if was == SAVED_INPUT:
        to = argument_row(record, k)
    elif was == SAVED_OUTPUT:
        to = slot
    t = tracked_as(tape, t, data, to)
    if t == 0:
        return UNSUPPORTED
    failed = append_to_list(found, t)
    release(t)
    if failed != 0:
        clear_error()
        return UNSUPPORTED
    return 0
