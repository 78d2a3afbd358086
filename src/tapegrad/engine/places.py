"""Places in the buffer of adjoints: taken when the first contribution is due, given back when the row is consumed."""

from tapegrad.compilation.jit import inline
from tapegrad.engine.layout import *


@inline
def take_scalar(sweep):
    """Place of one word: one that was given back, else at the end of the buffer."""
    count = sweep.stack_count
    if count > 0:
        sweep.stack_count = count - 1
        return sweep.stack[count - 1]
    return bump(sweep, 1)


@inline
def bump(sweep, words):
    """Place of so many words at the end of the buffer."""
    place = sweep.peak
    sweep.peak = place + words
    return place


@inline
def give_scalar(sweep, place):
    """Return one word."""
    count = sweep.stack_count
    if count < STACK_CAPACITY:  # beyond that the word stays unused: it costs eight bytes until the sweep ends
        sweep.stack[count] = place
        sweep.stack_count = count + 1


@inline
def take_words(sweep, words):
    """Best fit among the free pieces (place, length), else from the end of the buffer."""
    table, count = sweep.free, sweep.free_count
    best, best_length = -1, 0
    for k in range(count):
        length = table[k].length
        if length >= words and (best < 0 or length < best_length):
            best, best_length = k, length
            if length == words:
                break
    if best >= 0:
        place = table[best].place
        if best_length == words:
            remove_piece(sweep, best)
        else:
            table[best].place = place + words
            table[best].length = best_length - words
        return place
    for k in range(count):
        place, length = table[k].place, table[k].length
        if place + length == sweep.peak:  # the last piece grows instead of being left behind
            remove_piece(sweep, k)
            bump(sweep, words - length)
            return place
    return bump(sweep, words)


@inline
def remove_piece(sweep, k):
    """Take a piece out of the table of free ones; the last takes its place."""
    table, last = sweep.free, sweep.free_count - 1
    table[k].place = table[last].place
    table[k].length = table[last].length
    sweep.free_count = last


@inline
def give_words(sweep, place, words):
    """Return a piece, joined with its free neighbours."""
    table = sweep.free
    k = 0
    while k < sweep.free_count:
        other, length = table[k].place, table[k].length
        if other + length == place:
            place, words = other, words + length
            remove_piece(sweep, k)
        elif place + words == other:
            words += length
            remove_piece(sweep, k)
        else:
            k += 1
    count = sweep.free_count
    if count < FREE_CAPACITY and words > 0:
        table[count].place = place
        table[count].length = words
        sweep.free_count = count + 1
