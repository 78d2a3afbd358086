"""What a loss takes of an array of shape (count, classes, inner): one number of each run of classes, by its target."""

from tapegrad.compilation.jit import entry, inline
from tapegrad.compilation.memory_types import words_at
from tapegrad.engine.exponential_shares import SUMS, gather_loop
from tapegrad.engine.layout import *
from tapegrad.engine.memory import array_data, array_size, array_type_number, f32, f64, i64
from tapegrad.engine.runs import copy_run


@inline
def choose(losses, factors, places, values, targets, weights, has_weights, count, classes, inner, ignored):
    """Negative values times factors; zero, and the place -1, of targets that do not count."""
    k = 0
    for o in range(count):
        for j in range(inner):
            target = targets[k]
            if target == ignored:
                losses[k], factors[k], places[k] = 0.0, 0.0, -1
            else:
                if target < 0 or target >= classes:
                    return k
                place = (o * classes + target) * inner + j
                if has_weights:
                    losses[k], factors[k] = -values[place] * weights[target], weights[target]
                else:
                    losses[k], factors[k] = -values[place], 1.0
                places[k] = place
            k += 1
    return -1


@inline
def chosen_of_classes(plosses, pfactors, pplaces, px, ptargets, pweights, classes, inner, ignored):
    """See `choose_classes`."""
    n, m = array_size(ptargets), array_size(px)
    count, targets, places = n // max(inner, 1), i64(array_data(ptargets), n), i64(array_data(pplaces), n)
    has_weights = pweights != 0
    if not has_weights:
        pweights = px
    x, w, losses, factors = array_data(px), array_data(pweights), array_data(plosses), array_data(pfactors)
    if array_type_number(px) == FLOAT64:
        a, b, v, u = f64(losses, n), f64(factors, n), f64(x, m), f64(w, classes)
        return choose(a, b, places, v, targets, u, has_weights, count, classes, inner, ignored)
    c, d, s, t = f32(losses, n), f32(factors, n), f32(x, m), f32(w, classes)
    return choose(c, d, places, s, targets, t, has_weights, count, classes, inner, ignored)


@entry("int64(int64,int64,int64,int64,int64,int64,int64,int64,int64)")
def choose_classes(plosses, pfactors, pplaces, px, ptargets, pweights, classes, inner, ignored):
    """Losses, their factors, and flat places of the chosen; -1, or the number of the first target that is no class."""
    return chosen_of_classes(plosses, pfactors, pplaces, px, ptargets, pweights, classes, inner, ignored)


@entry("int64(int64,int64,int64,int64,int64,int64,int64,int64,int64,int64,int64,int64)")
def sum_of_classes(presult, plosses, pfactors, pplaces, px, ptargets, pweights, classes, inner, ignored, ploops, is_mean):
    """`choose_classes` of float64, whose losses are summed, or their mean taken; factors become those of the derivative.

    The result has two numbers, with which NumPy's sums start.
    """
    wrong = chosen_of_classes(plosses, pfactors, pplaces, px, ptargets, pweights, classes, inner, ignored)
    if wrong >= 0:
        return wrong
    n, at = array_size(ptargets), array_data(presult)
    found, factors = f64(at, 2), f64(array_data(pfactors), n)
    loops = words_at(ploops)
    gather_loop(loops, SUMS, n, array_data(plosses), at, 0)
    if is_mean:
        gather_loop(loops, SUMS, n, array_data(pfactors), at + 8, 0)
        total = found[1]
        found[0] = found[0] / total
        for j in range(n):
            factors[j] = factors[j] / -total
    else:
        for j in range(n):
            factors[j] = -factors[j]
    return -1


@entry("int64(int64,int64,int64,float64)")
def spread_to_classes(pout, pfactors, pplaces, g):
    """Zeros, and at each place of a chosen element the cotangent of the sum times its factor, which is zero if either is."""
    n, m = array_size(pplaces), array_size(pout)
    out, factors, places = f64(array_data(pout), m), f64(array_data(pfactors), n), i64(array_data(pplaces), n)
    for j in range(m):
        out[j] = 0.0
    for j in range(n):
        if places[j] >= 0:
            out[places[j]] += 0.0 if (g == 0.0) | (factors[j] == 0.0) else g * factors[j]
    return 0


@inline
def weigh_run(out, x, classes, inner, every, own, places, first):
    """Products of neighbouring runs of classes, `inner` apart: with one factor, and with another at the places of the targets."""
    values, result = f64(x, classes * inner), f64(out, classes * inner)
    for j in range(classes * inner):
        result[j] = values[j] * every
    for j in range(inner):
        if places[j] >= 0:
            result[places[j] - first] = values[places[j] - first] * own
        else:
            for k in range(classes):
                result[k * inner + j] = values[k * inner + j] * 0.0


@entry("int64(int64,int64,int64,int64,int64,int64,int64,int64)", wide=True)
def weigh_classes(pout, pz, px, pplaces, pnumbers, classes, inner, ploops):
    """Products of all elements with factors: one for all, another at the places of targets, zero where a place is -1.

    Where there are results (then `inner` is 1), each run is added up as NumPy does it, and the products are those of one run.
    Numbers are the factors, and what NumPy's sums begin with.
    """
    n, numbers = array_size(pplaces), f64(array_data(pnumbers), 3)
    every, own, start, step, loops = numbers[0], numbers[1], numbers[2], classes * inner, words_at(ploops)
    for o in range(n // inner):
        first = o * step
        x, places = array_data(px) + 8 * first, i64(array_data(pplaces) + 8 * o * inner, inner)
        out = array_data(pout) + (0 if pz != 0 else 8 * first)
        weigh_run(out, x, classes, inner, every, own, places, first)
        if pz != 0:
            at = array_data(pz) + 8 * o
            f64(at, 1)[0] = start
            gather_loop(loops, SUMS, classes, out, at, 0)
    return 0


@entry("int64(int64,int64,int64,int64,int64,int64,int64)", wide=True)
def spread_over_classes(pout, pg, pplaces, pnumbers, classes, inner, g_step):
    """The cotangents of `weigh_classes`, of finite ones of its results, or of one number for all."""
    n, numbers = array_size(pplaces), f64(array_data(pnumbers), 2)
    every, own, g = numbers[0], numbers[1], f64(array_data(pg), n if g_step else 1)
    for o in range(n // inner):
        first = o * classes * inner
        places, row = i64(array_data(pplaces) + 8 * o * inner, inner), f64(array_data(pout) + 8 * first, inner)
        for j in range(inner):
            row[j] = g[(o * inner + j) * g_step] * (every if places[j] >= 0 else 0.0)
        if inner == 1:
            whole, value = f64(array_data(pout) + 8 * first, classes), row[0]
            for k in range(classes):
                whole[k] = value
        else:
            for k in range(1, classes):
                copy_run(array_data(pout) + 8 * (first + k * inner), array_data(pout) + 8 * first, inner, 1, 8)
        out = f64(array_data(pout), n * classes)
        for j in range(inner):
            if places[j] >= 0:
                out[places[j]] = g[(o * inner + j) * g_step] * own
    return 0
