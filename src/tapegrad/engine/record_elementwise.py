"""Recording elementwise operations on arrays: one wide row each, and what their partials will read is kept."""

from tapegrad.compilation.jit import entry, inline, kernel
from tapegrad.engine.handles import take_handle
from tapegrad.engine.layout import *
from tapegrad.engine.memory import (
    array_rank,
    array_size,
    array_type_number,
    bits_of,
    call11_word,
    float_value,
    is_float,
    item_bytes,
    owner,
    retain,
)
from tapegrad.engine.record_scalars import operand_row
from tapegrad.engine.records import begin_record, primal_of, put_argument, save_array
from tapegrad.engine.rows import refuse, write_row
from tapegrad.engine.rule_loops import has_loops


@inline
def save_operand(tape, record, k, slot, obj, needed, overwritten_by):
    """Store reference and value of one operand of an elementwise row."""
    if is_float(tape, obj):
        if slot >= 0:
            put_argument(tape, record, k, slot, ROW, 0)
        else:
            put_argument(tape, record, k, slot, NUMBER, bits_of(float_value(obj)))
    elif not needed:
        put_argument(tape, record, k, slot, NOTHING, 0)
    elif overwritten_by != 0 and owner(tape.array_type, obj) == overwritten_by:
        put_argument(tape, record, k, slot, STALE, 0)
    else:
        save_array(tape, record, k, slot, obj)


@inline
def widened(tape, obj, number):
    """What a float64 result needs: 1 if this operand explains it (a float64 array), 2 if it speaks against it."""
    if is_float(tape, obj) or array_rank(obj) == 0:
        return 0
    own = array_type_number(obj)
    return 1 if own == FLOAT64 else 2 if own == FLOAT32 else 0


@inline
def is_known(tape, obj):
    """Whether the sweep can read an operand's dtype (`read` in the strided kernels)."""
    return is_float(tape, obj) or array_type_number(obj) <= FLOAT64


@kernel("int64(Tape,int64,int64,int64,int64,int64,int64,int64,int64,int64,int64)")
def elementwise_row(tape, opcode, in_place, count, hx, px, hy, py, hw, pw, pz):
    """Record an elementwise operation on up to three operands, arrays or floats; its handle or why not."""
    number = FLOAT64 if is_float(tape, pz) else array_type_number(pz)
    if (number != FLOAT64 and number != FLOAT32) or not has_loops(tape, opcode):
        return UNSUPPORTED
    if not is_known(tape, px) or (count > 1 and not is_known(tape, py)) or (count > 2 and not is_known(tape, pw)):
        return UNSUPPORTED
    if number == FLOAT64 and in_place == 0:
        evidence = widened(tape, px, number)
        if count > 1:
            evidence |= widened(tape, py, number)
        if count > 2:
            evidence |= widened(tape, pw, number)
        if evidence == 2:
            return UNSUPPORTED
    rank = 0 if is_float(tape, pz) else array_rank(pz)
    if refuse(tape, 4, ARGUMENTS + 6 + rank) or tape.saved_bytes > tape.saved_limit:
        return FULL
    x = operand_row(tape, hx, px)
    y = operand_row(tape, hy, py) if count > 1 else -1
    w = operand_row(tape, hw, pw) if count > 2 else -1
    # Four bits a partial: which of x, y, w, z its text uses.
    uses = tape.rules[opcode].uses
    need = 0
    if x >= 0:
        need |= uses & 15
    if y >= 0:
        need |= (uses >> 4) & 15
    if w >= 0:
        need |= (uses >> 8) & 15
    start = begin_record(tape, 0, count, pz, 0, 0)
    record = tape.side[start]
    spoiled = owner(tape.array_type, pz) if in_place != 0 else 0
    save_operand(tape, record, 0, x, px, need & 1 != 0, spoiled)
    if count > 1:
        save_operand(tape, record, 1, y, py, need & 2 != 0, spoiled)
    if count > 2:
        save_operand(tape, record, 2, w, pw, need & 4 != 0, spoiled)
    if need & 8 != 0 and not is_float(tape, pz):
        retain(pz)
        record.result = pz
        tape.saved_bytes = tape.saved_bytes + array_size(pz) * item_bytes(number)
    return take_handle(tape, write_row(tape, opcode | WIDE, start, -1, primal_of(tape, pz)))


@entry("int64(Tape,int64,int64,int64,int64,int64)")
def array1(tape, opcode, hx, px, pz, in_place):
    """Record ``z = op(x)``; `px`, `pz` are addresses of arrays or floats; `in_place`: z overwrote x."""
    if hx < 0:
        return NEW_LEAF
    return call11_word(tape.elementwise_row, tape, opcode, in_place, 1, hx, px, 0, 0, 0, 0, pz)


@entry("int64(Tape,int64,int64,int64,int64,int64,int64,int64)")
def array2(tape, opcode, hx, px, hy, py, pz, in_place):
    """Record ``z = op(x, y)`` on arrays or floats."""
    if hx < 0 or hy < 0:
        return NEW_LEAF
    return call11_word(tape.elementwise_row, tape, opcode, in_place, 2, hx, px, hy, py, 0, 0, pz)


@entry("int64(Tape,int64,int64,int64,int64,int64,int64,int64,int64,int64)")
def array3(tape, opcode, hx, px, hy, py, hw, pw, pz, in_place):
    """Record ``z = op(x, y, w)`` on arrays or floats."""
    if hx < 0 or hy < 0 or hw < 0:
        return NEW_LEAF
    return call11_word(tape.elementwise_row, tape, opcode, in_place, 3, hx, px, hy, py, hw, pw, pz)
