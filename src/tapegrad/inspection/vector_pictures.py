"""Graphs as SVG: boxes in layers, details on hover."""

from __future__ import annotations

from html import escape

from tapegrad.inspection.graphs import Graph, GraphNode
from tapegrad.inspection.layered_layout import layered

__all__ = ["as_svg", "label_of"]

HEIGHT, STEP, MARGIN, LETTER = 34, 66, 16, 6.6
LONGEST, BOW = 34, 30.0
ARROW = (
    '<defs><marker id="tapegrad-tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" markerHeight="7" orient="auto">'
    '<path d="M0 0L8 4L0 8z" style="fill:#667;stroke:none"/></marker></defs>'
)
ENDS = 'marker-end="url(#tapegrad-tip)"'
# Where a picture is a part of a page, its style must not be that of the page.
SCOPE = "tapegrad-graph"
RULES = (
    ".node rect{stroke:#456;stroke-width:1}", ".leaf rect{fill:#d9f2dc}", ".row rect{fill:#dfe9f8}", ".host rect{fill:#fde3c4}",
    ".guard rect{fill:#fbf3b0}", ".group rect{fill:#e9e4f5}", ".result rect{stroke-width:2.5}",
    ".odd-gradient rect{stroke:#c22;stroke-width:2;stroke-dasharray:5 3}",
    ".odd rect{stroke:#c22;stroke-width:3;stroke-dasharray:none}", ".node:hover rect{stroke:#06c;stroke-width:2.5}",
    "text{font:12px sans-serif;fill:#123}", ".small{font-size:10px;fill:#456}", "path{fill:none;stroke:#99a}",
    ".back{stroke-dasharray:4 3;stroke:#c96}",
)  # fmt: skip
STYLE = "".join(f".{SCOPE} {rule}" for rule in RULES)


def _shortened(text: str) -> str:
    return text if len(text) <= LONGEST else text[: LONGEST - 1] + "…"


def label_of(node: GraphNode) -> tuple[str, str]:
    """What stands in a node's box: its name, and its value or shape, or how many rows it stands for."""
    if node.members > 1:
        return _shortened(node.name), f"{node.members:,} rows"
    if node.shape == () and node.value:
        return _shortened(node.name), node.value
    return _shortened(node.name), " x ".join(map(str, node.shape)) if node.shape else ""


def _classes(node: GraphNode) -> str:
    states = ("group", node.members > 1), ("odd", node.is_odd), ("odd-gradient", node.has_odd_gradient), ("result", node.is_result)
    flags = [name for name, holds in states if holds]
    return " ".join(["node", node.kind, *flags])


def as_svg(graph: Graph) -> str:
    """A picture of a graph; what a node is shows when the pointer rests on it."""
    labels = [label_of(node) for node in graph.nodes]
    widths = [max(36.0, LETTER * max(len(name), 0.85 * len(small)) + 16.0) for name, small in labels]
    edges = graph.edges
    place = layered(widths, [edge for edge in edges if edge[0] < edge[1]])
    right = max((x + width / 2 for x, width in zip(place.x, widths, strict=False)), default=0.0)
    if any(a > b for a, b in edges):
        right += BOW
    wide, high = right + 2 * MARGIN, STEP * max(place.layer, default=0) + HEIGHT + 2 * MARGIN

    def at(k: int) -> tuple[float, float]:
        return MARGIN + place.x[k], MARGIN + HEIGHT / 2 + STEP * place.layer[k]

    size = f'width="{wide:.0f}" height="{high:.0f}"'
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" class="{SCOPE}" {size} viewBox="0 0 {wide:.0f} {high:.0f}">',
        f"<title>{escape(graph.title)}</title><style>{STYLE}</style>",
        ARROW,
    ]
    parts += [f'<path d="{_curve([at(k) for k in path])}" {ENDS}/>' for path in place.paths]
    backwards = [_bow(at(a), at(b), widths[a], widths[b]) for a, b in edges if a > b]
    parts += [f'<path class="back" d="{curve}" {ENDS}/>' for curve in backwards]
    for k, (node, (name, small), width) in enumerate(zip(graph.nodes, labels, widths, strict=True)):
        x, y = at(k)
        parts.append(
            f'<g class="{_classes(node)}"><title>{escape(chr(10).join(node.details))}</title>'
            f'<rect x="{x - width / 2:.1f}" y="{y - HEIGHT / 2:.1f}" width="{width:.1f}" height="{HEIGHT}" rx="5"/>'
            f'<text x="{x:.1f}" y="{y + (-2 if small else 4):.1f}" text-anchor="middle">{escape(name)}</text>'
            + (f'<text class="small" x="{x:.1f}" y="{y + 12:.1f}" text-anchor="middle">{escape(small)}</text>' if small else "")
            + "</g>"
        )
    return "\n".join([*parts, "</svg>"])


def _curve(points: list[tuple[float, float]]) -> str:
    """From the lower side of the first box to the upper side of the last one."""
    (x, y), *others = points
    y += HEIGHT / 2
    text = f"M{x:.1f} {y:.1f}"
    for k, (u, v) in enumerate(others):
        v -= HEIGHT / 2 if k == len(others) - 1 else 0.0
        middle = (y + v) / 2
        text += f"C{x:.1f} {middle:.1f} {u:.1f} {middle:.1f} {u:.1f} {v:.1f}"
        x, y = u, v
    return text


def _bow(start: tuple[float, float], end: tuple[float, float], width: float, other: float) -> str:
    """Round the right sides, for what goes back to an earlier node."""
    x, y, u, v = start[0] + width / 2, start[1], end[0] + other / 2, end[1]
    out = max(x, u) + BOW
    return f"M{x:.1f} {y:.1f}C{out:.1f} {y:.1f} {out:.1f} {v:.1f} {u:.1f} {v:.1f}"
