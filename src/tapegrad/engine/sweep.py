"""The reverse sweep: one walk from the seeds downwards.

It never recurses, allocates or raises. Rows that need Python are returned (`HOST_ROW`, `WATCHED_ROW`) and the walk is resumed
by calling again.
"""

from tapegrad.compilation.jit import always_inline, entry, inline, kernel
from tapegrad.engine.adjoints import adjoint_address, claim, spread, target_size, target_type
from tapegrad.engine.layout import *
from tapegrad.engine.memory import (
    array_data,
    array_dimensions,
    array_is_contiguous,
    array_rank,
    array_size,
    array_strides,
    array_type_number,
    call4,
    call4_word,
    call5,
    call9,
    float_value,
    get,
    is_float,
    load_f64,
    load_i32,
    load_i64,
    load_u8,
    load_u16,
    put,
    release,
    store_f64,
    store_i64,
    store_u8,
)
from tapegrad.engine.owned import argument_count, argument_kind, argument_row, discard_values, saved_bytes
from tapegrad.engine.plan import record_of, wanted
from tapegrad.engine.rows import change_pins
from tapegrad.engine.strided import flat_block
from tapegrad.engine.written import note_written


@inline
def saves_value(rules, opcode, a, b):
    """Whether the partials of a plain row read saved values."""
    uses = load_i64(rules + 32 * opcode)
    return (a >= 0 and uses & 15 != 0) or (b >= 0 and (uses >> 4) & 15 != 0)


@inline
def hand_over(tape, sweep, which):
    """Write (or add) the adjoints of those leaves to their targets whose adjoints are to be written (or added)."""
    offsets, counter = get(sweep, OFFSET), get(sweep, WORK) + 8 * 100
    for k in range(get(sweep, REACHED_COUNT)):
        leaf = get(sweep, REACHED) + 8 * LEAF_WORDS * k
        slot, mode, target = get(leaf, LEAF_SLOT), get(leaf, LEAF_MODE), get(leaf, LEAF_TARGET)
        word = load_i64(offsets + 8 * slot)
        if word & UNWRITTEN:  # every contribution was undefined: there is no gradient
            put(leaf, LEAF_MODE, IGNORE)
        elif mode == which:
            source, number, size = adjoint_address(sweep, word), target_type(tape, slot), target_size(tape, slot)
            item, block = 8 if number == FLOAT64 else 4, get(sweep, SCRATCH)
            if mode == ADD:
                note_written(tape, target)
            plain, rank = array_is_contiguous(target), array_rank(target)
            for start in range(0, size, BLOCK):
                count = min(BLOCK, size - start)
                values = flat_block(source, number, start, count, block)
                if plain:
                    at = array_data(target) + item * start
                    call5(get(get(sweep, KERNELS), DELIVER), at, number, 1 if mode == WRITE else 0, values, count)
                else:
                    dimensions, strides = array_dimensions(target), array_strides(target)
                    at = array_data(target)
                    call9(
                        get(get(sweep, KERNELS), SCATTER_BLOCK),
                        at,
                        number,
                        values,
                        rank,
                        dimensions,
                        strides,
                        counter,
                        start,
                        count,
                    )


@inline
def release_plain(flags, rules, slot, opcode, a, b):
    """Note that a plain row's values are gone, if its partials read any."""
    if saves_value(rules, opcode, a, b):
        store_u8(flags + slot, load_u8(flags + slot) | FREED)


@inline
def saves_any(tape, opcode, record):
    """Whether the derivative of a wide row reads saved values."""
    if opcode < STRUCTURAL:
        uses = load_i64(get(tape, RULES) + 32 * opcode)
        for k in range(argument_count(record)):
            if argument_row(record, k) >= 0 and (uses >> (4 * k)) & 15 != 0:
                return True
    elif opcode == HOST:
        if get(record, RESULT) != 0:
            return True
        for k in range(argument_count(record)):
            if argument_kind(record, k) != NOTHING:
                return True
    return False


