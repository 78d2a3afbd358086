"""Elements of a contiguous array that a list of places names: taken, put, added, in the order of the list.

A place counts blocks of `inner` elements from the start of the array; a negative one stands for no element, of which zero is taken
and where nothing is put. Who makes the list has checked that no place is beyond the end.
"""

from tapegrad.compilation.jit import entry, inline
from tapegrad.engine.memory import (
    array_data,
    array_dimensions,
    array_rank,
    array_size,
    array_type_number,
    f32,
    f64,
    i64,
    item_bytes,
)
from tapegrad.engine.runs import clear_run, copy_run


@inline
def take_single(out, values, places):
    """Copy single elements."""
    for k in range(len(places)):
        place = places[k]
        out[k] = values[place] if place >= 0 else 0


@inline
def put_single(out, values, places, step):
    """Write single elements; without `step`, the same first value everywhere."""
    for k in range(len(places)):
        place = places[k]
        if place >= 0:
            out[place] = values[k * step]


@entry("int64(int64,int64,int64,int64)")
def take_elements(pz, px, plist, inner):
    """``z[i] = x[place of i]`` for elements of any dtype."""
    places, count, wide = i64(array_data(plist), array_size(plist)), array_size(px), item_bytes(array_type_number(px))
    x, z, n = array_data(px), array_data(pz), array_size(plist)
    if inner == 1 and wide == 8:
        take_single(f64(z, n), f64(x, count), places)
    elif inner == 1 and wide == 4:
        take_single(f32(z, n), f32(x, count), places)
    else:
        block = wide * inner
        for k in range(n):
            if places[k] >= 0:
                copy_run(z + k * block, x + places[k] * block, inner, 1, wide)
            else:
                clear_run(z + k * block, block)
    return 0


@entry("int64(int64,int64,int64,int64,int64)")
def put_elements(pz, pvalues, plist, inner, step):
    """``z[place of i] = values[i]``, or with ``step=0`` the one value; of a place that comes twice the last stays."""
    places, count, wide = i64(array_data(plist), array_size(plist)), array_size(pz), item_bytes(array_type_number(pz))
    z, values, n = array_data(pz), array_data(pvalues), array_size(plist)
    if inner == 1 and wide == 8:
        put_single(f64(z, count), f64(values, n), places, step)
    elif inner == 1 and wide == 4:
        put_single(f32(z, count), f32(values, n), places, step)
    else:
        block = wide * inner
        for k in range(n):
            to = z + places[k] * block
            if places[k] >= 0 and step != 0:
                copy_run(to, values + k * block, inner, 1, wide)
            elif places[k] >= 0:
                for j in range(inner):
                    copy_run(to + j * wide, values, 1, 1, wide)
    return 0


@inline
def add_single(out, values, places):
    """Add single elements to float64."""
    for k in range(len(places)):
        if places[k] >= 0:
            out[places[k]] += values[k]


@inline
def add_to_float64(out, values, inner):
    """Add elements of either dtype to float64."""
    for j in range(inner):
        out[j] += values[j]


@entry("int64(int64,int64,int64,int64)")
def add_elements(pz, pvalues, plist, inner):
    """``z[place of i] += values[i]`` for float64 z, and values of float64 or float32."""
    places, values, n = i64(array_data(plist), array_size(plist)), array_data(pvalues), array_size(plist)
    z, wide = array_data(pz), item_bytes(array_type_number(pvalues))
    if inner == 1:
        out = f64(z, array_size(pz))
        if wide == 8:
            add_single(out, f64(values, n), places)
        else:
            add_single(out, f32(values, n), places)
        return 0
    for k in range(n):
        if places[k] >= 0:
            out, at = f64(z + 8 * places[k] * inner, inner), values + k * inner * wide
            if wide == 8:
                add_to_float64(out, f64(at, inner), inner)
            else:
                add_to_float64(out, f32(at, inner), inner)
    return 0


@entry("int64(int64,int64,int64,int64)")
def add_sums_of_few(pz, pvalues, plist, inner):
    """The same of float64 values for few places: what goes to the same one is summed first, as if it was added to zeros."""
    places, n = i64(array_data(plist), array_size(plist)), array_size(plist)
    for i in range(n):
        is_first = places[i] >= 0
        for k in range(i):
            is_first = is_first and places[k] != places[i]
        if not is_first:
            continue
        out, last = f64(array_data(pz) + 8 * places[i] * inner, inner), i
        for k in range(i + 1, n):
            last = k if places[k] == places[i] else last
        for j in range(inner):
            total = 0.0
            for k in range(i, last + 1):
                if places[k] == places[i]:
                    total += f64(array_data(pvalues) + 8 * k * inner, inner)[j]
            out[j] += total
    return 0


