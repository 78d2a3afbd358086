"""Planning a sweep: which rows are reached, what could go wrong, and where each adjoint stands in one buffer.

The pass walks the rows that the sweep will walk, in the same order, and only decides. An adjoint's place is taken when its
first contribution is due and given back when its row is consumed, so the buffer's size is the peak and not the sum. Everything
that can make a sweep impossible (released or overwritten values) is found here, before anything has run.

A row that works element by element hands its place on to an argument, so a chain of such rows needs one place. So does a large row
that only passes elements on in their order, as a copy does; and where its argument is a leaf, its adjoint is to stand where that of
the leaf will.
"""

from tapegrad.compilation.jit import always_inline, entry, inline
from tapegrad.compilation.memory_types import address_of, from_element
from tapegrad.engine.handles import slot_of
from tapegrad.engine.layout import *
from tapegrad.engine.memory import (
    array_is_contiguous,
    array_is_writeable,
    float_of,
    is_float,
    load_i64,
    owner,
    release,
    store_f32,
    store_f64,
)
from tapegrad.engine.objects import attribute, call_object0, clear_error, data_of
from tapegrad.engine.owned import argument_count, argument_kind, argument_row, object_count, record_dimensions
from tapegrad.engine.places import bump, give_scalar, give_words, take_scalar, take_words
from tapegrad.engine.rows import change_pins
from tapegrad.engine.strided import is_dense
from tapegrad.engine.written import find_written


@inline
def record_of(tape, slot):
    """Address of a wide row's record."""
    return tape.side[tape.first[slot]]


@inline
def adjoint_words(record):
    """Length of a wide row's adjoint: float32 adjoints take half a word an element."""
    size = record.size
    return (size + 1) // 2 if record.dtype & 255 == FLOAT32 else size


@inline
def reach(tape, sweep, slot):
    """A contribution to `slot` is due: give it a place if it has none."""
    offsets = sweep.offset
    if offsets[slot] != UNSEEN:
        return
    opcode = tape.opcode[slot]
    if opcode & WIDE == 0:
        place = take_scalar(sweep)
    elif opcode == LEAF | WIDE:
        # A leaf's place is never given back: its adjoint is handed over at the end.
        record = record_of(tape, slot)
        count = sweep.reached_count
        leaf = sweep.reached[count]
        leaf.slot = slot
        leaf.payload = record.payload
        leaf.mode = IGNORE
        leaf.tenant = -1
        leaf.room = 0
        sweep.reached_count = count + 1
        if record.size > LARGEST_BLOCK:
            sweep.aims_first |= 1
        place = bump(sweep, adjoint_words(record))
    else:
        words = adjoint_words(record_of(tape, slot))
        place = take_scalar(sweep) if words == 1 else take_words(sweep, words)
    offsets[slot] = 4 * place + UNWRITTEN
    sweep.pending += 1
    if slot > sweep.top:
        sweep.top = slot


@inline
def can_inherit(tape, sweep, slot, record):
    """Whether the adjoint of an argument is first contributed to by this row, and has the form of the row's own adjoint."""
    if sweep.offset[slot] != UNSEEN or tape.opcode[slot] & WIDE == 0:
        return False
    other = record_of(tape, slot)
    return other.size == record.size and other.dtype & 255 == record.dtype & 255


@inline
def passes_on(opcode, record):
    """Whether a large row only passes elements on, all of them and in their order: then its adjoint is that of its argument."""
    if opcode != GATHER or record.size <= LARGEST_BLOCK or argument_count(record) != 1 or float_of(record.scale) != 1.0:
        return False
    geometry = from_element(record_dimensions(record), record.dtype >> 8)
    rank = geometry[0]
    return geometry[1] == 0 and is_dense(rank, from_element(geometry, 2), from_element(geometry, 2 + rank))


@inline
def is_looked_at(tape, sweep, row):
    """Whether somebody else than its own step reads the adjoint of a row, or changes it."""
    return tape.flags[row] & (WATCHED | HOOKED) != 0 or (sweep.marks != 0 and sweep.marks[row] & REQUESTED != 0)


@inline
def reach_arguments(tape, sweep, row, opcode, record, place):
    """Give the arguments' adjoints places, one of them the row's own where that can be; whether it was given away.

    The memory is in the cache then, and a partial that is 1 has nothing to do.
    """
    given, passes = False, passes_on(opcode, record)
    for k in range(argument_count(record)):
        slot = argument_row(record, k)
        if not wanted(sweep, slot):
            continue
        inherits = (opcode < STRUCTURAL or passes) and not given and can_inherit(tape, sweep, slot, record)
        if inherits and tape.opcode[slot] != LEAF | WIDE:
            sweep.offset[slot] = 4 * place + UNWRITTEN
            sweep.pending += 1
            given = True
        else:
            reach(tape, sweep, slot)
            if inherits and passes and not is_looked_at(tape, sweep, row):
                sweep.reached[sweep.reached_count - 1].tenant = row
    return given