@inline
def release_wide(tape, sweep, slot, opcode):
    """Drop what a wide row saved; the objects are released when the pass is over."""
    record, flags = record_of(tape, slot), get(tape, FLAGS)
    if saves_any(tape, opcode - WIDE, record):
        store_u8(flags + slot, load_u8(flags + slot) | FREED)
    put(tape, SAVED_BYTES, get(tape, SAVED_BYTES) - saved_bytes(record))
    put(sweep, TRASH_COUNT, discard_values(record, get(sweep, TRASH), get(sweep, TRASH_COUNT)))


@inline
def forget_leaves(sweep):
    """Forget the adjoints of the leaves."""
    for k in range(get(sweep, REACHED_COUNT)):
        slot = get(get(sweep, REACHED) + 8 * LEAF_WORDS * k, LEAF_SLOT)
        store_i64(get(sweep, OFFSET) + 8 * slot, UNSEEN)


@inline
def forget_rows(tape, sweep, releases):
    """Forget all adjoints; if asked, drop the saved values of the rows that ran."""
    opcodes, flags, first, second = get(tape, OPCODE), get(tape, FLAGS), get(tape, FIRST), get(tape, SECOND)
    offsets, marks = get(sweep, OFFSET), get(sweep, MARKS)
    for slot in range(get(sweep, LOW), get(sweep, TOP) + 1):
        if load_i64(offsets + 8 * slot) == UNSEEN:
            continue
        store_i64(offsets + 8 * slot, UNSEEN)
        opcode = load_u16(opcodes + 2 * slot)
        if releases == 0 or opcode == LEAF | WIDE or (marks != 0 and load_u8(marks + slot) & ON_PATH == 0):
            continue
        if opcode & WIDE == 0:
            release_plain(flags, get(tape, RULES), slot, opcode, load_i32(first + 4 * slot), load_i32(second + 4 * slot))
        else:
            release_wide(tape, sweep, slot, opcode)


@always_inline
def partials_of(sweep, opcode, value, constant, slot, a, b):
    """Both partials of a plain row."""
    # The word before the first constant is padding, so an absent operand (-1) reads something harmless.
    x = load_f64(value + 8 * a if a >= 0 else constant + 8 * (-2 - a))
    y = load_f64(value + 8 * b if b >= 0 else constant + 8 * (-2 - b))
    return partials(sweep, opcode, 1 if a >= 0 else 0, 1 if b >= 0 else 0, x, y, load_f64(value + 8 * slot))


@always_inline
def contribute(offsets, bar, slot, contribution):
    """Add to the adjoint of a row of one element."""
    to = load_i64(offsets + 8 * slot)
    address = bar + 8 * (to >> 2)
    if to & UNWRITTEN:
        store_i64(offsets + 8 * slot, to - UNWRITTEN)
        store_f64(address, contribution)
    else:
        store_f64(address, load_f64(address) + contribution)


@kernel("int64(int64,int64,int64,int64)")
def scalar_run(tape, sweep, low, slot):
    """Walk down from a row through plain rows, and release them; the first row that is not plain.

    For a pass to all leaves that never returns to Python. Apart from the other rows, so that all it needs stays in registers.
    """
    opcodes, flags, first, second = get(tape, OPCODE), get(tape, FLAGS), get(tape, FIRST), get(tape, SECOND)
    value, constant, rules = get(tape, VALUE), get(tape, CONSTANT), get(tape, RULES)
    offsets, bar = get(sweep, OFFSET), get(sweep, BAR)
    while slot >= low:
        word = load_i64(offsets + 8 * slot)
        opcode = load_u16(opcodes + 2 * slot)
        if opcode & WIDE:
            return slot
        if word != UNSEEN:
            a, b = load_i32(first + 4 * slot), load_i32(second + 4 * slot)
            if word & UNWRITTEN == 0:
                g = load_f64(bar + 8 * (word >> 2))
                dx, dy = partials_of(sweep, opcode, value, constant, slot, a, b)
                if a >= 0:
                    contribute(offsets, bar, a, mul0(g, dx))
                if b >= 0:
                    contribute(offsets, bar, b, mul0(g, dy))
            release_plain(flags, rules, slot, opcode, a, b)
            store_i64(offsets + 8 * slot, UNSEEN)
        slot -= 1
    return slot


@inline
def is_early(sweep, releases):
    """Whether rows are released as the walk passes: in a pass to all leaves that never returns to Python."""
    return releases != 0 and get(sweep, STOPS) == 0 and get(sweep, MARKS) == 0


