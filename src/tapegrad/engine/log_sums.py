"""Logarithms of sums of two exponentials, of whole arrays, with the bits of `numpy.logaddexp`.

NumPy's loop branches on which operand is larger, which random signs mispredict at every other element, and waits for each
logarithm. One exponential of the distance does for both orders, and loops over one function each take two thirds of the time.
"""

from math import exp, log1p

from tapegrad.compilation.jit import entry, inline
from tapegrad.engine.layout import *
from tapegrad.engine.memory import array_data, array_size, f64

BLOCK_OF_SUMS = 512  # elements that stay near while three loops go over them


@inline
def add_exponentials(out, x, y, count):
    """One block."""
    for j in range(count):
        out[j] = exp(-abs(x[j] - y[j]))
    for j in range(count):
        out[j] = log1p(out[j])
    for j in range(count):
        a, b = x[j], y[j]
        larger = max(b, a)
        # Also of equal infinities, whose distance is nan.
        out[j] = a + 0.6931471805599453 if a == b else larger + out[j]


@entry("int64(int64,int64,int64)")
def log_add_exponentials(pz, px, py):
    """``log(exp(x) + exp(y))`` of contiguous float64 arrays, of which one may be a block of one number."""
    count = array_size(pz)
    x_step, y_step = 8 if array_size(px) == count else 0, 8 if array_size(py) == count else 0
    for start in range(0, count, BLOCK_OF_SUMS):
        part = min(count - start, BLOCK_OF_SUMS)
        x, y = f64(array_data(px) + start * x_step, part), f64(array_data(py) + start * y_step, part)
        add_exponentials(f64(array_data(pz) + 8 * start, part), x, y, part)
    return 0
