"""Colours of rows and columns of a pattern, so that few products give all entries: compiled code on index arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapegrad.engine.colouring_orders import INCIDENCE, LARGEST_FIRST, SMALLEST_LAST
from tapegrad.sparse.sparsity import Sparsity
from tapegrad.tape.array_kernels import ARRAY_KERNELS

__all__ = ["ORDERS", "acyclic_colours", "column_colours", "star_colours", "without_diagonal"]

Ints = np.ndarray[Any, np.dtype[np.int32]]
ORDERS = ("natural", "largest-first", "smallest-last", "incidence-degree")
# The turns in which they are tried: smallest-last most often has the fewest that there can be, and then no other is tried.
TURNS = ("natural", "smallest-last", "largest-first", "incidence-degree")
HOW = {"largest-first": LARGEST_FIRST, "smallest-last": SMALLEST_LAST, "incidence-degree": INCIDENCE}


class _Sides:
    """A pattern by rows and by columns, as compiled code takes it."""

    def __init__(self, pattern: Sparsity) -> None:
        transposed = pattern.transposed()
        self.shape = pattern.shape
        self.arrays = (
            pattern.indptr.astype(np.int64), pattern.indices,
            transposed.indptr.astype(np.int64), transposed.indices,
        )  # fmt: skip
        self.addresses = tuple(array.ctypes.data for array in self.arrays)

    def order(self, name: str) -> Ints:
        """Columns in the order in which they are coloured."""
        count = self.shape[1]
        order: Ints = np.arange(count, dtype=np.int32)
        if name != "natural":
            work = np.empty(6 * count + 1, np.int32)
            ARRAY_KERNELS.order_columns(*self.addresses, count, HOW[name], order.ctypes.data, work.ctypes.data)
        return order


def column_colours(pattern: Sparsity, order: str = "auto") -> tuple[Ints, int, str]:
    """Colours of the columns, of which no two with an entry in one row have the same.

    Parameters
    ----------
    pattern : Sparsity
    order : str
        One of `ORDERS`; ``"auto"`` tries one after the other until a colouring needs no more than the longest row has entries, and
        takes the best.

    Returns
    -------
    tuple
        Colours, how many there are, and the order that was taken.
    """
    rows, columns = pattern.shape
    least = int(np.diff(pattern.indptr).max()) if rows and columns else 0
    if least == columns:
        return np.arange(columns, dtype=np.int32), columns, "natural"
    sides = _Sides(pattern)

    def colour(name: str) -> tuple[Ints, int]:
        colours: Ints = np.full(columns, -1, np.int32)
        marks, by = np.full(columns + 1, -1, np.int32), sides.order(name)
        addresses = by.ctypes.data, columns, colours.ctypes.data, marks.ctypes.data
        return colours, ARRAY_KERNELS.colour_columns(*sides.addresses, *addresses)

    return _best(colour, order, least)


def _best(colour: Any, order: str, least: int) -> tuple[Ints, int, str]:
    found: tuple[Ints, int, str] | None = None
    for name in TURNS if order == "auto" else (order,):
        colours, count = colour(name)
        if found is None or count < found[1]:
            found = colours, count, name
        if count <= least:
            break
    assert found is not None
    return found


def without_diagonal(pattern: Sparsity) -> Sparsity:
    """A pattern's entries beside the diagonal."""
    return pattern.part(pattern.indices != pattern.rows())


def star_colours(pattern: Sparsity, order: str = "auto") -> tuple[Ints, int, str]:
    """Colours of a symmetric pattern's rows: neighbours differ, and no path of four has two colours only.

    Parameters and results are those of `column_colours`.
    """
    return _symmetric_colours(pattern, order, is_star=True)


def acyclic_colours(pattern: Sparsity, order: str = "auto") -> tuple[Ints, int, str]:
    """Colours of a symmetric pattern's rows: neighbours differ, and no cycle has two colours only.

    Parameters and results are those of `column_colours`.
    """
    return _symmetric_colours(pattern, order, is_star=False)


def _symmetric_colours(pattern: Sparsity, order: str, is_star: bool) -> tuple[Ints, int, str]:
    graph = without_diagonal(pattern)
    count = graph.shape[0]
    degrees = np.diff(graph.indptr)
    if not count or degrees.sum() == count * (count - 1):
        return np.arange(count, dtype=np.int32), count, "natural"
    sides = _Sides(graph)
    ends, items = sides.addresses[:2]
    edges, work = np.empty(graph.nnz + 1, np.int32), np.empty(count, np.int32)
    numbered = ARRAY_KERNELS.number_edges(ends, items, count, edges.ctypes.data, work.ctypes.data)

    def colour(name: str) -> tuple[Ints, int]:
        colours: Ints = np.full(count, -1, np.int32)
        by, room = sides.order(name), np.full(5 * count + 3 * numbered + 2, -1, np.int32)
        addresses = edges.ctypes.data, count, numbered, by.ctypes.data, colours.ctypes.data, room.ctypes.data
        paint = ARRAY_KERNELS.colour_stars if is_star else ARRAY_KERNELS.colour_acyclic
        return colours, paint(ends, items, *addresses)

    return _best(colour, order, 1 + bool(graph.nnz))
