"""Loops over runs of elements for one vector: products with factors, and with second partials times adjoints.

Runs of neighbours have a form with plain products, too. It gives nan wherever it differs from the one with absolute-zero products:
zero times what is infinite or nan. (The sign of a zero is lost where it is added, for no sum here is -0.0.)
"""

from tapegrad.compilation.jit import always_inline, inline
from tapegrad.engine.memory import f64
from tapegrad.rules.special import mul0

# How an argument's elements are reached: one after the other, and then for the first time, or for a further time, or for the first
# time that they are written, by what stands elsewhere; all in one; in strides.
SETTING, ADDING, JOINING, SUMMING, STRIDING = 0, 1, 2, 3, 4


@inline
def way_of(is_first, to):
    """How the elements of a run are reached."""
    if to == 1:
        return SETTING if is_first else ADDING
    return SUMMING if to == 0 else STRIDING


@always_inline
def bring(out, e, before, scale, way, product):
    """Let a product come to an element that is one after the other."""
    if way == JOINING:
        out[e] = (0.0 + scale * before[e]) + product
    else:
        out[e] = 0.0 + product if way == SETTING else out[e] + product


@always_inline
def scaled_loop(out, to, values, at, scale, count, factors, step, way):
    """``out[to * e] += factors[step * e] * (scale * values[at * e])``; what is known while compiling makes it quick."""
    total = 0.0
    for e in range(count):
        product = mul0(factors[step * e], mul0(scale, values[at * e]))
        if way == SUMMING:
            total += product
        elif way == SETTING:
            out[to * e] = 0.0 + product
        else:
            out[to * e] += product
    if way == SUMMING:
        out[0] += total


@always_inline
def absolute_neighbours(out, values, at, count, factors, step, way):
    """The same for elements that stand one after the other; steps are 0 or 1."""
    if at == 1 and step == 1:
        scaled_loop(f64(out, count), 1, f64(values, count), 1, 1.0, count, f64(factors, count), 1, way)
    elif at == 1:
        scaled_loop(f64(out, count), 1, f64(values, count), 1, 1.0, count, f64(factors, 1), 0, way)
    else:
        scaled_loop(f64(out, count), 1, f64(values, 1), 0, 1.0, count, f64(factors, count), 1, way)


@always_inline
def plain_neighbours(out, values, at, scale, count, factors, step, way, before, before_scale):
    """The same by plain products."""
    target, others = f64(out, count), f64(before, count)
    if at == 1 and step == 1:
        source, weights = f64(values, count), f64(factors, count)
        for e in range(count):
            bring(target, e, others, before_scale, way, weights[e] * (scale * source[e]))
    elif at == 1:
        source, weight = f64(values, count), factors[0]
        for e in range(count):
            bring(target, e, others, before_scale, way, weight * (scale * source[e]))
    else:
        weights, value = f64(factors, count), mul0(scale, values[0])
        for e in range(count):
            bring(target, e, others, before_scale, way, weights[e] * value)


@inline
def are_neighbours(to, at, step):
    """Whether elements that are reached one after the other come from such, or such factors, or both."""
    return to == 1 and 0 <= at <= 1 and at + step > 0


@inline
def scaled_run(out, to, values, at, scale, count, factors, step, way, absolute, before, before_scale):
    """The same for any steps; those of factors are 0 or 1."""
    if are_neighbours(to, at, step) and absolute:
        if way == SETTING:
            absolute_neighbours(out, values, at, count, factors, step, SETTING)
        else:
            absolute_neighbours(out, values, at, count, factors, step, ADDING)
    elif are_neighbours(to, at, step):
        if way == SETTING:
            plain_neighbours(out, values, at, scale, count, factors, step, SETTING, out, 0.0)
        elif way == JOINING:
            plain_neighbours(out, values, at, scale, count, factors, step, JOINING, before, before_scale)
        else:
            plain_neighbours(out, values, at, scale, count, factors, step, ADDING, out, 0.0)
    elif way == SUMMING:
        scaled_loop(out, 0, values, at, scale, count, factors, step, SUMMING)
    elif way == SETTING:
        scaled_loop(out, 1, values, at, scale, count, factors, step, SETTING)
    else:
        scaled_loop(out, to, values, at, scale, count, factors, step, ADDING)


