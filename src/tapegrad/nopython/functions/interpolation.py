"""`np.interp`: Numba returns the value of a node that is met exactly, which does not depend on the place any more."""

from __future__ import annotations

from typing import Any

import numpy as np
from numba.core import types

from tapegrad.nopython.functions.allocation import asarray
from tapegrad.nopython.numba_interface.linking import overload, part
from tapegrad.nopython.tape.row_writing import primal, primals, row, with_row
from tapegrad.nopython.twins.recording_twin import twin
from tapegrad.nopython.types.variable import REAL, Variable, has_variables, variable

__all__ = ["interp"]


@part(error_model="numpy")
def on_line(x, xp, fp, k):
    """The line through the nodes `k` and `k + 1`."""
    return (fp[k + 1] - fp[k]) / (xp[k + 1] - xp[k]) * (x - xp[k]) + fp[k]


def interp(tape, x, xp, fp):
    raise NotImplementedError


@overload(interp)
def _interp(tape, x, xp, fp):
    if not has_variables(types.Tuple((x, xp, fp))):
        return lambda tape, x, xp, fp: np.interp(x, xp, fp)
    if not all(isinstance(kind, types.Array) for kind in (xp, fp)) or not isinstance(x, (types.Array, Variable, *REAL)):
        if isinstance(x, (Variable, *REAL)):
            return lambda tape, x, xp, fp: interp(tape, x, asarray(xp), asarray(fp))
        return lambda tape, x, xp, fp: interp(tape, asarray(x), asarray(xp), asarray(fp))
    if isinstance(x, types.Array):

        def places(tape, x, xp, fp):
            nodes, heights = primals(xp), primals(fp)
            values = np.interp(primals(x), nodes, heights)
            out = np.empty(values.shape, variable)
            for place in np.ndindex(values.shape):
                out[place] = with_row(values[place], piece_row(tape, x[place], xp, fp, nodes, values[place]))
            return out

        return places

    def place(tape, x, xp, fp):
        nodes, heights = primals(xp), primals(fp)
        value = np.interp(primal(x), nodes, heights)
        return with_row(value, piece_row(tape, x, xp, fp, nodes, value))

    return place


def piece_row(tape: Any, x: Any, xp: Any, fp: Any, nodes: Any, value: Any) -> Any:
    """The row of a place. On a node the slope is that of the piece after it, on the last node that of the piece before."""
    raise NotImplementedError


@overload(piece_row)
def _piece_row(tape, x, xp, fp, nodes, value):
    line = twin(on_line)

    def impl(tape, x, xp, fp, nodes, value):
        at, last = primal(x), nodes.size - 1
        if at < nodes[0] or last == 0:
            return row(fp[0])
        if at > nodes[last]:
            return row(fp[last])
        before = min(max(np.searchsorted(nodes, at, side="right") - 1, 0), last)
        found = line(tape, x, xp, fp, min(before, last - 1))
        if np.isfinite(primal(found)) or not np.isfinite(at):
            return row(found)
        if nodes[before] == at:  # next to infinite heights, or of two nodes at one place
            return row(fp[before])
        return np.int32(0) if value == value else row(found)

    return impl
