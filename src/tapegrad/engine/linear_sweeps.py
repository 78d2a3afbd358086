"""Sweeps over a linear tape, forwards with tangents and backwards with adjoints: `LANES` of them at once.

Adjoints must be zero before; tangents are written. Products are absolute-zero products, so a masked branch stays masked.
"""

from tapegrad.compilation.jit import entry, inline
from tapegrad.engine.lanes import LANES, add_scaled, set_scaled, set_two
from tapegrad.engine.linear_layout import *
from tapegrad.engine.memory import f64, float_of, get, load_f64, load_i32, load_i64, store_f64
from tapegrad.rules.special import mul0


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
            total += mul0(factor, load_f64(source + 8 * at * e))
        store_f64(target, load_f64(target) + total)
        return
    for e in range(count):
        add_scaled(target + 8 * LANES * to * e, source + 8 * LANES * at * e, factor)


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
            total += mul0(weights[e], load_f64(source + 8 * at * e))
        store_f64(target, load_f64(target) + total)
        return
    for e in range(count):
        add_scaled(target + 8 * LANES * to * e, source + 8 * LANES * at * e, weights[e])


@inline
def set_constant_run(target, source, at, count, factor):
    """``target[e] = factor * source[at * e]``."""
    if LANES == 1 and at == 1:
        out, values = f64(target, count), f64(source, count)
        for e in range(count):
            out[e] = mul0(factor, values[e])
        return
    for e in range(count):
        set_scaled(target + 8 * LANES * e, source + 8 * LANES * at * e, factor)


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
        set_scaled(target + 8 * LANES * e, source + 8 * LANES * at * e, weights[e])


@inline
def push_map(linear, program, dots):
    """Add what a map contributes to the tangent of its row; the first one makes it."""
    z, x = dots + 8 * LANES * get(program, MAP_Z), dots + 8 * LANES * get(program, MAP_X)
    clear, rank = get(program, MAP_CLEAR), get(program, MAP_RANK)
    if clear == SETS and rank == 1:
        size, at = get(program, MAP_SIZE), load_i64(x_strides(program))
        if get(program, MAP_KIND) == NUMBER_FACTOR:
            set_constant_run(z, x, at, size, float_of(get(program, MAP_FACTOR)))
        else:
            set_factor_run(z, x, at, size, get(linear, FACTORS) + 8 * get(program, MAP_FACTOR))
        return
    count = LANES * (get(program, MAP_SIZE) if clear == SETS else clear)
    out = f64(dots + 8 * LANES * get(program, MAP_ROW), count)
    for e in range(count):
        out[e] = 0.0
    add_map(linear, program, z, z_strides(program), x, x_strides(program))


