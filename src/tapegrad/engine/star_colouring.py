"""Star colours of a symmetric matrix, of which products with as many vectors as there are colours give every entry.

The graph has a vertex for each row and an edge for each entry beside the diagonal. A star colouring leaves no path of four vertices
with two colours only, so what two colours have between them are stars [1]_.

References
----------
.. [1] A. H. Gebremedhin, A. Tarafdar, F. Manne, A. Pothen, "New acyclic and star coloring algorithms with application to computing
   Hessians", SIAM Journal on Scientific Computing 29(3), 2007.
"""

from tapegrad.compilation.jit import entry, inline
from tapegrad.compilation.memory_types import from_element
from tapegrad.engine.colouring import least_free


@entry("int64(Words,Ints,int64,Ints,Ints)")
def number_edges(ends, items, count, edges, work):
    """The same number for both entries of an edge; how many edges. Items ascend; `work` takes one number a vertex."""
    number = 0
    for v in range(count):
        work[v] = ends[v]
    for v in range(count):
        for k in range(ends[v], ends[v + 1]):
            w = items[k]
            if w > v:  # rows come in ascending order, and so do the items that lead back
                edges[k] = number
                back = work[w]
                edges[back] = number
                work[w] = back + 1
                number += 1
    return number


@inline
def join_stars(ends, items, edges, v, colours, hubs, stars, firsts, first_edges, count_of_stars):
    """Put the edges of a vertex that was just coloured into stars; how many stars there are."""
    own = colours[v]
    for k in range(ends[v], ends[v + 1]):
        w = items[k]
        if colours[w] < 0 or w == v:
            continue
        joined = -1
        for j in range(ends[w], ends[w + 1]):
            x = items[j]
            if x != v and x != w and colours[x] == own:
                joined = stars[edges[j]]
                break
        if joined >= 0:
            hubs[joined] = w
            stars[edges[k]] = joined
            continue
        colour = colours[w]
        other = first_edges[2 * colour]
        if firsts[colour] == v and other != k:
            star = stars[edges[other]]
            hubs[star] = v
            stars[edges[k]] = star
        else:
            hubs[count_of_stars] = -1
            stars[edges[k]] = count_of_stars
            count_of_stars += 1
    return count_of_stars


@inline
def forbid_around(ends, items, w, colours, marks, v):
    """No colour of a vertex beside `w` may be that of `v`."""
    for j in range(ends[w], ends[w + 1]):
        x = items[j]
        if x != v and colours[x] >= 0:
            marks[colours[x]] = v


@entry("int64(Words,Ints,Ints,int64,int64,Ints,Ints,Ints)")
def colour_stars(ends, items, edges, count, edge_count, order, colours, work):
    """A star colouring, vertex by vertex; how many colours. There are no entries on the diagonal.

    Colours begin as -1, and `work` too: room for five numbers a vertex and two an edge.
    """
    marks, treated, firsts = work, from_element(work, count), from_element(work, 2 * count)
    first_edges = from_element(work, 3 * count)
    hubs, stars = from_element(work, 5 * count), from_element(work, 5 * count + edge_count)
    most, star_count = 0, 0
    for turn in range(count):
        v = order[turn]
        for k in range(ends[v], ends[v + 1]):
            w = items[k]
            colour = colours[w]
            if colour < 0:
                continue
            marks[colour] = v
            if firsts[colour] == v:
                q = items[first_edges[2 * colour]]
                if treated[q] != v:
                    treated[q] = v
                    forbid_around(ends, items, q, colours, marks, v)
                if treated[w] != v:
                    treated[w] = v
                    forbid_around(ends, items, w, colours, marks, v)
                continue
            firsts[colour] = v
            first_edges[2 * colour] = k
            for j in range(ends[w], ends[w + 1]):
                x = items[j]
                if x != v and colours[x] >= 0 and hubs[stars[edges[j]]] == x:
                    marks[colours[x]] = v
        own = least_free(marks, most, v)
        colours[v] = own
        most = max(most, own + 1)
        star_count = join_stars(ends, items, edges, v, colours, hubs, stars, firsts, first_edges, star_count)
    return most


@inline
def place_of(items, low, stop, column):
    """Where a column stands among those from `low` to `stop`, which ascend; -1 if it does not."""
    high = stop
    while low < high:
        middle = (low + high) // 2
        if items[middle] < column:
            low = middle + 1
        else:
            high = middle
    return low if low < stop and items[low] == column else -1


@entry("int64(Words,Ints,int64,Ints,int64,Words,Ints)")
def star_places(ends, items, count, colours, width, places, work):
    """Where each entry stands in the products, a matrix of `width` columns: in its row if no other entry there has its colour.

    Zero, or -1 if the colours do not give every entry. `work` takes three numbers a colour and begins as -1.
    """
    for v in range(count):
        work[3 * colours[v]], work[3 * colours[v] + 1] = v, 1
        for k in range(ends[v], ends[v + 1]):
            w = items[k]
            if w != v:
                colour = colours[w]
                if work[3 * colour] != v:
                    work[3 * colour], work[3 * colour + 1] = v, 0
                work[3 * colour + 1] = work[3 * colour + 1] + 1
        for k in range(ends[v], ends[v + 1]):
            w = items[k]
            if w == v:
                if work[3 * colours[v] + 1] != 1:
                    return -1
                places[k] = v * width + colours[v]
            else:
                places[k] = v * width + colours[w] if work[3 * colours[w] + 1] == 1 else -1
    for v in range(count):
        for k in range(ends[v], ends[v + 1]):
            if places[k] == -1:
                w = items[k]
                mirror = place_of(items, ends[w], ends[w + 1], v)
                if mirror < 0 or places[mirror] < 0 or places[mirror] // width != w:
                    return -1
                places[k] = places[mirror]
    return 0
