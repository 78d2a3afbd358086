"""From recorded rows to a linear tape: partials evaluated, maps and broadcasts written down as strides.

The rows were planned as for a reverse sweep from the outputs to the inputs, so those that matter are known, and that nothing which
their derivatives need was released or overwritten.
"""

from tapegrad.compilation.jit import entry, inline
from tapegrad.engine.elementwise import (
    AT,
    DESCRIPTION,
    SPAN,
    block_of,
    describe_operand,
    is_constant,
)
from tapegrad.engine.layout import *
from tapegrad.engine.linear_layout import *
from tapegrad.engine.maps import is_dense, map_elements, map_source
from tapegrad.engine.memory import (
    bits_of,
    call8,
    call_scalar,
    f64,
    get,
    load_f64,
    load_i32,
    load_i64,
    load_u8,
    load_u16,
    put,
    store_f64,
    store_i32,
    store_i64,
)
from tapegrad.engine.owned import argument_count, argument_row
from tapegrad.engine.plan import record_of, wanted
from tapegrad.engine.rule_loops import loops_of, own_loops
from tapegrad.engine.sweep import partials_of


@inline
def is_active(tape, sweep, slot):
    """Whether a row is between the inputs and the outputs."""
    return load_i64(get(sweep, OFFSET) + 8 * slot) != UNSEEN


@inline
def second_number(linear, opcode, pair):
    """Number of the expression of a second partial; -1 if it is zero."""
    return load_i64(get(linear, SECOND_TABLE) + 96 * opcode + 8 * pair)


@inline
def pair_rows(record, pair):
    """The rows of the arguments of a second partial."""
    j = 2 if pair > 2 else (1 if pair > 0 else 0)
    i = pair - 3 if pair > 2 else (pair - 1 if pair > 0 else 0)
    return argument_row(record, i), argument_row(record, j)


@inline
def map_counts(tape, sweep, linear, opcode, record):
    """How many entries an elementwise row of arrays has at most, and how many arrays of factors."""
    rule = get(tape, RULES) + 32 * opcode
    maps, arrays = 0, 0
    for k in range(argument_count(record)):
        if wanted(sweep, argument_row(record, k)):
            maps += 1
            if (load_i64(rule) >> (4 * k)) & 15 != 0:
                arrays += 1
    if get(linear, WITH_SECOND):
        for pair in range(6):
            if second_number(linear, opcode, pair) >= 0:
                a, b = pair_rows(record, pair)
                if wanted(sweep, a) and wanted(sweep, b):
                    maps += 2
                    arrays += 1
    return maps, arrays


@entry("int64(int64,int64,int64)")
def measure_linear(tape, sweep, linear):
    """Upper bounds of what `linearise` needs: ENTRIES, PROGRAM_WORDS, FACTOR_COUNT, PLACES. SPECIAL_ROW, or zero."""
    opcodes, flags = get(tape, OPCODE), get(tape, FLAGS)
    entries, words, factors, places = 0, 0, 0, 0
    for slot in range(get(sweep, LOW), get(sweep, TOP) + 1):
        if not is_active(tape, sweep, slot):
            continue
        if load_u8(flags + slot) & HOOKED:
            return SPECIAL_ROW
        opcode = load_u16(opcodes + 2 * slot)
        if opcode == LEAF | WIDE:
            continue
        if opcode & WIDE == 0:
            places += 1
            entries += 1
            continue
        kind = opcode - WIDE
        if kind == HOST and get(linear, WITH_SECOND):
            return SPECIAL_ROW
        record = record_of(tape, slot)
        places += get(record, SIZE)
        rank = max(get(record, DTYPE) >> 8, 1)
        if kind < STRUCTURAL:
            maps, arrays = map_counts(tape, sweep, linear, kind, record)
            entries += maps
            words += maps * (MAP_DIMENSIONS + 3 * rank)
            factors += arrays * get(record, SIZE)
        elif kind == HOST:
            entries += 1
        elif kind == JOIN:
            entries += argument_count(record)
            words += argument_count(record) * (MAP_DIMENSIONS + 8)
        else:
            rank = get(record, ARGUMENTS + 2 + (get(record, DTYPE) >> 8))
            entries += 1
            words += MAP_DIMENSIONS + 3 * rank
    put(linear, ENTRIES, entries)
    put(linear, PROGRAM_WORDS, words)
    put(linear, FACTOR_COUNT, factors)
    put(linear, PLACES, places)
    return 0