@inline
def wanted(sweep, slot):
    """Whether the adjoint of a row is needed for the chosen inputs (every row, if none were chosen)."""
    marks = sweep.marks
    return slot >= 0 and (marks == 0 or marks[slot] != 0)


@inline
def overwritten(tape, slot):
    """Whether the scalar of a row was changed in place after it was recorded."""
    return slot >= 0 and tape.flags[slot] & OVERWRITTEN != 0


@inline
def uses_of(tape, sweep, opcode, first, second, third):
    """Which of x, y, w, z (bits) the wanted partials of an elementwise row read."""
    uses = tape.rules[opcode].uses
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
    if tape.written_count == 0:
        return False
    place = find_written(tape, owner(tape.array_type, obj))
    return place.owner != 0 and place.time >= serial


@inline
def record_is_stale(tape, sweep, slot, opcode, record):
    """Whether a value that the wanted derivatives of a wide row read was overwritten after it was saved."""
    count, serial = argument_count(record), record.serial
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
        if kind == ARRAY and written_since(tape, record[ARGUMENTS + 2 * k + 1], serial):
            return True
    if opcode >= STRUCTURAL or need & 8 != 0:
        if record.result != 0 and written_since(tape, record.result, serial):
            return True
        if opcode < STRUCTURAL and record.dtype >> 8 == 0 and record.result == 0:
            return overwritten(tape, slot)
    return False


@entry("int64(Tape,Sweep,int64)")
def mark_paths(tape, sweep, top):
    """Mark (upwards) the rows through which the requested inputs are reached; the requested rows are marked already."""
    opcodes, first, second, marks = tape.opcode, tape.first, tape.second, sweep.marks
    flags, low = tape.flags, sweep.path_low
    for slot in range(low, top + 1):
        opcode = opcodes[slot]
        a, b = first[slot], second[slot]
        if opcode & WIDE:
            record = record_of(tape, slot)
            found = False
            for k in range(argument_count(record)):
                reference = argument_row(record, k)
                if reference >= 0 and marks[reference] != 0:
                    found = True
        else:
            found = (a >= 0 and marks[a] != 0) or (b >= 0 and marks[b] != 0)
        # A cut row may have led to those below it: refusing the pass is better than a gradient without its part.
        if found or (slot > low and flags[slot] & CUT != 0):
            marks[slot] |= ON_PATH
    return 0


@entry("int64(Tape,Sweep,int64)")
def add_root(tape, sweep, slot):
    """Let a sweep start at a row."""
    if wanted(sweep, slot):
        reach(tape, sweep, slot)
    return 0


@always_inline
def reach_row(tape, sweep, slot, opcodes, offsets, stack, pending, count, peak):
    """Give an operand of a plain row its place; the counters, which the caller keeps in registers."""
    if opcodes[slot] & WIDE == 0:
        if count > 0:
            count -= 1
            place = stack[count]
        else:
            place = peak
            peak += 1
        offsets[slot] = 4 * place + UNWRITTEN
        return pending + 1, count, peak
    sweep.pending = pending
    sweep.stack_count = count
    sweep.peak = peak
    reach(tape, sweep, slot)
    return sweep.pending, sweep.stack_count, sweep.peak


