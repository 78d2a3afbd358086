"""Statements in which temporaries of the user's stand as parts, on what is not a number: the parts are statements of their own.

An array that several elements of another one are made of is computed once, as it is written.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from numba.core import types

from tapegrad.nopython.formulas.expression_tree import Leaf, Node, Op, Shared
from tapegrad.nopython.numba_interface.linking import part
from tapegrad.nopython.statements.array_loops import leaves_of, renumbered
from tapegrad.nopython.types.variable import Variable

__all__ = ["are_numbers", "has_shared", "unfolded"]

NUMBERS = (types.Integer, types.Float, types.Boolean, Variable)


def are_numbers(kinds: tuple[types.Type, ...]) -> bool:
    """Whether all leaves are real numbers."""
    return all(isinstance(kind, NUMBERS) for kind in kinds)


def has_shared(node: Node) -> bool:
    """Whether temporaries stand in a statement."""
    return isinstance(node, Shared) or (isinstance(node, Op) and any(map(has_shared, node.args)))


def unfolded(tree: Node, count: int, statement: Callable[[Node], Any]) -> Any:
    """A compiled function of the tape and the leaves, in which each temporary is computed by itself."""
    space: dict[str, Any] = {}
    lines = [f"def apart({', '.join(['tape', *(f'l{k}' for k in range(count))])}):"]
    places: dict[Shared, Leaf] = {}

    def call(node: Node) -> str:
        numbers, name = leaves_of(node), f"part{len(space)}"
        space[name] = statement(renumbered(node, numbers))
        return f"{name}({', '.join(['tape', *(f'l{n}' for n in numbers)])})"

    def without(node: Node) -> Node:
        if isinstance(node, Shared):
            if node not in places:
                text, leaf = call(without(node.node)), Leaf(count + len(places))
                lines.append(f"    l{leaf.number} = {text}")
                places[node] = leaf
            return places[node]
        return node._replace(args=tuple(map(without, node.args))) if isinstance(node, Op) else node

    result = call(without(tree))
    exec(compile("\n".join([*lines, f"    return {result}"]), "<tapegrad temporaries>", "exec"), space)
    return part(space["apart"])
