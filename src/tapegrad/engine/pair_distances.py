"""Distances of all rows of one matrix from all rows of another, and what weights of the pairs do to rows: no difference is stored.

Eight rows of the second matrix stand side by side, a vector for each coordinate, so points with few coordinates are as fast as
those with many. A sum over a difference runs in the order of NumPy's, which adds blocks of up to 128 elements in eight lanes each,
and then blocks in pairs; a plan says of each block how long it is, and how many pairs are added behind it.
"""

import numpy as np

from tapegrad.compilation.jit import always_inline, entry, inline
from tapegrad.compilation.vector_types import *
from tapegrad.engine.memory import array_data, array_dimensions, array_size, array_strides, f64, i64, load_f64, store_f64

LANES_OF_SUMS = 8
WEIGHTS_AT_ONCE = 256  # rows of eight, which stay in the nearest cache
COORDINATES_AT_ONCE = 4  # whose sums are in registers
MAGNITUDES, SQUARES, SCALED_SQUARES = 1, 2, 3  # the scaled ones are of differences that would overflow or vanish
MINUS_ONES = np.full(VECTOR_LENGTH, -1.0)  # which compiled code must read, or it would subtract
SMALLEST_NORMAL, LARGEST_NUMBER = 2.2250738585072014e-308, 1.7976931348623157e308


@inline
def aligned(address):
    """The next multiple of the bytes of a vector."""
    return (address + VECTOR_BYTES - 1) & -VECTOR_BYTES


@inline
def side_by_side(out, x, count, d, width):
    """Eight of `count` rows of `d` numbers as vectors: of the last one as many as are missing, and zeros behind the coordinates."""
    for j in range(VECTOR_LENGTH):
        row, column = f64(x + 8 * d * min(j, count - 1), d), f64(out + 8 * j, width * VECTOR_LENGTH)
        for k in range(d):
            column[k * VECTOR_LENGTH] = row[k]
        for k in range(d, width):
            column[k * VECTOR_LENGTH] = 0.0


@always_inline
def term(away, scale, terms):
    """What a coordinate adds to the sums of eight pairs, by its differences."""
    if terms == SQUARES:
        return away * away
    if terms == MAGNITUDES:
        return magnitudes(away)
    part = magnitudes(away) / scale
    return part * part


@always_inline
def two_lanes(a, b, y, steps, scale_a, scale_b, terms):
    """The sums of a lane and the next one, added, for two rows.

    Most differences are ``-1 * y + x``: the same numbers, by those parts of processors that have little else to do.
    """
    first_a = second_a = first_b = second_b = vector_of(0.0)
    minus_one = vector_at(MINUS_ONES.ctypes.data)
    for k in range(0, steps * LANES_OF_SUMS, LANES_OF_SUMS):
        u, v = vector_at(y + k * VECTOR_BYTES), vector_at(y + (k + 1) * VECTOR_BYTES)
        first_a += term(fused_vectors(minus_one, u, vector_of(load_f64(a + 8 * k))), scale_a, terms)
        second_a += term(fused_vectors(minus_one, v, vector_of(load_f64(a + 8 * k + 8))), scale_a, terms)
        first_b += term(fused_vectors(minus_one, u, vector_of(load_f64(b + 8 * k))), scale_b, terms)
        second_b += term(vector_of(load_f64(b + 8 * k + 8)) - v, scale_b, terms)
    return first_a + second_a, first_b + second_b


@always_inline
def sum_terms(a, b, y, length, scale_a, scale_b, terms):
    """The sums of a block of coordinates for two rows and eight others."""
    steps, two, k = length // LANES_OF_SUMS, 2 * VECTOR_BYTES, 0
    total_a = total_b = vector_of(0.0)
    if steps > 0:
        p_a, p_b = two_lanes(a, b, y, steps, scale_a, scale_b, terms)
        q_a, q_b = two_lanes(a + 16, b + 16, y + two, steps, scale_a, scale_b, terms)
        r_a, r_b = two_lanes(a + 32, b + 32, y + 2 * two, steps, scale_a, scale_b, terms)
        s_a, s_b = two_lanes(a + 48, b + 48, y + 3 * two, steps, scale_a, scale_b, terms)
        total_a, total_b, k = (p_a + q_a) + (r_a + s_a), (p_b + q_b) + (r_b + s_b), steps * LANES_OF_SUMS
    while k < length:
        v = vector_at(y + k * VECTOR_BYTES)
        total_a += term(vector_of(load_f64(a + 8 * k)) - v, scale_a, terms)
        total_b += term(vector_of(load_f64(b + 8 * k)) - v, scale_b, terms)
        k += 1
    return total_a, total_b


@inline
def sum_block(a, b, y, length, scale_a, scale_b, terms):
    """The same, with a loop for each kind of terms."""
    if terms == SQUARES:
        return sum_terms(a, b, y, length, scale_a, scale_b, SQUARES)
    if terms == MAGNITUDES:
        return sum_terms(a, b, y, length, scale_a, scale_b, MAGNITUDES)
    return sum_terms(a, b, y, length, scale_a, scale_b, SCALED_SQUARES)


