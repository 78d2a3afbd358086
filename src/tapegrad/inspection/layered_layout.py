"""Where nodes of a graph stand in a picture: in layers, each below all that it is computed from.

The steps are those of Sugiyama, Tagawa and Toda ("Methods for visual understanding of hierarchical system structures", 1981):
layers, points where long edges pass through layers, an order in each layer with few crossings, and places along it. The last step
is exact: a layer's places are those nearest to where its neighbours want them, in the least squares sense, that keep order and
distances.
"""

from __future__ import annotations

import itertools
from collections.abc import Sequence

__all__ = ["Layout", "layered", "nearest_places"]

ORDERINGS, PLACINGS, MOST_POINTS = 8, 10, 20_000
Edge = tuple[int, int]


class Layout:
    """Places of nodes, and of the points through which edges go.

    Attributes
    ----------
    x : list of float
    layer : list of int
    paths : list of list of int
        For each edge the nodes and points through which it goes; points are numbered after the nodes.
    """

    __slots__ = ("layer", "paths", "x")

    def __init__(self, layer: list[int], paths: list[list[int]]) -> None:
        self.layer, self.paths = layer, paths
        self.x = [0.0] * len(layer)


def _layers(count: int, edges: Sequence[Edge]) -> list[int]:
    """The longest way from a source; sources themselves stand just above what uses them."""
    layer = [0] * count
    below: list[list[int]] = [[] for _ in range(count)]
    has_parents = [False] * count
    for a, b in sorted(edges, key=lambda edge: edge[1]):
        below[a].append(b)
        has_parents[b] = True
        layer[b] = max(layer[b], layer[a] + 1)
    for k in range(count):
        if not has_parents[k] and below[k]:
            layer[k] = min(layer[b] for b in below[k]) - 1
    return layer


def nearest_places(wanted: Sequence[float], distances: Sequence[float]) -> list[float]:
    """Places in order, at these distances at least, whose squared differences from the wanted ones are least in sum.

    Parameters
    ----------
    wanted : sequence of float
    distances : sequence of float
        Between each and the next: one fewer.

    Notes
    -----
    Pooling of neighbours that violate the order (isotonic regression), in linear time.
    """
    shift = [0.0]
    for distance in distances:
        shift.append(shift[-1] + distance)
    pools: list[tuple[float, int]] = []  # sum and number of what was pooled
    for place, moved in zip(wanted, shift, strict=True):
        total, number = place - moved, 1
        while pools and pools[-1][0] * number > total * pools[-1][1]:
            before = pools.pop()
            total, number = total + before[0], number + before[1]
        pools.append((total, number))
    flat = [total / number for total, number in pools for _ in range(number)]
    return [place + moved for place, moved in zip(flat, shift, strict=True)]


def layered(widths: Sequence[float], edges: Sequence[Edge], gap: float = 24.0) -> Layout:
    """Lay a graph out.

    Parameters
    ----------
    widths : sequence of float
        Of the nodes.
    edges : sequence of (int, int)
        Each from a lower number to a higher one.
    gap : float
        Between neighbours.
    """
    layer = _layers(len(widths), edges)
    sizes = list(widths)
    paths = []
    for a, b in edges:
        path = [a]
        if len(layer) < MOST_POINTS:
            for between in range(layer[a] + 1, layer[b]):
                path.append(len(layer))
                layer.append(between)
                sizes.append(0.0)
        paths.append([*path, b])
    found = Layout(layer, paths)
    if not layer:
        return found
    above: list[list[int]] = [[] for _ in layer]
    below: list[list[int]] = [[] for _ in layer]
    for path in paths:
        for a, b in itertools.pairwise(path):
            above[b].append(a)
            below[a].append(b)
    rows: list[list[int]] = [[] for _ in range(max(layer) + 1)]
    for k, number in enumerate(layer):
        rows[number].append(k)
    _order(rows, above, below)
    for row in rows:
        distances = [(sizes[a] + sizes[b]) / 2 + gap for a, b in itertools.pairwise(row)]
        for k, x in zip(row, nearest_places([0.0] * len(row), distances), strict=True):
            found.x[k] = x
    for turn in range(PLACINGS):
        _place(found.x, rows if turn % 2 == 0 else rows[::-1], above if turn % 2 == 0 else below, sizes, gap)
    left = min(x - size / 2 for x, size in zip(found.x, sizes, strict=True))
    found.x = [x - left for x in found.x]
    return found


def _order(rows: list[list[int]], above: list[list[int]], below: list[list[int]]) -> None:
    """Put each layer in the order of the means of its neighbours' numbers, downwards and upwards in turns."""
    place = [0.0] * len(above)
    for row in rows:
        for number, k in enumerate(row):
            place[k] = float(number)
    for turn in range(ORDERINGS):
        neighbours = above if turn % 2 == 0 else below
        for row in rows if turn % 2 == 0 else rows[::-1]:
            means = {k: _mean([place[other] for other in neighbours[k]], place[k]) for k in row}
            row.sort(key=means.__getitem__)
            for number, k in enumerate(row):
                place[k] = float(number)


def _place(x: list[float], rows: list[list[int]], neighbours: list[list[int]], sizes: list[float], gap: float) -> None:
    for row in rows:
        wanted = [_mean([x[other] for other in neighbours[k]], x[k]) for k in row]
        distances = [(sizes[a] + sizes[b]) / 2 + gap for a, b in itertools.pairwise(row)]
        for k, place in zip(row, nearest_places(wanted, distances), strict=True):
            x[k] = place


def _mean(values: list[float], otherwise: float) -> float:
    return sum(values) / len(values) if values else otherwise
