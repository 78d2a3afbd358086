"""The reverse sweep: one walk from the seeds downwards.

It never recurses, allocates or raises. Rows that need Python are returned (`HOST_ROW`, `WATCHED_ROW`) and the walk is resumed
by calling again.
"""

from tapegrad.compilation.jit import always_inline, entry, inline, kernel
from tapegrad.compilation.memory_types import address_of
from tapegrad.engine.adjoints import adjoint_address, counter_of, scratch_block, spread, target_size, target_type
from tapegrad.engine.host_steps import add_data
from tapegrad.engine.large_cotangents import put_in_array
from tapegrad.engine.layout import *
from tapegrad.engine.memory import (
    array_data,
    array_dimensions,
    array_is_contiguous,
    array_rank,
    array_size,
    array_strides,
    call4,
    call4_word,
    call5,
    call5_word,
    call9,
    is_float,
    release,
)
from tapegrad.engine.owned import argument_count, argument_kind, argument_row, discard_values, saved_bytes
from tapegrad.engine.plan import record_of, wanted
from tapegrad.engine.rows import change_pins
from tapegrad.engine.strided import flat_block
from tapegrad.engine.structs import doubles_at
from tapegrad.engine.written import note_written
from tapegrad.rules.special import mul0


@inline
def saves_value(rules, opcode, a, b):
    """Whether the partials of a plain row read saved values."""
    uses = rules[opcode].uses
    return (a >= 0 and uses & 15 != 0) or (b >= 0 and (uses >> 4) & 15 != 0)


