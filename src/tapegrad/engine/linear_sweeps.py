"""Sweeps over a linear tape, forwards with tangents and backwards with adjoints: `LANES` of them at once.

Adjoints must be zero before; tangents are written. Products are absolute-zero products, so a masked branch stays masked. Long runs
that are zero add nothing to adjoints: the vectors of a colouring reach a part of the rows each. (No adjoint is -0.0, which adding a
zero would change; tangents may be, where a product underflows.)
"""

from tapegrad.compilation.jit import entry, inline
from tapegrad.compilation.memory_types import address_of, from_element
from tapegrad.engine.lanes import LANES, add_scaled, set_scaled, set_two
from tapegrad.engine.linear_layout import *
from tapegrad.engine.linear_structs import offsets_of_row, x_strides, z_strides
from tapegrad.engine.memory import f64, float_of
from tapegrad.rules.special import mul0


@inline
def lanes_of(vector, place):
    """The lanes of a place of a vector, and what follows them."""
    return from_element(vector, LANES * place)


@inline
def are_zero(values, count):
    """Whether all of these numbers are zero; what is not is found in the first few, as a rule."""
    start = 0
    while start + TESTED_NUMBERS <= count:
        some, found = f64(address_of(values, start), TESTED_NUMBERS), 0
        for e in range(TESTED_NUMBERS):
            found |= some[e] != 0.0
        if found != 0:
            return False
        start += TESTED_NUMBERS
    for e in range(start, count):
        if values[e] != 0.0:
            return False
    return True


@inline
def add_constant_run(target, to, source, at, count, factor):
    """``target[to * e] += factor * source[at * e]``."""
    if LANES == 1 and to == 1 and at == 1:
        out, values = f64(target, count), f64(source, count)
        for e in range(count):
            out[e] += mul0(factor, values[e])
        return
    if LANES == 1 and to == 0:
        total = 0.0
        for e in range(count):
            total += mul0(factor, source[at * e])
        target[0] += total
        return
    for e in range(count):
        add_scaled(lanes_of(target, to * e), lanes_of(source, at * e), factor)


@inline
def add_factor_run(target, to, source, at, count, factors):
    """``target[to * e] += factors[e] * source[at * e]``."""
    weights = f64(factors, count)
    if LANES == 1 and to == 1 and at == 1:
        out, values = f64(target, count), f64(source, count)
        for e in range(count):
            out[e] += mul0(weights[e], values[e])
        return
    if LANES == 1 and to == 0:
        total = 0.0
        for e in range(count):
            total += mul0(weights[e], source[at * e])
        target[0] += total
        return
    for e in range(count):
        add_scaled(lanes_of(target, to * e), lanes_of(source, at * e), weights[e])


@inline
def set_constant_run(target, source, at, count, factor):
    """``target[e] = factor * source[at * e]``."""
    if LANES == 1 and at == 1:
        out, values = f64(target, count), f64(source, count)
        for e in range(count):
            out[e] = mul0(factor, values[e])
        return
    for e in range(count):
        set_scaled(lanes_of(target, e), lanes_of(source, at * e), factor)


@inline
def set_factor_run(target, source, at, count, factors):
    """``target[e] = factors[e] * source[at * e]``."""
    weights = f64(factors, count)
    if LANES == 1 and at == 1:
        out, values = f64(target, count), f64(source, count)
        for e in range(count):
            out[e] = mul0(weights[e], values[e])
        return
    for e in range(count):
        set_scaled(lanes_of(target, e), lanes_of(source, at * e), weights[e])


@inline
def push_map(linear, program, dots):
    """Add what a map contributes to the tangent of its row; the first one makes it."""
    z, x = lanes_of(dots, program.z), lanes_of(dots, program.x)
    clear, rank = program.clear, program.rank
    if clear == SETS and rank == 1:
        size, at = program.size, x_strides(program)[0]
        if program.kind == NUMBER_FACTOR:
            set_constant_run(z, x, at, size, float_of(program.factor))
        else:
            set_factor_run(z, x, at, size, address_of(linear.factors, program.factor))
        return
    count = LANES * (program.size if clear == SETS else clear)
    out = f64(lanes_of(dots, program.row), count)
    for e in range(count):
        out[e] = 0.0
    add_map(linear, program, z, z_strides(program), x, x_strides(program), False)


