"""Numbers rounded to decimals, as NumPy rounds them: scaled, rounded to even, and scaled back."""

import numpy as np

from tapegrad.compilation.jit import entry
from tapegrad.engine.memory import array_data, array_size, f64


@entry("int64(int64,int64,int64,int64)", nogil=True)
def round_to_decimals(pz, px, pfactor, divides):
    """Of a contiguous float64 array, which is divided by the factor first or multiplied."""
    n = array_size(pz)
    out, x, factor = f64(array_data(pz), n), f64(array_data(px), n), f64(array_data(pfactor), 1)[0]
    if divides:
        for j in range(n):
            out[j] = np.rint(x[j] / factor) * factor
    else:
        for j in range(n):
            out[j] = np.rint(x[j] * factor) / factor
    return 0
