"""What a wide row's record refers to, and the objects that it owns."""

from tapegrad.compilation.jit import inline
from tapegrad.engine.layout import *
from tapegrad.engine.memory import array_size, array_type_number, get, item_bytes, put


@inline
def argument_count(record):
    """Number of a record's arguments."""
    return get(record, NAME) >> 32


@inline
def argument_kind(record, k):
    """What an argument saved."""
    return get(record, ARGUMENTS + 2 * k) >> 32


@inline
def argument_row(record, k):
    """Row of an argument; negative if it is none."""
    return ((get(record, ARGUMENTS + 2 * k) & 0xFFFFFFFF) ^ 0x80000000) - 0x80000000  # sign of an int32


@inline
def object_count(record):
    """How many objects a record owns."""
    count = (1 if get(record, PAYLOAD) != 0 else 0) + (1 if get(record, RESULT) != 0 else 0)
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
    total = array_bytes(get(record, RESULT)) if get(record, RESULT) != 0 else 0
    for k in range(argument_count(record)):
        if argument_kind(record, k) == ARRAY:
            total += array_bytes(get(record, ARGUMENTS + 2 * k + 1))
    return total


@inline
def discard(record, trash, count):
    """Move what a record owns to the list of objects to release."""
    if get(record, PAYLOAD) != 0:
        put(trash, count, get(record, PAYLOAD))
        put(record, PAYLOAD, 0)
        count += 1
    return discard_values(record, trash, count)


@inline
def discard_values(record, trash, count):
    """Move the saved arrays of a record to the list of objects to release, its payload not."""
    if get(record, RESULT) != 0:
        put(trash, count, get(record, RESULT))
        put(record, RESULT, 0)
        count += 1
    for k in range(argument_count(record)):
        if argument_kind(record, k) == ARRAY:
            put(trash, count, get(record, ARGUMENTS + 2 * k + 1))
            put(record, ARGUMENTS + 2 * k, get(record, ARGUMENTS + 2 * k) & 0xFFFFFFFF)
            count += 1
    return count


@inline
def pop_object(record):
    """Take one object out of a record."""
    obj = get(record, PAYLOAD)
    if obj != 0:
        put(record, PAYLOAD, 0)
        return obj
    obj = get(record, RESULT)
    if obj != 0:
        put(record, RESULT, 0)
        return obj
    for k in range(argument_count(record)):
        if argument_kind(record, k) == ARRAY:
            obj = get(record, ARGUMENTS + 2 * k + 1)
            put(record, ARGUMENTS + 2 * k, get(record, ARGUMENTS + 2 * k) & 0xFFFFFFFF)
            return obj
    return 0