@inline
def scales_of(x, y, d, room):
    """The largest coordinate of each difference, or one where that is no divisor."""
    largest, out = vector_of(0.0), f64(room, VECTOR_LENGTH)
    for k in range(d):
        largest = larger_of(largest, magnitudes(vector_of(load_f64(x + 8 * k)) - vector_at(y + k * VECTOR_BYTES)))
    write_vector(room, largest)
    for j in range(VECTOR_LENGTH):
        out[j] = out[j] if out[j] > 0.0 and out[j] <= LARGEST_NUMBER else 1.0
    return vector_at(room)


@inline
def put_norms(out, sums, scale, room, skipped, count, terms):
    """The norms of sums from one on, up to `count`; whether all of these sums have all their digits."""
    norms = sums if terms == MAGNITUDES else square_roots(sums) if terms == SQUARES else square_roots(sums) * scale
    if skipped == 0 and count == VECTOR_LENGTH:
        write_vector(out, norms)
        return terms != SQUARES or all_between(sums, SMALLEST_NORMAL, LARGEST_NUMBER)
    write_vector(room, norms)
    write_vector(room + VECTOR_BYTES, sums)
    fine = True
    for j in range(skipped, count):
        store_f64(out + 8 * (j - skipped), load_f64(room + 8 * j))
        total = load_f64(room + VECTOR_BYTES + 8 * j)
        fine &= terms != SQUARES or (total >= SMALLEST_NORMAL and total <= LARGEST_NUMBER)
    return fine


@entry("int64(int64,int64,int64,int64,int64,int64,int64)", nogil=True, wide=True)
def distances_of_pairs(pz, px, py, pplan, pscratch, terms, triangle):
    """Norms of differences of the rows of x and of y; with `triangle`, of each row of x and the rows of y behind its own only.

    The scratch has a vector for each coordinate, two for each block of the plan, and four more. The answer is whether all sums were
    in range.
    """
    plan, fine, d = i64(array_data(pplan), array_size(pplan)), True, 0
    for block in range(0, len(plan), 2):
        d += plan[block]
    n, m, panel = array_size(px) // d, array_size(py) // d, aligned(array_data(pscratch))
    room, depth = panel + d * VECTOR_BYTES, len(plan) // 2
    stack = room + 2 * VECTOR_BYTES
    other = stack + depth * VECTOR_BYTES
    for start in range(0, m, VECTOR_LENGTH):
        count = min(VECTOR_LENGTH, m - start)
        side_by_side(panel, array_data(py) + start * d * 8, count, d, d)
        for i in range(0, min(n, start + count - 1) if triangle else n, 2):
            a = array_data(px) + i * d * 8
            b, top, first = a + d * 8 if i + 1 < n else a, 0, 0
            scale_a = scale_b = sums_a = sums_b = vector_of(1.0)
            if terms == SCALED_SQUARES:
                scale_a, scale_b = scales_of(a, panel, d, room), scales_of(b, panel, d, room)
            for block in range(0, len(plan), 2):
                length, own = plan[block], panel + first * VECTOR_BYTES
                sums_a, sums_b = sum_block(a + 8 * first, b + 8 * first, own, length, scale_a, scale_b, terms)
                first += length
                for _ in range(plan[block + 1]):
                    top -= 1
                    sums_a = vector_at(stack + top * VECTOR_BYTES) + sums_a
                    sums_b = vector_at(other + top * VECTOR_BYTES) + sums_b
                write_vector(stack + top * VECTOR_BYTES, sums_a)
                write_vector(other + top * VECTOR_BYTES, sums_b)
                top += 1
            for r in range(2 if i + 1 < n else 1):
                line = i + r
                own = max(start, line + 1) if triangle else start
                if own < start + count:
                    to = line * (2 * m - line - 1) // 2 + own - line - 1 if triangle else line * m + own
                    sums, scale = (sums_b, scale_b) if r else (sums_a, scale_a)
                    fine &= put_norms(array_data(pz) + 8 * to, sums, scale, room, own - start, count, terms)
    return 1 if fine else 0


@inline
def is_far_from_infinity(address, count):
    """Whether so many vectors are of finite numbers, so small that products are finite, too."""
    size = vector_of(0.0)
    for k in range(count):
        v = vector_at(address + k * VECTOR_BYTES)
        size += v * v
    return all_between(size, 0.0, 1e299)


@inline
def weights_side_by_side(out, w, rows, count, row, column):
    """Of rows of weights, `count` columns and zeros in the place of the others."""
    if count == VECTOR_LENGTH and column == 8:
        for i in range(rows):
            write_vector(out + i * VECTOR_BYTES, vector_at(w + i * row))
        return
    for j in range(VECTOR_LENGTH):
        for i in range(rows):
            store_f64(out + i * VECTOR_BYTES + 8 * j, load_f64(w + i * row + j * column) if j < count else 0.0)


