"""Places in the buffer of adjoints: taken when the first contribution is due, given back when the row is consumed."""

from tapegrad.compilation.jit import inline
from tapegrad.engine.layout import *
from tapegrad.engine.memory import get, load_i64, put, store_i64


@inline
def take_scalar(sweep):
    """Place of one word: one that was given back, else at the end of the buffer."""
    count = get(sweep, STACK_COUNT)
    if count > 0:
        put(sweep, STACK_COUNT, count - 1)
        return load_i64(get(sweep, STACK) + 8 * (count - 1))
    return bump(sweep, 1)


@inline
def bump(sweep, words):
    """Place of so many words at the end of the buffer."""
    place = get(sweep, PEAK)
    put(sweep, PEAK, place + words)
    return place


@inline
def give_scalar(sweep, place):
    """Return one word."""
    count = get(sweep, STACK_COUNT)
    if count < STACK_CAPACITY:  # beyond that the word stays unused: it costs eight bytes until the sweep ends
        store_i64(get(sweep, STACK) + 8 * count, place)
        put(sweep, STACK_COUNT, count + 1)


@inline
def take_words(sweep, words):
    """Best fit among the free pieces (place, length), else from the end of the buffer."""
    table, count = get(sweep, FREE), get(sweep, FREE_COUNT)
    best, best_length = -1, 0
    for k in range(count):
        length = load_i64(table + 16 * k + 8)
        if length >= words and (best < 0 or length < best_length):
            best, best_length = k, length
            if length == words:
                break
    if best >= 0:
        place = load_i64(table + 16 * best)
        if best_length == words:
            remove_piece(sweep, best)
        else:
            store_i64(table + 16 * best, place + words)
            store_i64(table + 16 * best + 8, best_length - words)
        return place
    for k in range(count):
        place, length = load_i64(table + 16 * k), load_i64(table + 16 * k + 8)
        if place + length == get(sweep, PEAK):  # the last piece grows instead of being left behind
            remove_piece(sweep, k)
            bump(sweep, words - length)
            return place
    return bump(sweep, words)


@inline
def remove_piece(sweep, k):
    """Take a piece out of the table of free ones; the last takes its place."""
    table, last = get(sweep, FREE), get(sweep, FREE_COUNT) - 1
    store_i64(table + 16 * k, load_i64(table + 16 * last))
    store_i64(table + 16 * k + 8, load_i64(table + 16 * last + 8))
    put(sweep, FREE_COUNT, last)


@inline
def give_words(sweep, place, words):
    """Return a piece, joined with its free neighbours."""
    table = get(sweep, FREE)
    k = 0
    while k < get(sweep, FREE_COUNT):
        other, length = load_i64(table + 16 * k), load_i64(table + 16 * k + 8)
        if other + length == place:
            place, words = other, words + length
            remove_piece(sweep, k)
        elif place + words == other:
            words += length
            remove_piece(sweep, k)
        else:
            k += 1
    count = get(sweep, FREE_COUNT)
    if count < FREE_CAPACITY and words > 0:
        store_i64(table + 16 * count, place)
        store_i64(table + 16 * count + 8, words)
        put(sweep, FREE_COUNT, count + 1)
