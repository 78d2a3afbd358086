"""Whether two linear tapes are made alike: then their patterns are the same, and nothing has to be hashed."""

from tapegrad.compilation.jit import entry, inline
from tapegrad.compilation.memory_types import from_element
from tapegrad.engine.linear_layout import *


@inline
def are_alike(one, other, count):
    """Whether words are the same."""
    for k in range(count):
        if one[k] != other[k]:
            return False
    return True


@entry("int64(Linear,Words,int64,Words,int64,Words)")
def has_structure(linear, entries, count, programs, words, own):
    """Whether these are entries and programs of a tape, but for the factors of maps; `own` is where its own entries stand.

    Never where a row is Python's or a scalar with second partials: the structure is not in these words alone.
    """
    if linear.entries != count or linear.program_words != words:
        return 0
    step = ENTRY_BYTES // 8
    for number in range(count):
        kind = linear.entry[number].kind
        if kind == HOSTED or kind == CURVED_PLAIN:
            return 0
        if not are_alike(from_element(own, step * number), from_element(entries, step * number), 2):
            return 0
        if kind == MAP or kind == CURVED_MAP:
            word = linear.entry[number].program
            program = linear.program[word]
            rank = program.rank
            for k in range(MAP_DIMENSIONS + 3 * rank):
                if k != MAP_KIND and k != MAP_FACTOR and program[k] != programs[word + k]:
                    return 0
    return 1
