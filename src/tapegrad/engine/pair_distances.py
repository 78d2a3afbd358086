"""Distances of all rows of one matrix from all rows of another, and what weights of the pairs do to rows: no difference is stored.

Loops run over pairs, so points with few coordinates are as fast as those with many; the other matrix is given with a row for each
coordinate. A sum over a difference runs in the order of NumPy's, which adds blocks of up to 128 elements in eight lanes each, and
then blocks in pairs; a plan says of each block how long it is, and how many pairs are added behind it.
"""

from math import sqrt

from tapegrad.compilation.jit import entry, inline
from tapegrad.engine.memory import array_data, array_size, f64, i64

LANES_OF_SUMS = 8
PAIRS_AT_ONCE = 128  # whose sums stay near
COLUMNS_AT_ONCE = 384  # of weights
COORDINATES_AT_ONCE = 4  # whose values and sums for these columns stay near beside four rows of weights
MAGNITUDES, SQUARES, SCALED_SQUARES = 1, 2, 3  # the scaled ones are of differences that would overflow or vanish


@inline
def add_terms(out, x, values, scales, count, terms):
    """A coordinate's terms, added to the sums."""
    if terms == SQUARES:
        for j in range(count):
            out[j] += (x - values[j]) * (x - values[j])
    elif terms == MAGNITUDES:
        for j in range(count):
            out[j] += abs(x - values[j])
    else:
        for j in range(count):
            part = abs(x - values[j]) / scales[j]
            out[j] += part * part


@inline
def add_four_terms(out, x, k, a, b, c, d, count, terms):
    """Those of four coordinates of a lane in turn, which goes to memory and back but once."""
    p, q, r, s = x[k], x[k + LANES_OF_SUMS], x[k + 2 * LANES_OF_SUMS], x[k + 3 * LANES_OF_SUMS]
    if terms == SQUARES:
        for j in range(count):
            total = out[j] + (p - a[j]) * (p - a[j])
            total += (q - b[j]) * (q - b[j])
            total += (r - c[j]) * (r - c[j])
            out[j] = total + (s - d[j]) * (s - d[j])
    else:
        for j in range(count):
            out[j] = (((out[j] + abs(p - a[j])) + abs(q - b[j])) + abs(r - c[j])) + abs(s - d[j])


@inline
def fill_values(out, value, count):
    """One number everywhere."""
    for j in range(count):
        out[j] = value


@inline
def add_values(out, values, count):
    """One array added to another."""
    for j in range(count):
        out[j] += values[j]


@inline
def find_scales(out, x, pq, row, d, count):
    """The largest coordinate of each difference, or one where that is no divisor."""
    fill_values(out, 0.0, count)
    for k in range(d):
        values = f64(pq + k * row, count)
        for j in range(count):
            out[j] = max(out[j], abs(x[k] - values[j]))
    for j in range(count):
        out[j] = out[j] if out[j] > 0.0 and out[j] <= 1.7976931348623157e308 else 1.0


@inline
def take_roots(out, sums, scales, count, terms):
    """The norms; whether all sums have all their digits."""
    fine = True
    if terms == MAGNITUDES:
        for j in range(count):
            out[j] = sums[j]
    elif terms == SQUARES:
        for j in range(count):
            fine &= sums[j] >= 2.2250738585072014e-308 and sums[j] <= 1.7976931348623157e308
            out[j] = sqrt(sums[j])
    else:
        for j in range(count):
            out[j] = sqrt(sums[j]) * scales[j]
    return fine


