"""Softmax and its logarithm along one axis of a contiguous array, and their derivatives, by the loops of NumPy's functions.

The array counts as one of (outer, count, inner) elements. Runs along the axis are gone through while they are near the processor,
with the sums that NumPy's functions of whole arrays have: of neighbours by halves, of elements further apart one after the other.
"""

from tapegrad.compilation.jit import entry, inline
from tapegrad.compilation.memory_types import words_at
from tapegrad.compilation.vector_types import *
from tapegrad.engine.memory import array_data, call_loop, f64, load_f64, store_f64
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
def of_short_runs(loops, x, z, room, runs, count, logarithm):
    """Neighbouring runs, whose exponentials are taken together, and so are the logarithms of their sums."""
    top, total = room + 8 * NEAR, room + 8 * (NEAR + runs)
    most, s, step = f64(top, runs), f64(total, runs), 8 * count
    given, found = (z, room) if logarithm else (room, z)
    for r in range(runs):
        most[r] = MINUS_INFINITY
        gather_loop(loops, MAXIMA, count, x + r * step, top + 8 * r, 0)
        less(f64(given + r * step, count), f64(x + r * step, count), count, f64(top + 8 * r, 1), 0)
    apply_loop(loops, EXPONENTIALS, runs * count, given, found)
    for r in range(runs):
        s[r] = -0.0
        gather_loop(loops, SUMS, count, found + r * step, total + 8 * r, 0)
        s[r] = 0.0 + s[r]
    if logarithm:
        apply_loop(loops, LOGARITHMS, runs, total, top)
    for r in range(runs):
        out = f64(z + r * step, count)
        if logarithm:
            b = most[r]
            for j in range(count):
                out[j] = out[j] - b
        else:
            divided(out, count, f64(total + 8 * r, 1), 0)


@inline
def add_rows(s, rows, part, kept, step):
    """Rows that begin so many elements apart added to sums one after the other, eight sums at once."""
    whole = part - part % VECTOR_LENGTH
    for j in range(0, whole, VECTOR_LENGTH):
        total = vector_at(s + 8 * j)
        for k in range(rows):
            total += vector_at(kept + 8 * (k * step + j))
        write_vector(s + 8 * j, total)
    for j in range(whole, part):
        one = load_f64(s + 8 * j)
        for k in range(rows):
            one += load_f64(kept + 8 * (k * step + j))
        store_f64(s + 8 * j, one)


@inline
def repeat(out, values, part, rows):
    """The same for each of neighbouring rows, for loops that go over all of these; where that is."""
    if rows == 1:
        return values
    own = f64(values, part)
    for k in range(rows):
        row = f64(out + 8 * k * part, part)
        for j in range(part):
            row[j] = own[j]
    return out


@inline
def take_larger(most, rows, part, x):
    """The larger ones of a row and of neighbouring rows; a number that is none stays."""
    whole = part - part % VECTOR_LENGTH
    for j in range(0, whole, VECTOR_LENGTH):
        largest = vector_at(most + 8 * j)
        for k in range(rows):
            largest = larger_or_none(largest, vector_at(x + 8 * (k * part + j)))
        write_vector(most + 8 * j, largest)
    for j in range(whole, part):
        one = load_f64(most + 8 * j)
        for k in range(rows):
            value = load_f64(x + 8 * (k * part + j))
            one = value if (value > one) | (value != value) else one
        store_f64(most + 8 * j, one)


@inline
def find_largest(loops, x, top, count, inner, part, together):
    """The largest elements of runs, by rows that go together. Which zero NumPy takes, if that is the largest, its own loop says."""
    most, known = f64(top, part), together > 1
    set_all(most, part, MINUS_INFINITY)
    if known:
        for k in range(0, count, together):
            take_larger(top, min(together, count - k), part, x + 8 * k * inner)
        for j in range(part):
            known &= most[j] != 0.0
    if not known:
        set_all(most, part, MINUS_INFINITY)
        for k in range(count):
            gather_loop(loops, MAXIMA, part, x + 8 * k * inner, top, 8)


