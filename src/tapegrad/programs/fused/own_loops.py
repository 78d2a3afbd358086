"""Loops of functions with last digits of their own over a block, in the place of NumPy's."""

from __future__ import annotations

import functools
from collections.abc import Sequence
from typing import Any

from tapegrad.programs.fused.expressions import Expressions
from tapegrad.programs.fused.lines import Lines

__all__ = ["own_loop", "replace_large"]


def own_loop(
    lines: Lines, parts: Sequence[tuple[int, Any, Any]], function: Expressions, source: str, target: str, limit: float | None
) -> str:
    """Compute a function of a block; whether there are numbers in it that are larger than its limit, if it has one.

    Parameters
    ----------
    parts : sequence
        How many elements at once, from where and to where.
    source, target : str
        Pointers to the arguments and to the values.
    """
    asked = ""
    for lanes, first, stop in parts:
        kind = "double" if lanes == 1 else f"<{lanes} x double>"
        states = [] if limit is None else [lines.constant(0.0, lanes)]
        body = functools.partial(_body, lines, function, source, target, lanes)
        for largest in lines.loop(first, stop, lanes, states, kind, body):
            own = lines.operation("ogt", [largest, lines.constant(float(limit or 0.0), lanes)], lanes)
            if lanes > 1:
                own = lines.new(f"icmp ne i{lanes} {lines.new(f'bitcast <{lanes} x i1> {own} to i{lanes}')}, 0")
            asked = lines.new(f"or i1 {asked}, {own}") if asked else own
    return asked


def _body(lines: Lines, function: Expressions, source: str, target: str, lanes: int, i: str, largest: Sequence[str]) -> list[str]:
    names: list[str] = []
    for k, (operation, *operands) in enumerate(function.nodes):
        if operation == "constant":
            names.append(lines.constant(function.constants[k], lanes))
        elif operation == "load":
            names.append(lines.read(lines.element(source, i), lanes))
        else:
            names.append(lines.operation(operation, [names[x] for x in operands], lanes))
    lines.store(names[-1], lines.element(target, i), lanes)
    found = []
    for before in largest:
        size = lines.operation("abs", [names[0]], lanes)
        is_larger = lines.operation("ogt", [size, before], lanes)  # never of nan
        found.append(lines.operation("where", [is_larger, size, before], lanes))
    return found


def replace_large(lines: Lines, size: Any, source: str, target: str, other: str, limit: float) -> None:
    """Take NumPy's values where arguments are too large: what an element is does not depend on its neighbours."""

    def body(i: str, states: list[str]) -> list[str]:
        x, own, numpys = (lines.read(lines.element(place, i), 1) for place in (source, target, other))
        is_large = lines.operation("ogt", [lines.operation("abs", [x], 1), lines.constant(limit, 1)], 1)
        lines.store(lines.operation("where", [is_large, numpys, own], 1), lines.element(target, i), 1)
        return states

    lines.loop(0, size, 1, [], "", body)
