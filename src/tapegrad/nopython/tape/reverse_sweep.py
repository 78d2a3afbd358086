"""The reverse sweep over linear rows."""

from __future__ import annotations

from tapegrad.nopython.tape.sweep_entries import f64, sweep_entry, tape_of

__all__ = ["sweep"]


@sweep_entry(2)
def sweep(recording, bars):  # type: ignore[no-untyped-def]
    rows, partials, last, pairs = tape_of(recording)
    bar = f64(bars, last + 1)
    row = last
    g = bar[row]
    k = pairs - 1
    while k >= 0:
        reference = rows[k]
        target = reference & 0x7FFFFFFF
        p = partials[k]
        # A row number that was read beyond the end of an array is garbage, as its value is; it may not lead out of the adjoints.
        if g != 0.0 and p != 0.0 and target < row:
            bar[target] += g * p
        if reference < 0:
            row -= 1
            g = bar[row]
        k -= 1
    return 0
