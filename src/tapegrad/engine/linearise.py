"""From recorded rows to a linear tape: partials evaluated, maps and broadcasts written down as strides.

The rows were planned as for a reverse sweep from the outputs to the inputs, so those that matter are known, and that nothing which
their derivatives need was released or overwritten.
"""

from tapegrad.compilation.jit import entry, inline
from tapegrad.compilation.memory_types import address_of, from_element
from tapegrad.engine.adjoints import scratch_block
from tapegrad.engine.elementwise import block_of, describe_operand, is_constant, operands_of
from tapegrad.engine.layout import *
from tapegrad.engine.linear_layout import *
from tapegrad.engine.linear_size import is_active, pair_rows, second_number
from tapegrad.engine.maps import joined_width, map_elements, map_of, map_room
from tapegrad.engine.memory import bits_of, call10, call_scalar, f64, float_of
from tapegrad.engine.owned import argument_count, argument_row, record_dimensions
from tapegrad.engine.plan import record_of, wanted
from tapegrad.engine.rule_loops import functions_for, loops_of, own_loops
from tapegrad.engine.strided import is_dense


@inline
def begin_entry(linear, kind, place):
    """Append an entry; its address."""
    number = linear.entries
    linear.entries = number + 1
    entry = linear.entry[number]
    entry.kind = kind
    entry.place = place
    return entry


@inline
def begin_map(linear, kind, size, rank, factor_kind, factor, x, z, row, clear, roles):
    """Append a map and its entry. After its dimensions come the strides of x and of z."""
    word = linear.program_words
    begin_entry(linear, kind, 0).program = word
    program = linear.program[word]
    program.size = size
    program.rank = rank
    program.kind = factor_kind
    program.factor = factor
    program.x = x
    program.z = z
    program.bar = 0
    program.row = row
    program.clear = clear
    program.roles = roles
    linear.program_words = word + MAP_DIMENSIONS + 3 * rank
    return program


@inline
def roles_of_map(linear, slot, argument):
    """What a map from an argument to a row is needed for: for everything, unless there is one product only."""
    if linear.with_second != ONE_PRODUCT:
        return TURNS | BEARS
    return (linear.role[slot] & TURNS) | (linear.role[argument] & BEARS)


@inline
def add_owner(linear, place, size):
    """Note a row that has places of its own, where there is one product only."""
    if linear.with_second == ONE_PRODUCT:
        owner = linear.owner[linear.owners]
        linear.owners += 1
        owner.place = place
        owner.size = size


@inline
def dense(out, dimensions, rank):
    """Strides, in elements, of C order."""
    step = 1
    for d in range(rank - 1, -1, -1):
        out[d] = step
        step *= dimensions[d]


@inline
def copy_words(target, source, count):
    """Copy int64 words."""
    for d in range(count):
        target[d] = source[d]


@inline
def structural_maps(sweep, linear, record, kind, row, place, places):
    """The entries of a structural row: its maps, in which an entry has strides on both sides."""
    reads, scale = kind == GATHER, record.scale
    inner, before, clear = joined_width(record, kind), 0, SETS if reads else record.size
    for k in range(argument_count(record)):
        rank, offset, dimensions, strides, before = map_of(record, kind, k, inner, before, map_room(sweep))
        slot = argument_row(record, k)
        roles = roles_of_map(linear, row, slot) if wanted(sweep, slot) else 0
        if roles == 0:
            continue
        size, x, z = map_elements(rank, dimensions), places[slot] + (offset if reads else 0), place + (0 if reads else offset)
        at = begin_map(linear, MAP, size, rank, NUMBER_FACTOR, scale, x, z, place, clear, roles).dimensions
        clear = 0
        copy_words(at, dimensions, rank)
        copy_words(from_element(at, (1 if reads else 2) * rank), strides, rank)
        dense(from_element(at, (2 if reads else 1) * rank), dimensions, rank)


@inline
def argument_strides(tape, out, slot, rank, dimensions):
    """Strides, in elements, of an argument over the dimensions it is broadcast to."""
    own_rank, own_dimensions = 0, dimensions
    if tape.opcode[slot] & WIDE:
        record = record_of(tape, slot)
        own_rank = record.dtype >> 8
        own_dimensions = record_dimensions(record)
    step = 1
    for d in range(rank - 1, -1, -1):
        own = d - (rank - own_rank)
        extent = own_dimensions[own] if own >= 0 else 1
        out[d] = 0 if extent == 1 else step
        step *= extent


@inline
def is_full(tape, slot, size):
    """Whether an argument has as many elements as the result it is broadcast to."""
    if tape.opcode[slot] & WIDE:
        return record_of(tape, slot).size == size
    return size == 1


@inline
def side_strides(tape, out, slot, size, rank, dimensions, flat):
    """Strides of an argument: over the row's dimensions, or over one that is all of its elements."""
    if flat:
        out[0] = 1 if is_full(tape, slot, size) else 0
    else:
        argument_strides(tape, out, slot, rank, dimensions)


