"""Losses of differences, and the slopes of such losses: one pass over two contiguous float64 arrays each."""

from tapegrad.compilation.jit import entry
from tapegrad.engine.memory import array_data, array_size, f64

SQUARE, SMOOTH, HUBER = range(3)


@entry("int64(int64,int64,int64,int64,int64)", nogil=True, wide=True)
def residual_losses(pz, px, py, pparameter, kind):
    """The square of ``x - y``, or a parabola near 0 that goes on as a straight line, as of `smooth_l1_loss` or `huber_loss`."""
    n = array_size(pz)
    out, x, y, bound = f64(array_data(pz), n), f64(array_data(px), n), f64(array_data(py), n), f64(array_data(pparameter), 1)[0]
    if kind == SQUARE:
        for j in range(n):
            r = x[j] - y[j]
            out[j] = r * r
    elif kind == SMOOTH:
        half = 0.5 * bound
        for j in range(n):
            size = abs(x[j] - y[j])
            near, far = 0.5 * size * size / bound, size - half
            out[j] = near if size < bound else far
    else:
        half = 0.5 * bound
        for j in range(n):
            size = abs(x[j] - y[j])
            near, far = 0.5 * size * size, bound * (size - half)
            out[j] = near if size <= bound else far
    return 0


@entry("int64(int64,int64,int64,int64,int64,int64,int64)", nogil=True, wide=True)
def limited_differences(pa, pb, px, py, pg, pnumbers, g_step):
    """``(x - y) / divisor`` between two bounds, times the cotangent, and that with the other sign; either result may be 0.

    Numbers are the divisor, the bounds and a factor of the cotangent, which may be one number.
    """
    n, numbers = array_size(px), f64(array_data(pnumbers), 4)
    divisor, low, high, factor = numbers[0], numbers[1], numbers[2], numbers[3]
    x, y, g = f64(array_data(px), n), f64(array_data(py), n), f64(array_data(pg), n if g_step else 1)
    out = f64(array_data(pa if pa != 0 else pb), n)
    scale = g[0] * factor
    for j in range(n):
        r = (x[j] - y[j]) / divisor
        r = r if (r > low) | (r != r) else low
        r = r if (r < high) | (r != r) else high
        scale = g[j] * factor if g_step else scale
        out[j] = r * scale
    if pb != 0:
        other = f64(array_data(pb), n)
        for j in range(n):
            other[j] = -out[j]
    return 0
