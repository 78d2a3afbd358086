"""What the logistic function is made of besides an exponential: one pass over an array each, with the bits of NumPy's functions."""

from tapegrad.compilation.jit import entry
from tapegrad.engine.memory import array_data, array_size, f64


@entry("int64(int64,int64)", nogil=True)
def minus_magnitudes(pz, px):
    """``-abs(x)`` of a contiguous float64 array."""
    count = array_size(px)
    out, x = f64(array_data(pz), count), f64(array_data(px), count)
    for j in range(count):
        out[j] = -abs(x[j])
    return 0


@entry("int64(int64,int64,int64)", nogil=True)
def logistic_values(pz, px, pe):
    """The logistic function of a contiguous float64 array, from the exponentials of minus its magnitudes."""
    count = array_size(px)
    out, x, exponentials = f64(array_data(pz), count), f64(array_data(px), count), f64(array_data(pe), count)
    for j in range(count):
        e = exponentials[j]
        out[j] = (1.0 if x[j] >= 0.0 else e) / (1.0 + e)
    return 0
