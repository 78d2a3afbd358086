"""Planning a sweep: which rows are reached, what could go wrong, and where each adjoint stands in one buffer.

The pass walks the rows that the sweep will walk, in the same order, and only decides. An adjoint's place is taken when its
first contribution is due and given back when its row is consumed, so the buffer's size is the peak and not the sum. Everything
that can make a sweep impossible (released or overwritten values) is found here, before anything has run.

A row that works element by element hands its place on to an argument, so a chain of such rows needs one place.
"""

from tapegrad.compilation.jit import always_inline, entry, inline
from tapegrad.engine.handles import slot_of
from tapegrad.engine.layout import *
from tapegrad.engine.memory import (
    get,
    load_i32,
    load_i64,
    load_u8,
    load_u16,
    owner,
    put,
    store_f32,
    store_f64,
    store_i64,
    store_u8,
)
from tapegrad.engine.owned import argument_count, argument_kind, argument_row, object_count
from tapegrad.engine.places import bump, give_scalar, give_words, take_scalar, take_words
from tapegrad.engine.rows import change_pins
from tapegrad.engine.written import find_written


@inline
def record_of(tape, slot):
    """Address of a wide row's record."""
    return get(tape, SIDE) + 8 * load_i32(get(tape, FIRST) + 4 * slot)


@inline
def adjoint_words(record):
    """Length of a wide row's adjoint: float32 adjoints take half a word an element."""
    size = get(record, SIZE)
    return (size + 1) // 2 if get(record, DTYPE) & 255 == FLOAT32 else size


@inline
def reach(tape, sweep, slot):
    """A contribution to `slot` is due: give it a place if it has none."""
    offsets = get(sweep, OFFSET)
    if load_i64(offsets + 8 * slot) != UNSEEN:
        return
    opcode = load_u16(get(tape, OPCODE) + 2 * slot)
    if opcode & WIDE == 0:
        place = take_scalar(sweep)
    elif opcode == LEAF | WIDE:
        # A leaf's place is never given back: its adjoint is handed over at the end.
        record = record_of(tape, slot)
        count = get(sweep, REACHED_COUNT)
        leaf = get(sweep, REACHED) + 8 * LEAF_WORDS * count
        put(leaf, LEAF_SLOT, slot)
        put(leaf, LEAF_PAYLOAD, get(record, PAYLOAD))
        put(leaf, LEAF_MODE, IGNORE)
        put(sweep, REACHED_COUNT, count + 1)
        if get(record, SIZE) > BLOCK:
            put(sweep, LARGE_LEAVES, 1)
        place = bump(sweep, adjoint_words(record))
    else:
        words = adjoint_words(record_of(tape, slot))
        place = take_scalar(sweep) if words == 1 else take_words(sweep, words)
    store_i64(offsets + 8 * slot, 4 * place + UNWRITTEN)
    put(sweep, PENDING, get(sweep, PENDING) + 1)
    if slot > get(sweep, TOP):
        put(sweep, TOP, slot)


@inline
def can_inherit(tape, sweep, slot, record):
    """Whether the adjoint of an argument is first contributed to by this row, and has the form of the row's own adjoint."""
    opcode = load_u16(get(tape, OPCODE) + 2 * slot)
    if load_i64(get(sweep, OFFSET) + 8 * slot) != UNSEEN or opcode & WIDE == 0 or opcode == LEAF | WIDE:
        return False
    other = record_of(tape, slot)
    return get(other, SIZE) == get(record, SIZE) and get(other, DTYPE) & 255 == get(record, DTYPE) & 255


