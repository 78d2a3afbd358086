"""Products with many directions side by side: of an array with them in its last axis, and one without."""

from __future__ import annotations

import math

from tapegrad.programs.fused.expressions import Axis, Expressions, Shape, contiguous
from tapegrad.programs.fused.geometry import broadcast_axes

__all__ = ["LaneProducts"]


class LaneProducts:
    """Expressions of products.

    Parameters
    ----------
    graph : Expressions
    lanes : int
        How many directions there are.
    """

    def __init__(self, graph: Expressions, lanes: int) -> None:
        self._graph, self.lanes = graph, lanes

    def beside(self, node: int, shape: Shape) -> int:
        """A node without directions where there are some: it is computed once, and read for all of them."""
        graph = self._graph
        if node in graph.constants:
            return node
        return graph.at(self._read(node), broadcast_axes(graph.spaces[node], shape), (*shape, self.lanes))

    def scaled(self, factor: int, node: int, shape: Shape) -> int:
        """A factor times a node with directions, as the sweeps of a linear tape have it: zero where either is."""
        graph = self._graph
        known = graph.constants.get(factor)
        if known is not None and math.isfinite(known):
            return graph.constant(0.0) if known == 0.0 or node in graph.constants else graph.product(node, factor)
        return graph.text("mul0(x, y)", {"x": self.beside(factor, shape), "y": node})

    def transposed(self, node: int) -> int:
        """A matrix with directions, the other way."""
        rows, columns, lanes = self._graph.spaces[node]
        return self._graph.at(node, (Axis(0, 1, 1), Axis(0, 0, 1), Axis(0, 2, 1)), (columns, rows, lanes))

    def after(self, x: int, y: int) -> int:
        """``x @ y``, directions in `y`."""
        graph = self._graph
        inner, *columns, lanes = graph.spaces[y]
        rows = graph.spaces[x][:-1]
        found = graph.matmul(x, graph.reshaped(y, (inner, math.prod(columns) * lanes)))
        return graph.reshaped(found, (*rows, *columns, lanes))

    def before(self, x: int, y: int) -> int:
        """``x @ y``, directions in `x`."""
        graph = self._graph
        *rows, inner, lanes = graph.spaces[x]
        columns = graph.spaces[y][1:]
        rank = len(rows)
        axes = (*(Axis(0, d, 1) for d in range(rank)), Axis(0, rank + 1, 1), Axis(0, rank, 1))
        turned = graph.reshaped(graph.at(x, axes, (*rows, lanes, inner)), (math.prod(rows) * lanes, inner))
        found = graph.reshaped(graph.matmul(turned, y), (*rows, lanes, *columns))
        if not columns:
            return found
        axes = (*(Axis(0, d, 1) for d in range(rank)), Axis(0, rank + 1, 1), Axis(0, rank, 1))
        return graph.at(found, axes, (*rows, *columns, lanes))

    def outer(self, g: tuple[int, bool], other: tuple[int, bool], shape: Shape, along: int) -> int:
        """Products of a vector or number, which varies along one dimension, and the other operand.

        Each comes with whether it has directions.
        """
        if len(shape) == 2:
            return self._graph.product(self._along(*g, (along,), shape), self._along(*other, (1 - along,), shape))
        return self._graph.product(self._along(*g, (), shape), self._along(*other, (0,), shape))

    def _along(self, node: int, has_lanes: bool, dims: Shape, shape: Shape) -> int:
        graph = self._graph
        if node in graph.constants:
            return node
        axes = tuple(Axis(0, d, 1) for d in dims)
        if has_lanes:
            axes = (*axes, Axis(0, len(shape), 1))
        else:
            node = self._read(node)
        return graph.at(node, axes, (*shape, self.lanes))

    def _read(self, node: int) -> int:
        """A node that reads what a node is, so that it is computed once; for one direction nothing is gained by that."""
        graph = self._graph
        if graph.nodes[node][0] == "load" or self.lanes == 1:
            return node
        buffer, offset = graph.kept(node)
        return graph.load(buffer, offset, contiguous(graph.spaces[node]), graph.spaces[node])
