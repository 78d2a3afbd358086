"""What a row saved, as tensors on the graph: a recorded pass computes its derivative with them."""

from tapegrad.compilation.jit import entry, inline
from tapegrad.engine.handles import take_handle
from tapegrad.engine.layout import *
from tapegrad.engine.memory import array_rank, array_type_number, float_of, release, retain
from tapegrad.engine.objects import append_to_list, clear_error, new_float, set_handle, tensor_around
from tapegrad.engine.owned import argument_count, argument_kind, argument_row, record_dimensions
from tapegrad.engine.plan import record_of


@inline
def is_double_row(tape, slot):
    """Whether a row's result is of float64."""
    return tape.opcode[slot] & WIDE == 0 or record_of(tape, slot).dtype & 255 == FLOAT64


@inline
def is_whole(tape, slot, record):
    """Whether a row's result has the shape of a record's."""
    rank = record.dtype >> 8
    if tape.opcode[slot] & WIDE == 0:
        return rank == 0
    other = record_of(tape, slot)
    if other.dtype >> 8 != rank:
        return False
    dimensions, others = record_dimensions(record), record_dimensions(other)
    for d in range(rank):
        if dimensions[d] != others[d]:
            return False
    return True


@inline
def saved_operand(tape, slot, k):
    """A new reference to the value of an argument, 0 if it was not saved; `UNSUPPORTED` for arrays of another kind than these.

    Constants of a host row are of any dtype; elementwise text means real numbers.
    """
    record = record_of(tape, slot)
    kind, word = argument_kind(record, k), record[ARGUMENTS + 2 * k + 1]
    if kind == ROW or kind == NUMBER:
        number = new_float(tape.value[argument_row(record, k)] if kind == ROW else float_of(word))
        return UNSUPPORTED if number == 0 else number
    if kind != ARRAY:
        return 0
    is_constant = argument_row(record, k) < 0 and tape.opcode[slot] == HOST | WIDE
    if array_rank(word) == 0 or not (is_constant or array_type_number(word) == FLOAT64):
        return UNSUPPORTED
    retain(word)
    return word


@inline
def append_tensor(tape, found, data, row):
    """Append a tensor of a row, or an untracked one if that is negative, with data that it takes over; False if that fails."""
    t = tensor_around(tape, data)
    if t == 0:
        return False
    if row >= 0 and (tape.handle_free < 0 or not set_handle(tape, t, take_handle(tape, row))):
        release(t)
        return False
    failed = append_to_list(found, t)
    release(t)
    return failed == 0


@entry("int64(Tape,int64,int64,Words,int64)")
def tensors_of_row(tape, slot, found, words, room):
    """Append an elementwise or host row's operands and its result to a list, None for what was not saved.

    Gives the number of operands, and for each two words: its row, and whether that has the shape of the result. `UNSUPPORTED` if
    there is no room for so many, or if something is left to Python, which drops what the list has got by then.
    """
    if tape.tensor_type != tape.plain_tensor or tape.flags[slot] & FREED != 0 or record_of(tape, slot).dtype & 255 != FLOAT64:
        return UNSUPPORTED
    count = argument_count(record_of(tape, slot))
    if count > room:
        return UNSUPPORTED
    for k in range(count):
        row = argument_row(record_of(tape, slot), k)
        if row >= 0 and not is_double_row(tape, row):
            return UNSUPPORTED
        words[2 * k] = row
        words[2 * k + 1] = 1 if row >= 0 and is_whole(tape, row, record_of(tape, slot)) else 0
    for k in range(count + 1):
        if tape.flags[slot] & FREED != 0:  # by a destructor that the collector ran
            return UNSUPPORTED
        row = slot if k == count else argument_row(record_of(tape, slot), k)
        if k < count:
            data = saved_operand(tape, slot, k)
        else:
            data = record_of(tape, slot).result
            if data != 0:
                retain(data)
            elif record_of(tape, slot).dtype >> 8 == 0:
                data = new_float(tape.value[slot])
                data = UNSUPPORTED if data == 0 else data
        if data == UNSUPPORTED:
            clear_error()
            return UNSUPPORTED
        if data == 0:
            if append_to_list(found, tape.none) != 0:
                clear_error()
                return UNSUPPORTED
        elif not append_tensor(tape, found, data, row):
            clear_error()
            return UNSUPPORTED
    return count
