"""One product with the second derivative of one output: tangents of the rows that need them, in one walk forwards; then adjoints
and how they change along tangents, in one walk backwards.

Where the sweeps in lanes first clear all adjoints, here the first contribution to a row is written and the others are added. What
is one number for all elements, or a multiple of what stands elsewhere, is not written at all (see `single_values`), and second
partials are multiplied by adjoints where they are used. Each product and each sum is that of the sweeps in lanes, in their order.

Products are plain ones at first. Where they differ from absolute-zero products they are nan, and what is made of nan is nan or, by
an absolute-zero product with zero, what it has to be. So a result without nan is the right one; else all is done once more.
"""

from tapegrad.compilation.jit import entry, inline
from tapegrad.compilation.memory_types import address_of, from_element
from tapegrad.engine.linear_layout import *
from tapegrad.engine.linear_structs import offsets_of_row, x_strides, z_strides
from tapegrad.engine.memory import float_of
from tapegrad.engine.single_loops import JOINING, are_neighbours, curved_run, holds_nan, scaled_run, way_of
from tapegrad.engine.single_values import *
from tapegrad.engine.strided import is_dense
from tapegrad.engine.structs import doubles_at
from tapegrad.rules.special import mul0


@inline
def is_one_number(program):
    """Whether a map has one element of its row for all of its argument's."""
    for d in range(program.rank):
        if program.dimensions[d] != 1 and z_strides(program)[d] != 0:
            return False
    return True


@inline
def factors_of(linear, program):
    """Where the factors of a map stand, and the step from one to the next."""
    if program.kind == NUMBER_FACTOR:
        return doubles_at(address_of(program, MAP_FACTOR)), 0
    return from_element(linear.factors, program.factor), 1


@inline
def last_step(program, strides):
    """How far the elements of a side are from each other along the last dimension: one where there is one."""
    last = program.rank - 1
    return strides[last] if program.dimensions[last] != 1 else 1


