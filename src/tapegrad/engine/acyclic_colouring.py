"""Acyclic colours of a symmetric matrix: fewer products than a star colouring takes, of which entries are found by substitution.

Neighbours differ, and every two colours have a forest between them: no cycle has two colours only [1]_. At a leaf of a tree a
product gives an entry, and what is left of the products after it is taken away is that of a smaller tree.

References
----------
.. [1] A. H. Gebremedhin, A. Tarafdar, F. Manne, A. Pothen, "New acyclic and star coloring algorithms with application to computing
   Hessians", SIAM Journal on Scientific Computing 29(3), 2007.
"""

from tapegrad.compilation.jit import entry, inline
from tapegrad.compilation.memory_types import from_element
from tapegrad.engine.colouring import least_free


@inline
def root_of(parents, e):
    """The tree of an edge."""
    while parents[e] != e:
        parents[e] = parents[parents[e]]
        e = parents[e]
    return e


@inline
def coloured_around(ends, items, v, colours, near):
    """Entries of a row that lead to vertices with a colour; how many."""
    count = 0
    for k in range(ends[v], ends[v + 1]):
        if colours[items[k]] >= 0:
            near[count] = k
            count += 1
    return count


@entry("int64(Words,Ints,Ints,int64,int64,Ints,Ints,Ints)")
def colour_acyclic(ends, items, edges, count, edge_count, order, colours, work):
    """An acyclic colouring, vertex by vertex; how many colours. There are no entries on the diagonal.

    Colours begin as -1, and `work` too: room for four numbers a vertex and three an edge.
    """
    marks, firsts, first_edges = work, from_element(work, count), from_element(work, 2 * count)
    near, parents, visits = from_element(work, 3 * count), from_element(work, 4 * count), from_element(work, 4 * count + edge_count)
    most = 0
    for turn in range(count):
        v = order[turn]
        beside = coloured_around(ends, items, v, colours, near)
        for i in range(beside):
            marks[colours[items[near[i]]]] = v
        for i in range(beside):
            w = items[near[i]]
            for j in range(ends[w], ends[w + 1]):
                x = items[j]
                if x == v or colours[x] < 0 or marks[colours[x]] == v:
                    continue
                # A tree that two neighbours of v are in would close to a cycle if v had the colour of x.
                tree = root_of(parents, edges[j])
                if visits[2 * tree] != v:
                    visits[2 * tree], visits[2 * tree + 1] = v, w
                elif visits[2 * tree + 1] != w:
                    marks[colours[x]] = v
        own = least_free(marks, most, v)
        colours[v] = own
        most = max(most, own + 1)
        for i in range(beside):
            e, colour = edges[near[i]], colours[items[near[i]]]
            parents[e] = e
            if firsts[colour] == v:
                parents[e] = root_of(parents, first_edges[colour])
            else:
                firsts[colour], first_edges[colour] = v, e
        for i in range(beside):
            w = items[near[i]]
            for j in range(ends[w], ends[w + 1]):
                x = items[j]
                if x != v and colours[x] == own:
                    parents[root_of(parents, edges[near[i]])] = root_of(parents, edges[j])
    return most


@entry("int64(Words,Ints,Words,int64,Ints,int64,Ints,Ints,Words,Ints,Words)")
def order_substitution(ends, items, mirror, count, colours, width, sources, targets, entries, work, where):
    """Which element of the products, a matrix of `width` columns, gives which entry, and from which it is taken away; how many.

    `mirror` has for each entry the number of its mirror image. `work` takes three numbers an element of the products, and `where`
    one; both begin as zero.
    """
    degrees, others, stack = work, from_element(work, count * width), from_element(work, 2 * count * width)
    depth, done = 0, 0
    for v in range(count):
        for k in range(ends[v], ends[v + 1]):
            w = items[k]
            if w != v:
                slot = v * width + colours[w]
                degrees[slot] += 1
                others[slot] ^= w
                where[slot] ^= k
    for slot in range(count * width):
        if degrees[slot] == 1:
            stack[depth] = slot
            depth += 1
    while depth > 0:
        depth -= 1
        slot = stack[depth]
        if degrees[slot] != 1:
            continue
        v, w, k = slot // width, others[slot], where[slot]
        target = w * width + colours[v]
        sources[done], targets[done], entries[done] = slot, target, k
        done += 1
        degrees[slot] = 0
        degrees[target] -= 1
        others[target] ^= v
        where[target] ^= mirror[k]
        if degrees[target] == 1:
            stack[depth] = target
            depth += 1
    return done


@entry("int64(Doubles,Ints,Ints,int64,Doubles)")
def substitute_entries(products, sources, targets, count, found):
    """Entries in the order in which they are found; the products are used up."""
    for k in range(count):
        value = products[sources[k]]
        found[k] = value
        products[targets[k]] -= value
    return 0
