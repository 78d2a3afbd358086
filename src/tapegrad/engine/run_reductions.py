"""Sums and extremes of runs of neighbouring elements: NumPy's inner loops, without what NumPy does around each call of them."""

from tapegrad.compilation.jit import entry, inline
from tapegrad.compilation.memory_types import words_at
from tapegrad.engine.memory import array_data, call_loop, f64


@inline
def squares_of(run, room, count):
    """Their squares, in the room, and where that is."""
    values, squares = f64(run, count), f64(room, count)
    for j in range(count):
        squares[j] = values[j] * values[j]
    return room


@entry("int64(int64,int64,int64,int64,int64,int64,int64,int64)")
def reduce_runs(pz, px, ploop, outer, kept, count, copies, room):
    """``z[k] = function.reduce(x[:, k, :])`` of a contiguous float64 array of (outer, kept, count) elements.

    The loop is an array of two words, the address of NumPy's function and that of its data. With `copies` a result begins with the
    first of its elements, else with what is in `z`. Where there is room for a run, its squares are reduced.
    """
    loop, x, z = words_at(array_data(ploop)), array_data(px), array_data(pz)
    results = f64(z, kept)
    for o in range(outer):
        skipped = 1 if copies and o == 0 else 0
        for k in range(kept):
            run = x + 8 * count * (o * kept + k)
            if room:
                run = squares_of(run, room, count)
            if skipped:
                results[k] = f64(run, 1)[0]
            if count > skipped:
                call_loop(loop[0], loop[1], count - skipped, z + 8 * k, 0, run + 8 * skipped, 8, z + 8 * k, 0, 1)
    return 0