@inline
def reach_arguments(tape, sweep, opcode, record, place):
    """Give the arguments' adjoints places, one of them the row's own where that can be; whether it was given away.

    The memory is in the cache then, and a partial that is 1 has nothing to do.
    """
    given = False
    for k in range(argument_count(record)):
        slot = argument_row(record, k)
        if not wanted(sweep, slot):
            continue
        if opcode < STRUCTURAL and not given and can_inherit(tape, sweep, slot, record):
            store_i64(get(sweep, OFFSET) + 8 * slot, 4 * place + UNWRITTEN)
            put(sweep, PENDING, get(sweep, PENDING) + 1)
            given = True
        else:
            reach(tape, sweep, slot)
    return given


@inline
def wanted(sweep, slot):
    """Whether the adjoint of a row is needed for the chosen inputs (every row, if none were chosen)."""
    marks = get(sweep, MARKS)
    return slot >= 0 and (marks == 0 or load_u8(marks + slot) != 0)


@inline
def overwritten(tape, slot):
    """Whether the scalar of a row was changed in place after it was recorded."""
    return slot >= 0 and load_u8(get(tape, FLAGS) + slot) & OVERWRITTEN != 0


@inline
def uses_of(tape, sweep, opcode, first, second, third):
    """Which of x, y, w, z (bits) the wanted partials of an elementwise row read."""
    uses = load_i64(get(tape, RULES) + 32 * opcode)
    need = 0
    if wanted(sweep, first):
        need |= uses & 15
    if wanted(sweep, second):
        need |= (uses >> 4) & 15
    if wanted(sweep, third):
        need |= (uses >> 8) & 15
    return need


@inline
def scalar_is_stale(tape, sweep, slot, opcode, a, b):
    """Whether a value that the wanted derivatives of a plain row read was overwritten."""
    need = uses_of(tape, sweep, opcode, a, b, -1)
    return (
        (need & 1 != 0 and overwritten(tape, a))
        or (need & 2 != 0 and overwritten(tape, b))
        or (need & 8 != 0 and overwritten(tape, slot))
    )


@inline
def written_since(tape, obj, serial):
    """Whether the memory of an array was written after a moment of the tape's clock."""
    if get(tape, WRITTEN_COUNT) == 0:
        return False
    place = find_written(tape, owner(get(tape, ARRAY_TYPE), obj))
    return load_i64(place) != 0 and load_i64(place + 8) >= serial


@inline
def record_is_stale(tape, sweep, slot, opcode, record):
    """Whether a value that the wanted derivatives of a wide row read was overwritten after it was saved."""
    count, serial = argument_count(record), get(record, SERIAL)
    need = -1
    if opcode < STRUCTURAL:
        second = argument_row(record, 1) if count > 1 else -1
        third = argument_row(record, 2) if count > 2 else -1
        need = uses_of(tape, sweep, opcode, argument_row(record, 0), second, third)
    for k in range(count):
        if opcode < STRUCTURAL and (need >> k) & 1 == 0:
            continue
        kind = argument_kind(record, k)
        if kind == STALE:
            return True
        if kind == ROW and overwritten(tape, argument_row(record, k)):
            return True
        if kind == ARRAY and written_since(tape, get(record, ARGUMENTS + 2 * k + 1), serial):
            return True
    if opcode >= STRUCTURAL or need & 8 != 0:
        if get(record, RESULT) != 0 and written_since(tape, get(record, RESULT), serial):
            return True
        if opcode < STRUCTURAL and get(record, DTYPE) >> 8 == 0 and get(record, RESULT) == 0:
            return overwritten(tape, slot)
    return False


@entry("int64(int64,int64,int64)")
def mark_paths(tape, sweep, top):
    """Mark (upwards) the rows through which the requested inputs are reached; the requested rows are marked already."""
    opcodes, first, second, marks = get(tape, OPCODE), get(tape, FIRST), get(tape, SECOND), get(sweep, MARKS)
    flags, low = get(tape, FLAGS), get(sweep, PATH_LOW)
    for slot in range(low, top + 1):
        opcode = load_u16(opcodes + 2 * slot)
        a, b = load_i32(first + 4 * slot), load_i32(second + 4 * slot)
        if opcode & WIDE:
            record = record_of(tape, slot)
            found = False
            for k in range(argument_count(record)):
                reference = argument_row(record, k)
                if reference >= 0 and load_u8(marks + reference) != 0:
                    found = True
        else:
            found = (a >= 0 and load_u8(marks + a) != 0) or (b >= 0 and load_u8(marks + b) != 0)
        # A cut row may have led to those below it: refusing the pass is better than a gradient without its part.
        if found or (slot > low and load_u8(flags + slot) & CUT != 0):
            store_u8(marks + slot, (load_u8(marks + slot) | ON_PATH))
    return 0


