"""The order of evaluation: what is computed together, in one walk over the elements of a space."""

from __future__ import annotations

from collections.abc import Collection
from typing import NamedTuple

from tapegrad.programs.fused.expressions import NUMBERS, Effect, Expressions, Shape

__all__ = ["Group", "needed_by", "operands_of", "scheduled"]


class Group(NamedTuple):
    """Effects over one space, none of which reads what another one of them writes."""

    space: Shape
    effects: list[Effect]


def operands_of(graph: Expressions, node: int) -> list[int]:
    """The nodes that a node is computed from; what it loads is in memory already."""
    operation, *operands = graph.nodes[node]
    if operation in ("load", "constant"):
        return []
    return operands[1:] if operation in ("call", "loop") else operands


def needed_by(graph: Expressions, effects: Collection[Effect]) -> list[int]:
    """The nodes that effects need, operands first."""
    pending = [effect.node for effect in effects]
    found = set(pending)
    while pending:
        for k in operands_of(graph, pending.pop()):
            if k not in found:
                found.add(k)
                pending.append(k)
    return sorted(found)


def scheduled(graph: Expressions, buffers: Collection[int], slots: Collection[int]) -> list[Group]:
    """The groups in which buffers and numbers are computed, in their order; what nobody needs is left out."""
    writers: dict[tuple[int, int], list[Effect]] = {}
    for effect in graph.effects:
        writers.setdefault(_place(effect.buffer, effect.offset), []).append(effect)
    wanted = [_place(buffer, 0) for buffer in buffers] + [(NUMBERS, slot) for slot in slots]
    pending = [effect for place in wanted for effect in writers.get(place, ())]
    live, seen = list(pending), set(wanted)
    nodes: set[int] = set()
    while pending:
        stack = [pending.pop().node]
        while stack:
            node = stack.pop()
            if node in nodes:
                continue
            nodes.add(node)
            stack += operands_of(graph, node)
            place = _read(graph, node)
            if place is not None and place not in seen:
                seen.add(place)
                pending += writers.get(place, ())
                live += writers.get(place, ())
    levels: dict[int, int] = {}
    for node in sorted(nodes):  # operands come first, and so does what writes the memory that a node reads
        place = _read(graph, node)
        if place is not None:
            levels[node] = max((1 + levels[effect.node] for effect in writers.get(place, ())), default=0)
        else:
            levels[node] = max((levels[k] for k in operands_of(graph, node)), default=0)
    groups: dict[tuple[int, Shape], list[Effect]] = {}
    for effect in live:
        groups.setdefault((levels[effect.node], graph.spaces[effect.node]), []).append(effect)
    return [Group(space, effects) for (_, space), effects in sorted(groups.items(), key=lambda item: item[0][0])]


def _place(buffer: int, offset: int) -> tuple[int, int]:
    return buffer, offset if buffer == NUMBERS else 0


def _read(graph: Expressions, node: int) -> tuple[int, int] | None:
    operation, *operands = graph.nodes[node]
    return _place(operands[0], operands[1]) if operation == "load" else None
