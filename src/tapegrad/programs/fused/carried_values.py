"""Values that a walk along a vector has computed some elements before: they are carried along instead of being computed again."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Sequence
from itertools import pairwise
from typing import Any

from tapegrad.programs.fused.schedule import COMPARISONS, Group

__all__ = ["carried_values", "in_order"]

MANY = 100  # nodes of a walk from which on registers are wanted for something else
MOST = 4  # values that are carried
WORTH = 3  # operations that have to be spared

Carried = dict[int, tuple[int, int]]  # a node: which one it was, and how many elements before


def carried_values(
    group: Group, nodes: Sequence[int], wanted: Collection[int], inner: Callable[[tuple[int, ...]], int], lanes: int
) -> Carried:
    """Nodes that are what others were some elements before.

    Parameters
    ----------
    group : Group
    nodes : sequence of int
        Those of the walk, operands first.
    wanted : collection of int
        What it is made for.
    inner : callable
        The step along the vector for strides.
    lanes : int
        How many elements are computed at once: no value is carried farther.
    """
    if len(nodes) > MANY:
        return {}
    found: Carried = {}
    count = len(in_order(group, wanted, found))
    for node, (other, distance) in sorted(_alike(group, nodes, inner).items(), reverse=True):
        if distance >= lanes or len(found) == MOST:
            continue
        shorter = len(in_order(group, wanted, {**found, node: (other, distance)}))
        if count - shorter >= WORTH:
            found[node], count = (other, distance), shorter
    return found


def in_order(group: Group, wanted: Iterable[int], carried: Carried, stored: Collection[int] = ()) -> list[int]:
    """Nodes that are computed for others, operands first, and what is carried after what it was."""
    order: dict[int, None] = {}
    pending = sorted(wanted, reverse=True)
    while pending:
        k = pending[-1]
        before = [] if k in stored else [carried[k][0]] if k in carried else group.operands_of(k)
        missing = [] if k in order else [x for x in before if x not in order]
        pending += missing
        if not missing:
            order[pending.pop()] = None
    return list(order)


def _alike(group: Group, nodes: Sequence[int], inner: Callable[[tuple[int, ...]], int]) -> Carried:
    """Nodes that are the same expression at later elements: the nearest one, and how far it is."""
    numbers: dict[Any, int] = {}  # of expressions, but for the element at which they begin
    forms: dict[int, tuple[int, int | None]] = {}
    places: dict[int, list[tuple[int, int]]] = {}
    for k in nodes:
        operation, *own = group.node(k)
        start: int | None = None
        if operation == "load":
            buffer, offset, strides = own
            step = inner(strides)
            start = offset if step == 1 else None
            key: Any = (operation, buffer, strides, None if step == 1 else offset)
        elif operation == "constant":
            key = operation, k
        else:
            operands = group.operands_of(k)
            of_operands = [forms[x] for x in operands]
            start = min((first for _, first in of_operands if first is not None), default=None)
            key = (
                *(operation, *own[: len(own) - len(operands)]),
                *((form, None if first is None or start is None else first - start) for form, first in of_operands),
            )
        number = numbers.setdefault(key, len(numbers))
        forms[k] = number, start
        if start is not None and operation != "load" and operation not in COMPARISONS:  # which are no numbers
            places.setdefault(number, []).append((start, k))
    found: Carried = {}
    for one in places.values():
        one.sort()
        found.update((node, (other, later - start)) for (start, node), (later, other) in pairwise(one))
    return found
