"""Sums of the slices of an array up to each of them: a slice at a time, where NumPy goes along one column after the other."""

from tapegrad.compilation.jit import entry, inline
from tapegrad.engine.memory import array_data, array_size, f64


@inline
def add_slices(out, before, values, count):
    """The sum of one array and another."""
    for j in range(count):
        out[j] = before[j] + values[j]


@entry("int64(int64,int64,int64,int64,int64)", nogil=True)
def running_sums(pz, px, length, inner, backwards):
    """Of contiguous float64 arrays of shape (outer, length, inner), none of them zero, from the front or from the back."""
    step = -inner * 8 if backwards else inner * 8
    for start in range(array_size(px) // (length * inner)):
        first = 8 * inner * (start * length + (length - 1 if backwards else 0))
        z, x = array_data(pz) + first, array_data(px) + first
        out, values = f64(z, inner), f64(x, inner)
        for j in range(inner):
            out[j] = values[j]
        for _ in range(1, length):
            z, x = z + step, x + step
            add_slices(f64(z, inner), f64(z - step, inner), f64(x, inner), inner)
    return 0