@always_inline
def curved_loop(out, to, values, at, scale, count, factors, step, bars, bar_step, bar_scale, way):
    """``out[to * e] += (bar_scale * bars[bar_step * e]) * factors[step * e] * (scale * values[at * e])``."""
    total = 0.0
    for e in range(count):
        weight = mul0(mul0(bar_scale, bars[bar_step * e]), factors[step * e])
        product = mul0(weight, mul0(scale, values[at * e]))
        if way == SUMMING:
            total += product
        elif way == SETTING:
            out[to * e] = 0.0 + product
        else:
            out[to * e] += product
    if way == SUMMING:
        out[0] += total


@always_inline
def absolute_curved_neighbours(out, values, count, factors, step, bars, bar_step, way):
    """The same for elements that stand one after the other; the other steps are 0 or 1."""
    target, source = f64(out, count), f64(values, count)
    if bar_step == 0 and step == 0:  # one weight, which is the same product
        weight = mul0(bars[0], factors[0])
        for e in range(count):
            bring(target, e, target, 0.0, way, mul0(weight, source[e]))
    elif bar_step == 0:
        weights, number = f64(factors, count), bars[0]
        for e in range(count):
            bring(target, e, target, 0.0, way, mul0(mul0(number, weights[e]), source[e]))
    elif step == 0:
        adjoints, number = f64(bars, count), factors[0]
        for e in range(count):
            bring(target, e, target, 0.0, way, mul0(mul0(adjoints[e], number), source[e]))
    else:
        weights, adjoints = f64(factors, count), f64(bars, count)
        for e in range(count):
            bring(target, e, target, 0.0, way, mul0(mul0(adjoints[e], weights[e]), source[e]))


@always_inline
def plain_curved_neighbours(out, values, scale, count, factors, step, bars, bar_step, bar_scale, way, before, before_scale):
    """The same by plain products."""
    target, source, others = f64(out, count), f64(values, count), f64(before, count)
    if bar_step == 0 and step == 0:
        weight = mul0(mul0(bar_scale, bars[0]), factors[0])
        for e in range(count):
            bring(target, e, others, before_scale, way, weight * (scale * source[e]))
    elif bar_step == 0:
        weights, number = f64(factors, count), mul0(bar_scale, bars[0])
        for e in range(count):
            bring(target, e, others, before_scale, way, (number * weights[e]) * (scale * source[e]))
    elif step == 0:
        adjoints, number = f64(bars, count), factors[0]
        for e in range(count):
            bring(target, e, others, before_scale, way, ((bar_scale * adjoints[e]) * number) * (scale * source[e]))
    else:
        weights, adjoints = f64(factors, count), f64(bars, count)
        for e in range(count):
            bring(target, e, others, before_scale, way, ((bar_scale * adjoints[e]) * weights[e]) * (scale * source[e]))


@inline
def curved_run(out, to, values, at, scale, count, factors, step, bars, bar_step, bar_scale, way, absolute, before, before_scale):
    """The same for any steps; those of factors and adjoints are 0 or 1."""
    if to == 1 and at == 1 and absolute:
        if way == SETTING:
            absolute_curved_neighbours(out, values, count, factors, step, bars, bar_step, SETTING)
        else:
            absolute_curved_neighbours(out, values, count, factors, step, bars, bar_step, ADDING)
    elif to == 1 and at == 1:
        if way == SETTING:
            plain_curved_neighbours(out, values, scale, count, factors, step, bars, bar_step, bar_scale, SETTING, out, 0.0)
        elif way == JOINING:
            plain_curved_neighbours(
                out, values, scale, count, factors, step, bars, bar_step, bar_scale, JOINING, before, before_scale
            )
        else:
            plain_curved_neighbours(out, values, scale, count, factors, step, bars, bar_step, bar_scale, ADDING, out, 0.0)
    elif way == SUMMING:
        curved_loop(out, 0, values, at, scale, count, factors, step, bars, bar_step, bar_scale, SUMMING)
    elif way == SETTING:
        curved_loop(out, 1, values, at, scale, count, factors, step, bars, bar_step, bar_scale, SETTING)
    elif at == 1:
        curved_loop(out, to, values, 1, scale, count, factors, step, bars, bar_step, bar_scale, ADDING)
    else:
        curved_loop(out, to, values, at, scale, count, factors, step, bars, bar_step, bar_scale, ADDING)


@inline
def holds_nan(values, count):
    """Whether there is a nan among numbers."""
    numbers, found = f64(values, count), 0
    for e in range(count):
        found |= numbers[e] != numbers[e]
    return found != 0
