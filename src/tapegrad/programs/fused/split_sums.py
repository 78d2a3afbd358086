"""Sums over a few elements more than are computed beside them: the rest is added on its own, so that one walk does for both.

The gradient of differences of neighbours is written in one piece but for its ends, while the sum of their functions goes over all
of them: the sum of the same elements, and of those at the ends.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

from tapegrad.programs.fused.expressions import CHEAP, NUMBERS, Axis, Effect, Expressions
from tapegrad.programs.fused.rule_text import ARITHMETIC, COMPARED

__all__ = ["with_split_sums"]

MOST = 8  # elements that are added on their own
ELEMENTWISE = frozenset([*ARITHMETIC.values(), *COMPARED.values(), "neg", "where", "abs", "constant", "load"])


def with_split_sums(graph: Expressions, nodes: Collection[int], effects: Sequence[Effect]) -> list[Effect]:
    """Effects of which sums over vectors go over the elements of others, where they compute the same.

    Parameters
    ----------
    graph : Expressions
    nodes : collection of int
        What the effects need.
    effects : sequence of Effect
    """
    written = {effect.buffer for effect in effects}
    found: list[Effect] = []
    beside = [e for e in effects if not e.adds and len(graph.spaces[e.node]) == 1 and _is_first(graph, e.node, written)]
    for effect in effects:
        space = graph.spaces[effect.node]
        extents = {graph.spaces[e.node][0] for e in beside} if effect.adds and len(space) == 1 and effect.buffer == NUMBERS else ()
        shorter = [m for m in extents if 0 <= space[0] - m <= MOST]
        if shorter and space[0] not in shorter and _is_first(graph, effect.node, written):
            found += _split(graph, nodes, effect, space[0], max(shorter)) or [effect]
        else:
            found.append(effect)
    return found


def _is_first(graph: Expressions, node: int, written: Collection[int]) -> bool:
    """Whether an expression is short, and of what nobody writes."""
    return graph.length(node) <= CHEAP and all(
        graph.nodes[k][0] in ELEMENTWISE and (graph.nodes[k][0] != "load" or graph.nodes[k][1] not in written)
        for k in _within(graph, node)
    )


def _within(graph: Expressions, node: int) -> set[int]:
    """The nodes of a short expression."""
    pending, found = [node], {node}
    while pending:
        operation, *own = graph.nodes[pending.pop()]
        if operation in ELEMENTWISE and operation not in ("constant", "load"):
            fresh = set(own) - found
            found |= fresh
            pending += fresh
    return found


def _split(graph: Expressions, nodes: Collection[int], effect: Effect, n: int, m: int) -> list[Effect]:
    """A sum of `n` elements as one of `m` and some others; empty if it has nothing in common with what is there."""
    shifted = [graph.at(effect.node, (Axis(start, 0, 1),), (m,)) for start in range(n - m + 1)]
    common = [sum(k in nodes and graph.nodes[k][0] not in ("constant", "load") for k in _within(graph, node)) for node in shifted]
    start = common.index(max(common))
    if not common[start]:
        return []
    slot = graph.slot()
    total = graph.load(NUMBERS, slot, (), ())
    for k in (*range(start), *range(start + m, n)):
        total = graph.node("add", total, graph.at(effect.node, (Axis(k, None, 0),), ()))
    return [Effect(shifted[start], NUMBERS, slot, (0,), True), Effect(total, effect.buffer, effect.offset, (), False)]
