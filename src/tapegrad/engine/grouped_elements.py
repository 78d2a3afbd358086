"""Elements that are reduced into the places of a contiguous array that a list names, in the order of the list."""

from tapegrad.compilation.jit import entry, inline
from tapegrad.engine.memory import array_data, array_size, array_type_number, f32, f64, i64, item_bytes

SUMMED, MULTIPLIED, LARGEST, SMALLEST = range(4)


@inline
def reduce_into(out, values, places, inner, how):
    """`out` op= `values`, blocks at places; nan stays where it is larger or smaller than everything."""
    for k in range(len(places)):
        to, at = places[k] * inner, k * inner
        for j in range(inner):
            old, new = out[to + j], values[at + j]
            if how == SUMMED:
                out[to + j] = old + new
            elif how == MULTIPLIED:
                out[to + j] = old * new
            elif old == old and (new != new or (new > old if how == LARGEST else new < old)):
                out[to + j] = new


@entry("int64(int64,int64,int64,int64,int64)")
def reduce_elements(pz, px, plist, inner, how):
    """Of float64 or float32 into an array of the same type."""
    places, n, count = i64(array_data(plist), array_size(plist)), array_size(pz), array_size(px)
    if item_bytes(array_type_number(px)) == 8:
        reduce_into(f64(array_data(pz), n), f64(array_data(px), count), places, inner, how)
    else:
        reduce_into(f32(array_data(pz), n), f32(array_data(px), count), places, inner, how)
    return 0
