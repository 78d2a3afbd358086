"""The reverse sweep over linear rows."""

from __future__ import annotations

from tapegrad.jit import entry

__all__ = ["sweep"]


@entry("void(int32[::1], float64[::1], float64[::1], int64, int64)", nogil=True)
def sweep(rows, partials, bar, last, pairs):  # type: ignore[no-untyped-def]
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
