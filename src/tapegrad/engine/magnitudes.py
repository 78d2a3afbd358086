"""Whether numbers are of a size that sums, quotients and products of theirs stand in the range of float64."""

from tapegrad.compilation.jit import entry
from tapegrad.engine.memory import array_data, array_size, f64


@entry("int64(int64,float64,float64)")
def have_magnitudes(px, least, most):
    """1 if the magnitude of each element of a contiguous float64 array is in a range, else 0, as for nan."""
    n = array_size(px)
    x, outside = f64(array_data(px), n), 0
    for j in range(n):
        size = abs(x[j])
        outside |= not (size >= least and size <= most)
    return 0 if outside else 1
