"""What scores of a sample's classes fall short of a margin by, and the slopes of that."""

from tapegrad.compilation.jit import entry, inline
from tapegrad.compilation.memory_types import words_at
from tapegrad.engine.exponential_shares import SUMS, gather_loop
from tapegrad.engine.layout import *
from tapegrad.engine.memory import array_data, array_size, array_type_number, f32, f64, i64, u8


@inline
def shortfalls(terms, slopes, scores, classes, wanted, samples, count, unit):
    """See `margins_of_classes`."""
    for s in range(samples):
        at = s * count
        for j in range(count):
            wanted[j], slopes[at + j] = 0, 0.0
        listed = 0
        while listed < count and classes[at + listed] >= 0:
            target = classes[at + listed]
            if target >= count:
                return 1
            wanted[target] = 1
            listed += 1
        for k in range(count):
            row = (at + k) * count
            if k >= listed:
                for j in range(count):
                    terms[row + j] = 0.0
                continue
            target = classes[at + k]
            terms[row] = 1.0 - scores[at + target]
            start, pulled = terms[row], 0  # rounded, where these are single
            for j in range(count):
                short = start + scores[at + j]
                is_short = wanted[j] == 0 and not short <= 0.0  # nan hands gradients on, as `relu` does
                terms[row + j] = short if is_short else 0.0
                if is_short:
                    slopes[at + j] += 1.0
                    pulled += 1
            slopes[at + target] -= pulled
        for j in range(count):
            slopes[at + j] *= unit
    return 0


@entry("int64(int64,int64,int64,int64,int64,int64,float64)")
def margins_of_classes(pterms, pslopes, pscores, pclasses, pwanted, count, unit):
    """Of each sample the shortfalls of every class that is none of the listed ones against each of these, and their slopes.

    Terms are (samples, count, count), all others (samples, count), and `wanted` has a byte for each class. A negative class ends
    a list. Slopes are multiples of `unit`. The answer is 1 if a class does not exist.
    """
    n = array_size(pscores)
    samples, classes, wanted = n // count, i64(array_data(pclasses), n), u8(array_data(pwanted), count)
    terms, slopes, scores = array_data(pterms), array_data(pslopes), array_data(pscores)
    if array_type_number(pscores) == FLOAT64:
        x, y, z = f64(terms, n * count), f64(slopes, n), f64(scores, n)
        return shortfalls(x, y, z, classes, wanted, samples, count, unit)
    a, b, c = f32(terms, n * count), f32(slopes, n), f32(scores, n)
    return shortfalls(a, b, c, classes, wanted, samples, count, unit)


@inline
def sum_of_run(loops, x, count, out, start):
    """The sum of neighbouring elements at an address, which NumPy begins with a number of its own."""
    result = f64(out, 1)
    result[0] = start
    gather_loop(loops, SUMS, count, x, out, 0)
    return result[0]


@entry("int64(int64,int64,int64,int64,int64,int64,int64,int64,int64,int64,int64)")
def margins_of_targets(presult, plosses, pslopes, pshares, pparts, pscores, pclasses, pweights, pnumbers, ploops, power):
    """What scores fall short of their target's plus a margin by, or the squares of that, summed over the classes and in all.

    All of float64: numbers are the margin, the share of each class, and what NumPy's sums start with. Slopes are those of the sum,
    shares what they are of it (the same array where the power is one), and parts have room for as many elements.
    """
    n, samples, loops = array_size(pscores), array_size(plosses), words_at(ploops)
    count, numbers, out = n // max(samples, 1), f64(array_data(pnumbers), 3), array_data(presult)
    start = numbers[2]
    scores, classes, losses = f64(array_data(pscores), n), i64(array_data(pclasses), samples), f64(array_data(plosses), samples)
    slopes, shares, parts = f64(array_data(pslopes), n), f64(array_data(pshares), n), f64(array_data(pparts), n)
    weights = f64(array_data(pweights if pweights != 0 else pscores), count if pweights != 0 else 0)
    for s in range(samples):
        target = classes[s]
        own = numbers[0] - scores[s * count + target]
        for j in range(count):
            at = s * count + j
            short = 0.0 if j == target else scores[at] + own
            share = numbers[1] if short > 0.0 else 0.0
            share = share * weights[target] if pweights != 0 else share
            short = short if (short > 0.0) | (short != short) else 0.0
            shares[at] = share
            slopes[at] = share if power == 1 else short * share
            parts[at] = short * slopes[at]
        losses[s] = sum_of_run(loops, array_data(pparts) + 8 * s * count, count, out, start)
    total = sum_of_run(loops, array_data(plosses), samples, out, start)
    for s in range(samples):
        at = s * count
        for j in range(count if power == 2 else 0):
            slope = 0.0 if (total != total) & (shares[at + j] == 0.0) else slopes[at + j]
            slopes[at + j] = slope + slope
        slopes[at + classes[s]] = -sum_of_run(loops, array_data(pslopes) + 8 * at, count, out, start)
    f64(out, 1)[0] = total
    return 0
