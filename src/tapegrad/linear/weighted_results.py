"""Some of a linear tape's results, and the weighted sum of all of them: other linear tapes, on the memory of the one.

First derivatives of several functions and the Hessian of their weighted sum, which is what solvers with constraints ask for, are
so those of one recording and one linear tape.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from tapegrad.arrays.addresses import address_of
from tapegrad.engine import linear_layout as lin
from tapegrad.linear.linear_tape import LinearTape
from tapegrad.tape.tape import words_of

__all__ = ["some_results", "weighted_results"]

SUMMED = lin.TURNS | lin.BEARS
WORDS = lin.MAP_DIMENSIONS + 3  # of a map of one dimension


def some_results(tape: LinearTape, first: int, last: int) -> LinearTape:
    """The tape of these of its outputs, for first derivatives."""
    made = _on_its_memory(tape)
    made.outputs, made.second, made.fingerprint = tape.outputs[first:last], False, None
    return made


def weighted_results(tape: LinearTape, weights: np.ndarray[Any, Any]) -> LinearTape:
    """The tape of the weighted sum of all elements of its outputs.

    Parameters
    ----------
    tape : LinearTape
        With second partials, of several outputs. Products with the Hessian multiply weights into these: after them there is no
        other sum, and another one before them takes the place of this one.
    weights : ndarray, shape (results,)
    """
    made = _on_its_memory(tape)
    made.spare, made.fingerprint = (0, 0), None
    tops = [(place, size) for place, size in tape.outputs if place >= 0]
    if not tops:
        made.outputs = [(-1, 1)]
        return made
    made.header = tape.header.copy()
    made.address, made._words = address_of(made.header), words_of(made.header)
    words, row, done = made._words, tape.places, 0
    entries, _, programs, factors = tape.memory
    for place, size in tape.outputs:
        if place >= 0:
            number, program, factor = words[lin.ENTRIES], words[lin.PROGRAM_WORDS], words[lin.FACTOR_COUNT]
            start = lin.ENTRY_BYTES // 8 * number
            entries[start : start + 4] = lin.MAP, program, 0, 0
            clear = int(number == tape.header[lin.ENTRIES])  # the first one does
            programs[program : program + WORDS] = (
                size, 1, lin.ARRAY_FACTOR, factor, place, row, 0, row, clear, SUMMED, size, 1, 0,
            )  # fmt: skip
            factors[factor : factor + size] = weights[done : done + size]
            words[lin.ENTRIES], words[lin.PROGRAM_WORDS], words[lin.FACTOR_COUNT] = number + 1, program + WORDS, factor + size
        done += size
    words[lin.PLACES] = made.places = row + 1
    made.outputs = [(row, 1)]
    return made


def _on_its_memory(tape: LinearTape) -> LinearTape:
    made = LinearTape.__new__(LinearTape)
    made.__dict__.update(tape.__dict__)
    made._output_words = made._adjoints = None
    return made