@entry("int64(int64,int64,int64,int64,int64)")
def run(tape, sweep, releases, given, cotangents):
    """Walk from CURRENT down to the lowest row; DONE, or a row (CURRENT) for Python.

    What may be released on the way is listed for `drop_trash`; `conclude` ends the pass.

    After a `WATCHED_ROW` the same row goes on; after a `HOST_ROW` Python moves CURRENT below it. If there is a context without
    attributes (`given`), the next such row sets them, and the answer is `VJP_DUE`: then the next call takes what the vjp gave
    (`cotangents`), and goes on below the row. It answers `ODD_COTANGENT` if it did not take all.
    """
    if cotangents != 0:
        kernel = get(get(sweep, KERNELS), ADD_COTANGENTS)
        if call4_word(kernel, tape, sweep, get(sweep, CURRENT), cotangents) == 0:
            return ODD_COTANGENT
        put(sweep, CURRENT, get(sweep, CURRENT) - 1)
    opcodes, flags, first, second = get(tape, OPCODE), get(tape, FLAGS), get(tape, FIRST), get(tape, SECOND)
    value, constant, marks = get(tape, VALUE), get(tape, CONSTANT), get(sweep, MARKS)
    offsets, bar = get(sweep, OFFSET), get(sweep, BAR)
    low, slot, stopped = get(sweep, LOW), get(sweep, CURRENT), get(sweep, STOPPED_AT)
    # A pass that never returns to Python cannot fail, so rows are released on the way.
    early = is_early(sweep, releases)
    while slot >= low:
        if early:
            slot = call4_word(get(get(sweep, KERNELS), SCALAR_RUN), tape, sweep, low, slot)
            if slot < low:
                break
        word = load_i64(offsets + 8 * slot)
        opcode = load_u16(opcodes + 2 * slot)
        if word & UNWRITTEN or opcode == LEAF | WIDE:  # not reached, or nothing was contributed
            if early:
                if word != UNSEEN and opcode != LEAF | WIDE:
                    release_wide(tape, sweep, slot, opcode)
                    store_i64(offsets + 8 * slot, UNSEEN)
            elif word != UNSEEN and slot != stopped and load_u8(flags + slot) & HOOKED:
                if word & UNIFORM:
                    spread(tape, sweep, slot)
                put(sweep, CURRENT, slot)
                put(sweep, STOPPED_AT, slot)
                return WATCHED_ROW
            slot -= 1
            continue
        flag = load_u8(flags + slot)
        if slot != stopped and (flag & (WATCHED | HOOKED) or (marks != 0 and load_u8(marks + slot) & REQUESTED)):
            if word & UNIFORM:
                spread(tape, sweep, slot)
            put(sweep, CURRENT, slot)
            put(sweep, STOPPED_AT, slot)
            return WATCHED_ROW
        if marks != 0 and load_u8(marks + slot) & ON_PATH == 0:
            slot -= 1
            continue
        if opcode & WIDE == 0:
            a, b = load_i32(first + 4 * slot), load_i32(second + 4 * slot)
            g = load_f64(bar + 8 * (word >> 2))
            dx, dy = partials_of(sweep, opcode, value, constant, slot, a, b)
            if a >= 0 and (marks == 0 or load_u8(marks + a)):
                contribute(offsets, bar, a, mul0(g, dx))
            if b >= 0 and (marks == 0 or load_u8(marks + b)):
                contribute(offsets, bar, b, mul0(g, dy))
        else:
            kind = opcode - WIDE
            put(sweep, CURRENT, slot)
            if flag & FREED:  # by another pass, while this one was in Python
                return FREED_ROW
            if word & UNIFORM and kind >= STRUCTURAL:
                word = spread(tape, sweep, slot)
            if kind == HOST:
                ready = given != 0 and call4_word(get(get(sweep, KERNELS), GIVE_OPERANDS), tape, sweep, slot, given) != 0
                return VJP_DUE if ready else HOST_ROW
            record, kernels = record_of(tape, slot), get(sweep, KERNELS)
            if kind == GATHER:
                call4(get(kernels, GATHER_STEP), tape, sweep, record, adjoint_address(sweep, word))
            elif kind == SCATTER:
                call4(get(kernels, SCATTER_STEP), tape, sweep, record, adjoint_address(sweep, word))
            elif kind == JOIN:
                call4(get(kernels, JOIN_STEP), tape, sweep, record, adjoint_address(sweep, word))
            else:
                call5(get(kernels, ELEMENTWISE_STEP), tape, sweep, kind, record, word)
            if early:
                release_wide(tape, sweep, slot, opcode)
                store_i64(offsets + 8 * slot, UNSEEN)
        slot -= 1
    put(sweep, CURRENT, slot)
    hand_over(tape, sweep, WRITE)
    return DONE