@inline
def add_map(linear, program, target, target_strides, source, source_strides):
    """``target[strides . i] += factor[i] * source[strides . i]`` over the dimensions of a map."""
    size, rank = get(program, MAP_SIZE), get(program, MAP_RANK)
    if size == 0:
        return
    dimensions = program + 8 * MAP_DIMENSIONS
    last = rank - 1
    extent = load_i64(dimensions + 8 * last)
    to, at = load_i64(target_strides + 8 * last), load_i64(source_strides + 8 * last)
    for outer in range(size // extent):
        rest, here, there = outer, 0, 0
        for d in range(last - 1, -1, -1):
            own = load_i64(dimensions + 8 * d)
            above = rest // own
            index = rest - above * own
            here += index * load_i64(target_strides + 8 * d)
            there += index * load_i64(source_strides + 8 * d)
            rest = above
        out, values = target + 8 * LANES * here, source + 8 * LANES * there
        if get(program, MAP_KIND) == NUMBER_FACTOR:
            add_constant_run(out, to, values, at, extent, float_of(get(program, MAP_FACTOR)))
        else:
            weights = get(linear, FACTORS) + 8 * (get(program, MAP_FACTOR) + outer * extent)
            add_factor_run(out, to, values, at, extent, weights)


@inline
def x_strides(program):
    """Address of the strides of x."""
    return program + 8 * (MAP_DIMENSIONS + get(program, MAP_RANK))


@inline
def z_strides(program):
    """Address of the strides of z."""
    return program + 8 * (MAP_DIMENSIONS + 2 * get(program, MAP_RANK))


@entry("int64(int64,int64,int64)")
def push_lanes(linear, dots, start):
    """Tangents of all places from those of the inputs, entry `start` first; FINISHED, or a hosted entry."""
    at = get(linear, ENTRY) + ENTRY_BYTES * start
    for number in range(start, get(linear, ENTRIES)):
        kind = load_i32(at)
        if kind == HOSTED:
            return number
        if kind <= CURVED_PLAIN:
            a, b, z = load_i32(at + 8), load_i32(at + 12), dots + 8 * LANES * load_i32(at + 4)
            x, y = dots + 8 * LANES * a, dots + 8 * LANES * b
            if b < 0:
                set_scaled(z, x, load_f64(at + 16))
            elif a < 0:
                set_scaled(z, y, load_f64(at + 24))
            else:
                set_two(z, x, load_f64(at + 16), y, load_f64(at + 24))
        elif kind == MAP:
            program = get(linear, PROGRAM) + 8 * load_i64(at + 8)
            push_map(linear, program, dots)
        at += ENTRY_BYTES
    return FINISHED


@inline
def pull_entry(linear, at, kind, bars):
    """Add what an entry contributes to the adjoints of its arguments."""
    if kind <= CURVED_PLAIN:
        a, b, z = load_i32(at + 8), load_i32(at + 12), bars + 8 * LANES * load_i32(at + 4)
        if a >= 0:
            add_scaled(bars + 8 * LANES * a, z, load_f64(at + 16))
        if b >= 0:
            add_scaled(bars + 8 * LANES * b, z, load_f64(at + 24))
    elif kind == MAP:
        program = get(linear, PROGRAM) + 8 * load_i64(at + 8)
        z, x = bars + 8 * LANES * get(program, MAP_Z), bars + 8 * LANES * get(program, MAP_X)
        add_map(linear, program, x, x_strides(program), z, z_strides(program))


@entry("int64(int64,int64,int64)")
def pull_lanes(linear, bars, start):
    """Adjoints of all places from those of the outputs, entry `start` first; FINISHED, or a hosted entry."""
    at = get(linear, ENTRY) + ENTRY_BYTES * start
    for number in range(start, -1, -1):
        kind = load_i32(at)
        if kind == HOSTED:
            return number
        pull_entry(linear, at, kind, bars)
        at -= ENTRY_BYTES
    return FINISHED


@entry("int64(int64,int64,int64)")
def curve_lanes(linear, dots, bars):
    """The reverse sweep with the derivative of every partial along tangents, which `push_lanes` made; zero."""
    at = get(linear, ENTRY) + ENTRY_BYTES * get(linear, ENTRIES)
    curve = get(linear, CURVES) + CURVE_BYTES * get(linear, ENTRIES)
    for _ in range(get(linear, ENTRIES)):
        at -= ENTRY_BYTES
        curve -= CURVE_BYTES
        kind = load_i32(at)
        if kind == CURVED_MAP:
            program = get(linear, PROGRAM) + 8 * load_i64(at + 8)
            z, x = dots + 8 * LANES * get(program, MAP_Z), bars + 8 * LANES * get(program, MAP_X)
            add_map(linear, program, x, x_strides(program), z, z_strides(program))
            continue
        pull_entry(linear, at, kind, bars)
        if kind == CURVED_PLAIN:
            a, b = load_i32(at + 8), load_i32(at + 12)
            xx, xy, yy = load_f64(curve), load_f64(curve + 8), load_f64(curve + 16)
            if xx != 0.0:
                add_scaled(bars + 8 * LANES * a, dots + 8 * LANES * a, xx)
            if xy != 0.0:
                add_scaled(bars + 8 * LANES * a, dots + 8 * LANES * b, xy)
                add_scaled(bars + 8 * LANES * b, dots + 8 * LANES * a, xy)
            if yy != 0.0:
                add_scaled(bars + 8 * LANES * b, dots + 8 * LANES * b, yy)
    return 0