@inline
def of_runs_apart(loops, x, z, room, count, inner, part, logarithm):
    """Neighbouring runs whose elements are `inner` apart; rows of them that are neighbours go through all loops together."""
    step, top, total, many = 8 * inner, room + 8 * NEAR, room + 8 * (NEAR + part), room + 8 * (NEAR + 2 * part)
    together = max(1, min(count, NEAR // part)) if part == inner else 1
    set_all(f64(total, part), part, 0.0)
    find_largest(loops, x, top, count, inner, part, together)
    tops = f64(repeat(many, top, part, together), together * part)
    for k in range(0, count, together):
        rows = min(together, count - k)
        given, found = (z + k * step, room) if logarithm else (room, z + k * step)
        less(f64(given, rows * part), f64(x + k * step, rows * part), rows * part, tops, 1)
        apply_loop(loops, EXPONENTIALS, rows * part, given, found)
        add_rows(total, rows, part, found, part)
    if logarithm:
        apply_loop(loops, LOGARITHMS, part, total, top)
    sums = f64(repeat(many, top if logarithm else total, part, together), together * part)
    for k in range(0, count, together):
        size = min(together, count - k) * part
        out = f64(z + k * step, size)
        if logarithm:
            for j in range(size):
                out[j] = out[j] - sums[j]
        else:
            divided(out, size, sums, 1)


@entry("int64(int64,int64,int64,int64,int64,int64,int64)", wide=True)
def exponential_shares(pz, px, proom, outer, count, inner, options):
    """Softmax of `x`, or its logarithm if bit 0 of `options` is set; the rest of that is the address of NumPy's loops."""
    loops, logarithm = words_at(options & -2), options & 1
    x, z, room = array_data(px), array_data(pz), array_data(proom)
    together = NEAR // max(count, 1) if inner == 1 else 1
    if together > 1:
        for o in range(0, outer, together):
            of_short_runs(loops, x + 8 * o * count, z + 8 * o * count, room, min(together, outer - o), count, logarithm)
        return 0
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
def short_runs_back(loops, g, g_step, z, out, room, runs, count):
    """The cotangents of neighbouring runs of logarithms, whose exponentials are taken together; `room` has a number in front."""
    s, step, kept_at = f64(room, 1), 8 * count, room + 8
    same = kept_at + 8 * NEAR  # where a number that is stretched is written out, to be added up as a run
    if g_step == 0:
        set_all(f64(same, count), count, f64(g, 1)[0])
    apply_loop(loops, EXPONENTIALS, runs * count, z, kept_at)
    for r in range(runs):
        own = g + r * step * g_step
        s[0] = 0.0
        gather_loop(loops, SUMS, count, own if g_step else same, room, 0)
        kept, gs = f64(kept_at + r * step, count), f64(own, count if g_step else 1)
        less_products(f64(out + r * step, count), gs, g_step, kept, s, 0, count)


@inline
def runs_apart_back(loops, g, g_step, z, out, room, count, inner, part, logarithm):
    """The cotangents of neighbouring runs whose elements are `inner` apart."""
    step, total, many = 8 * inner, room + 8 * NEAR, room + 8 * (NEAR + part)
    together = max(1, min(count, NEAR // part)) if part == inner else 1
    kept, s = f64(room, together * part), f64(total, part)
    set_all(s, part, 0.0)
    if logarithm and g_step:
        add_rows(total, count, part, g, inner)
    else:
        for k in range(0, count, together):
            rows = min(together, count - k)
            if logarithm:
                set_all(kept, rows * part, f64(g, 1)[0])
            else:
                size = rows * part
                products(kept, f64(g + k * step * g_step, size if g_step else 1), g_step, f64(z + k * step, size), size)
            add_rows(total, rows, part, room, part)
    sums = f64(repeat(many, total, part, together), together * part)
    for k in range(0, count, together):
        size, at = min(together, count - k) * part, k * step
        gs, zs, result = f64(g + at * g_step, size if g_step else 1), f64(z + at, size), f64(out + at, size)
        if logarithm:
            apply_loop(loops, EXPONENTIALS, size, z + at, room)
            less_products(result, gs, g_step, kept, sums, 1, size)
        else:
            products(kept, gs, g_step, zs, size)
            less_products(result, kept, 1, zs, sums, 1, size)


@entry("int64(int64,int64,int64,int64,int64,int64,int64,int64,int64)", wide=True)
def cotangents_of_shares(pout, pg, pz, proom, outer, count, inner, g_step, options):
    """What a cotangent of the result becomes, from the result; a `g_step` of 0 says that it is one number everywhere."""
    loops, logarithm = words_at(options & -2), options & 1
    g, z, out, room = array_data(pg), array_data(pz), array_data(pout), array_data(proom)
    together = NEAR // max(count, 1) if inner == 1 and logarithm else 1
    if together > 1:
        for o in range(0, outer, together):
            at = 8 * o * count
            short_runs_back(loops, g + at * g_step, g_step, z + at, out + at, room, min(together, outer - o), count)
        return 0
    for o in range(outer):
        at = 8 * o * count * inner
        if inner == 1:
            neighbours_back(loops, g + at * g_step, g_step, z + at, out + at, room, count, logarithm)
        else:
            for start in range(0, inner, TILE):
                place, part = at + 8 * start, min(TILE, inner - start)
                runs_apart_back(loops, g + place * g_step, g_step, z + place, out + place, room, count, inner, part, logarithm)
    return 0