@inline
def decide(tape, sweep):
    """Plan the sweep from the roots that were added; DONE, or why it cannot run and (STOPPED_AT) for which row."""
    opcodes, flags, first, second = tape.opcode, tape.flags, tape.first, tape.second
    offsets, marks = sweep.offset, sweep.marks
    check_scalars = tape.overwritten_rows > 0
    objects, stops = 0, 0
    slot = sweep.top + 1
    # The counters of scalar rows are kept in registers; `reach` and the wide rows see them in the header.
    pending, count, stack, peak = sweep.pending, sweep.stack_count, sweep.stack, sweep.peak
    while pending > 0:
        slot -= 1
        word = offsets[slot]
        if word == UNSEEN:
            continue
        pending -= 1
        opcode = opcodes[slot]
        if opcode == LEAF | WIDE:
            if flags[slot] & HOOKED:
                stops += 1
            continue
        mark = ON_PATH if marks == 0 else marks[slot]
        runs = mark & ON_PATH != 0
        flag = flags[slot]
        if runs and flag & FREED:
            sweep.stopped_at = slot
            return FREED_ROW
        if flag & (WATCHED | HOOKED) or mark & REQUESTED:
            stops += 1
        if opcode & WIDE == 0:
            a, b = first[slot], second[slot]
            if runs:
                if check_scalars and scalar_is_stale(tape, sweep, slot, opcode, a, b):
                    sweep.stopped_at = slot
                    return STALE_ROW
                if wanted(sweep, a) and offsets[a] == UNSEEN:
                    pending, count, peak = reach_row(tape, sweep, a, opcodes, offsets, stack, pending, count, peak)
                if wanted(sweep, b) and offsets[b] == UNSEEN:
                    pending, count, peak = reach_row(tape, sweep, b, opcodes, offsets, stack, pending, count, peak)
            if count < STACK_CAPACITY:
                stack[count] = word >> 2
                count += 1
            continue
        sweep.pending = pending
        sweep.stack_count = count
        sweep.peak = peak
        record = record_of(tape, slot)
        words, given = adjoint_words(record), False
        if runs:
            objects += object_count(record)
            opcode -= WIDE
            if opcode == HOST:
                stops += 1
            if record_is_stale(tape, sweep, slot, opcode, record):
                sweep.stopped_at = slot
                return STALE_ROW
            given = reach_arguments(tape, sweep, slot, opcode, record, word >> 2)
        if words == 1 and not given:
            give_scalar(sweep, word >> 2)
        elif not given:
            give_words(sweep, word >> 2, words)
        pending, count, peak = sweep.pending, sweep.stack_count, sweep.peak
    sweep.pending = pending
    sweep.stack_count = count
    sweep.peak = peak
    sweep.low = slot
    sweep.saved_count = objects
    sweep.stops = stops
    return DONE


@entry("int64(Tape,Sweep)")
def plan(tape, sweep):
    """Plan the sweep from the roots that were added; DONE, or why it cannot run and (STOPPED_AT) for which row."""
    return decide(tape, sweep)


@inline
def forget(sweep, low, top):
    """Note that nothing was contributed to these rows."""
    offsets = sweep.offset
    for slot in range(low, top + 1):
        offsets[slot] = UNSEEN


@inline
def has_room(tape, sweep):
    """Whether the working memory is large enough for a pass over the tape as it is."""
    return (
        tape.rows <= sweep.offset_capacity
        and tape.leaves <= sweep.reached_capacity
        and 2 * (tape.written_count + tape.leaves) < tape.written_capacity
    )


@inline
def may_refuse_sum(tape, payload):
    """Whether a leaf has a gradient to which nothing may be added in place: the pass must raise before rows are released."""
    t = call_object0(payload)
    if t == 0:
        clear_error()
        return True
    odd = False
    meta = load_i64(t + tape.meta_at) if t != tape.none else tape.none
    if meta != tape.none:
        grad = attribute(tape, meta, META_GRAD)
        if grad != 0 and grad != tape.none:
            data = data_of(tape, grad)
            odd = not is_float(tape, data) and not (array_is_contiguous(data) and array_is_writeable(data))
    release(t)
    return odd


@inline
def begin(tape, sweep, handle, value):
    """The common pass in one call: from one root of one element, with its seed, to all leaves. Pins the tape if it succeeds.

    The number of leaves reached, or minus why not; `MORE_ROOM` asks for the way that can allocate.
    """
    if not has_room(tape, sweep):
        return -MORE_ROOM
    for word in (PEAK, PENDING, FREE_COUNT, STACK_COUNT, REACHED_COUNT, MARKS, TRASH_COUNT, LOW, AIMS_FIRST, TAKES):
        sweep[word] = 0
    sweep.top = -1
    sweep.stopped_at = -1
    reach(tape, sweep, slot_of(tape, handle))
    top = sweep.top
    status = decide(tape, sweep)
    room = sweep.peak <= sweep.bar_capacity and sweep.saved_count <= sweep.trash_capacity
    if status != DONE or not room:
        forget(sweep, 0, top)
        return -status if status != DONE else -MORE_ROOM
    for k in range(sweep.reached_count):
        if may_refuse_sum(tape, sweep.reached[k].payload):
            sweep.aims_first |= 2
    sweep.current = top
    change_pins(tape, 1)
    sweep.pinned = 1
    word = sweep.offset[top]
    sweep.offset[top] = word - UNWRITTEN
    seed = address_of(sweep.bar, word >> 2)
    if tape.opcode[top] & WIDE and record_of(tape, top).dtype & 255 == FLOAT32:
        store_f32(seed, value)
    else:
        store_f64(seed, value)
    return sweep.reached_count


@entry("int64(Tape,Sweep,int64,float64)")
def start(tape, sweep, handle, value):
    """As `begin`."""
    return begin(tape, sweep, handle, value)


@entry("int64(Tape,Sweep,int64)")
def clear(tape, sweep, low):
    """Forget a sweep that will not be finished: no row is reached any more."""
    forget(sweep, low, sweep.top)
    return 0
