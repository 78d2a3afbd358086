"""Softmax and its logarithm along one axis of a contiguous array, and their derivatives, by the loops of NumPy's functions.

The array counts as one of (outer, count, inner) elements. Runs along the axis are gone through while they are near the processor,
with the sums that NumPy's functions of whole arrays have: of neighbours by halves, of elements further apart one after the other.
"""

from tapegrad.compilation.jit import entry, inline
from tapegrad.compilation.memory_types import words_at
from tapegrad.engine.memory import array_data, call_loop, f64
from tapegrad.engine.runs import set_all

EXPONENTIALS, LOGARITHMS, SUMS, MAXIMA = 0, 1, 2, 3  # places among the loops that callers give
TILE = 256  # neighbouring runs that are gone through together
NEAR = 1024  # elements at which passes are shortest
DEPTH = 128  # of the list of parts of a sum by halves
MINUS_INFINITY = -float("inf")


@inline
def apply_loop(loops, which, count, x, out):
    """A function of contiguous elements."""
    call_loop(loops[2 * which], loops[2 * which + 1], count, x, 8, x, 8, out, 8, 0)


@inline
def gather_loop(loops, which, count, x, out, step):
    """A function of two numbers over elements: into one number with step 0, or into as many."""
    call_loop(loops[2 * which], loops[2 * which + 1], count, out, step, x, 8, out, step, 1)


@inline
def less(out, x, count, y, step):
    """Differences; a step of 0 stretches a number."""
    if step == 0:
        b = y[0]
        for j in range(count):
            out[j] = x[j] - b
    else:
        for j in range(count):
            out[j] = x[j] - y[j]


@inline
def divided(out, count, y, step):
    """Quotients in place."""
    if step == 0:
        b = y[0]
        for j in range(count):
            out[j] = out[j] / b
    else:
        for j in range(count):
            out[j] = out[j] / y[j]


@inline
def products(out, g, g_step, z, count):
    """Products that are zero if either factor is; a step of 0 stretches a number."""
    if g_step == 0:
        a = g[0]
        for j in range(count):
            out[j] = 0.0 if (a == 0.0) | (z[j] == 0.0) else a * z[j]
    else:
        for j in range(count):
            out[j] = 0.0 if (g[j] == 0.0) | (z[j] == 0.0) else g[j] * z[j]


@inline
def less_products(out, g, g_step, z, s, s_step, count):
    """Differences from such products of `s` and `z`; a step of 0 stretches a number."""
    a, b = g[0], s[0]
    if g_step == 0 and s_step == 0:
        for j in range(count):
            out[j] = a - (0.0 if (b == 0.0) | (z[j] == 0.0) else z[j] * b)
    elif g_step == 0:
        for j in range(count):
            out[j] = a - (0.0 if (s[j] == 0.0) | (z[j] == 0.0) else z[j] * s[j])
    elif s_step == 0:
        for j in range(count):
            out[j] = g[j] - (0.0 if (b == 0.0) | (z[j] == 0.0) else z[j] * b)
    else:
        for j in range(count):
            out[j] = g[j] - (0.0 if (s[j] == 0.0) | (z[j] == 0.0) else z[j] * s[j])


@inline
def exponentials_less(loops, x, z, room, count, most, step, logarithm):
    """Exponentials of differences, to the room if the differences themselves are wanted; else they come to `z`."""
    less(f64(z, count) if logarithm else f64(room, count), f64(x, count), count, most, step)
    apply_loop(loops, EXPONENTIALS, count, z if logarithm else room, room if logarithm else z)


@inline
def sum_by_halves(loops, x, z, room, count, most, logarithm):
    """Exponentials of a long run, and their sum as NumPy adds it up: parts of it are in order, and go through all passes at once.

    Returned is the sum; the room has a block and what is still to be done, a length or 0 for an addition of two sums.
    """
    waiting, sums, total = f64(room + 8 * NEAR, DEPTH), f64(room + 8 * (NEAR + DEPTH), DEPTH), room + 8 * (NEAR + 2 * DEPTH)
    waiting[0] = count
    left, known, at, s = 1, 0, 0, f64(total, 1)
    while left > 0:
        left -= 1
        length = int(waiting[left])
        if length > NEAR:
            half = length // 2 - length // 2 % 8
            waiting[left], waiting[left + 1], waiting[left + 2] = 0, length - half, half
            left += 3
        elif length > 0:
            s[0] = -0.0
            exponentials_less(loops, x + 8 * at, z + 8 * at, room, length, most, 0, logarithm)
            gather_loop(loops, SUMS, length, room if logarithm else z + 8 * at, total, 0)
            sums[known] = s[0]
            known += 1
            at += length
        else:
            known -= 1
            sums[known - 1] += sums[known]
    return sums[0]


@inline
def of_neighbours(loops, x, z, room, count, logarithm):
    """One run of neighbouring elements; `room` has two numbers in front."""
    out, top, total = f64(z, count), room, room + 8
    most, s = f64(top, 1), f64(total, 1)
    most[0], s[0] = MINUS_INFINITY, 0.0
    gather_loop(loops, MAXIMA, count, x, top, 0)
    s[0] += sum_by_halves(loops, x, z, room + 16, count, most, logarithm)
    if logarithm:
        apply_loop(loops, LOGARITHMS, 1, total, top)
        b = most[0]
        for j in range(count):
            out[j] = out[j] - b
    else:
        divided(out, count, s, 0)


