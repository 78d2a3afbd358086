"""`draw`: pictures of graphs, as SVG while they are small and as a page for any size."""

from __future__ import annotations

import os
from collections.abc import Callable
from html import escape
from pathlib import Path
from typing import Any

from tapegrad.drivers.containers import flatten
from tapegrad.drivers.leaves import Argnums
from tapegrad.inspection.graph_pages import as_page
from tapegrad.inspection.graphs import Graph, graph_of_call, graph_of_program, graph_of_tensors
from tapegrad.inspection.grouping import KEYS, grouped
from tapegrad.inspection.vector_pictures import as_svg
from tapegrad.tensors.tensor import Tensor

__all__ = ["Picture", "draw"]

MOST = 200  # nodes of a picture without page
IN_ORDER = ("rows", "lines", "functions", "operations")


class Picture:
    """A graph that can be shown.

    Attributes
    ----------
    by : str
        What a node of the SVG picture is: ``"rows"``, ``"lines"``, ``"functions"`` or ``"operations"``.
    """

    def __init__(self, graph: Graph, by: str | None) -> None:
        self.graph = graph
        self._shown: Graph | None = None
        if by is None:
            for by in IN_ORDER:
                self._shown = graph if by == "rows" else grouped(graph, by)
                if len(self._shown.nodes) <= MOST:
                    break
        self.by = by or "rows"

    @property
    def svg(self) -> str:
        """The picture as SVG; values, gradients, shapes and lines show when the pointer rests on a node."""
        if self._shown is None:
            self._shown = self.graph if self.by == "rows" else grouped(self.graph, self.by)
        return as_svg(self._shown)

    @property
    def html(self) -> str:
        """A page with all rows, in groups by line that open: it can be moved, zoomed and searched, and needs no network."""
        return as_page(self.graph)

    def save(self, file: str | os.PathLike[str]) -> None:
        """Write the picture.

        Parameters
        ----------
        file : str or path-like
            Its ending says how: ``.svg`` or ``.html``.

        Raises
        ------
        ValueError
            If it has another ending.
        """
        path = Path(file)
        if path.suffix not in (".svg", ".html"):
            raise ValueError(f"a picture is saved as .svg or .html, but the file is {path.name}")
        path.write_text(self.svg if path.suffix == ".svg" else self.html, encoding="utf-8")

    def _repr_html_(self) -> str:
        """In notebooks: the SVG picture, or the page in a frame where that would be grouped."""
        if self.by == "rows":
            return self.svg
        return f'<iframe srcdoc="{escape(self.html)}" style="width:100%;height:600px;border:1px solid #ccd"></iframe>'

    def __repr__(self) -> str:
        return f"<picture of {self.graph.title}, by {self.by}; .svg, .html or .save(file) give it>"


def draw(what: Any, *args: Any, by: str | None = None, argnums: Argnums = 0, **kwargs: Any) -> Picture:
    """Draw a graph.

    Parameters
    ----------
    what : Tensor, container of tensors, callable or program
        A tensor: what it was computed from. A function with its arguments: what one call of it records. A program without
        arguments: the paths that it has recorded, with their guards.
    *args, **kwargs
        Arguments of the function.
    by : {"rows", "lines", "functions", "operations"}, optional
        What a node of the SVG picture is; by default the first of these that gives few enough. The page has all rows.
    argnums : int or sequence of int
        By which positional arguments of the function the gradients are that are shown.

    Returns
    -------
    Picture
        Shown by notebooks. ``.svg``, ``.html`` and ``.save(file)`` give it.

    Raises
    ------
    TypeError
        If `what` is something else.
    ValueError
        If there is no graph, or `by` is something else.

    Notes
    -----
    Of a call all is known: values, gradients of the sum of the result's elements, lines, and how long each row took to record in
    Python. Of a tensor values are shown where rows kept them, gradients of leaves, and lines if
    `tapegrad.autograd.set_detect_anomaly` was on. Red frames have a value that is not finite, dashed ones such a gradient.

    Examples
    --------
    >>> picture = tg.draw(lambda x: np.exp(-x * x).sum(), np.array([0.0, 1.0]))
    >>> picture
    <picture of <lambda>: 5 rows, by rows; .svg, .html or .save(file) give it>
    >>> picture.svg.startswith("<svg")
    True
    """
    if by is not None and by not in IN_ORDER:
        raise ValueError(f"draw: by must be one of {', '.join(IN_ORDER)}, but got {by!r}")
    return Picture(_graph_of(what, args, kwargs, argnums), by)


def _graph_of(what: Any, args: tuple[Any, ...], kwargs: dict[str, Any], argnums: Argnums) -> Graph:
    is_program = hasattr(what, "__replay__") and hasattr(what, "_recorded")
    if is_program and not args and not kwargs:
        return graph_of_program(what)
    if isinstance(what, Callable) and not isinstance(what, Tensor):  # type: ignore[arg-type]
        return graph_of_call(what, args, kwargs, argnums)
    found: list[Any] = []
    flatten(what, found)
    tensors = [value for value in found if isinstance(value, Tensor)]
    if not tensors:
        raise TypeError(f"draw takes a tensor, or a function and its arguments, but got {type(what).__name__}")
    return graph_of_tensors(tensors)


assert {*IN_ORDER} == {"rows", *KEYS}
