"""Sweeps over linear tapes that have rows of Python's: compiled from one of these to the next, for the lanes of one block."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapegrad.arrays.addresses import address_of
from tapegrad.engine import linear_layout as lin
from tapegrad.linear.linear_entries import entry_of

__all__ = ["curve_between", "pull_between", "push_between"]

Matrix = np.ndarray


def push_between(tape: Any, lanes: int, dots: Matrix, columns: Matrix, out: Matrix) -> None:
    """Products of a tape's Jacobian with columns; `dots` is memory of the tangents of all places."""
    _forwards(tape, lanes, dots, columns)
    done = 0
    for place, size in tape.outputs:
        out[done : done + size] = dots[place : place + size, : out.shape[1]] if place >= 0 else 0.0
        done += size


def pull_between(tape: Any, lanes: int, bars: Matrix, columns: Matrix, out: Matrix) -> None:
    """Products of columns with the Jacobian; `bars` is memory of all adjoints, and holds them afterwards."""
    _clear(bars)
    done, count = 0, columns.shape[1]
    for place, size in tape.outputs:
        if place >= 0:
            bars[place : place + size, :count] += columns[done : done + size]
        done += size
    run, at = entry_of(f"pull_lanes_{lanes}"), len(tape.entries) - 1
    while (at := run(tape.address, address_of(bars), at)) != lin.FINISHED:
        tape.hosts[at].pull(bars, count)
        at -= 1
    out[...] = bars[: tape.inputs, : out.shape[1]]


def curve_between(tape: Any, lanes: int, dots: Matrix, bars: Matrix, columns: Matrix, out: Matrix) -> None:
    """Products of the Hessian with columns."""
    _forwards(tape, lanes, dots, columns)
    _clear(bars)
    run, at = entry_of(f"curve_lanes_{lanes}"), len(tape.entries) - 1
    while (at := run(tape.address, address_of(dots), address_of(bars), at)) != lin.FINISHED:
        tape.hosts[at].curve(dots, bars, columns.shape[1])
        at -= 1
    out[...] = bars[: tape.inputs, : out.shape[1]]


def _forwards(tape: Any, lanes: int, dots: Matrix, columns: Matrix) -> None:
    """Tangents of all places, with the steps that Python makes in between for so many of the lanes."""
    count = columns.shape[1]
    dots[: tape.inputs, :count] = columns
    if count < lanes:
        dots[: tape.inputs, count:] = 0.0
    run, at = entry_of(f"push_lanes_{lanes}"), 0
    while (at := run(tape.address, address_of(dots), at)) != lin.FINISHED:
        tape.hosts[at].push(dots, count)
        at += 1


def _clear(bars: Matrix) -> None:
    bars.view(np.uint8).fill(0)  # by the C library's memset, in half of the time that numbers take
