"""One product with the second derivative of one output: tangents of the rows that need them, in one walk forwards; then adjoints
and how they change along tangents, in one walk backwards.

Where the sweeps in lanes first clear all adjoints, here the first contribution to a row is written and the others are added; an
adjoint that is one number for all elements of a row, as below a sum, stays a number; and second partials are multiplied by
adjoints where they are used, and not written down. Each product and each sum is that of the sweeps in lanes, in the same order.

Products are plain ones at first. Where they differ from absolute-zero products they are nan, and what is made of nan is nan or, by
an absolute-zero product with zero, what it has to be. So a result without nan is the right one; else all is done once more.
"""

from tapegrad.compilation.jit import entry, inline
from tapegrad.compilation.memory_types import address_of, from_element
from tapegrad.engine.linear_layout import *
from tapegrad.engine.linear_structs import offsets_of_row, x_strides, z_strides
from tapegrad.engine.memory import f64, float_of
from tapegrad.engine.single_loops import curved_run, holds_nan, scaled_run, way_of
from tapegrad.engine.strided import is_dense
from tapegrad.engine.structs import doubles_at
from tapegrad.rules.special import mul0


@inline
def owner_of(linear, place):
    """The row that a place belongs to."""
    low, high = 0, linear.owners - 1
    while low < high:
        middle = (low + high + 1) // 2
        if linear.owner[middle].place <= place:
            low = middle
        else:
            high = middle - 1
    return linear.owner[low]


@inline
def fill_places(numbers, place, count, value):
    """One number for a row's places."""
    out = f64(address_of(numbers, place), count)
    for e in range(count):
        out[e] = value


@inline
def need_adjoints(bars, owner):
    """See to it that all adjoints of a row stand there."""
    if owner.adjoint != ELEMENTS:
        fill_places(bars, owner.place, owner.size, bars[owner.place] if owner.adjoint == ALIKE else 0.0)
        owner.adjoint = ELEMENTS


@inline
def need_changes(changes, owner):
    """See to it that what the adjoints of a row change by stands there."""
    if owner.change != ELEMENTS:
        fill_places(changes, owner.place, owner.size, 0.0)
        owner.change = ELEMENTS


@inline
def is_piece(program):
    """Whether a map reaches elements of its argument's row that stand side by side, once and in order."""
    return is_dense(program.rank, program.dimensions, x_strides(program))


@inline
def clear_around(numbers, program, owner):
    """Zeros before and behind the piece of a row that a map writes."""
    behind = program.x + program.size
    fill_places(numbers, owner.place, program.x - owner.place, 0.0)
    fill_places(numbers, behind, owner.place + owner.size - behind, 0.0)


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
def step_to(program, extent):
    """How far the elements of an argument are from each other along the last dimension: one where there is one."""
    return x_strides(program)[program.rank - 1] if extent != 1 else 1


@inline
def tangents_of(linear, place, dots, direction):
    """Where the tangent of a place stands: those of the inputs, which have the first places, are given."""
    return direction if place < linear.owner[0].size else dots


