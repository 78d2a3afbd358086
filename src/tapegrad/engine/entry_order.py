"""The order of a sparse matrix's entries by row or by column: a stable sort by counting."""

from tapegrad.compilation.jit import entry


@entry("int64(Ints,Ints,int64,int64,Words,Ints)")
def order_entries(keys, before, count, lines, ends, order):
    """Numbers of entries by ascending keys, those of one key as they are in `before`, into `order`; how many there are.

    `ends` begins as ``lines + 2`` zeros, and then has where the entries of each key end, with a zero in front.
    """
    for k in range(count):
        ends[keys[k] + 2] += 1
    for line in range(2, lines + 2):
        ends[line] += ends[line - 1]
    for k in range(count):
        number = before[k]
        line = keys[number] + 1
        order[ends[line]] = number
        ends[line] += 1
    return count