@entry("int64(int64,int64,int64)")
def add_root(tape, sweep, slot):
    """Let a sweep start at a row."""
    if wanted(sweep, slot):
        reach(tape, sweep, slot)
    return 0


@always_inline
def reach_row(tape, sweep, slot, opcodes, offsets, stack, pending, count, peak):
    """Give an operand of a plain row its place; the counters, which the caller keeps in registers."""
    if load_u16(opcodes + 2 * slot) & WIDE == 0:
        if count > 0:
            count -= 1
            place = load_i64(stack + 8 * count)
        else:
            place = peak
            peak += 1
        store_i64(offsets + 8 * slot, 4 * place + UNWRITTEN)
        return pending + 1, count, peak
    put(sweep, PENDING, pending)
    put(sweep, STACK_COUNT, count)
    put(sweep, PEAK, peak)
    reach(tape, sweep, slot)
    return get(sweep, PENDING), get(sweep, STACK_COUNT), get(sweep, PEAK)


@inline
def decide(tape, sweep):
    """Plan the sweep from the roots that were added; DONE, or why it cannot run and (STOPPED_AT) for which row."""
    opcodes, flags, first, second = get(tape, OPCODE), get(tape, FLAGS), get(tape, FIRST), get(tape, SECOND)
    offsets, marks = get(sweep, OFFSET), get(sweep, MARKS)
    check_scalars = get(tape, OVERWRITTEN_ROWS) > 0
    objects, stops = 0, 0
    slot = get(sweep, TOP) + 1
    # The counters of scalar rows are kept in registers; `reach` and the wide rows see them in the header.
    pending, count, stack, peak = get(sweep, PENDING), get(sweep, STACK_COUNT), get(sweep, STACK), get(sweep, PEAK)
    while pending > 0:
        slot -= 1
        word = load_i64(offsets + 8 * slot)
        if word == UNSEEN:
            continue
        pending -= 1
        opcode = load_u16(opcodes + 2 * slot)
        if opcode == LEAF | WIDE:
            if load_u8(flags + slot) & HOOKED:
                stops += 1
            continue
        mark = ON_PATH if marks == 0 else load_u8(marks + slot)
        runs = mark & ON_PATH != 0
        flag = load_u8(flags + slot)
        if runs and flag & FREED:
            put(sweep, STOPPED_AT, slot)
            return FREED_ROW
        if flag & (WATCHED | HOOKED) or mark & REQUESTED:
            stops += 1
        if opcode & WIDE == 0:
            a, b = load_i32(first + 4 * slot), load_i32(second + 4 * slot)
            if runs:
                if check_scalars and scalar_is_stale(tape, sweep, slot, opcode, a, b):
                    put(sweep, STOPPED_AT, slot)
                    return STALE_ROW
                if wanted(sweep, a) and load_i64(offsets + 8 * a) == UNSEEN:
                    pending, count, peak = reach_row(tape, sweep, a, opcodes, offsets, stack, pending, count, peak)
                if wanted(sweep, b) and load_i64(offsets + 8 * b) == UNSEEN:
                    pending, count, peak = reach_row(tape, sweep, b, opcodes, offsets, stack, pending, count, peak)
            if count < STACK_CAPACITY:
                store_i64(stack + 8 * count, word >> 2)
                count += 1
            continue
        put(sweep, PENDING, pending)
        put(sweep, STACK_COUNT, count)
        put(sweep, PEAK, peak)
        record = record_of(tape, slot)
        words, given = adjoint_words(record), False
        if runs:
            objects += object_count(record)
            opcode -= WIDE
            if opcode == HOST:
                stops += 1
            if record_is_stale(tape, sweep, slot, opcode, record):
                put(sweep, STOPPED_AT, slot)
                return STALE_ROW
            given = reach_arguments(tape, sweep, opcode, record, word >> 2)
        if words == 1 and not given:
            give_scalar(sweep, word >> 2)
        elif not given:
            give_words(sweep, word >> 2, words)
        pending, count, peak = get(sweep, PENDING), get(sweep, STACK_COUNT), get(sweep, PEAK)
    put(sweep, PENDING, pending)
    put(sweep, STACK_COUNT, count)
    put(sweep, PEAK, peak)
    put(sweep, LOW, slot)
    put(sweep, SAVED_COUNT, objects)
    put(sweep, STOPS, stops)
    return DONE


