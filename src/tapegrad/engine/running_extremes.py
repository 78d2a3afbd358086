"""Running maxima and minima along an axis of a contiguous float64 array, and where they were reached."""

from tapegrad.compilation.jit import entry, inline
from tapegrad.engine.memory import array_data, f64, i64


@inline
def further(best, place, v, k, sign):
    """The extreme and its place after one more element; of zeros the last one's sign counts."""
    place = k if (sign * v >= sign * best) | (v != v) else place
    return v if (sign * v >= sign * best) | ((v != v) & (best == best)) else best, place


@entry("int64(int64,int64,int64,int64,int64,int64,int64)", nogil=True)
def running_extremes(pz, pplaces, px, outer, count, inner, least):
    """The last of several places counts; nan is beyond everything. The array has (outer, count, inner) elements."""
    size = outer * count * inner
    values, places, x = f64(array_data(pz), size), i64(array_data(pplaces), size), f64(array_data(px), size)
    sign = -1.0 if least else 1.0
    if inner == 1:
        o = 0
        while o < outer:  # four runs at once, since each waits for its own last comparison
            a, b, c, d = o * count, min(o + 1, outer - 1) * count, min(o + 2, outer - 1) * count, min(o + 3, outer - 1) * count
            best_a, best_b, best_c, best_d = x[a], x[b], x[c], x[d]
            at_a = at_b = at_c = at_d = 0
            for k in range(count):
                best_a, at_a = further(best_a, at_a, x[a + k], k, sign)
                best_b, at_b = further(best_b, at_b, x[b + k], k, sign)
                best_c, at_c = further(best_c, at_c, x[c + k], k, sign)
                best_d, at_d = further(best_d, at_d, x[d + k], k, sign)
                values[a + k], places[a + k] = best_a, at_a
                values[b + k], places[b + k] = best_b, at_b
                values[c + k], places[c + k] = best_c, at_c
                values[d + k], places[d + k] = best_d, at_d
            o += 4
        return 0
    for o in range(outer):
        first = 8 * o * count * inner
        for k in range(count):
            at = first + 8 * k * inner
            v, z, p = f64(array_data(px) + at, inner), f64(array_data(pz) + at, inner), i64(array_data(pplaces) + at, inner)
            before, then = f64(array_data(pz) + at - 8 * inner, inner), i64(array_data(pplaces) + at - 8 * inner, inner)
            if k == 0:
                for j in range(inner):
                    z[j], p[j] = v[j], 0
            else:
                for j in range(inner):
                    a, b = v[j], before[j]
                    p[j] = k if (sign * a >= sign * b) | (a != a) else then[j]
                    z[j] = a if (sign * a >= sign * b) | ((a != a) & (b == b)) else b
    return 0


@entry("int64(int64,int64,int64,int64,int64,int64,int64)", nogil=True)
def add_at_places(pout, pg, pplaces, outer, count, inner, g_step):
    """Zeros with elements of `g` added at their places along an axis; a `g_step` of 0 says that those are one number."""
    size = outer * count * inner
    out, places, g = f64(array_data(pout), size), i64(array_data(pplaces), size), f64(array_data(pg), size if g_step else 1)
    for j in range(size):
        out[j] = 0.0
    for o in range(outer):
        for k in range(count):
            start = (o * count + k) * inner
            for j in range(inner):
                out[(o * count + places[start + j]) * inner + j] += g[(start + j) * g_step]
    return 0