@inline
def scaled_map(program, target, to_strides, to_offset, source, at_strides, at_offset, step, factors, way, absolute):
    """Bring what a map makes of one side to the other, run by run."""
    last, dimensions = program.rank - 1, program.dimensions
    extent, to, at = dimensions[last], last_step(program, to_strides), at_strides[last]
    before, before_scale, scale = target.first, target.scale, source.scale
    for outer in range(program.size // extent):
        here, there = offsets_of_row(dimensions, last, to_strides, at_strides, outer)
        out, values = from_element(target.own, to_offset + here), from_element(source.first, at_offset + there)
        weights, others = from_element(factors, step * outer * extent), from_element(before, to_offset + here)
        scaled_run(out, to, values, at, scale, extent, weights, step, way, absolute, others, before_scale)


@inline
def push_through_map(linear, program):
    """What a map contributes to the tangent of its row; the first one makes it."""
    row, argument = owner_of(linear, program.row), owner_of(linear, program.x)
    target, source, clear = row.tangents, argument.tangents, program.clear
    if clear > 0:
        fill_numbers(target.own, 0, clear, 0.0)
    if program.size == 0:
        return
    is_first, absolute = clear == SETS, linear.absolute
    factors, step = factors_of(linear, program)
    whole = program.size == row.size and is_dense(program.rank, program.dimensions, z_strides(program))
    from_x, to = program.x - argument.place, last_step(program, z_strides(program))
    may_borrow = is_first and whole and not absolute and program.kind == NUMBER_FACTOR and is_piece(program)
    if may_borrow and borrow(target, from_element(source.first, from_x), source.scale, factors[0]):
        return
    way = way_of(is_first, to)
    if not is_first and is_elsewhere(target):
        if whole and are_neighbours(to, x_strides(program)[program.rank - 1], step):
            way = JOINING
        else:
            need_elements(target, row.size)
    to_z = program.z - row.place
    scaled_map(program, target, z_strides(program), to_z, source, x_strides(program), from_x, step, factors, way, absolute)
    are_written(target)


@inline
def push_needed(linear):
    """Tangents, along a direction, of all rows that one product needs them of."""
    for number in range(linear.entries):
        entry = linear.entry[number]
        kind = entry.kind
        if kind <= CURVED_PLAIN:
            a, b, tangent = entry.x, entry.y, 0.0
            if a >= 0:
                tangent = mul0(entry.p, tangent_at(linear, a))
            if b >= 0:
                tangent += mul0(entry.q, tangent_at(linear, b))
            owner_of(linear, entry.place).tangents.own[0] = tangent
        elif kind == MAP:
            program = linear.program[entry.program]
            if program.roles & TURNS:
                push_through_map(linear, program)


@inline
def tangent_at(linear, place):
    """The tangent of one element."""
    owner = owner_of(linear, place)
    return element_at(owner.tangents, place - owner.place)


@inline
def way_down(program, owner, target, joins):
    """How a map reaches its argument's row: it is the first one, or there is something to add to."""
    is_first = target.state == UNTOUCHED and is_piece(program)
    if is_first:
        clear_around(target, program, owner)
    elif joins and is_elsewhere(target) and program.size == owner.size and is_piece(program):
        return JOINING
    else:
        need_elements(target, owner.size)
    return way_of(is_first, last_step(program, x_strides(program)))


@inline
def hand_down(linear, program, row, source, owner, target):
    """What a map's argument gets of the adjoints of its row, or of their changes."""
    if source.state == UNTOUCHED:
        return
    factors, step = factors_of(linear, program)
    absolute, is_alike, is_number = linear.absolute, source.state == ALIKE, program.kind == NUMBER_FACTOR
    whole = program.size == owner.size and is_piece(program)
    from_z = 0 if is_alike else program.z - row.place
    if whole and is_number and target.state != ELEMENTS and (is_alike or is_one_number(program)):
        before = target.own[0] if target.state == ALIKE else 0.0
        target.own[0] = before + mul0(factors[0], element_at(source, from_z))
        target.state = ALIKE
        return
    if whole and target.state == UNTOUCHED and not absolute:
        if is_alike:
            borrow(target, factors, 1.0, source.own[0])
            return
        may_borrow = is_number and is_dense(program.rank, program.dimensions, z_strides(program))
        if may_borrow and borrow(target, from_element(source.first, from_z), source.scale, factors[0]):
            return
    last = program.rank - 1
    at = 0 if is_alike else z_strides(program)[last]
    way = way_down(program, owner, target, are_neighbours(last_step(program, x_strides(program)), at, step))
    from_x = program.x - owner.place
    if is_alike:
        alike_map(program, target, from_x, source, step, factors, way, absolute)
    else:
        scaled_map(program, target, x_strides(program), from_x, source, z_strides(program), from_z, step, factors, way, absolute)
    are_written(target)


@inline
def alike_map(program, target, from_x, source, step, factors, way, absolute):
    """The same where one number stands for all elements of a row."""
    last, dimensions = program.rank - 1, program.dimensions
    extent, to, number = dimensions[last], last_step(program, x_strides(program)), source.own
    before, before_scale = target.first, target.scale
    for outer in range(program.size // extent):
        here, _ = offsets_of_row(dimensions, last, x_strides(program), x_strides(program), outer)
        out, others = from_element(target.own, from_x + here), from_element(before, from_x + here)
        weights = from_element(factors, step * outer * extent)
        scaled_run(out, to, number, 0, 1.0, extent, weights, step, way, absolute, others, before_scale)


@inline
def bend_changes(linear, program):
    """How the adjoints of an argument change with the partials of a row: by the row's adjoints and the other one's tangents."""
    row, owner, other = owner_of(linear, program.row), owner_of(linear, program.x), owner_of(linear, program.z)
    bars, target, source = row.adjoints, owner.changes, other.tangents
    if bars.state == UNTOUCHED:
        return
    size, last, dimensions, absolute = program.size, program.rank - 1, program.dimensions, linear.absolute
    factors, step = factors_of(linear, program)
    bar_step = 0 if bars.state == ALIKE else 1
    from_x, from_z, extent = program.x - owner.place, program.z - other.place, dimensions[last]
    to, at = last_step(program, x_strides(program)), z_strides(program)[last]
    if target.state == UNTOUCHED and not absolute and bar_step + step == 0 and size == owner.size and is_piece(program):
        weight, may_borrow = mul0(bars.own[0], factors[0]), is_dense(program.rank, dimensions, z_strides(program))
        if may_borrow and borrow(target, from_element(source.first, from_z), source.scale, weight):
            return
    way = way_down(program, owner, target, to == 1 and at == 1)
    before, before_scale, scale, bar_scale = target.first, target.scale, source.scale, bars.scale
    for outer in range(size // extent):
        here, there = offsets_of_row(dimensions, last, x_strides(program), z_strides(program), outer)
        out, values = from_element(target.own, from_x + here), from_element(source.first, from_z + there)
        weights, others = from_element(factors, step * outer * extent), from_element(before, from_x + here)
        adjoints = from_element(bars.first, bar_step * outer * extent)
        curved_run(
            out, to, values, at, scale, extent, weights, step, adjoints, bar_step, bar_scale, way, absolute, others, before_scale
        )
    are_written(target)


@inline
def element_of(numbers, owner, place):
    """Where one element is, which stands there then, as all of its row do."""
    need_elements(numbers, owner.size)
    return from_element(numbers.own, place - owner.place)


@inline
def curve_number(linear, entry, curve, is_curved):
    """What a row of a scalar gives the adjoints of its arguments and their changes."""
    row = owner_of(linear, entry.place)
    if row.adjoints.state == UNTOUCHED and row.changes.state == UNTOUCHED:
        return
    a, b = entry.x, entry.y
    one, other = owner_of(linear, a if a >= 0 else entry.place), owner_of(linear, b if b >= 0 else entry.place)
    at_one, at_other = a if a >= 0 else entry.place, b if b >= 0 else entry.place
    g, turn = element_of(row.adjoints, row, entry.place)[0], element_of(row.changes, row, entry.place)[0]
    one_bar, one_change = element_of(one.adjoints, one, at_one), element_of(one.changes, one, at_one)
    other_bar, other_change = element_of(other.adjoints, other, at_other), element_of(other.changes, other, at_other)
    if a >= 0:
        one_bar[0] += mul0(entry.p, g)
        one_change[0] += mul0(entry.p, turn)
    if b >= 0:
        other_bar[0] += mul0(entry.q, g)
        other_change[0] += mul0(entry.q, turn)
    if is_curved:
        x = tangent_at(linear, a) if a >= 0 else 0.0
        y = tangent_at(linear, b) if b >= 0 else 0.0
        xx, xy, yy = mul0(g, curve.xx), mul0(g, curve.xy), mul0(g, curve.yy)
        if xx != 0.0:
            one_change[0] += mul0(xx, x)
        if xy != 0.0:
            one_change[0] += mul0(xy, y)
            other_change[0] += mul0(xy, x)
        if yy != 0.0:
            other_change[0] += mul0(yy, y)


@inline
def curve_needed(linear, output):
    """How the adjoints of all inputs change along tangents, which the walk forwards made; the output's place is given."""
    top = owner_of(linear, output)
    element_of(top.adjoints, top, output)[0] += 1.0
    if top.size == 1:
        top.adjoints.state = ALIKE
    for number in range(linear.entries - 1, -1, -1):
        entry = linear.entry[number]
        kind = entry.kind
        if kind <= CURVED_PLAIN:
            curve_number(linear, entry, linear.curves[number], kind == CURVED_PLAIN)
            continue
        program = linear.program[entry.program]
        if program.size == 0:
            continue
        if kind == CURVED_MAP:
            bend_changes(linear, program)
            continue
        row, owner = owner_of(linear, program.row), owner_of(linear, program.x)
        if program.roles & BEARS:
            hand_down(linear, program, row, row.adjoints, owner, owner.adjoints)
        if program.roles & TURNS:
            hand_down(linear, program, row, row.changes, owner, owner.changes)
    inputs = linear.owner[0]
    need_elements(inputs.changes, inputs.size)


@entry("int64(Linear,Doubles,Doubles,Doubles,Doubles,Doubles,int64)")
def curve_once(linear, dots, direction, bars, changes, products, output):
    """The product with a direction, of the output at a place. Zero."""
    for absolute in range(2):
        linear.absolute = absolute
        begin_owners(linear, dots, direction, bars, changes, products)
        push_needed(linear)
        curve_needed(linear, output)
        if not holds_nan(products, linear.owner[0].size):
            break
    return 0
