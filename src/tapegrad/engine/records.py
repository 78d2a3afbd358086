"""Writing the record of a wide row: the words in the side column that say what a row of arrays is made of."""

from tapegrad.compilation.jit import inline
from tapegrad.engine.layout import *
from tapegrad.engine.memory import (
    array_data,
    array_dimensions,
    array_rank,
    array_size,
    array_type_number,
    bits_of,
    float_of,
    float_value,
    is_float,
    item_bytes,
    load_i64,
    retain,
)
from tapegrad.engine.reference_counts import hold


@inline
def begin_record(tape, name, arguments, result, payload, extra):
    """Write the fixed part of a record for the row that comes next; its first word."""
    start = tape.side_rows
    record = tape.side[start]
    rank, size, number = 0, 1, FLOAT64
    if not is_float(tape, result):
        rank, size, number = array_rank(result), array_size(result), array_type_number(result)
    words = ARGUMENTS + 2 * arguments + rank + extra
    record.length = words
    record.name = name | (arguments << 32)
    record.serial = tape.clock + 1
    record.payload = payload
    record.size = size
    record.dtype = number | (rank << 8)
    record.result = 0
    record.scale = bits_of(1.0)
    dimensions = ARGUMENTS + 2 * arguments
    for d in range(rank):
        record[dimensions + d] = array_dimensions(result)[d]
    if payload != 0:
        retain(payload)
    tape.side_rows = start + words
    return start


@inline
def primal_of(tape, result):
    """What the value column holds for a result: its value if it is a float64 scalar, else nothing."""
    if is_float(tape, result):
        return float_value(result)
    if array_rank(result) == 0 and array_type_number(result) == FLOAT64:
        return load_f64_at(array_data(result))
    return 0.0


@inline
def load_f64_at(address):
    """The float64 number at an address."""
    return float_of(load_i64(address))


@inline
def put_argument(tape, record, k, reference, kind, saved):
    """Write the two words of a record's argument."""
    if reference >= 0:
        hold(tape, reference)
    record[ARGUMENTS + 2 * k] = (reference & 0xFFFFFFFF) | (kind << 32)
    record[ARGUMENTS + 2 * k + 1] = saved


@inline
def save_array(tape, record, k, reference, obj):
    """Keep an array alive for the reverse sweep."""
    retain(obj)
    tape.saved_bytes = tape.saved_bytes + array_size(obj) * item_bytes(array_type_number(obj))
    put_argument(tape, record, k, reference, ARRAY, obj)