@inline
def hand_over(tape, sweep, which):
    """Write (or add) the adjoints of those leaves to their targets whose adjoints are to be written (or added)."""
    offsets, counter = sweep.offset, counter_of(sweep)
    for k in range(sweep.reached_count):
        leaf = sweep.reached[k]
        slot, mode, target = leaf.slot, leaf.mode, leaf.target
        word = offsets[slot]
        if word & UNWRITTEN:  # every contribution was undefined: there is no gradient
            leaf.mode = IGNORE
        elif mode == which:
            source, number, size = adjoint_address(sweep, word), target_type(tape, slot), target_size(tape, slot)
            item, block = 8 if number == FLOAT64 else 4, scratch_block(sweep, 0)
            if mode == ADD:
                note_written(tape, target, tape.clock)
            plain, rank = array_is_contiguous(target), array_rank(target)
            for start in range(0, size, BLOCK):
                count = min(BLOCK, size - start)
                values = flat_block(source, number, start, count, block)
                if plain:
                    at = array_data(target) + item * start
                    call5(sweep.kernels[DELIVER], at, number, 1 if mode == WRITE else 0, values, count)
                else:
                    dimensions, strides = array_dimensions(target), array_strides(target)
                    at = array_data(target)
                    call9(
                        sweep.kernels[SCATTER_BLOCK],
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
        flags[slot] |= FREED


@inline
def saves_any(tape, opcode, record):
    """Whether the derivative of a wide row reads saved values."""
    if opcode < STRUCTURAL:
        uses = tape.rules[opcode].uses
        for k in range(argument_count(record)):
            if argument_row(record, k) >= 0 and (uses >> (4 * k)) & 15 != 0:
                return True
    elif opcode == HOST:
        if record.result != 0:
            return True
        for k in range(argument_count(record)):
            if argument_kind(record, k) != NOTHING:
                return True
    return False


@inline
def release_wide(tape, sweep, slot, opcode):
    """Drop what a wide row saved; the objects are released when the pass is over."""
    record, flags = record_of(tape, slot), tape.flags
    if saves_any(tape, opcode - WIDE, record):
        flags[slot] |= FREED
    tape.saved_bytes -= saved_bytes(record)
    sweep.trash_count = discard_values(record, sweep.trash, sweep.trash_count)


@inline
def forget_leaves(sweep):
    """Forget the adjoints of the leaves."""
    for k in range(sweep.reached_count):
        slot = sweep.reached[k].slot
        sweep.offset[slot] = UNSEEN


@inline
def forget_rows(tape, sweep, releases):
    """Forget all adjoints; if asked, drop the saved values of the rows that ran."""
    opcodes, flags, first, second = tape.opcode, tape.flags, tape.first, tape.second
    offsets, marks = sweep.offset, sweep.marks
    for slot in range(sweep.low, sweep.top + 1):
        if offsets[slot] == UNSEEN:
            continue
        offsets[slot] = UNSEEN
        opcode = opcodes[slot]
        if releases == 0 or opcode == LEAF | WIDE or (marks != 0 and marks[slot] & ON_PATH == 0):
            continue
        if opcode & WIDE == 0:
            release_plain(flags, tape.rules, slot, opcode, first[slot], second[slot])
        else:
            release_wide(tape, sweep, slot, opcode)


@always_inline
def value_of_operand(value, constant, reference):
    """Value of an operand of a plain row: of a row, or a constant."""
    # One load from either address, without a branch. The word before the first constant is padding, so an absent operand (-1) reads
    # something harmless.
    return doubles_at(address_of(value, reference) if reference >= 0 else address_of(constant, -2 - reference))[0]


@always_inline
def partials_of(sweep, opcode, value, constant, slot, a, b):
    """Both partials of a plain row."""
    x, y = value_of_operand(value, constant, a), value_of_operand(value, constant, b)
    return partials(sweep, opcode, 1 if a >= 0 else 0, 1 if b >= 0 else 0, x, y, value[slot])


@always_inline
def contribute(offsets, bar, slot, contribution):
    """Add to the adjoint of a row of one element."""
    to = offsets[slot]
    if to & UNWRITTEN:
        offsets[slot] = to - UNWRITTEN
        bar[to >> 2] = contribution
    else:
        bar[to >> 2] += contribution


@kernel("int64(Tape,Sweep,int64,int64)")
def scalar_run(tape, sweep, low, slot):
    """Walk down from a row through plain rows, and release them; the first row that is not plain.

    For a pass to all leaves that never returns to Python. Apart from the other rows, so that all it needs stays in registers.
    """
    opcodes, flags, first, second = tape.opcode, tape.flags, tape.first, tape.second
    value, constant, rules = tape.value, tape.constant, tape.rules
    offsets, bar = sweep.offset, sweep.bar
    while slot >= low:
        word = offsets[slot]
        opcode = opcodes[slot]
        if opcode & WIDE:
            return slot
        if word != UNSEEN:
            a, b = first[slot], second[slot]
            if word & UNWRITTEN == 0:
                g = bar[word >> 2]
                dx, dy = partials_of(sweep, opcode, value, constant, slot, a, b)
                if a >= 0:
                    contribute(offsets, bar, a, mul0(g, dx))
                if b >= 0:
                    contribute(offsets, bar, b, mul0(g, dy))
            release_plain(flags, rules, slot, opcode, a, b)
            offsets[slot] = UNSEEN
        slot -= 1
    return slot


@inline
def is_early(sweep, releases):
    """Whether rows are released as the walk passes: in a pass to all leaves that never returns to Python."""
    return releases != 0 and sweep.stops == 0 and sweep.marks == 0


@kernel("int64(Tape,Sweep,int64,int64,int64)")
def walk(tape, sweep, releases, given, cotangents):
    """Walk from CURRENT down to the lowest row; DONE, or a row (CURRENT) for Python.

    What may be released on the way is listed for `drop_trash`; `conclude` ends the pass.

    After a `WATCHED_ROW` the same row goes on; after a `HOST_ROW` Python moves CURRENT below it. If there is a context without
    attributes (`given`), the next such row sets them, and the answer is `VJP_DUE`: then the next call takes what the vjp gave
    (`cotangents`), and goes on below the row. It answers `ODD_COTANGENT` if it did not take all.
    """
    if cotangents != 0:
        kernel = sweep.kernels[ADD_COTANGENTS]
        if call4_word(kernel, tape, sweep, sweep.current, cotangents) == 0:
            return ODD_COTANGENT
        sweep.current -= 1
    opcodes, flags, first, second = tape.opcode, tape.flags, tape.first, tape.second
    value, constant, marks = tape.value, tape.constant, sweep.marks
    offsets, bar = sweep.offset, sweep.bar
    low, slot, stopped = sweep.low, sweep.current, sweep.stopped_at
    # A pass that never returns to Python cannot fail, so rows are released on the way.
    early = is_early(sweep, releases)
    while slot >= low:
        if early:
            slot = call4_word(sweep.kernels[SCALAR_RUN], tape, sweep, low, slot)
            if slot < low:
                break
        word = offsets[slot]
        opcode = opcodes[slot]
        if word & UNWRITTEN or opcode == LEAF | WIDE:  # not reached, or nothing was contributed
            if early:
                if word != UNSEEN and opcode != LEAF | WIDE:
                    release_wide(tape, sweep, slot, opcode)
                    offsets[slot] = UNSEEN
            elif word != UNSEEN and slot != stopped and flags[slot] & HOOKED:
                if word & UNIFORM:
                    spread(tape, sweep, slot)
                sweep.current = slot
                sweep.stopped_at = slot
                return WATCHED_ROW
            slot -= 1
            continue
        flag = flags[slot]
        if slot != stopped and (flag & (WATCHED | HOOKED) or (marks != 0 and marks[slot] & REQUESTED)):
            if word & UNIFORM:
                spread(tape, sweep, slot)
            sweep.current = slot
            sweep.stopped_at = slot
            return WATCHED_ROW
        if marks != 0 and marks[slot] & ON_PATH == 0:
            slot -= 1
            continue
        if opcode & WIDE == 0:
            a, b = first[slot], second[slot]
            g = bar[word >> 2]
            dx, dy = partials_of(sweep, opcode, value, constant, slot, a, b)
            if a >= 0 and (marks == 0 or marks[a]):
                contribute(offsets, bar, a, mul0(g, dx))
            if b >= 0 and (marks == 0 or marks[b]):
                contribute(offsets, bar, b, mul0(g, dy))
        else:
            kind = opcode - WIDE
            sweep.current = slot
            if flag & FREED:  # by another pass, while this one was in Python
                return FREED_ROW
            if kind == HOST:
                if word & UNIFORM and target_size(tape, slot) <= LARGEST_BLOCK:  # of larger ones Python sees to it
                    spread(tape, sweep, slot)
                if call4_word(sweep.kernels[MOVE_STEP], tape, sweep, slot, 0) != 0:
                    slot -= 1
                    continue
                ready = given != 0 and call4_word(sweep.kernels[GIVE_OPERANDS], tape, sweep, slot, given) != 0
                return VJP_DUE if ready else HOST_ROW
            record, kernels = record_of(tape, slot), sweep.kernels
            if kind >= STRUCTURAL:
                call5(kernels[MAP_STEP], tape, sweep, record, kind, word)
            else:
                call5(kernels[ELEMENTWISE_STEP], tape, sweep, kind, record, word)
            if early:
                release_wide(tape, sweep, slot, opcode)
                offsets[slot] = UNSEEN
        slot -= 1
    sweep.current = slot
    hand_over(tape, sweep, WRITE)
    return DONE


@entry("int64(Tape,Sweep,int64,int64,int64)")
def run(tape, sweep, releases, given, cotangents):
    """As `walk`."""
    return call5_word(sweep.kernels[WALK], tape, sweep, releases, given, cotangents)


@inline
def end_pin(tape, sweep):
    """Let rows move again as far as this pass is concerned."""
    if sweep.pinned != 0:
        change_pins(tape, -1)
        sweep.pinned = 0


@entry("int64(Tape,Sweep,int64)")
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
    return sweep.trash_count


@inline
def release_trash(sweep):
    """Release what the rows of a pass had saved. Destructors may run any code, so tape and gradients are consistent by now."""
    trash, count = sweep.trash, sweep.trash_count
    sweep.trash_count = 0
    for k in range(count):
        release(trash[k])


@entry("int64(Sweep)")
def drop_trash(sweep):
    """As `release_trash`."""
    release_trash(sweep)
    return 0


@entry("int64(Tape,Sweep)")
def give_up(tape, sweep):
    """End a pass that raised; its working memory is not used again."""
    end_pin(tape, sweep)
    return 0


@entry("int64(Tape,Sweep,int64,int64)")
def add_to_adjoint(tape, sweep, slot, obj):
    """Add an array or float of the row's own size (a seed, a cotangent from Python) to the adjoint of a row."""
    own = 1 if is_float(tape, obj) else array_size(obj)
    if own != target_size(tape, slot):
        return -1
    add_data(tape, sweep, slot, obj)
    return 0


@entry("int64(Sweep,int64,int64)")
def place_leaf(sweep, k, obj):
    """As `put_in_array`."""
    put_in_array(sweep, k, obj)
    return 0


@entry("int64(Tape,Sweep,int64)")
def wants(tape, sweep, slot):
    """Whether this sweep needs the adjoint of a row."""
    return 1 if wanted(sweep, slot) else 0