@inline
def sum_block(lanes, scales, x, d, rows, pq, row, first, length, count, terms):
    """The sums of a block for neighbouring rows of x, each in the first of its lanes; columns stay near while rows take turns."""
    used, lane = LANES_OF_SUMS if length >= LANES_OF_SUMS else 1, PAIRS_AT_ONCE * 8
    last, apart = first + length - length % used, used * row
    for k in range(used):
        at = first + k
        for r in range(rows):
            fill_values(f64(lanes + (r * LANES_OF_SUMS + k) * lane, count), 0.0, count)
        while used > 1 and terms != SCALED_SQUARES and at + 3 * used < last:
            q = pq + at * row
            four = f64(q, count), f64(q + apart, count), f64(q + 2 * apart, count), f64(q + 3 * apart, count)
            for r in range(rows):
                sums, own = f64(lanes + (r * LANES_OF_SUMS + k) * lane, count), f64(x + 8 * r * d, d)
                add_four_terms(sums, own, at, four[0], four[1], four[2], four[3], count, terms)
            at += 4 * used
        while at < last:
            for r in range(rows):
                sums, own = f64(lanes + (r * LANES_OF_SUMS + k) * lane, count), f64(x + 8 * r * d, d)
                add_terms(sums, own[at], f64(pq + at * row, count), f64(scales + r * lane, count), count, terms)
            at += used
    for r in range(rows):
        own, to = f64(x + 8 * r * d, d), lanes + r * LANES_OF_SUMS * lane
        apart = 1
        while apart < used:
            for k in range(used // (2 * apart)):
                at = to + 2 * k * apart * lane
                add_values(f64(at, count), f64(at + apart * lane, count), count)
            apart *= 2
        for k in range(last, first + length):
            add_terms(f64(to, count), own[k], f64(pq + k * row, count), f64(scales + r * lane, count), count, terms)


@inline
def stack_block(stack, top, value, pairs, count):
    """A block's sums behind those that wait, of which as many pairs are added as the plan says; how many wait then."""
    lane = PAIRS_AT_ONCE * 8
    fill_values(f64(stack + top * lane, count), 0.0, count)
    add_values(f64(stack + top * lane, count), f64(value, count), count)
    for _ in range(pairs):
        top -= 1
        add_values(f64(stack + top * lane, count), f64(stack + (top + 1) * lane, count), count)
    return top + 1


@entry("int64(int64,int64,int64,int64,int64,int64,int64)", nogil=True, wide=True)
def distances_of_pairs(pz, px, pq, pplan, pscratch, terms, triangle):
    """Norms of differences of the rows of x and the columns of q, with `triangle` of each row and the columns behind its own only.

    The scratch has for each of some rows eight lanes, one for scales, and one for each block of the plan. The answer is whether all
    sums were in range.
    """
    plan, fine, d, lane = i64(array_data(pplan), array_size(pplan)), True, 0, PAIRS_AT_ONCE * 8
    for block in range(0, len(plan), 2):
        d += plan[block]
    n, m, z, lanes = array_size(px) // d, array_size(pq) // d, array_data(pz), array_data(pscratch)
    depth = len(plan) // 2
    together = max(1, array_size(pscratch) // ((LANES_OF_SUMS + 1 + depth) * PAIRS_AT_ONCE))
    scales = lanes + together * LANES_OF_SUMS * lane
    stack = scales + together * lane
    for start in range(0, m, PAIRS_AT_ONCE):
        end = min(start + PAIRS_AT_ONCE, m)
        for i in range(0, min(n, end - 1) if triangle else n, together):
            x, begin, top, first = array_data(px) + i * d * 8, max(start, i + 1) if triangle else start, 0, 0
            rows, count, q, after = min(together, n - i), end - begin, array_data(pq) + begin * 8, 0
            if terms == SCALED_SQUARES:
                for r in range(rows):
                    find_scales(f64(scales + r * lane, count), f64(x + 8 * r * d, d), q, m * 8, d, count)
            for block in range(0, len(plan), 2):
                sum_block(lanes, scales, x, d, rows, q, m * 8, first, plan[block], count, terms)
                first += plan[block]
                for r in range(rows):
                    value = lanes + r * LANES_OF_SUMS * lane
                    after = stack_block(stack + r * depth * lane, top, value, plan[block + 1], count)
                top = after
            for r in range(rows):
                own = max(begin, i + r + 1) if triangle else begin
                if own < end:
                    skipped, line = own - begin, i + r
                    to = line * (2 * m - line - 1) // 2 + own - line - 1 if triangle else line * m + own
                    sums, scale = f64(stack + r * depth * lane + 8 * skipped, end - own), scales + r * lane + 8 * skipped
                    fine &= take_roots(f64(z + 8 * to, end - own), sums, f64(scale, end - own), end - own, terms)
    return 1 if fine else 0


@inline
def add_weighted(out, weights, values, q, count, signs):
    """A weight times a difference, or times its sign; zero where either is, also beside numbers that are not finite."""
    if signs:
        for j in range(count):
            away = values[j] - q
            away = 1.0 if away > 0 else -1.0 if away < 0 else away
            product = weights[j] * away
            out[j] += product if (weights[j] != 0) & (away != 0) else 0.0
    else:
        for j in range(count):
            away = values[j] - q
            product = weights[j] * away
            out[j] += product if (weights[j] != 0) & (away != 0) else 0.0


@inline
def add_four_weighted(out, a, b, c, d, values, q, at, step, count, signs):
    """Four of them in turn, of finite numbers."""
    p, r, s, t = q[at], q[at + step], q[at + 2 * step], q[at + 3 * step]
    if signs:
        for j in range(count):
            v = values[j]
            total = out[j] + a[j] * (1.0 * (v > p) - 1.0 * (v < p))
            total += b[j] * (1.0 * (v > r) - 1.0 * (v < r))
            total += c[j] * (1.0 * (v > s) - 1.0 * (v < s))
            out[j] = total + d[j] * (1.0 * (v > t) - 1.0 * (v < t))
    else:
        for j in range(count):
            v = values[j]
            out[j] = (((out[j] + a[j] * (v - p)) + b[j] * (v - r)) + c[j] * (v - s)) + d[j] * (v - t)


@inline
def is_finite(values, count):
    """Whether all numbers are finite, and so small that products are."""
    size = 0.0
    for j in range(count):
        size += values[j] * values[j]
    return size < 1e300


@entry("int64(int64,int64,int64,int64,int64,int64)", nogil=True, wide=True)
def weigh_differences(pz, pweights, px, pq, d, signs):
    """``z[k, j] = sum(weights[i, j] * (x[k, j] - q[i, k]) for i)``, with differences or their signs."""
    n, m, z, x = array_size(pq) // d, array_size(px) // d, array_data(pz), array_data(px)
    q, w = f64(array_data(pq), n * d), array_data(pweights)
    finite = is_finite(q, n * d) and is_finite(f64(x, m * d), m * d) and is_finite(f64(w, n * m), n * m)
    fill_values(f64(z, d * m), 0.0, d * m)
    for start in range(0, m, COLUMNS_AT_ONCE):
        for first in range(0, d, COORDINATES_AT_ONCE):
            count, i, row, last = min(m - start, COLUMNS_AT_ONCE), 0, m * 8, min(d, first + COORDINATES_AT_ONCE)
            while i < n:
                at, four = w + (i * m + start) * 8, finite and i + 3 < n
                for k in range(first, last):
                    out, values = f64(z + (k * m + start) * 8, count), f64(x + (k * m + start) * 8, count)
                    if four:
                        some = f64(at, count), f64(at + row, count), f64(at + 2 * row, count), f64(at + 3 * row, count)
                        add_four_weighted(out, some[0], some[1], some[2], some[3], values, q, i * d + k, d, count, signs)
                    else:
                        add_weighted(out, f64(at, count), values, q[i * d + k], count, signs)
                i += 4 if four else 1
    return 0