@inline
def begin_entry(linear, kind, place):
    """Append an entry; its address."""
    number = get(linear, ENTRIES)
    put(linear, ENTRIES, number + 1)
    at = get(linear, ENTRY) + ENTRY_BYTES * number
    store_i32(at, kind)
    store_i32(at + 4, place)
    return at


@inline
def begin_map(linear, kind, size, rank, factor_kind, factor, x, z, row, clear):
    """Append a map and its entry; the address of its dimensions."""
    word = get(linear, PROGRAM_WORDS)
    at = begin_entry(linear, kind, 0)
    store_i64(at + 8, word)
    program = get(linear, PROGRAM) + 8 * word
    put(program, MAP_SIZE, size)
    put(program, MAP_RANK, rank)
    put(program, MAP_KIND, factor_kind)
    put(program, MAP_FACTOR, factor)
    put(program, MAP_X, x)
    put(program, MAP_Z, z)
    put(program, MAP_BAR, 0)
    put(program, MAP_ROW, row)
    put(program, MAP_CLEAR, clear)
    put(linear, PROGRAM_WORDS, word + MAP_DIMENSIONS + 3 * rank)
    return program + 8 * MAP_DIMENSIONS


@inline
def dense(out, dimensions, rank):
    """Strides, in elements, of C order."""
    step = 1
    for d in range(rank - 1, -1, -1):
        store_i64(out + 8 * d, step)
        step *= load_i64(dimensions + 8 * d)


@inline
def copy_words(target, source, count):
    """Copy int64 words."""
    for d in range(count):
        store_i64(target + 8 * d, load_i64(source + 8 * d))


@inline
def structural_maps(sweep, linear, record, kind, place, places):
    """The entries of a strided map or a concatenation."""
    if kind == JOIN:
        arguments = argument_count(record)
        widths = record + 8 * (ARGUMENTS + 2 * arguments + (get(record, DTYPE) >> 8))
        inner, before = 0, 0
        for k in range(arguments):
            inner += get(widths, k)
        outer, clear = get(record, SIZE) // inner if inner > 0 else 0, get(record, SIZE)
        for k in range(arguments):
            slot, width = argument_row(record, k), get(widths, k)
            if wanted(sweep, slot):
                x = load_i64(places + 8 * slot)
                at = begin_map(linear, MAP, outer * width, 2, NUMBER_FACTOR, bits_of(1.0), x, place + before, place, clear)
                clear = 0
                store_i64(at, outer)
                store_i64(at + 8, width)
                store_i64(at + 16, width)
                store_i64(at + 24, 1)
                store_i64(at + 32, inner)
                store_i64(at + 40, 1)
            before += width
        return
    _number, rank, offset, dimensions, strides, scale = map_source(record)
    x = load_i64(places + 8 * argument_row(record, 0))
    elements = map_elements(rank, dimensions)
    gathers = kind == GATHER
    at = begin_map(
        linear,
        MAP,
        elements,
        rank,
        NUMBER_FACTOR,
        bits_of(scale),
        x + (offset if gathers else 0),
        place + (0 if gathers else offset),
        place,
        SETS if gathers else get(record, SIZE),
    )
    copy_words(at, dimensions, rank)
    copy_words(at + (8 if gathers else 16) * rank, strides, rank)
    dense(at + (16 if gathers else 8) * rank, dimensions, rank)


