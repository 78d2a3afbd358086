"""The derivative of a product of one half of an array with a gate, the sigmoid of the other half: both halves in one pass."""

from tapegrad.compilation.jit import entry
from tapegrad.engine.memory import array_data, f64


@entry("int64(int64,int64,int64,int64,int64,int64,int64)", nogil=True)
def gate_cotangents(pz, pg, pgate, px, count, half, g_step):
    """Cotangents of pairs of halves of contiguous float64 arrays; with step 0 the cotangent of the product is one number."""
    for k in range(count):
        former, latter = f64(array_data(pz) + 16 * k * half, half), f64(array_data(pz) + 8 * (2 * k + 1) * half, half)
        x, gate = f64(array_data(px) + 16 * k * half, half), f64(array_data(pgate) + 8 * k * half, half)
        g = f64(array_data(pg) + 8 * g_step * k * half, half if g_step else 1)
        if g_step:
            for j in range(half):
                passed = g[j] * gate[j]
                former[j] = passed
                latter[j] = passed * (1.0 - gate[j]) * x[j]
        else:
            number = g[0]
            for j in range(half):
                passed = number * gate[j]
                former[j] = passed
                latter[j] = passed * (1.0 - gate[j]) * x[j]
    return 0
