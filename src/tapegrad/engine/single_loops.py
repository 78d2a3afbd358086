"""Loops over runs of elements for one vector: products with factors, and with second partials times adjoints.

Runs of neighbours have a form with plain products, too. It gives nan wherever it differs from the one with absolute-zero products:
zero times what is infinite or nan. (The sign of a zero is lost where it is added, for no sum here is -0.0.)
"""

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
def product_of(x, y, absolute):
    """The product of the form."""
    return mul0(x, y) if absolute else x * y


@always_inline
def scaled_loop(out, to, values, at, count, factors, step, way, absolute):
    """``out[to * e] += factors[step * e] * values[at * e]``; way, steps and form are known while compiling where it is quick."""
    total = 0.0
    for e in range(count):
        product = product_of(factors[step * e], values[at * e], absolute)
        if way == SUMMING:
            total += product
        elif way == SETTING:
            out[to * e] = 0.0 + product
        else:
            out[to * e] += product
    if way == SUMMING:
        out[0] += total


@always_inline
def scaled_neighbours(out, values, at, count, factors, step, way, absolute):
    """The same for elements that stand one after the other; steps are 0 or 1."""
    if way == SETTING and at == 1 and step == 1:
        scaled_loop(f64(out, count), 1, f64(values, count), 1, count, f64(factors, count), 1, SETTING, absolute)
    elif way == SETTING and at == 1:
        scaled_loop(f64(out, count), 1, f64(values, count), 1, count, f64(factors, 1), 0, SETTING, absolute)
    elif way == SETTING:
        scaled_loop(f64(out, count), 1, f64(values, 1), 0, count, f64(factors, count), 1, SETTING, absolute)
    elif at == 1 and step == 1:
        scaled_loop(f64(out, count), 1, f64(values, count), 1, count, f64(factors, count), 1, ADDING, absolute)
    elif at == 1:
        scaled_loop(f64(out, count), 1, f64(values, count), 1, count, f64(factors, 1), 0, ADDING, absolute)
    else:
        scaled_loop(f64(out, count), 1, f64(values, 1), 0, count, f64(factors, count), 1, ADDING, absolute)


@inline
def scaled_run(out, to, values, at, count, factors, step, way, absolute):
    """The same for any steps; those of factors are 0 or 1."""
    if way <= ADDING and 0 <= at <= 1 and at + step > 0:
        if absolute:
            scaled_neighbours(out, values, at, count, factors, step, way, True)
        else:
            scaled_neighbours(out, values, at, count, factors, step, way, False)
    elif way == SUMMING:
        scaled_loop(out, 0, values, at, count, factors, step, SUMMING, True)
    elif way == SETTING:
        scaled_loop(out, 1, values, at, count, factors, step, SETTING, True)
    else:
        scaled_loop(out, to, values, at, count, factors, step, ADDING, True)


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


@always_inline
def curved_neighbours(out, values, count, factors, step, bars, bar_step, way, absolute):
    """The same for elements that stand one after the other; the other steps are 0 or 1."""
    target, source = f64(out, count), f64(values, count)
    if bar_step == 0 and step == 0:  # one weight, which is the same product
        weight = mul0(bars[0], factors[0])
        for e in range(count):
            product = product_of(weight, source[e], absolute)
            target[e] = 0.0 + product if way == SETTING else target[e] + product
    elif bar_step == 0:
        weights, number = f64(factors, count), bars[0]
        for e in range(count):
            product = product_of(product_of(number, weights[e], absolute), source[e], absolute)
            target[e] = 0.0 + product if way == SETTING else target[e] + product
    elif step == 0:
        adjoints, number = f64(bars, count), factors[0]
        for e in range(count):
            product = product_of(product_of(adjoints[e], number, absolute), source[e], absolute)
            target[e] = 0.0 + product if way == SETTING else target[e] + product
    else:
        weights, adjoints = f64(factors, count), f64(bars, count)
        for e in range(count):
            product = product_of(product_of(adjoints[e], weights[e], absolute), source[e], absolute)
            target[e] = 0.0 + product if way == SETTING else target[e] + product


@inline
def curved_run(out, to, values, at, count, factors, step, bars, bar_step, way, absolute):
    """The same for any steps; those of factors and adjoints are 0 or 1."""
    if way <= ADDING and at == 1:
        if absolute:
            curved_neighbours(out, values, count, factors, step, bars, bar_step, way, True)
        else:
            curved_neighbours(out, values, count, factors, step, bars, bar_step, way, False)
    elif way == SUMMING:
        curved_loop(out, 0, values, at, count, factors, step, bars, bar_step, SUMMING)
    elif way == SETTING:
        curved_loop(out, 1, values, at, count, factors, step, bars, bar_step, SETTING)
    elif at == 1:
        curved_loop(out, to, values, 1, count, factors, step, bars, bar_step, ADDING)
    else:
        curved_loop(out, to, values, at, count, factors, step, bars, bar_step, ADDING)


@inline
def holds_nan(values, count):
    """Whether there is a nan among numbers."""
    numbers, found = f64(values, count), 0
    for e in range(count):
        found |= numbers[e] != numbers[e]
    return found != 0