@inline
def argument_strides(tape, out, slot, rank, dimensions):
    """Strides, in elements, of an argument over the dimensions it is broadcast to."""
    own_rank, own_dimensions = 0, dimensions
    if load_u16(get(tape, OPCODE) + 2 * slot) & WIDE:
        record = record_of(tape, slot)
        own_rank = get(record, DTYPE) >> 8
        own_dimensions = record + 8 * (ARGUMENTS + 2 * argument_count(record))
    step = 1
    for d in range(rank - 1, -1, -1):
        own = d - (rank - own_rank)
        extent = load_i64(own_dimensions + 8 * own) if own >= 0 else 1
        store_i64(out + 8 * d, 0 if extent == 1 else step)
        step *= extent


@inline
def is_full(tape, slot, size):
    """Whether an argument has as many elements as the result it is broadcast to."""
    if load_u16(get(tape, OPCODE) + 2 * slot) & WIDE:
        return get(record_of(tape, slot), SIZE) == size
    return size == 1


@inline
def side_strides(tape, out, slot, size, rank, dimensions, flat):
    """Strides of an argument: over the row's dimensions, or over one that is all of its elements."""
    if flat:
        store_i64(out, 1 if is_full(tape, slot, size) else 0)
    else:
        argument_strides(tape, out, slot, rank, dimensions)


@inline
def is_flat(tape, slot, size):
    """Whether an argument is as large as the row or has one element: then one stride says it all."""
    if is_full(tape, slot, size):
        return True
    return load_u16(get(tape, OPCODE) + 2 * slot) & WIDE == 0 or get(record_of(tape, slot), SIZE) == 1


@inline
def evaluate(sweep, address, number, size, rank, dimensions, uses, out):
    """A partial by the kernel at an address, block by block (the values that it uses are described); how many were written.

    One if it is the same for every element.
    """
    operands, ones = get(sweep, WORK), get(sweep, SCRATCH) + 4 * SPAN
    total = 1 if is_constant(sweep, uses) else size
    for start in range(0, total, BLOCK):
        count = min(BLOCK, total - start)
        for q in range(4):
            at = operands + 8 * DESCRIPTION * q
            put(at, AT, block_of(sweep, q, start, count, rank, dimensions) if (uses >> q) & 1 else 0)
        x, y = get(operands, AT), get(operands + 8 * DESCRIPTION, AT)
        w, z = get(operands + 16 * DESCRIPTION, AT), get(operands + 24 * DESCRIPTION, AT)
        call8(address, number, count, x, y, w, z, ones, out + 8 * start)
    return total


@inline
def factor_of(linear, written):
    """Kind of a factor that was written behind the others, and the number itself or where it stands."""
    count = get(linear, FACTOR_COUNT)
    if written == 1:
        return NUMBER_FACTOR, bits_of(load_f64(get(linear, FACTORS) + 8 * count))
    put(linear, FACTOR_COUNT, count + written)
    return ARRAY_FACTOR, count


