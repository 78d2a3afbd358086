"""Growth of the tape's columns: the engine and Python change over to larger memory in one step.

Python keeps the memory of the columns alive, in a dictionary of arrays by name. Were that a step of its own, an exception between
the two would leave the engine with memory that nobody keeps.
"""

from numba import types

from tapegrad.compilation.jit import entry, inline
from tapegrad.engine.layout import *
from tapegrad.engine.memory import array_data, get, load_i32, load_i64, load_u8, put, store_i32, store_i64, store_u8
from tapegrad.engine.objects import clear_error
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


@entry("int64(int64,int64,int64,int64,int64,int64,int64,int64,int64,int64,int64)")
def move_column(tape, columns, name, array, word, item, used_word, first, capacity_word, capacity, is_last):
    """Copy a column to a larger array, from its byte `first` on, and use that from now on.

    Nothing happens if so much capacity is there already: whatever ran since the array was allocated may have needed more, and grown
    by itself. The last column that a capacity counts for says that it holds.
    """
    if get(tape, capacity_word) >= capacity:
        return 0
    if not is_kept(columns, name, array):
        return FULL
    source, target = get(tape, word), array_data(array) + first
    count = get(tape, used_word) * item
    for k in range(count // 8):
        put(target, k, get(source, k))
    for k in range(count // 8 * 8, count):
        store_u8(target + k, load_u8(source + k))
    put(tape, word, target)
    if is_last != 0:
        put(tape, capacity_word, capacity)
    return 0


@entry("int64(int64,int64,int64,int64,int64,int64,int64)")
def move_handles(tape, columns, name, array, word, before, capacity):
    """The same for the table of handles or of anchors, whose new entries are free.

    Capacity and the first free entry stand in the words after that of the address. Nothing happens if the capacity is not
    `before` any more.
    """
    if get(tape, word + 1) != before:
        return 0
    if not is_kept(columns, name, array):
        return FULL
    source, target = get(tape, word), array_data(array)
    for k in range(before):
        store_i32(target + 4 * k, load_i32(source + 4 * k))
    start = max(before, 1)
    store_i32(target, -1)  # 0 means none
    for k in range(start, capacity - 1):
        store_i32(target + 4 * k, -2 - (k + 1))
    store_i32(target + 4 * (capacity - 1), -2 - get(tape, word + 2))
    put(tape, word, target)
    put(tape, word + 1, capacity)
    put(tape, word + 2, start)
    return 0


@entry("int64(int64,int64,int64,int64,int64,int64)")
def move_written(tape, columns, name, array, capacity, oldest):
    """The same for the table of written arrays: a table of zeros, without the entries that are older than every record.

    Nothing happens if a larger one is there by now.
    """
    if get(tape, WRITTEN_CAPACITY) > capacity:
        return 0
    if not is_kept(columns, name, array):
        return FULL
    source, before = get(tape, WRITTEN), get(tape, WRITTEN_CAPACITY)
    put(tape, WRITTEN, array_data(array))
    put(tape, WRITTEN_CAPACITY, capacity)
    put(tape, WRITTEN_COUNT, 0)
    for k in range(before):
        key, time = load_i64(source + 16 * k), load_i64(source + 16 * k + 8)
        if key != 0 and time >= oldest:
            place = find_written(tape, key)
            store_i64(place, key)
            store_i64(place + 8, time)
            put(tape, WRITTEN_COUNT, get(tape, WRITTEN_COUNT) + 1)
    return 0