@inline
def take_where_last(out, values, places, inner, writer):
    """`take_blocks` for the last of the places that are the same; zero for those before it."""
    for i in range(len(places)):
        if places[i] >= 0:
            writer[places[i]] = i
    to = 0
    for i in range(len(places)):
        place = places[i]
        if place >= 0 and writer[place] == i:
            for j in range(inner):
                out[to + j] = values[place * inner + j]
        else:
            for j in range(inner):
                out[to + j] = 0
        to += inner


@entry("int64(int64,int64,int64,int64,int64)")
def take_last_elements(pz, px, plist, inner, pwriter):
    """The transpose of `put_elements`: what was overwritten gets zero. `writer` is room for a number a block of x."""
    places, count, n = i64(array_data(plist), array_size(plist)), array_size(px), array_size(pz)
    writer, x, z = i64(array_data(pwriter), array_size(pwriter)), array_data(px), array_data(pz)
    if item_bytes(array_type_number(px)) == 8:
        take_where_last(f64(z, n), f64(x, count), places, inner, writer)
    else:
        take_where_last(f32(z, n), f32(x, count), places, inner, writer)
    return 0


@inline
def first_outside(index, n, extent, negative):
    """The number of the first index that is out of bounds; -1 if none is."""
    for k in range(n):
        place = index[k]
        if negative != 0 and place < 0:
            place += extent
        if place < 0 or place >= extent:
            return k
    return -1


@entry("int64(int64,int64,int64,int64,int64)")
def places_along(plist, pindex, px, position, negative):
    """Places of elements of x whose index along one dimension is given, and in the others is that of the index array.

    The answer is -1, or the number of the first index that is out of bounds. With `negative`, indices may count from the end.
    """
    list_of, index, n = i64(array_data(plist), array_size(plist)), i64(array_data(pindex), array_size(pindex)), array_size(pindex)
    rank, own, whole = array_rank(px), array_dimensions(pindex), array_dimensions(px)
    extent, stride, wrong = whole[position], 1, False
    for d in range(position + 1, rank):
        stride *= whole[d]
    for k in range(n):
        place = index[k]
        place += extent if negative != 0 and place < 0 else 0
        wrong |= (place < 0) | (place >= extent)
        list_of[k] = place * stride
    if wrong:
        return first_outside(index, n, extent, negative)
    stride, apart = 1, 1  # elements of the index array from one index of the dimension to the next
    for d in range(rank - 1, -1, -1):
        length = own[d]
        if d != position and length > 1:
            k, at = 0, 0
            while k < n:
                end = k + apart
                for j in range(k, end):
                    list_of[j] += at
                k = end
                at += stride
                if at == length * stride:
                    at = 0
        apart *= length
        stride *= whole[d]
    return -1


@entry("int64(int64,int64,int64,int64,int64)")
def places_of_blocks(plist, pindex, outer, extent, negative):
    """Places of blocks ``x[o, index[i]]`` of an array of shape (outer, extent, ...), for all o; answers as `places_along` does."""
    n = array_size(pindex)
    places, index = i64(array_data(plist), outer * n), i64(array_data(pindex), n)
    for k in range(n):
        place = index[k]
        if negative != 0 and place < 0:
            place += extent
        if place < 0 or place >= extent:
            return k
        places[k] = place
    for o in range(1, outer):
        for k in range(n):
            places[o * n + k] = places[k] + o * extent
    return -1


@entry("int64(int64,int64,int64,int64)")
def add_index(plist, pindex, extent, first):
    """One more index array of several: ``list = list * extent + index``, the first one without what was there.

    The answer is as that of `places_along`.
    """
    n = array_size(pindex)
    places, index = i64(array_data(plist), n), i64(array_data(pindex), n)
    for k in range(n):
        place = index[k]
        if place < 0:
            place += extent
        if place < 0 or place >= extent:
            return k
        places[k] = place if first != 0 else places[k] * extent + place
    return -1
