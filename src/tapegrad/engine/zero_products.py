"""Products that are zero if either factor is, and sums, of whole arrays as NumPy makes them."""

from tapegrad.compilation.jit import entry
from tapegrad.compilation.memory_types import words_at
from tapegrad.engine.exponential_shares import SUMS, gather_loop
from tapegrad.engine.memory import array_data, array_size, f64


@entry("int64(int64,int64,int64,int64,int64,int64)")
def products_or_zero(pz, px, py, x_step, psum, ploops):
    """Products of contiguous float64 arrays; if their sum is nan, those with a zero are zero. The first one may be one number."""
    n, total = array_size(pz), array_data(psum)
    z, x, y = f64(array_data(pz), n), f64(array_data(px), n if x_step else 1), f64(array_data(py), n)
    for j in range(n):
        z[j] = x[j if x_step else 0] * y[j]
    gather_loop(words_at(ploops), SUMS, n, array_data(pz), total, 0)
    if f64(total, 1)[0] != f64(total, 1)[0]:
        for j in range(n):
            z[j] = 0.0 if (x[j if x_step else 0] == 0.0) | (y[j] == 0.0) else z[j]
    return 0


@entry("int64(int64,int64,int64)")
def add_up(pz, px, ploops):
    """The sum of contiguous float64 elements by NumPy's loop, added to what it begins with."""
    gather_loop(words_at(ploops), SUMS, array_size(px), array_data(px), array_data(pz), 0)
    return 0
