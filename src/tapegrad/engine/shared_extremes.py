"""Cotangents of largest and smallest elements, shared evenly among those that tie."""

from tapegrad.compilation.jit import entry
from tapegrad.engine.memory import array_data
from tapegrad.engine.structs import doubles_at


@entry("int64(int64,int64,int64,int64,int64,int64,int64,int64,int64)")
def share_evenly(pz, px, pvalues, pg, before, outer, count, inner, magnitudes):
    """Arrays are contiguous float64: x and z of (before, outer, count, inner) elements, extremes and cotangents of (outer, inner).

    With `magnitudes`, they are extremes of magnitudes. nan ties with nan.
    """
    z, x = doubles_at(array_data(pz)), doubles_at(array_data(px))
    values, g = doubles_at(array_data(pvalues)), doubles_at(array_data(pg))
    for o in range(outer):
        for i in range(inner):
            extreme, cotangent, equal = values[o * inner + i], g[o * inner + i], 0
            for b in range(before):
                first = (b * outer + o) * count * inner + i
                for k in range(count):
                    own = abs(x[first + k * inner]) if magnitudes != 0 else x[first + k * inner]
                    if own == extreme or (own != own and extreme != extreme):
                        equal += 1
            for b in range(before):
                first = (b * outer + o) * count * inner + i
                for k in range(count):
                    element, share = x[first + k * inner], 0.0
                    own = abs(element) if magnitudes != 0 else element
                    if own == extreme or (own != own and extreme != extreme):
                        share = 1.0 / equal
                        if magnitudes != 0:
                            share = (1.0 if element > 0.0 else -1.0 if element < 0.0 else element + 0.0) / equal
                    z[first + k * inner] = 0.0 if share == 0.0 or cotangent == 0.0 else cotangent * share
    return 0
