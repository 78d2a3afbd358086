"""What a wide row's record refers to, and the objects that it owns."""

from tapegrad.compilation.jit import inline
from tapegrad.compilation.memory_types import from_element
from tapegrad.engine.layout import *
from tapegrad.engine.memory import array_size, array_type_number, item_bytes


@inline
def argument_count(record):
    """Number of a record's arguments."""
    return record.name >> 32


@inline
def argument_kind(record, k):
    """What an argument saved."""
    return record[ARGUMENTS + 2 * k] >> 32


@inline
def argument_row(record, k):
    """Row of an argument; negative if it is none."""
    return ((record[ARGUMENTS + 2 * k] & 0xFFFFFFFF) ^ 0x80000000) - 0x80000000  # sign of an int32


@inline
def record_dimensions(record):
    """The lengths of a record's result."""
    return from_element(record, ARGUMENTS + 2 * argument_count(record))


@inline
def object_count(record):
    """How many objects a record owns."""
    count = (1 if record.payload != 0 else 0) + (1 if record.result != 0 else 0)
    for k in range(argument_count(record)):
        if argument_kind(record, k) == ARRAY:
            count += 1
    return count


@inline
def array_bytes(obj):
    """Bytes of an array's elements."""
    return array_size(obj) * item_bytes(array_type_number(obj))


@inline
def saved_bytes(record):
    """Bytes of the arrays a record keeps alive, counted once a use."""
    total = array_bytes(record.result) if record.result != 0 else 0
    for k in range(argument_count(record)):
        if argument_kind(record, k) == ARRAY:
            total += array_bytes(record[ARGUMENTS + 2 * k + 1])
    return total


@inline
def discard(record, trash, count):
    """Move what a record owns to the list of objects to release."""
    if record.payload != 0:
        trash[count] = record.payload
        record.payload = 0
        count += 1
    return discard_values(record, trash, count)


@inline
def discard_values(record, trash, count):
    """Move the saved arrays of a record to the list of objects to release, its payload not."""
    if record.result != 0:
        trash[count] = record.result
        record.result = 0
        count += 1
    for k in range(argument_count(record)):
        if argument_kind(record, k) == ARRAY:
            trash[count] = record[ARGUMENTS + 2 * k + 1]
            record[ARGUMENTS + 2 * k] &= 0xFFFFFFFF
            count += 1
    return count


@inline
def pop_object(record):
    """Take one object out of a record."""
    obj = record.payload
    if obj != 0:
        record.payload = 0
        return obj
    obj = record.result
    if obj != 0:
        record.result = 0
        return obj
    for k in range(argument_count(record)):
        if argument_kind(record, k) == ARRAY:
            obj = record[ARGUMENTS + 2 * k + 1]
            record[ARGUMENTS + 2 * k] &= 0xFFFFFFFF
            return obj
    return 0