@inline
def elementwise_maps(tape, sweep, linear, record, opcode, place, places):
    """The entries of an elementwise row of arrays."""
    size, rank, arguments = get(record, SIZE), get(record, DTYPE) >> 8, argument_count(record)
    dimensions, rule = record + 8 * (ARGUMENTS + 2 * arguments), get(tape, RULES) + 32 * opcode
    all_uses, uses, flat = load_i64(rule), 0, True
    for k in range(arguments):
        slot = argument_row(record, k)
        if wanted(sweep, slot):
            uses |= (all_uses >> (4 * k)) & 15
            flat = flat and is_flat(tape, slot, size)
    ones = f64(get(sweep, SCRATCH) + 4 * SPAN, BLOCK)
    for j in range(BLOCK):
        ones[j] = 1.0
    for q in range(4):
        if (uses >> q) & 1:
            describe_operand(tape, sweep, record, q, size, rank, dimensions)
    places_rank, clear = 1 if flat else rank, SETS
    for k in range(arguments):
        slot = argument_row(record, k)
        if not wanted(sweep, slot):
            continue
        number = load_i64(rule + 8 + 8 * k)
        kind, factor = NUMBER_FACTOR, bits_of(1.0)
        if number != UNIT:
            out = get(linear, FACTORS) + 8 * get(linear, FACTOR_COUNT)
            loops = loops_of(get(sweep, KERNELS), opcode)
            written = evaluate(sweep, loops, number, size, rank, dimensions, (all_uses >> (4 * k)) & 15, out)
            kind, factor = factor_of(linear, written)
        x = load_i64(places + 8 * slot)
        at = begin_map(linear, MAP, size, places_rank, kind, factor, x, place, place, clear)
        clear = 0
        if flat:
            store_i64(at, size)
        else:
            copy_words(at, dimensions, rank)
        side_strides(tape, at + 8 * places_rank, slot, size, rank, dimensions, flat)
        dense(at + 16 * places_rank, at, places_rank)
    if get(linear, WITH_SECOND) == 0:
        return
    for pair in range(6):
        number = second_number(linear, opcode, pair)
        if number < 0:
            continue
        a, b = pair_rows(record, pair)
        if not wanted(sweep, a) or not wanted(sweep, b):
            continue
        out = get(linear, FACTORS) + 8 * get(linear, FACTOR_COUNT)
        reads = load_i64(get(linear, SECOND_TABLE) + 96 * opcode + 48 + 8 * pair)
        loops = get(linear, SECOND_BLOCK) if opcode < COMMON else own_loops(get(sweep, KERNELS), opcode)
        written = evaluate(sweep, loops, number, size, rank, dimensions, reads, out)
        # The adjoint will be multiplied into it, which differs from element to element.
        value = load_f64(out)
        for e in range(written, size):
            store_f64(out + 8 * e, value)
        factor = get(linear, FACTOR_COUNT)
        put(linear, FACTOR_COUNT, factor + size)
        for turn in range(1 if pair == 0 or pair == 2 or pair == 5 else 2):
            one, other = (a, b) if turn == 0 else (b, a)
            x, z = load_i64(places + 8 * one), load_i64(places + 8 * other)
            at = begin_map(linear, CURVED_MAP, size, places_rank, ARRAY_FACTOR, factor, x, z, place, 0)
            put(at - 8 * MAP_DIMENSIONS, MAP_BAR, place if turn == 0 else -1)
            if flat:
                store_i64(at, size)
            else:
                copy_words(at, dimensions, rank)
            side_strides(tape, at + 8 * places_rank, one, size, rank, dimensions, flat)
            side_strides(tape, at + 16 * places_rank, other, size, rank, dimensions, flat)


@inline
def place_of_argument(tape, sweep, record, kind, places):
    """Place of a wide row that stands where its argument stands: a piece of it, or it with a constant added; else -1."""
    if kind == GATHER:
        _number, rank, offset, dimensions, strides, scale = map_source(record)
        if scale == 1.0 and get(record, SIZE) > 0 and is_dense(rank, dimensions, strides):
            return load_i64(places + 8 * argument_row(record, 0)) + offset
    elif kind < STRUCTURAL:
        rule, found = get(tape, RULES) + 32 * kind, -1
        for k in range(argument_count(record)):
            slot = argument_row(record, k)
            if wanted(sweep, slot):
                if found >= 0 or load_i64(rule + 8 + 8 * k) != UNIT or not is_full(tape, slot, get(record, SIZE)):
                    return -1
                found = load_i64(places + 8 * slot)
        return found
    return -1


@inline
def own_second_partials(sweep, linear, opcode, x, y, z, out):
    """Second partials of scalars by the loops of a rule that is not among the common ones."""
    loops, scratch = own_loops(get(sweep, KERNELS), opcode), get(sweep, SCRATCH)
    store_f64(scratch, x)
    store_f64(scratch + 8, y)
    store_f64(scratch + 16, z)
    for pair in range(3):
        if second_number(linear, opcode, pair) >= 0:
            call8(loops, SECOND_LOOPS + pair, 1, scratch, scratch + 8, scratch + 8, scratch + 16, scratch + 16, out + 8 * pair)