@always_inline
def add_difference(z, weights, x, q, with_signs, guarded):
    """``z`` and weights times differences, or times their signs; rounded once, where nothing is guarded."""
    away = x - vector_of(load_f64(q))
    if with_signs:
        away = signs_of(away)
    return z + guarded_products(weights, away) if guarded else fused_vectors(weights, away, z)


@always_inline
def with_row(sums, x, weights, at, with_signs, guarded):
    """Sums of four coordinates and what one row of eight weights adds to them."""
    some = vector_at(weights)
    return (
        add_difference(sums[0], some, x[0], at, with_signs, guarded),
        add_difference(sums[1], some, x[1], at + 8, with_signs, guarded),
        add_difference(sums[2], some, x[2], at + 16, with_signs, guarded),
        add_difference(sums[3], some, x[3], at + 24, with_signs, guarded),
    )


@always_inline
def add_weighted(z, x, weights, q, rows, with_signs, guarded):
    """Sums over rows for four coordinates; two rows at a time, one after the other."""
    one, two, three, step = VECTOR_BYTES, 2 * VECTOR_BYTES, 3 * VECTOR_BYTES, 8 * COORDINATES_AT_ONCE
    sums = vector_at(z), vector_at(z + one), vector_at(z + two), vector_at(z + three)
    values = vector_at(x), vector_at(x + one), vector_at(x + two), vector_at(x + three)
    for i in range(0, rows - 1, 2):
        at, some = q + i * step, weights + i * VECTOR_BYTES
        sums = with_row(sums, values, some, at, with_signs, guarded)
        sums = with_row(sums, values, some + VECTOR_BYTES, at + step, with_signs, guarded)
    if rows % 2 == 1:
        last = rows - 1
        sums = with_row(sums, values, weights + last * VECTOR_BYTES, q + last * step, with_signs, guarded)
    write_vector(z, sums[0])
    write_vector(z + one, sums[1])
    write_vector(z + two, sums[2])
    write_vector(z + three, sums[3])


@inline
def in_fours(out, q, n, d, width):
    """Rows of coordinates by groups of four: those of the first row, of the second, and so on; zeros behind the last one."""
    for k in range(0, width, COORDINATES_AT_ONCE):
        for i in range(n):
            for c in range(COORDINATES_AT_ONCE):
                at = k + c
                store_f64(out + 8 * (k * n + i * COORDINATES_AT_ONCE + c), load_f64(q + 8 * (i * d + at)) if at < d else 0.0)


@entry("int64(int64,int64,int64,int64,int64,int64)", nogil=True, wide=True)
def weigh_differences(pz, pweights, px, pq, pscratch, with_signs):
    """``z[j, k] = sum(weights[i, j] * (x[j, k] - q[i, k]) for i)``, with differences or their signs.

    Zero times anything is zero. Weights may have any strides. The scratch has two vectors for each coordinate (as many as make a
    multiple of four), 257 more, and room for q with as many coordinates.
    """
    sizes, strides = array_dimensions(px), array_strides(pweights)
    m, d = sizes[0], sizes[1]
    n, width = array_size(pq) // d, (d + COORDINATES_AT_ONCE - 1) & -COORDINATES_AT_ONCE
    x = aligned(array_data(pscratch))
    z = x + width * VECTOR_BYTES
    some = z + width * VECTOR_BYTES
    fours = some + WEIGHTS_AT_ONCE * VECTOR_BYTES
    in_fours(fours, array_data(pq), n, d, width)
    are_small = is_far_from_infinity(fours, n * width // VECTOR_LENGTH)
    for k in range(n * width // VECTOR_LENGTH * VECTOR_LENGTH, n * width):
        are_small &= abs(load_f64(fours + 8 * k)) < 1e149
    for start in range(0, m, VECTOR_LENGTH):
        count = min(VECTOR_LENGTH, m - start)
        side_by_side(x, array_data(px) + start * d * 8, count, d, width)
        for k in range(width):
            write_vector(z + k * VECTOR_BYTES, vector_of(0.0))
        are_finite = are_small and is_far_from_infinity(x, width)
        for first in range(0, n, WEIGHTS_AT_ONCE):
            rows = min(WEIGHTS_AT_ONCE, n - first)
            w = array_data(pweights) + first * strides[0] + start * strides[1]
            weights_side_by_side(some, w, rows, count, strides[0], strides[1])
            plain = are_finite and is_far_from_infinity(some, rows)
            for k in range(0, width, COORDINATES_AT_ONCE):
                at, to, own = fours + 8 * (k * n + first * COORDINATES_AT_ONCE), z + k * VECTOR_BYTES, x + k * VECTOR_BYTES
                if not plain:
                    add_weighted(to, own, some, at, rows, with_signs, True)
                elif with_signs:
                    add_weighted(to, own, some, at, rows, True, False)
                else:
                    add_weighted(to, own, some, at, rows, False, False)
        for j in range(count):
            row, column = f64(array_data(pz) + 8 * d * (start + j), d), f64(z + 8 * j, d * VECTOR_LENGTH)
            for k in range(d):
                row[k] = column[k * VECTOR_LENGTH]
    return 0
