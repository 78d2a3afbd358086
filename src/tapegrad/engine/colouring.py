"""Colours of the columns of a sparse matrix, so that no row has two entries of one colour; and orders in which to colour them.

Two columns are neighbours if a row has entries in both. A matrix is given by rows and by columns: where each ends, what is in it.
"""

from tapegrad.compilation.jit import entry, inline
from tapegrad.compilation.memory_types import from_element
from tapegrad.engine.colouring_orders import INCIDENCE, LARGEST_FIRST


@inline
def least_free(marks, most, v):
    """The least of so many colours that is not marked with a vertex, or one more."""
    own = 0
    while own < most and marks[own] == v:
        own += 1
    return own


@entry("int64(Words,Ints,Words,Ints,Ints,int64,Ints,Ints)")
def colour_columns(row_ends, row_items, column_ends, column_items, order, count, colours, marks):
    """The least colour that no neighbour has, column by column; how many colours that takes. Colours begin as -1, marks too."""
    most = 0
    for k in range(count):
        v = order[k]
        for i in range(column_ends[v], column_ends[v + 1]):
            row = column_items[i]
            for j in range(row_ends[row], row_ends[row + 1]):
                colour = colours[row_items[j]]
                if colour >= 0:
                    marks[colour] = v
        own = least_free(marks, most, v)
        colours[v] = own
        most = max(most, own + 1)
    return most


@inline
def take_out(heads, following, preceding, v, key):
    """Take a column out of the list of its key."""
    after, before = following[v], preceding[v]
    if before >= 0:
        following[before] = after
    else:
        heads[key] = after
    if after >= 0:
        preceding[after] = before


@inline
def put_in(heads, following, preceding, v, key):
    """Put a column in front of the list of a key."""
    after = heads[key]
    following[v] = after
    preceding[v] = -1
    heads[key] = v
    if after >= 0:
        preceding[after] = v


@entry("int64(Words,Ints,Words,Ints,int64,int64,Ints,Ints)")
def order_columns(row_ends, row_items, column_ends, column_items, count, how, order, work):
    """An order by numbers of neighbours, into `order`; `work` has room for six numbers a column."""
    marks, keys, heads = work, from_element(work, count), from_element(work, 2 * count)
    following, preceding, is_taken = from_element(work, 3 * count), from_element(work, 4 * count), from_element(work, 5 * count)
    for v in range(count):
        marks[v], heads[v], is_taken[v], keys[v] = -1, -1, 0, 0
    if how != INCIDENCE:
        for v in range(count):
            degree = 0
            marks[v] = v
            for i in range(column_ends[v], column_ends[v + 1]):
                row = column_items[i]
                for j in range(row_ends[row], row_ends[row + 1]):
                    w = row_items[j]
                    if marks[w] != v:
                        marks[w] = v
                        degree += 1
            keys[v] = degree
        for v in range(count):
            marks[v] = -1
    for v in range(count - 1, -1, -1):
        put_in(heads, following, preceding, v, keys[v])
    if how == LARGEST_FIRST:
        to = 0
        for key in range(count - 1, -1, -1):
            v = heads[key]
            while v >= 0:
                order[to] = v
                to += 1
                v = following[v]
        return 0
    step, key = 1 if how == INCIDENCE else -1, 0
    for turn in range(count):
        if how == INCIDENCE:
            key = key if key < count else count - 1
            while heads[key] < 0:
                key -= 1
        else:
            key = max(0, key)
            while heads[key] < 0:
                key += 1
        v = heads[key]
        take_out(heads, following, preceding, v, key)
        is_taken[v] = 1
        order[turn if how == INCIDENCE else count - 1 - turn] = v
        marks[v] = v
        for i in range(column_ends[v], column_ends[v + 1]):
            row = column_items[i]
            for j in range(row_ends[row], row_ends[row + 1]):
                w = row_items[j]
                if marks[w] == v:
                    continue
                marks[w] = v
                if is_taken[w] == 0:
                    old = keys[w]
                    take_out(heads, following, preceding, w, old)
                    keys[w] = old + step
                    put_in(heads, following, preceding, w, old + step)
        key += step
    return 0
