"""Groups of nodes: by source line, by function, by operation."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable
from typing import Any

from tapegrad.inspection.graphs import HOST, LEAF, Graph, GraphNode

__all__ = ["KEYS", "grouped"]


def _by_line(node: GraphNode) -> Any:
    return None if node.line is None else node.line[:2]


def _by_function(node: GraphNode) -> Any:
    return None if node.line is None else (node.line.file, node.line.function)


def _by_operation(node: GraphNode) -> Any:
    return node.name


KEYS: dict[str, Callable[[GraphNode], Any]] = {"lines": _by_line, "functions": _by_function, "operations": _by_operation}


def grouped(graph: Graph, by: str) -> Graph:
    """A graph whose nodes are groups, in the order of their first rows. Leaves stay by themselves while they are few."""
    key, leaves = KEYS[by], sum(node.kind == LEAF for node in graph.nodes)
    numbers: dict[Any, int] = {}
    members: list[list[GraphNode]] = []
    number_of: list[int] = []
    for k, node in enumerate(graph.nodes):
        alone = node.kind == LEAF and leaves <= 20
        name = ("leaf", k if alone else 0) if node.kind == LEAF else (by, key(node) or ("operation", node.name))
        number = numbers.setdefault(name, len(members))
        if number == len(members):
            members.append([])
        members[number].append(node)
        number_of.append(number)
    groups = [_group(rows, by) for rows in members]
    for number, node in zip(number_of, graph.nodes, strict=True):
        groups[number].parents += [other for other in {number_of[parent] for parent in node.parents} if other != number]
    for group in groups:
        group.parents = sorted(set(group.parents))
    return Graph(graph.title, groups)


def _group(rows: list[GraphNode], by: str) -> GraphNode:
    first = rows[0]
    name = first.name
    if by == "lines" and first.line is not None:
        name = first.line.text or first.line.place
    elif by == "functions" and first.line is not None:
        name = first.line.function or first.line.place
    if len(rows) == 1:
        copy = GraphNode(name, first.kind, [], first.line)
        for attribute in ("shape", "value", "gradient", "saved", "seconds", "is_odd", "has_odd_gradient", "is_result"):
            setattr(copy, attribute, getattr(first, attribute))
        copy.contents = first.name
        return copy
    group = GraphNode(name, LEAF if first.kind == LEAF else HOST if any(r.kind == HOST for r in rows) else "row", [], first.line)
    group.members = len(rows)
    group.saved, group.seconds = sum(row.saved for row in rows), sum(row.seconds for row in rows)
    for attribute in ("is_odd", "has_odd_gradient", "is_result"):
        setattr(group, attribute, any(getattr(row, attribute) for row in rows))
    counts = Counter(row.name for row in rows)
    group.value = "of the last row " + rows[-1].value if rows[-1].value else ""
    group.gradient = "of the last row " + rows[-1].gradient if rows[-1].gradient else ""
    if len(counts) > 1 or by != "operations":
        group.contents = ", ".join(f"{count} {one}" for one, count in counts.most_common(8))
    return group