@inline
def add_rows(s, rows, part, kept):
    """Rows added to sums one after the other."""
    for k in range(rows):
        for j in range(part):
            s[j] += kept[k * part + j]


@inline
def of_runs_apart(loops, x, z, room, count, inner, part, logarithm):
    """Neighbouring runs whose elements are `inner` apart; rows of them that are neighbours go through NumPy's loops together."""
    step, top, total = 8 * inner, room + 8 * NEAR, room + 8 * (NEAR + part)
    most, s, together = f64(top, part), f64(total, part), max(1, NEAR // part) if part == inner else 1
    set_all(most, part, MINUS_INFINITY)
    set_all(s, part, 0.0)
    for k in range(count):
        gather_loop(loops, MAXIMA, part, x + k * step, top, 8)
    for k in range(0, count, together):
        rows = min(together, count - k)
        for i in range(rows):
            differences = z + (k + i) * step if logarithm else room + 8 * i * part
            less(f64(differences, part), f64(x + (k + i) * step, part), part, most, 1)
        given, found = z + k * step if logarithm else room, room if logarithm else z + k * step
        apply_loop(loops, EXPONENTIALS, rows * part, given, found)
        add_rows(s, rows, part, f64(found, rows * part))
    if logarithm:
        apply_loop(loops, LOGARITHMS, part, total, top)
    for k in range(count):
        out = f64(z + k * step, part)
        if logarithm:
            for j in range(part):
                out[j] = out[j] - most[j]
        else:
            divided(out, part, s, 1)


@entry("int64(int64,int64,int64,int64,int64,int64,int64)", wide=True)
def exponential_shares(pz, px, proom, outer, count, inner, options):
    """Softmax of `x`, or its logarithm if bit 0 of `options` is set; the rest of that is the address of NumPy's loops."""
    loops, logarithm = words_at(options & -2), options & 1
    x, z, room = array_data(px), array_data(pz), array_data(proom)
    for o in range(outer):
        at = 8 * o * count * inner
        if inner == 1:
            of_neighbours(loops, x + at, z + at, room, count, logarithm)
        else:
            for start in range(0, inner, TILE):
                of_runs_apart(
                    loops, x + at + 8 * start, z + at + 8 * start, room, count, inner, min(TILE, inner - start), logarithm
                )
    return 0


@inline
def neighbours_back(loops, g, g_step, z, out, room, count, logarithm):
    """The cotangent of one run of neighbouring elements; `room` has a number in front."""
    s, kept_at = f64(room, 1), room + 8
    kept, result = f64(kept_at, count), f64(out, count)
    gs, zs = f64(g, count if g_step else 1), f64(z, count)
    s[0] = 0.0
    if logarithm:
        if g_step == 0:
            set_all(kept, count, gs[0])
        gather_loop(loops, SUMS, count, g if g_step else kept_at, room, 0)
        for start in range(0, count, NEAR):
            part = min(NEAR, count - start)
            apply_loop(loops, EXPONENTIALS, part, z + 8 * start, kept_at)
            less_products(f64(out + 8 * start, part), f64(g + g_step * 8 * start, part if g_step else 1), g_step, kept, s, 0, part)
    else:
        products(kept, gs, g_step, zs, count)
        gather_loop(loops, SUMS, count, kept_at, room, 0)
        less_products(result, kept, 1, zs, s, 0, count)


@inline
def runs_apart_back(loops, g, g_step, z, out, room, count, inner, part, logarithm):
    """The cotangents of neighbouring runs whose elements are `inner` apart."""
    step, total = 8 * inner, room + 8 * NEAR
    kept, s, together = f64(room, part), f64(total, part), max(1, NEAR // part) if part == inner else 1
    set_all(s, part, 0.0)
    for k in range(count):
        gs, zs = f64(g + k * step * g_step, part if g_step else 1), f64(z + k * step, part)
        if logarithm:
            for j in range(part):
                s[j] += gs[j * g_step]
        else:
            products(kept, gs, g_step, zs, part)
            add_rows(s, 1, part, kept)
    for k in range(count):
        gs, zs = f64(g + k * step * g_step, part if g_step else 1), f64(z + k * step, part)
        result = f64(out + k * step, part)
        if logarithm:
            if k % together == 0:
                apply_loop(loops, EXPONENTIALS, min(together, count - k) * part, z + k * step, room)
            less_products(result, gs, g_step, f64(room + 8 * (k % together) * part, part), s, 1, part)
        else:
            products(kept, gs, g_step, zs, part)
            less_products(result, kept, 1, zs, s, 1, part)


@entry("int64(int64,int64,int64,int64,int64,int64,int64,int64,int64)", wide=True)
def cotangents_of_shares(pout, pg, pz, proom, outer, count, inner, g_step, options):
    """What a cotangent of the result becomes, from the result; a `g_step` of 0 says that it is one number everywhere."""
    loops, logarithm = words_at(options & -2), options & 1
    g, z, out, room = array_data(pg), array_data(pz), array_data(pout), array_data(proom)
    for o in range(outer):
        at = 8 * o * count * inner
        if inner == 1:
            neighbours_back(loops, g + at * g_step, g_step, z + at, out + at, room, count, logarithm)
        else:
            for start in range(0, inner, TILE):
                place, part = at + 8 * start, min(TILE, inner - start)
                runs_apart_back(loops, g + place * g_step, g_step, z + place, out + place, room, count, inner, part, logarithm)
    return 0