@inline
def is_flat(tape, slot, size):
    """Whether an argument is as large as the row or has one element: then one stride says it all."""
    if is_full(tape, slot, size):
        return True
    return tape.opcode[slot] & WIDE == 0 or record_of(tape, slot).size == 1


@inline
def evaluate(sweep, address, functions, number, size, rank, dimensions, uses, out):
    """A partial by the kernel at an address, block by block (the values that it uses are described); how many were written.

    One if it is the same for every element.
    """
    operands, ones, room = operands_of(sweep), scratch_block(sweep, 4), scratch_block(sweep, ROOM)
    total = 1 if is_constant(sweep, uses) else size
    for start in range(0, total, BLOCK):
        count = min(BLOCK, total - start)
        for q in range(4):
            operands[q].at = block_of(sweep, q, start, count, rank, dimensions) if (uses >> q) & 1 else 0
        x, y, w, z = operands[0].at, operands[1].at, operands[2].at, operands[3].at
        call10(address, number, count, x, y, w, z, ones, address_of(out, start), functions, room)
    return total


@inline
def factor_of(linear, written):
    """Kind of a factor that was written behind the others, and the number itself or where it stands."""
    count = linear.factor_count
    if written == 1:
        return NUMBER_FACTOR, bits_of(linear.factors[count])
    linear.factor_count = count + written
    return ARRAY_FACTOR, count


@inline
def elementwise_maps(tape, sweep, linear, record, opcode, row, place, places):
    """The entries of an elementwise row of arrays."""
    size, rank, arguments = record.size, record.dtype >> 8, argument_count(record)
    dimensions, rule = record_dimensions(record), tape.rules[opcode]
    all_uses, uses, flat = rule.uses, 0, True
    for k in range(arguments):
        slot = argument_row(record, k)
        if wanted(sweep, slot):
            uses |= (all_uses >> (4 * k)) & 15
            flat = flat and is_flat(tape, slot, size)
    ones = f64(scratch_block(sweep, 4), BLOCK)
    for j in range(BLOCK):
        ones[j] = 1.0
    for q in range(4):
        if (uses >> q) & 1:
            describe_operand(tape, sweep, record, q, size, rank, dimensions)
    places_rank, clear = 1 if flat else rank, SETS
    for k in range(arguments):
        slot = argument_row(record, k)
        roles = roles_of_map(linear, row, slot) if wanted(sweep, slot) else 0
        if roles == 0:
            continue
        number = rule.partials[k]
        kind, factor = NUMBER_FACTOR, bits_of(1.0)
        if number != UNIT:
            out = from_element(linear.factors, linear.factor_count)
            loops, functions = loops_of(sweep.kernels, opcode), functions_for(sweep.kernels, rank)
            written = evaluate(sweep, loops, functions, number, size, rank, dimensions, (all_uses >> (4 * k)) & 15, out)
            kind, factor = factor_of(linear, written)
        x = places[slot]
        at = begin_map(linear, MAP, size, places_rank, kind, factor, x, place, place, clear, roles).dimensions
        clear = 0
        if flat:
            at[0] = size
        else:
            copy_words(at, dimensions, rank)
        side_strides(tape, from_element(at, places_rank), slot, size, rank, dimensions, flat)
        dense(from_element(at, 2 * places_rank), at, places_rank)
    if linear.with_second == 0:
        return
    for pair in range(6):
        number = second_number(linear, opcode, pair)
        if number < 0:
            continue
        a, b = pair_rows(record, pair)
        if not wanted(sweep, a) or not wanted(sweep, b):
            continue
        out = from_element(linear.factors, linear.factor_count)
        reads = linear.second_table[opcode].uses[pair]
        loops = linear.second_block if opcode < COMMON else own_loops(sweep.kernels, opcode)
        written = evaluate(sweep, loops, 0, number, size, rank, dimensions, reads, out)
        if linear.with_second == ONE_PRODUCT:
            kind, factor = factor_of(linear, written)
        else:  # the adjoint will be multiplied into it, which differs from element to element
            value = out[0]
            for e in range(written, size):
                out[e] = value
            kind, factor = ARRAY_FACTOR, linear.factor_count
            linear.factor_count = factor + size
        for turn in range(1 if pair == 0 or pair == 2 or pair == 5 else 2):
            one, other = (a, b) if turn == 0 else (b, a)
            x, z = places[one], places[other]
            program = begin_map(linear, CURVED_MAP, size, places_rank, kind, factor, x, z, place, 0, TURNS | BEARS)
            program.bar = place if turn == 0 else -1
            at = program.dimensions
            if flat:
                at[0] = size
            else:
                copy_words(at, dimensions, rank)
            side_strides(tape, from_element(at, places_rank), one, size, rank, dimensions, flat)
            side_strides(tape, from_element(at, 2 * places_rank), other, size, rank, dimensions, flat)


