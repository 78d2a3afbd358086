"""Loops that differ only in where they read and write are one function, which is given the places."""

from __future__ import annotations

from typing import Any

from tapegrad.programs.fused.expressions import NUMBERS, Expressions
from tapegrad.programs.fused.rule_text import Unfused
from tapegrad.programs.fused.schedule import Group, cleared, is_product
from tapegrad.programs.fused.single_precision import loop_named
from tapegrad.tape.library_loops import loop_of

__all__ = ["Places", "product_loop", "structure"]


class Places:
    """Pointers of one function: it is given pairs of a buffer and an offset in it, and the table of addresses.

    Parameters
    ----------
    graph : Expressions
    apart : bool
        Whether each number is a place of its own, so that functions with other numbers are the same.

    Attributes
    ----------
    words : list of int
        The pairs of the first group that the function was made for.
    head : list of str
        Lines that look the pointers up.
    """

    def __init__(self, graph: Expressions, apart: bool = True) -> None:
        self.graph, self._apart = graph, apart
        self.words: list[int] = []
        self.head: list[str] = []
        self._pairs: dict[tuple[int, int], tuple[int, int]] = {}
        self._named: set[int] = set()

    def pair(self, buffer: int, offset: int) -> tuple[int, int]:
        """The number of a pair, and how far a place lies behind it."""
        is_apart = buffer == NUMBERS and self._apart
        key = buffer, offset if is_apart else -1
        if key not in self._pairs:
            first = 0 if buffer == NUMBERS and not is_apart else offset
            self._pairs[key] = len(self._pairs), first
            self.words += buffer, first
        number, first = self._pairs[key]
        return number, offset - first

    def pointer(self, buffer: int, offset: int) -> tuple[str, int]:
        """The name of a pointer, and how far a place lies behind it."""
        number, rest = self.pair(buffer, offset)
        name = f"%p{number}"
        if number not in self._named:
            self._named.add(number)
            self.head += [
                f"{name}.b = getelementptr i64, ptr %words, i64 {2 * number}",
                f"{name}.n = load i64, ptr {name}.b, align 8",
                f"{name}.t = getelementptr ptr, ptr %table, i64 {name}.n",
                f"{name}.a = load ptr, ptr {name}.t, align 8",
                f"{name}.o = getelementptr i64, ptr %words, i64 {2 * number + 1}",
                f"{name}.f = load i64, ptr {name}.o, align 8",
                f"{name} = getelementptr {'float' if buffer in self.graph.singles else 'double'}, ptr {name}.a, i64 {name}.f",
            ]
        return name, rest

    def loop(self, name: str) -> tuple[str, str]:
        """Names of the address of a loop of NumPy's, and of what it is given."""
        function, data = self.loop_places(name)
        return self.pointer(function, 0)[0], self.pointer(data, 0)[0]

    def loop_places(self, name: str) -> tuple[int, int]:
        """Where these stand in the table.

        Raises
        ------
        Unfused
            If there is no such loop.
        """
        loops = self.graph.loops
        if name not in loops:
            function, data = loop_of(*loop_named(name))
            if not function:
                raise Unfused(f"no loop of {name}")
            loops[name] = tuple((self.graph.buffer(0), address) for address in (function, data))  # type: ignore[assignment]
        return loops[name][0][0], loops[name][1][0]


def product_loop(group: Group) -> str:
    """The name of the loop of a product of matrices."""
    return "matmul.f" if group.effects[0].buffer in group.graph.singles else "matmul"


def structure(group: Group, places: Places) -> tuple[tuple[Any, ...], tuple[int, ...]]:
    """What the text of a function is made of, but for its places and numbers: the places are numbered as they are met.

    Returns
    -------
    tuple
        The same for functions of which one is enough.
    tuple of int
        The nodes of numbers that are the same in each run, in their order.
    """
    graph = group.graph
    nodes = group.needed()
    index = {k: number for number, k in enumerate(nodes)}
    found: list[Any] = [group.space]
    for k in nodes:
        operation, *operands = group.node(k)
        if operation == "load":
            operands = [*places.pair(operands[0], operands[1]), operands[2], operands[0] in graph.singles]
        elif operation in ("call", "loop"):
            name, *own = operands
            operands = [name, *(index[x] for x in own)]
            if operation == "loop":
                operands += [places.pair(place, 0) for place in places.loop_places(name)]
        elif operation == "constant":
            operands = []
        else:
            operands = [index[x] for x in operands]
        found.append((operation, *operands, graph.spaces[k]))
    found += [
        (index[e.node], *places.pair(e.buffer, e.offset), e.strides, e.adds, e.buffer in graph.singles) for e in group.effects
    ]
    found += [(*places.pair(buffer, 0), graph.sizes[buffer]) for buffer in cleared(group)]
    if is_product(group):
        found += [places.pair(place, 0) for place in places.loop_places(product_loop(group))]
    return tuple(found), tuple(k for k in nodes if group.node(k)[0] == "constant")
