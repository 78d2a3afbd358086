"""Copies whose elements come in steps, computed and recorded in one call."""

from tapegrad.compilation.jit import entry, inline
from tapegrad.compilation.memory_types import from_element
from tapegrad.engine.layout import *
from tapegrad.engine.memory import array_data, array_size, array_type_number, f32, f64, item_bytes
from tapegrad.engine.record_structural import write_map


@inline
def offset_of_run(rank, lengths, steps, run):
    """Where in an array a run along the last dimension starts, in elements."""
    offset = 0
    for d in range(rank - 2, -1, -1):
        above = run // lengths[d]
        offset += (run - above * lengths[d]) * steps[d]
        run = above
    return offset


@inline
def copy_apart(out, own, values, at, count, out_step, step):
    """So many elements, in steps both ways."""
    for j in range(count):
        out[own + j * out_step] = values[at + j * step]


@inline
def copy_by_map(pz, px, scatters, geometry, wide):
    """``z[i] = x[offset + strides . i]``, or the other way round; a map that scatters names no place twice."""
    rank, size = geometry[0], array_size(px) if scatters != 0 else array_size(pz)
    lengths = from_element(geometry, 2)
    steps, last, x, z = from_element(geometry, 2 + rank), rank - 1, array_data(px), array_data(pz)
    length, step = lengths[last], steps[last]
    for run in range(size // max(length, 1)):
        part, whole = run * length, geometry[1] + offset_of_run(rank, lengths, steps, run)
        own, at, own_step, at_step = part, whole, 1, step
        if scatters != 0:
            own, at, own_step, at_step = whole, part, step, 1
        if wide == 8:
            copy_apart(f64(z, array_size(pz)), own, f64(x, array_size(px)), at, length, own_step, at_step)
        else:
            copy_apart(f32(z, array_size(pz)), own, f32(x, array_size(px)), at, length, own_step, at_step)


@entry("int64(Tape,int64,int64,int64,int64,Words,int64)")
def copy_row(tape, scatters, name, handle, px, geometry, pz):
    """Copy elements of a contiguous array to another one as a map says (see `map_row`), of 4 or 8 bytes each, and record it.

    The handle, 0 if nothing is recorded, or `UNSUPPORTED` if elements have another size: then nothing was copied.
    """
    wide = item_bytes(array_type_number(px))
    if wide != 8 and wide != 4:
        return UNSUPPORTED
    copy_by_map(pz, px, scatters, geometry, wide)
    return write_map(tape, scatters, name, handle, px, geometry, 1.0, pz) if handle != 0 else 0
