"""Elements that are reduced into the places of a contiguous array that a list names, in the order of the list."""

from tapegrad.compilation.jit import entry, inline
from tapegrad.engine.memory import array_data, array_size, array_type_number, f32, f64, i64, item_bytes

SUMMED, MULTIPLIED, LARGEST, SMALLEST = range(4)


@inline
def reduce_into(out, values, places, inner, how):
    """`out` op= `values`, blocks at places; nan stays where it is larger or smaller than everything."""
    if inner == 1 and how == SUMMED:
        for k in range(len(places)):
            out[places[k]] += values[k]
        return
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


@inline
def shares_among(x, source, result, places, inner, own, counts, mine, theirs):
    """What part each element of `x` and of the source has in the result that it was reduced into: those equal to it share."""
    for j in range(len(x)):
        chosen = x[j] == result[j] or (x[j] != x[j] and result[j] != result[j])
        counts[j] = 1.0 if chosen and (len(own) == 0 or own[j] != 0.0) else 0.0
        mine[j] = counts[j]
    for k in range(len(places)):
        to, at = places[k] * inner, k * inner
        for j in range(inner):
            new, z = source[at + j], result[to + j]
            chosen = new == z or (new != new and z != z)
            theirs[at + j] = 1.0 if chosen else 0.0
            counts[to + j] += 1.0 if chosen else 0.0
    for j in range(len(x)):
        mine[j] = mine[j] / counts[j]
    for k in range(len(places)):
        to, at = places[k] * inner, k * inner
        for j in range(inner):
            theirs[at + j] = theirs[at + j] / counts[to + j]


@entry("int64(int64,int64,int64,int64,int64,int64,int64,int64,int64)")
def share_extremes(px, psource, pz, plist, inner, pown, pcounts, pmine, ptheirs):
    """As `shares_among`, of arrays of one type, float64 or float32, with room for counts of float64 as large as x.

    `own` says of each element of x whether it counts; it is empty if all do.
    """
    places, n, count = i64(array_data(plist), array_size(plist)), array_size(px), array_size(psource)
    x, source, z, own = array_data(px), array_data(psource), array_data(pz), array_data(pown)
    counts, mine, theirs, owned = f64(array_data(pcounts), n), array_data(pmine), array_data(ptheirs), array_size(pown)
    if item_bytes(array_type_number(px)) == 8:
        shares_among(
            f64(x, n), f64(source, count), f64(z, n), places, inner, f64(own, owned), counts, f64(mine, n), f64(theirs, count)
        )
    else:
        shares_among(
            f32(x, n), f32(source, count), f32(z, n), places, inner, f32(own, owned), counts, f32(mine, n), f32(theirs, count)
        )
    return 0
