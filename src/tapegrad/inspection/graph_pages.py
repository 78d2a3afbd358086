"""Graphs of any size as one HTML page, which needs no network: groups that open, search, details on hover."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from tapegrad.inspection.graphs import GUARD, HOST, LEAF, ROW, Graph
from tapegrad.inspection.vector_pictures import label_of

__all__ = ["as_page"]

TEMPLATE = Path(__file__).with_name("graph_page.html")
KINDS = {LEAF: 0, ROW: 1, HOST: 2, GUARD: 3}


class _Texts:
    """Texts, each once, by number."""

    def __init__(self) -> None:
        self.numbers: dict[Any, int] = {}

    def number(self, text: Any) -> int:
        return self.numbers.setdefault(text, len(self.numbers))

    def listed(self) -> list[Any]:
        return list(self.numbers)


def _columns(graph: Graph) -> dict[str, Any]:
    names, shapes, lines, functions = _Texts(), _Texts(), _Texts(), _Texts()
    nodes = graph.nodes
    starts = [0]
    parents: list[int] = []
    for node in nodes:
        parents += dict.fromkeys(node.parents)
        starts.append(len(parents))
    columns: dict[str, Any] = {
        "title": graph.title,
        "name": [names.number(node.name) for node in nodes],
        "kind": [KINDS[node.kind] for node in nodes],
        "shape": [-1 if node.shape is None else shapes.number(str(node.shape)) for node in nodes],
        "line": [-1 if node.line is None else lines.number(node.line) for node in nodes],
        "value": [node.value for node in nodes],
        "gradient": [node.gradient for node in nodes],
        "small": [label_of(node)[1] for node in nodes],
        "saved": [node.saved for node in nodes],
        "seconds": [round(node.seconds, 9) for node in nodes],
        "odd": [int(node.is_odd) for node in nodes],
        "oddGradient": [int(node.has_odd_gradient) for node in nodes],
        "result": [int(node.is_result) for node in nodes],
        "parents": parents,
        "starts": starts,
    }
    columns |= {
        "names": names.listed(),
        "shapes": shapes.listed(),
        "lineTexts": [line.text or line.place for line in lines.listed()],
        "linePlaces": [f"{line.place} in {line.function}" if line.function else line.place for line in lines.listed()],
        "lineFunctions": [functions.number(line.function or line.file) for line in lines.listed()],
    }
    return columns | {"functions": functions.listed()}


def as_page(graph: Graph) -> str:
    """A page that shows a graph."""
    data = json.dumps(_columns(graph), separators=(",", ":"), ensure_ascii=False).replace("</", "<\\/").replace("<!--", "<\\!--")
    return TEMPLATE.read_text(encoding="utf-8").replace("__DATA__", data)
