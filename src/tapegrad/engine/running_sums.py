"""Sums or products of the slices of an array up to each of them: a slice at a time, where NumPy goes along single columns."""

from tapegrad.compilation.jit import entry, inline
from tapegrad.engine.memory import array_data, array_size, f64


@inline
def add_slices(out, before, values, count, products):
    """The sum of one array and another, or their product."""
    if products:
        for j in range(count):
            out[j] = before[j] * values[j]
    else:
        for j in range(count):
            out[j] = before[j] + values[j]


@inline
def multiply_along_four(z, x, length, step):
    """Four lines at once, so that no product waits for the one before it."""
    a, b, c, d = 1.0, 1.0, 1.0, 1.0
    n = 4 * length
    out, values = f64(z, n), f64(x, n)
    k = 0 if step > 0 else length - 1
    for _ in range(length):
        a, b = a * values[k], b * values[k + length]
        c, d = c * values[k + 2 * length], d * values[k + 3 * length]
        out[k], out[k + length], out[k + 2 * length], out[k + 3 * length] = a, b, c, d
        k += step


@inline
def add_along_four(z, x, length, step):
    """Four lines at once, so that no sum waits for the one before it."""
    a, b, c, d = 0.0, 0.0, 0.0, 0.0
    n = 4 * length
    out, values = f64(z, n), f64(x, n)
    k = 0 if step > 0 else length - 1
    for j in range(length):
        # The first element itself: a zero before it would take the sign of a negative zero.
        a = values[k] if j == 0 else a + values[k]
        b = values[k + length] if j == 0 else b + values[k + length]
        c = values[k + 2 * length] if j == 0 else c + values[k + 2 * length]
        d = values[k + 3 * length] if j == 0 else d + values[k + 3 * length]
        out[k], out[k + length], out[k + 2 * length], out[k + 3 * length] = a, b, c, d
        k += step


@entry("int64(int64,int64,int64,int64,int64,int64)", nogil=True)
def running_sums(pz, px, length, inner, backwards, products):
    """Of contiguous float64 arrays of shape (outer, length, inner), none of them zero, from the front or from the back."""
    step = -inner * 8 if backwards else inner * 8
    outer, done = array_size(px) // (length * inner), 0
    if inner == 1:
        while done + 4 <= outer:
            at = 8 * done * length
            if products:
                multiply_along_four(array_data(pz) + at, array_data(px) + at, length, -1 if backwards else 1)
            else:
                add_along_four(array_data(pz) + at, array_data(px) + at, length, -1 if backwards else 1)
            done += 4
    for start in range(done, outer):
        first = 8 * inner * (start * length + (length - 1 if backwards else 0))
        z, x = array_data(pz) + first, array_data(px) + first
        out, values = f64(z, inner), f64(x, inner)
        for j in range(inner):
            out[j] = values[j]
        for _ in range(1, length):
            z, x = z + step, x + step
            add_slices(f64(z, inner), f64(z - step, inner), f64(x, inner), inner, products)
    return 0
