"""The columns of a compiled recording.

A row is a number of (row, partial) pairs in two columns; its first pair carries a flag, so a row of two pairs takes 24 bytes
and there is no column of counts. The reverse sweep walks the pairs downwards. Row 0 is the constant's; the rows of the inputs
follow and have no pairs.

Where second derivatives are recorded, a row that has second partials by two others writes triplets as well: its own number, those
of the two rows, and the second partial, in two further columns, in the order of the rows. Half of it stands where the two are one,
for a sweep goes through every triplet in both directions.

Where the direction of a second derivative is known before the function runs, there are no triplets. A row's tangent is computed
when it is written, and a third column has for each pair how its partial changes along the direction.

Compiled code reaches the columns through a header of sixteen words whose address it is given.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir
from numba.core import cgutils

__all__ = [
    "BAR_COLUMN",
    "BAR_LIMIT",
    "CHANGE_COLUMN",
    "FIRST",
    "FLAG",
    "GROW",
    "GROW_TRIPLETS",
    "LIMIT",
    "MOST",
    "ODD",
    "OWNER",
    "PAIRS",
    "PARTIAL_COLUMN",
    "ROWS",
    "ROW_COLUMN",
    "SECOND_COLUMN",
    "TANGENT_COLUMN",
    "TRIPLETS",
    "TRIPLET_COLUMN",
    "TRIPLET_LIMIT",
    "WORDS",
    "fused",
]

ROWS, PAIRS, LIMIT, ROW_COLUMN, PARTIAL_COLUMN, GROW = range(6)
TRIPLETS, TRIPLET_LIMIT, TRIPLET_COLUMN, SECOND_COLUMN, GROW_TRIPLETS = range(6, 11)
TANGENT_COLUMN, CHANGE_COLUMN, OWNER = range(11, 14)
BAR_COLUMN, BAR_LIMIT = 14, 15  # of tapes without an owner in Python, whose adjoints compiled code makes room for
WORDS = 16
HEADER = (
    "ROWS", "PAIRS", "ROW_COLUMN", "PARTIAL_COLUMN", "TRIPLETS", "TRIPLET_COLUMN", "SECOND_COLUMN", "CHANGE_COLUMN",
)  # what sweeps read  # fmt: skip
FLAG = -(2**31)

FIRST = 1 << 14  # pairs that a new tape has room for
ODD = 1096  # columns a power of two apart share cache sets, and recording then takes three times as long
MOST = 2**31 - 2  # rows are numbered in 31 bits

F64 = ir.DoubleType()


def fused(builder: Any, x: Any, y: Any, z: Any) -> Any:
    """``x * y + z``."""
    function = cgutils.get_or_insert_function(builder.module, ir.FunctionType(F64, [F64] * 3), "llvm.fmuladd.f64")
    return builder.call(function, [x, y, z])