@inline
def plain_entry(tape, sweep, linear, slot, opcode, place, places):
    """The entry of a row of scalars; its place."""
    a, b = load_i32(get(tape, FIRST) + 4 * slot), load_i32(get(tape, SECOND) + 4 * slot)
    value, constant = get(tape, VALUE), get(tape, CONSTANT)
    p, q = partials_of(sweep, opcode, value, constant, slot, a, b)
    has_x, has_y = wanted(sweep, a), wanted(sweep, b)
    xx, xy, yy = False, False, False
    if get(linear, WITH_SECOND):
        xx = has_x and second_number(linear, opcode, 0) >= 0
        xy = has_x and has_y and second_number(linear, opcode, 1) >= 0
        yy = has_y and second_number(linear, opcode, 2) >= 0
    curved = xx or xy or yy
    if has_x != has_y and not curved and (p if has_x else q) == 1.0:
        return load_i64(places + 8 * (a if has_x else b))
    at = begin_entry(linear, PLAIN, place)
    store_i32(at + 8, load_i64(places + 8 * a) if has_x else -1)
    store_i32(at + 12, load_i64(places + 8 * b) if has_y else -1)
    store_f64(at + 16, p if has_x else 0.0)
    store_f64(at + 24, q if has_y else 0.0)
    if not curved:
        return place
    store_i32(at, CURVED_PLAIN)
    curve = get(linear, CURVES) + CURVE_BYTES * (get(linear, ENTRIES) - 1)
    x = load_f64(value + 8 * a if a >= 0 else constant + 8 * (-2 - a))
    y = load_f64(value + 8 * b if b >= 0 else constant + 8 * (-2 - b))
    z = load_f64(value + 8 * slot)
    if opcode < COMMON:
        call_scalar(get(linear, SECOND_SCALAR), 0, opcode, 1 if has_x else 0, 1 if has_y else 0, x, y, z, curve)
    else:
        own_second_partials(sweep, linear, opcode, x, y, z, curve)
    if not xx:
        store_f64(curve, 0.0)
    if not xy:
        store_f64(curve + 8, 0.0)
    if not yy:
        store_f64(curve + 16, 0.0)
    return place


@entry("int64(int64,int64,int64)")
def linearise(tape, sweep, linear):
    """Write the linear tape of the rows that were planned; zero. The memory was measured, and inputs have their places."""
    opcodes, places = get(tape, OPCODE), get(linear, PLACE_OF)
    put(linear, ENTRIES, 0)
    put(linear, PROGRAM_WORDS, 0)
    put(linear, FACTOR_COUNT, 0)
    place = get(linear, PLACES)
    for slot in range(get(sweep, LOW), get(sweep, TOP) + 1):
        if not is_active(tape, sweep, slot):
            continue
        opcode = load_u16(opcodes + 2 * slot)
        if opcode == LEAF | WIDE:
            continue
        if opcode & WIDE == 0:
            own = plain_entry(tape, sweep, linear, slot, opcode, place, places)
            store_i64(places + 8 * slot, own)
            if own == place:
                place += 1
            continue
        kind, record = opcode - WIDE, record_of(tape, slot)
        own = place_of_argument(tape, sweep, record, kind, places)
        store_i64(places + 8 * slot, own if own >= 0 else place)
        if own >= 0:
            continue
        put(sweep, CURRENT, slot)
        if kind == HOST:
            store_i64(begin_entry(linear, HOSTED, 0) + 8, slot)
        elif kind < STRUCTURAL:
            elementwise_maps(tape, sweep, linear, record, kind, place, places)
        else:
            structural_maps(sweep, linear, record, kind, place, places)
        place += get(record, SIZE)
    put(linear, PLACES, place)
    return 0
