"""Loops over runs of elements for one vector: products with factors, and with second partials times adjoints."""

from tapegrad.compilation.jit import always_inline, inline
from tapegrad.engine.memory import f64
from tapegrad.rules.special import mul0

# How an argument's elements are reached: one after the other and for the first time, one after the other, all in one, in strides.
SETTING, ADDING, SUMMING, STRIDING = 0, 1, 2, 3


@inline
def way_of(is_first, to):
    """How the elements of a run are reached."""
    if to == 1:
        return SETTING if is_first else ADDING
    return SUMMING if to == 0 else STRIDING


@always_inline
def scaled_loop(out, to, values, at, count, factors, step, way):
    """``out[to * e] += factors[step * e] * values[at * e]``; the way and the steps are known while compiling where it is quick."""
    total = 0.0
    for e in range(count):
        product = mul0(factors[step * e], values[at * e])
        if way == SUMMING:
            total += product
        elif way == SETTING:
            out[to * e] = 0.0 + product
        else:
            out[to * e] += product
    if way == SUMMING:
        out[0] += total


@inline
def scaled_run(out, to, values, at, count, factors, step, way):
    """The same for any steps of 0 or 1 for factors."""
    if way == SETTING and at == 1 and step == 1:
        scaled_loop(f64(out, count), 1, f64(values, count), 1, count, f64(factors, count), 1, SETTING)
    elif way == SETTING and at == 1 and step == 0:
        scaled_loop(f64(out, count), 1, f64(values, count), 1, count, f64(factors, 1), 0, SETTING)
    elif way == SETTING and at == 0 and step == 1:
        scaled_loop(f64(out, count), 1, f64(values, 1), 0, count, f64(factors, count), 1, SETTING)
    elif way == ADDING and at == 1 and step == 1:
        scaled_loop(f64(out, count), 1, f64(values, count), 1, count, f64(factors, count), 1, ADDING)
    elif way == ADDING and at == 1 and step == 0:
        scaled_loop(f64(out, count), 1, f64(values, count), 1, count, f64(factors, 1), 0, ADDING)
    elif way == ADDING and at == 0 and step == 1:
        scaled_loop(f64(out, count), 1, f64(values, 1), 0, count, f64(factors, count), 1, ADDING)
    elif way == SUMMING:
        scaled_loop(out, 0, values, at, count, factors, step, SUMMING)
    elif way == SETTING:
        scaled_loop(out, 1, values, at, count, factors, step, SETTING)
    else:
        scaled_loop(out, to, values, at, count, factors, step, ADDING)


@always_inline
def curved_loop(out, to, values, at, count, factors, step, bars, bar_step, way):
    """``out[to * e] += bars[bar_step * e] * factors[step * e] * values[at * e]``."""
    total = 0.0
    for e in range(count):
        product = mul0(mul0(bars[bar_step * e], factors[step * e]), values[at * e])
        if way == SUMMING:
            total += product
        elif way == SETTING:
            out[to * e] = 0.0 + product
        else:
            out[to * e] += product
    if way == SUMMING:
        out[0] += total


@inline
def curved_run(out, to, values, at, count, factors, step, bars, bar_step, way):
    """The same for any steps of 0 or 1 for factors and adjoints."""
    if way == SUMMING or at != 1:
        if way == SUMMING:
            curved_loop(out, 0, values, at, count, factors, step, bars, bar_step, SUMMING)
        elif way == SETTING:
            curved_loop(out, 1, values, at, count, factors, step, bars, bar_step, SETTING)
        else:
            curved_loop(out, to, values, at, count, factors, step, bars, bar_step, ADDING)
        return
    if way == STRIDING:
        curved_loop(out, to, values, 1, count, factors, step, bars, bar_step, ADDING)
        return
    target, source = f64(out, count), f64(values, count)
    if bar_step == 0 and step == 0:  # one weight, which is the same product
        weight = mul0(bars[0], factors[0])
        for e in range(count):
            product = mul0(weight, source[e])
            target[e] = 0.0 + product if way == SETTING else target[e] + product
    elif bar_step == 0:
        weights, number = f64(factors, count), bars[0]
        for e in range(count):
            product = mul0(mul0(number, weights[e]), source[e])
            target[e] = 0.0 + product if way == SETTING else target[e] + product
    elif step == 0:
        adjoints, number = f64(bars, count), factors[0]
        for e in range(count):
            product = mul0(mul0(adjoints[e], number), source[e])
            target[e] = 0.0 + product if way == SETTING else target[e] + product
    else:
        weights, adjoints = f64(factors, count), f64(bars, count)
        for e in range(count):
            product = mul0(mul0(adjoints[e], weights[e]), source[e])
            target[e] = 0.0 + product if way == SETTING else target[e] + product
