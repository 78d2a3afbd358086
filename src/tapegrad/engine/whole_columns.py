"""What is done with whole columns of numbers: comparing them, and picking numbers at places."""

from tapegrad.compilation.jit import entry

COMPARED = 512  # words in one round, which is a loop without a branch


@entry("int64(Words,Words,int64)")
def are_equal(one, other, count):
    """Whether so many words are the same: as fast as memory is read."""
    for start in range(0, count, COMPARED):
        difference = 0
        for k in range(start, min(start + COMPARED, count)):
            difference |= one[k] ^ other[k]
        if difference != 0:
            return 0
    return 1


@entry("int64(Doubles,Ints,int64,Doubles)")
def pick_numbers(numbers, places, count, out):
    """The numbers at places; zero."""
    for k in range(count):
        out[k] = numbers[places[k]]
    return 0