@inline
def place_of_argument(tape, sweep, record, kind, places):
    """Place of a wide row that stands where its argument stands: a piece of it, or it with a constant added; else -1."""
    if kind == GATHER:
        rank, offset, dimensions, strides, _ = map_of(record, kind, 0, 0, 0, map_room(sweep))
        if float_of(record.scale) == 1.0 and record.size > 0 and is_dense(rank, dimensions, strides):
            return places[argument_row(record, 0)] + offset
    elif kind < STRUCTURAL:
        rule, found = tape.rules[kind], -1
        for k in range(argument_count(record)):
            slot = argument_row(record, k)
            if wanted(sweep, slot):
                if found >= 0 or rule.partials[k] != UNIT or not is_full(tape, slot, record.size):
                    return -1
                found = places[slot]
        return found
    return -1


@inline
def own_second_partials(sweep, linear, opcode, x, y, z, out):
    """Second partials of scalars by the loops of a rule that is not among the common ones."""
    loops, scratch = own_loops(sweep.kernels, opcode), sweep.scratch
    scratch[0], scratch[1], scratch[2] = x, y, z
    y_at, z_at = address_of(scratch, 1), address_of(scratch, 2)
    for pair in range(3):
        if second_number(linear, opcode, pair) >= 0:
            call10(loops, SECOND_LOOPS + pair, 1, scratch, y_at, y_at, z_at, z_at, address_of(out, pair), 0, 0)


@inline
def plain_entry(tape, sweep, linear, slot, opcode, place, places):
    """The entry of a row of scalars; its place."""
    a, b = tape.first[slot], tape.second[slot]
    value, constant = tape.value, tape.constant
    p, q = partials_of(sweep, opcode, value, constant, slot, a, b)
    has_x, has_y = wanted(sweep, a), wanted(sweep, b)
    xx, xy, yy = False, False, False
    if linear.with_second:
        xx = has_x and second_number(linear, opcode, 0) >= 0
        xy = has_x and has_y and second_number(linear, opcode, 1) >= 0
        yy = has_y and second_number(linear, opcode, 2) >= 0
    curved = xx or xy or yy
    if has_x != has_y and not curved and (p if has_x else q) == 1.0:
        return places[a if has_x else b]
    entry = begin_entry(linear, CURVED_PLAIN if curved else PLAIN, place)
    entry.x = places[a] if has_x else -1
    entry.y = places[b] if has_y else -1
    entry.p = p if has_x else 0.0
    entry.q = q if has_y else 0.0
    if not curved:
        return place
    curve = linear.curves[linear.entries - 1]
    x, y = value_of_operand(value, constant, a), value_of_operand(value, constant, b)
    z = value[slot]
    if opcode < COMMON:
        call_scalar(linear.second_scalar, 0, opcode, 1 if has_x else 0, 1 if has_y else 0, x, y, z, curve)
    else:
        own_second_partials(sweep, linear, opcode, x, y, z, curve)
    # What a rule has is never -0.0, which stands for a second partial that is none.
    curve.xx = curve.xx + 0.0 if xx else -0.0
    curve.xy = curve.xy + 0.0 if xy else -0.0
    curve.yy = curve.yy + 0.0 if yy else -0.0
    return place


@entry("int64(Tape,Sweep,Linear)")
def linearise(tape, sweep, linear):
    """Write the linear tape of the rows that were planned; zero. The memory was measured, and inputs have their places."""
    opcodes, places = tape.opcode, linear.place_of
    linear.entries = 0
    linear.program_words = 0
    linear.factor_count = 0
    linear.owners = 0
    add_owner(linear, 0, linear.places)
    place = linear.places
    for slot in range(sweep.low, sweep.top + 1):
        if not is_active(tape, sweep, slot):
            continue
        opcode = opcodes[slot]
        if opcode == LEAF | WIDE or places[slot] >= 0:  # an input, which may be a result of operations
            continue
        if opcode & WIDE == 0:
            own = plain_entry(tape, sweep, linear, slot, opcode, place, places)
            places[slot] = own
            if own == place:
                add_owner(linear, place, 1)
                place += 1
            continue
        kind, record = opcode - WIDE, record_of(tape, slot)
        own = place_of_argument(tape, sweep, record, kind, places)
        places[slot] = own if own >= 0 else place
        if own >= 0:
            continue
        sweep.current = slot
        if kind == HOST:
            begin_entry(linear, HOSTED, 0).program = slot
        elif kind < STRUCTURAL:
            elementwise_maps(tape, sweep, linear, record, kind, slot, place, places)
        else:
            structural_maps(sweep, linear, record, kind, slot, place, places)
        add_owner(linear, place, record.size)
        place += record.size
    linear.places = place
    return 0
