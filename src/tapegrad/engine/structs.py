"""What the words of the layout hold, as structs and columns: ``tape.first[slot]`` is read and written by name.

The fields of a struct are the layout's names from one to another, in small letters. Where nothing else is said, a word holds a
number. A struct is an address to the machine; compiled code is the same as with loads from ``address + 8 * word``.
"""

from numba import types

from tapegrad.compilation.memory_types import BYTES, DOUBLES, INTS, SHORTS, WORDS, Column, at_address, struct
from tapegrad.engine.layout import *


def fields(names, first, end, prefix=""):
    """The layout's names from `first` up to `end`, and their words."""
    listed = list(names)
    between = listed[listed.index(first) : listed.index(end)]
    return {name.removeprefix(prefix).lower(): names[name] for name in between}


Record = struct("Record", fields(globals(), "LENGTH", "ARGUMENTS"), 1)  # a record starts at any word
Rule = struct("Rule", {"uses": 0, "partials": 1}, 4, partials=[WORDS])  # which values are read; numbers of the partials
Loop = struct("Loop", {"function": 0, "data": 1}, 2)  # of a ufunc
Written = struct("Written", {"owner": 0, "time": 1}, 2)
Tape = struct(
    "Tape",
    fields(globals(), "ROWS", "HEADER_WORDS"),
    opcode=SHORTS,
    flags=BYTES,
    held=INTS,
    first=INTS,
    second=INTS,
    value=DOUBLES,
    side=Column(Record),
    constant=DOUBLES,
    handle=INTS,
    anchor=INTS,
    rules=Column(Rule),
    loops=Column(Loop),
    written=Column(Written),
    fallbacks=WORDS,
    writing_forms=WORDS,
    product_operations=WORDS,
    plain_forms=WORDS,
    last_axes=WORDS,
    long_ways=WORDS,
    kernel_table=WORDS,
    operand_x=types.float64,
    operand_y=types.float64,
    value_of_loop=types.float64,
    lengths=[WORDS],
    offsets=[WORDS],
)

Piece = struct("Piece", {"place": 0, "length": 1}, 2)  # of the buffer of adjoints, not in use
Leaf = struct("Leaf", fields(globals(), "LEAF_SLOT", "LEAF_WORDS", "LEAF_"), LEAF_WORDS)
Sweep = struct(
    "Sweep",
    fields(globals(), "OFFSET", "SWEEP_WORDS"),
    offset=WORDS,
    bar=DOUBLES,
    scratch=DOUBLES,
    work=WORDS,
    free=Column(Piece),
    stack=WORDS,
    reached=Column(Leaf),
    marks=BYTES,
    trash=WORDS,
    kernels=WORDS,
    handed=[WORDS],
)

ProgramStep = struct("ProgramStep", fields(globals(), "STEP_KIND", "STEP_WORDS", "STEP_"), STEP_WORDS)

words_at, ints_at, bytes_at, doubles_at = at_address(WORDS), at_address(INTS), at_address(BYTES), at_address(DOUBLES)
written_at, sweep_at = at_address(Column(Written)), at_address(Sweep)
program_steps_at = at_address(Column(ProgramStep))