@inline
def add_map(linear, program, target, target_strides, source, source_strides, tested):
    """``target[strides . i] += factor[i] * source[strides . i]`` over the dimensions of a map; `tested` for what is zero."""
    size, rank = program.size, program.rank
    if size == 0:
        return
    dimensions = program.dimensions
    last = rank - 1
    extent = dimensions[last]
    to, at = target_strides[last], source_strides[last]
    for outer in range(size // extent):
        here, there = offsets_of_row(dimensions, last, target_strides, source_strides, outer)
        out, values = lanes_of(target, here), lanes_of(source, there)
        if tested and extent >= TESTED_RUN and at <= 1 and are_zero(values, LANES * extent if at == 1 else LANES):
            continue
        if program.kind == NUMBER_FACTOR:
            add_constant_run(out, to, values, at, extent, float_of(program.factor))
        else:
            weights = address_of(linear.factors, program.factor + outer * extent)
            add_factor_run(out, to, values, at, extent, weights)


@inline
def push_entry(linear, entry, kind, dots):
    """The tangent of a row, or what an entry contributes to it."""
    if kind <= CURVED_PLAIN:
        a, b, z = entry.x, entry.y, lanes_of(dots, entry.place)
        x, y = lanes_of(dots, a), lanes_of(dots, b)
        if b < 0:
            set_scaled(z, x, entry.p)
        elif a < 0:
            set_scaled(z, y, entry.q)
        else:
            set_two(z, x, entry.p, y, entry.q)
    elif kind == MAP:
        program = linear.program[entry.program]
        push_map(linear, program, dots)


@entry("int64(Linear,Doubles,int64)")
def push_lanes(linear, dots, start):
    """Tangents of all places from those of the inputs, entry `start` first; FINISHED, or a hosted entry."""
    entries = linear.entry
    for number in range(start, linear.entries):
        entry = entries[number]
        kind = entry.kind
        if kind == HOSTED:
            return number
        push_entry(linear, entry, kind, dots)
    return FINISHED


@inline
def pull_entry(linear, entry, kind, bars):
    """Add what an entry contributes to the adjoints of its arguments."""
    if kind <= CURVED_PLAIN:
        a, b, z = entry.x, entry.y, lanes_of(bars, entry.place)
        if a >= 0:
            add_scaled(lanes_of(bars, a), z, entry.p)
        if b >= 0:
            add_scaled(lanes_of(bars, b), z, entry.q)
    elif kind == MAP:
        program = linear.program[entry.program]
        z, x = lanes_of(bars, program.z), lanes_of(bars, program.x)
        add_map(linear, program, x, x_strides(program), z, z_strides(program), True)


@entry("int64(Linear,Doubles,int64)")
def pull_lanes(linear, bars, start):
    """Adjoints of all places from those of the outputs, entry `start` first; FINISHED, or a hosted entry."""
    entries = linear.entry
    for number in range(start, -1, -1):
        entry = entries[number]
        kind = entry.kind
        if kind == HOSTED:
            return number
        pull_entry(linear, entry, kind, bars)
    return FINISHED


@inline
def curve_entry(linear, entry, curve, kind, dots, bars):
    """The same with the derivative of its partials along tangents."""
    if kind == CURVED_MAP:
        program = linear.program[entry.program]
        z, x = lanes_of(dots, program.z), lanes_of(bars, program.x)
        add_map(linear, program, x, x_strides(program), z, z_strides(program), True)
        return
    pull_entry(linear, entry, kind, bars)
    if kind == CURVED_PLAIN:
        a, b = entry.x, entry.y
        xx, xy, yy = curve.xx, curve.xy, curve.yy
        if xx != 0.0:
            add_scaled(lanes_of(bars, a), lanes_of(dots, a), xx)
        if xy != 0.0:
            add_scaled(lanes_of(bars, a), lanes_of(dots, b), xy)
            add_scaled(lanes_of(bars, b), lanes_of(dots, a), xy)
        if yy != 0.0:
            add_scaled(lanes_of(bars, b), lanes_of(dots, b), yy)


@entry("int64(Linear,Doubles,Doubles,int64)")
def curve_lanes(linear, dots, bars, start):
    """The reverse sweep with the derivative of every partial along tangents, which `push_lanes` made; answers as `pull_lanes`."""
    entries, curves = linear.entry, linear.curves
    for number in range(start, -1, -1):
        entry, curve = entries[number], curves[number]
        kind = entry.kind
        if kind == HOSTED:
            return number
        curve_entry(linear, entry, curve, kind, dots, bars)
    return FINISHED
