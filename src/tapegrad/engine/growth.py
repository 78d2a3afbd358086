"""Growth of the tape's columns: the engine and Python change over to larger memory in one step.

Python keeps the memory of the columns alive, in a dictionary of arrays by name. Were that a step of its own, an exception between
the two would leave the engine with memory that nobody keeps.
"""

from numba import types

from tapegrad.compilation.jit import entry, inline
from tapegrad.engine.layout import *
from tapegrad.engine.memory import array_data
from tapegrad.engine.objects import clear_error
from tapegrad.engine.structs import bytes_at, ints_at, words_at, written_at
from tapegrad.engine.written import find_written

set_item = types.ExternalFunction("PyDict_SetItem", types.int32(types.int64, types.int64, types.int64))


@inline
def is_kept(columns, name, array):
    """Let Python keep an array as a column; False, and nothing has happened, without memory for that.

    The caller has a reference to the array that was there, so its memory can still be read.
    """
    if set_item(columns, name, array) == 0:
        return True
    clear_error()
    return False


@entry("int64(Tape,int64,int64,int64,int64,int64,int64,int64,int64,int64,int64)")
def move_column(tape, columns, name, array, word, item, used_word, first, capacity_word, capacity, is_last):
    """Copy a column to a larger array, from its byte `first` on, and use that from now on.

    Nothing happens if so much capacity is there already: whatever ran since the array was allocated may have needed more, and grown
    by itself. The last column that a capacity counts for says that it holds.
    """
    if tape[capacity_word] >= capacity:
        return 0
    if not is_kept(columns, name, array):
        return FULL
    source, target = tape[word], array_data(array) + first
    count = tape[used_word] * item
    for k in range(count // 8):
        words_at(target)[k] = words_at(source)[k]
    for k in range(count // 8 * 8, count):
        bytes_at(target)[k] = bytes_at(source)[k]
    tape[word] = target
    if is_last != 0:
        tape[capacity_word] = capacity
    return 0


@entry("int64(Tape,int64,int64,int64,int64,int64,int64)")
def move_handles(tape, columns, name, array, word, before, capacity):
    """The same for the table of handles or of anchors, whose new entries are free.

    Capacity and the first free entry stand in the words after that of the address. Nothing happens if the capacity is not
    `before` any more.
    """
    if tape[word + 1] != before:
        return 0
    if not is_kept(columns, name, array):
        return FULL
    source, target = ints_at(tape[word]), ints_at(array_data(array))
    for k in range(before):
        target[k] = source[k]
    start = max(before, 1)
    target[0] = -1  # 0 means none
    for k in range(start, capacity - 1):
        target[k] = -2 - (k + 1)
    target[capacity - 1] = -2 - tape[word + 2]
    tape[word] = target
    tape[word + 1] = capacity
    tape[word + 2] = start
    return 0


@entry("int64(Tape,int64,int64,int64,int64,int64)")
def move_written(tape, columns, name, array, capacity, oldest):
    """The same for the table of written arrays: a table of zeros, without the entries that are older than every record.

    Nothing happens if a larger one is there by now.
    """
    if tape.written_capacity > capacity:
        return 0
    if not is_kept(columns, name, array):
        return FULL
    source, before = tape.written, tape.written_capacity
    tape.written = written_at(array_data(array))
    tape.written_capacity = capacity
    tape.written_count = 0
    for k in range(before):
        key, time = source[k].owner, source[k].time
        if key != 0 and time >= oldest:
            place = find_written(tape, key)
            place.owner = key
            place.time = time
            tape.written_count += 1
    return 0