@inline
def end_pin(tape, sweep):
    """Let rows move again as far as this pass is concerned."""
    if get(sweep, PINNED) != 0:
        change_pins(tape, -1)
        put(sweep, PINNED, 0)


@entry("int64(int64,int64,int64)")
def conclude(tape, sweep, releases):
    """After the walk, in one step: add to the gradients that there are, release saved values if asked, and unpin the tape.

    The number of objects that `drop_trash` is to release when all gradients are in place.
    """
    hand_over(tape, sweep, ADD)
    if is_early(sweep, releases):
        forget_leaves(sweep)
    else:
        forget_rows(tape, sweep, releases)
    end_pin(tape, sweep)
    return get(sweep, TRASH_COUNT)


@entry("int64(int64)")
def drop_trash(sweep):
    """Release what the rows of a pass had saved. Destructors may run any code, so tape and gradients are consistent by now."""
    trash, count = get(sweep, TRASH), get(sweep, TRASH_COUNT)
    put(sweep, TRASH_COUNT, 0)
    for k in range(count):
        release(load_i64(trash + 8 * k))
    return 0


@entry("int64(int64,int64)")
def give_up(tape, sweep):
    """End a pass that raised; its working memory is not used again."""
    end_pin(tape, sweep)
    return 0


@entry("int64(int64,int64,int64,int64)")
def add_to_adjoint(tape, sweep, slot, obj):
    """Add an array or float of the row's own size (a seed, a cotangent from Python) to the adjoint of a row."""
    number, size = target_type(tape, slot), target_size(tape, slot)
    own = 1 if is_float(tape, obj) else array_size(obj)
    if own != size:
        return -1
    address, first = claim(tape, sweep, slot)
    block = get(sweep, SCRATCH)
    if is_float(tape, obj):
        store_f64(block, float_value(obj))
        call5(get(get(sweep, KERNELS), DELIVER), address, number, 1 if first else 0, block, 1)
        return 0
    flat, rank, dimensions, strides = get(sweep, WORK), array_rank(obj), array_dimensions(obj), array_strides(obj)
    if rank == 0:
        store_i64(flat, 1)
        rank, dimensions, strides = 1, flat, flat
    item = 8 if number == FLOAT64 else 4
    for start in range(0, size, BLOCK):
        count = min(BLOCK, size - start)
        data, kind = array_data(obj), array_type_number(obj)
        call9(
            get(get(sweep, KERNELS), GATHER_BLOCK),
            block,
            data,
            kind,
            rank,
            dimensions,
            strides,
            flat + 8 * 100,
            start,
            count,
        )
        call5(get(get(sweep, KERNELS), DELIVER), address + item * start, number, 1 if first else 0, block, count)
    return 0


@entry("int64(int64,int64,int64)")
def place_leaf(sweep, k, obj):
    """Let the adjoint of the k-th leaf stand in an array of its own; the first contribution writes it."""
    leaf = get(sweep, REACHED) + 8 * LEAF_WORDS * k
    word = 4 * ((array_data(obj) - get(sweep, BAR)) // 8) + UNWRITTEN
    store_i64(get(sweep, OFFSET) + 8 * get(leaf, LEAF_SLOT), word)
    put(leaf, LEAF_TARGET, obj)
    put(leaf, LEAF_MODE, IN_PLACE)
    return 0


@entry("int64(int64,int64,int64)")
def wants(tape, sweep, slot):
    """Whether this sweep needs the adjoint of a row."""
    return 1 if wanted(sweep, slot) else 0
