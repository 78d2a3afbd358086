"""The order of a linear tape's places in which each is close to what it was made of: elements of arrays, one after the other."""

from tapegrad.compilation.jit import entry


@entry("int64(Words,Ints,int64,Ints,Ints,int64)")
def order_elements(ends, items, root, numbers, stack, last):
    """Number what a place depends on, and then itself, from ``last + 1`` on; the last number.

    `items` are the places that each depends on. Numbers begin as zero but for inputs, which have theirs; `stack` has room for two
    numbers a place.
    """
    if numbers[root] != 0:
        return last
    numbers[root] = -1
    stack[0], stack[1] = root, ends[root]
    depth = 1
    while depth > 0:
        node, k = stack[2 * depth - 2], stack[2 * depth - 1]
        if k == ends[node + 1]:
            last += 1
            numbers[node] = last
            depth -= 1
            continue
        stack[2 * depth - 1] = k + 1
        below = items[k]
        if numbers[below] == 0:
            numbers[below] = -1
            stack[2 * depth], stack[2 * depth + 1] = below, ends[below]
            depth += 1
    return last