@entry("int64(int64,int64)")
def plan(tape, sweep):
    """Plan the sweep from the roots that were added; DONE, or why it cannot run and (STOPPED_AT) for which row."""
    return decide(tape, sweep)


@inline
def forget(sweep, low, top):
    """Note that nothing was contributed to these rows."""
    offsets = get(sweep, OFFSET)
    for slot in range(low, top + 1):
        store_i64(offsets + 8 * slot, UNSEEN)


@inline
def has_room(tape, sweep):
    """Whether the working memory is large enough for a pass over the tape as it is."""
    return (
        get(tape, ROWS) <= get(sweep, OFFSET_CAPACITY)
        and get(tape, LEAVES) <= get(sweep, REACHED_CAPACITY)
        and 2 * (get(tape, WRITTEN_COUNT) + get(tape, LEAVES)) < get(tape, WRITTEN_CAPACITY)
    )


@entry("int64(int64,int64,int64,float64)")
def start(tape, sweep, handle, value):
    """The common pass in one call: from one root of one element, with its seed, to all leaves. Pins the tape if it succeeds.

    The number of leaves reached, or minus why not; `MORE_ROOM` asks for the way that can allocate.
    """
    if not has_room(tape, sweep):
        return -MORE_ROOM
    for word in (PEAK, PENDING, FREE_COUNT, STACK_COUNT, REACHED_COUNT, MARKS, TRASH_COUNT, LOW, LARGE_LEAVES):
        put(sweep, word, 0)
    put(sweep, TOP, -1)
    put(sweep, STOPPED_AT, -1)
    reach(tape, sweep, slot_of(tape, handle))
    top = get(sweep, TOP)
    status = decide(tape, sweep)
    room = get(sweep, PEAK) <= get(sweep, BAR_CAPACITY) and get(sweep, SAVED_COUNT) <= get(sweep, TRASH_CAPACITY)
    if status != DONE or not room:
        forget(sweep, 0, top)
        return -status if status != DONE else -MORE_ROOM
    put(sweep, CURRENT, top)
    change_pins(tape, 1)
    put(sweep, PINNED, 1)
    word = load_i64(get(sweep, OFFSET) + 8 * top)
    store_i64(get(sweep, OFFSET) + 8 * top, word - UNWRITTEN)
    seed = get(sweep, BAR) + 8 * (word >> 2)
    if load_u16(get(tape, OPCODE) + 2 * top) & WIDE and get(record_of(tape, top), DTYPE) & 255 == FLOAT32:
        store_f32(seed, value)
    else:
        store_f64(seed, value)
    return get(sweep, REACHED_COUNT)


@entry("int64(int64,int64,int64)")
def clear(tape, sweep, low):
    """Forget a sweep that will not be finished: no row is reached any more."""
    forget(sweep, low, get(sweep, TOP))
    return 0
