"""Elimination with exchanges of rows: both triangles of each matrix of a contiguous array, in its own place."""

from tapegrad.compilation.jit import entry, inline
from tapegrad.engine.memory import array_data, array_size, array_type_number, f32, f64, i64, item_bytes


@inline
def largest_below(column, n, k):
    """The row of the largest magnitude from row k on, the first of several; nan counts as the largest."""
    row, best = k, abs(column[k * n])
    for i in range(k + 1, n):
        size = abs(column[i * n])
        if best == best and (size > best or size != size):
            row, best = i, size
    return row


@inline
def exchange_rows(some, others, n):
    """Exchange the elements of two rows."""
    for j in range(n):
        kept = some[j]
        some[j] = others[j]
        others[j] = kept


@inline
def subtract_multiple(out, values, factor, count):
    """Subtract a multiple of a row."""
    for j in range(count):
        out[j] -= factor * values[j]


@entry("int64(int64,int64,int64)")
def eliminate_columns(pa, ppivots, n):
    """The upper triangle and below it the factors; pivots are counted from one. A column of zeros is left as it is."""
    wide, base, total = item_bytes(array_type_number(pa)), array_data(pa), array_size(pa)
    pivots = i64(array_data(ppivots), array_size(ppivots))
    row = n * wide
    for matrix in range(total // max(n * n, 1)):
        for k in range(n):
            at = base + k * row
            if wide == 8:
                chosen = largest_below(f64(base + k * 8, n * n - k), n, k)
                if chosen != k:
                    exchange_rows(f64(at, n), f64(base + chosen * row, n), n)
                pivot, rest = f64(at, n)[k], f64(at + (k + 1) * 8, n - k - 1)
                for i in range(k + 1, n):
                    below = f64(base + i * row, n)
                    if pivot != 0:
                        below[k] = below[k] / pivot
                    subtract_multiple(f64(base + i * row + (k + 1) * 8, n - k - 1), rest, below[k], n - k - 1)
            else:
                chosen = largest_below(f32(base + k * 4, n * n - k), n, k)
                if chosen != k:
                    exchange_rows(f32(at, n), f32(base + chosen * row, n), n)
                pivot32, rest32 = f32(at, n)[k], f32(at + (k + 1) * 4, n - k - 1)
                for i in range(k + 1, n):
                    below32 = f32(base + i * row, n)
                    if pivot32 != 0:
                        below32[k] = below32[k] / pivot32
                    subtract_multiple(f32(base + i * row + (k + 1) * 4, n - k - 1), rest32, below32[k], n - k - 1)
            pivots[matrix * n + k] = chosen + 1
        base += n * row
    return 0


@entry("int64(int64,int64,int64,int64)")
def follow_exchanges(porder, pback, ppivots, n):
    """Which row of each matrix comes to each place, and where each row of the whole batch went, counted through.

    The answer is -1, or the number of the first pivot that is no row; then the orders are of no use.
    """
    count = array_size(ppivots)
    order, back, pivots = i64(array_data(porder), count), i64(array_data(pback), count), i64(array_data(ppivots), count)
    for start in range(0, count, max(n, 1)):
        for k in range(n):
            order[start + k] = k
        for k in range(n):
            other = pivots[start + k] - 1
            if other < 0 or other >= n:
                return start + k
            kept = order[start + k]
            order[start + k] = order[start + other]
            order[start + other] = kept
        for k in range(n):
            back[start + order[start + k]] = start + k
    return -1