@inline
def push_needed_map(linear, program, dots, direction):
    """What a map contributes to the tangent of its row; the first one makes it."""
    clear, size, last, dimensions = program.clear, program.size, program.rank - 1, program.dimensions
    if clear > 0:
        fill_places(dots, program.row, clear, 0.0)
    if size == 0:
        return
    factors, step = factors_of(linear, program)
    source = tangents_of(linear, program.x, dots, direction)
    extent = dimensions[last]
    to, at = z_strides(program)[last] if extent != 1 else 1, x_strides(program)[last]
    for outer in range(size // extent):
        here, there = offsets_of_row(dimensions, last, z_strides(program), x_strides(program), outer)
        out, values = from_element(dots, program.z + here), from_element(source, program.x + there)
        weights = from_element(factors, step * outer * extent)
        scaled_run(out, to, values, at, extent, weights, step, way_of(clear == SETS, to), linear.absolute)


@inline
def push_needed(linear, dots, direction):
    """Tangents, along a direction, of all rows that one product needs them of."""
    for number in range(linear.entries):
        entry = linear.entry[number]
        kind = entry.kind
        if kind <= CURVED_PLAIN:
            a, b, tangent = entry.x, entry.y, 0.0
            if a >= 0:
                tangent = mul0(entry.p, tangents_of(linear, a, dots, direction)[a])
            if b >= 0:
                tangent += mul0(entry.q, tangents_of(linear, b, dots, direction)[b])
            dots[entry.place] = tangent
        elif kind == MAP:
            program = linear.program[entry.program]
            if program.roles & TURNS:
                push_needed_map(linear, program, dots, direction)


@inline
def pull_map(linear, program, target, source, is_first, one_number):
    """Add what a map gives its argument, from one number for its row or from the row's elements."""
    size, last, dimensions = program.size, program.rank - 1, program.dimensions
    factors, step = factors_of(linear, program)
    extent = dimensions[last]
    to, at = step_to(program, extent), 0 if one_number else z_strides(program)[last]
    for outer in range(size // extent):
        here, there = offsets_of_row(dimensions, last, x_strides(program), z_strides(program), outer)
        out = from_element(target, program.x + here)
        values = from_element(source, program.row if one_number else program.z + there)
        weights = from_element(factors, step * outer * extent)
        scaled_run(out, to, values, at, extent, weights, step, way_of(is_first, to), linear.absolute)


@inline
def bend_map(linear, program, target, dots, direction, bars, is_first, bar_step):
    """Add what second partials give an argument: by the row's adjoints, or one for all of it, and by the other one's tangents."""
    size, last, dimensions = program.size, program.rank - 1, program.dimensions
    factors, step = factors_of(linear, program)
    extent = dimensions[last]
    to, at = step_to(program, extent), z_strides(program)[last]
    source = tangents_of(linear, program.z, dots, direction)
    for outer in range(size // extent):
        here, there = offsets_of_row(dimensions, last, x_strides(program), z_strides(program), outer)
        out, values = from_element(target, program.x + here), from_element(source, program.z + there)
        weights = from_element(factors, step * outer * extent)
        adjoints = from_element(bars, program.row + bar_step * outer * extent)
        curved_run(out, to, values, at, extent, weights, step, adjoints, bar_step, way_of(is_first, to), linear.absolute)


@inline
def hand_adjoints_down(linear, program, bars):
    """The adjoints of a map's argument, as far as second partials need them."""
    row = owner_of(linear, program.row)
    if row.adjoint == UNTOUCHED:
        return
    owner, piece = owner_of(linear, program.x), is_piece(program)
    whole = piece and program.size == owner.size
    if whole and program.kind == NUMBER_FACTOR and owner.adjoint != ELEMENTS and (row.adjoint == ALIKE or is_one_number(program)):
        number = bars[program.row if row.adjoint == ALIKE else program.z]
        before = bars[owner.place] if owner.adjoint == ALIKE else 0.0
        bars[owner.place] = before + mul0(float_of(program.factor), number)
        owner.adjoint = ALIKE
        return
    is_first = piece and owner.adjoint == UNTOUCHED
    if is_first:
        clear_around(bars, program, owner)
    else:
        need_adjoints(bars, owner)
    pull_map(linear, program, bars, bars, is_first, row.adjoint == ALIKE)
    owner.adjoint = ELEMENTS


@inline
def changes_of(linear, owner, changes, products):
    """Where the changes of a row's adjoints are: those of the inputs, which have the first places if any, are the product."""
    return products if owner.place < linear.owner[0].size else changes


@inline
def begin_changes(program, target, owner):
    """Whether a map writes its piece of a row, as the first one that reaches it; else there is something to add to."""
    is_first = owner.change == UNTOUCHED and is_piece(program)
    if is_first:
        clear_around(target, program, owner)
    else:
        need_changes(target, owner)
    return is_first


@inline
def hand_changes_down(linear, program, changes, products):
    """How the adjoints of a map's argument change with those of its row."""
    if owner_of(linear, program.row).change == UNTOUCHED:
        return
    owner = owner_of(linear, program.x)
    target = changes_of(linear, owner, changes, products)
    pull_map(linear, program, target, changes, begin_changes(program, target, owner), False)
    owner.change = ELEMENTS


@inline
def bend_changes(linear, program, dots, direction, bars, changes, products):
    """How the adjoints of an argument change with the partials of a row."""
    row = owner_of(linear, program.row)
    if row.adjoint == UNTOUCHED:
        return
    owner = owner_of(linear, program.x)
    target = changes_of(linear, owner, changes, products)
    is_first = begin_changes(program, target, owner)
    bend_map(linear, program, target, dots, direction, bars, is_first, 0 if row.adjoint == ALIKE else 1)
    owner.change = ELEMENTS


@inline
def element_of(linear, place, bars, changes, products):
    """Where the change of one element's adjoint is, which stands there then as its adjoint does."""
    owner = owner_of(linear, place)
    target = changes_of(linear, owner, changes, products)
    need_adjoints(bars, owner)
    need_changes(target, owner)
    return from_element(target, place)


@inline
def curve_number(linear, entry, curve, is_curved, dots, direction, bars, changes, products):
    """What a row of a scalar gives the adjoints of its arguments and their changes."""
    row = owner_of(linear, entry.place)
    if row.adjoint == UNTOUCHED and row.change == UNTOUCHED:
        return
    turn = element_of(linear, entry.place, bars, changes, products)[0]
    g, a, b = bars[entry.place], entry.x, entry.y
    one = element_of(linear, a if a >= 0 else entry.place, bars, changes, products)
    other = element_of(linear, b if b >= 0 else entry.place, bars, changes, products)
    if a >= 0:
        bars[a] += mul0(entry.p, g)
        one[0] += mul0(entry.p, turn)
    if b >= 0:
        bars[b] += mul0(entry.q, g)
        other[0] += mul0(entry.q, turn)
    if is_curved:
        x = tangents_of(linear, a, dots, direction)[a] if a >= 0 else 0.0
        y = tangents_of(linear, b, dots, direction)[b] if b >= 0 else 0.0
        xx, xy, yy = mul0(g, curve.xx), mul0(g, curve.xy), mul0(g, curve.yy)
        if xx != 0.0:
            one[0] += mul0(xx, x)
        if xy != 0.0:
            one[0] += mul0(xy, y)
            other[0] += mul0(xy, x)
        if yy != 0.0:
            other[0] += mul0(yy, y)


@inline
def curve_needed(linear, dots, direction, bars, changes, products, output):
    """How the adjoints of all inputs change along tangents, which the walk forwards made; the output's place is given."""
    for number in range(linear.owners):
        owner = linear.owner[number]
        owner.adjoint = UNTOUCHED
        owner.change = UNTOUCHED
    top = owner_of(linear, output)
    need_adjoints(bars, top)
    bars[output] += 1.0
    if top.size == 1:
        top.adjoint = ALIKE
    for number in range(linear.entries - 1, -1, -1):
        entry = linear.entry[number]
        kind = entry.kind
        if kind <= CURVED_PLAIN:
            curve_number(linear, entry, linear.curves[number], kind == CURVED_PLAIN, dots, direction, bars, changes, products)
            continue
        program = linear.program[entry.program]
        if program.size == 0:
            continue
        if kind == CURVED_MAP:
            bend_changes(linear, program, dots, direction, bars, changes, products)
            continue
        if program.roles & BEARS:
            hand_adjoints_down(linear, program, bars)
        if program.roles & TURNS:
            hand_changes_down(linear, program, changes, products)
    need_changes(products, linear.owner[0])


@entry("int64(Linear,Doubles,Doubles,Doubles,Doubles,Doubles,int64)")
def curve_once(linear, dots, direction, bars, changes, products, output):
    """The product with a direction, of the output at a place. Zero."""
    for absolute in range(2):
        linear.absolute = absolute
        push_needed(linear, dots, direction)
        curve_needed(linear, dots, direction, bars, changes, products, output)
        if not holds_nan(products, linear.owner[0].size):
            break
    return 0
