"""What scores of a sample's classes fall short of a margin by, and the slopes of that."""

from tapegrad.compilation.jit import entry, inline
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
