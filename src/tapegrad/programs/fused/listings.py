"""LLVM's text of a path: functions, and the list of which are called for which places."""

from __future__ import annotations

import struct
from typing import Any

from tapegrad.programs.fused.expressions import Expressions
from tapegrad.programs.fused.loop_code import loop_code
from tapegrad.programs.fused.product_code import product_code
from tapegrad.programs.fused.schedule import Group, host_of, is_product
from tapegrad.programs.fused.shared_functions import Places, structure
from tapegrad.programs.fused.straight_code import PIECE, pieces_of, straight_code

__all__ = ["Listing"]

FEW = 64  # numbers that are computed in one function whether or not they have to do with each other
RUN = """\
define void @run(ptr %operands, ptr %counts, ptr %strides, ptr %table) {{
begin:
%first = getelementptr i64, ptr %table, i64 {place}
%from = load i64, ptr %first, align 8
%last = getelementptr i64, ptr %first, i64 1
%to = load i64, ptr %last, align 8
br label %head
head:
%at = phi i64 [%from, %begin], [%next, %body]
%is_more = icmp slt i64 %at, %to
br i1 %is_more, label %body, label %end
body:
%call = getelementptr i64, ptr @calls, i64 %at
%number = load i64, ptr %call, align 8
%length = getelementptr i64, ptr %call, i64 1
%step = load i64, ptr %length, align 8
%words = getelementptr i64, ptr %call, i64 2
%place = getelementptr ptr, ptr @functions, i64 %number
%function = load ptr, ptr %place, align 8
call void %function(ptr %table, ptr %words)
%next = add i64 %at, %step
br label %head
end:
ret void
}}"""


class Listing:
    """Text of a path's functions, as groups are added in their order.

    Attributes
    ----------
    stops : list of (int, int)
        Where the list of calls is left for what Python does, with its number.
    """

    def __init__(self, graph: Expressions) -> None:
        self._graph = graph
        self._bodies: list[str] = []
        self._declared: set[str] = set()
        self._names: list[str] = []
        self._calls: list[int] = []
        self.stops: list[tuple[int, int]] = []
        self._alike: dict[Any, list[tuple[Group, tuple[int, ...]]]] = {}  # groups with their numbers, by what they have in common
        self._in_order: list[tuple[Any, Group, Places]] = []
        self._known: dict[Any, int] = {}  # functions that there are

    def add(self, group: Group) -> None:
        """A group, or the parts of one that has many."""
        if host_of(group) >= 0:
            self._in_order.append((None, group, Places(self._graph)))
            return
        places = Places(self._graph)
        key, constants = structure(group, places)
        if len(key) > FEW and not group.space and len(parts := group.parts()) > 1:
            for part in parts:
                self.add(part)
            return
        self._alike.setdefault(key, []).append((group, constants))
        self._in_order.append((key, group, places))

    def _read_numbers(self) -> None:
        """Numbers in which groups differ that are alike otherwise are read from memory."""
        for alike in self._alike.values():
            for nodes in zip(*(constants for _, constants in alike), strict=True):
                values = [struct.pack("<d", self._graph.constants[node]) for node in nodes]
                if len(set(values)) > 1:
                    for (group, _), node in zip(alike, nodes, strict=True):
                        group.read(node, self._graph.given(self._graph.constants[node]))

    def _function(self, key: Any, group: Group, places: Places) -> None:
        """The function of a group, or the one that does the same at other places."""
        if group.reads_numbers:
            places = Places(self._graph)
            key, constants = structure(group, places)
        else:
            constants = self._alike[key][0][1] if len(key) <= PIECE or group.space else ()
        key = key, tuple(struct.pack("<d", self._graph.constants[node]) for node in constants)
        if key in self._known:
            self._call(self._known[key], places)
            return
        name = f"f{len(self._names)}"
        if is_product(group):
            text, declared = product_code(group, places)
        elif group.space:
            text, declared = loop_code(group, places)
        elif len(key[0]) <= PIECE:
            text, declared = straight_code(group, places)
        else:
            self._add_pieces(group, name)
            return
        self._known[key] = len(self._names)
        self._add(name, text, declared, places)

    def _add_pieces(self, group: Group, name: str) -> None:
        """Numbers in functions that a compiler is quick with."""
        for own, text, declared, places in pieces_of(group, name):
            self._add(own, text, declared, places)

    def _add(self, name: str, text: list[str], declared: set[str], places: Places) -> None:
        head = f"define internal void @{name}(ptr %table, ptr %words) {{"
        self._bodies += [head, *places.head, *text, "ret void", "}"]
        self._declared |= declared
        self._names.append(name)
        self._call(len(self._names) - 1, places)

    def _call(self, function: int, places: Places) -> None:
        self._calls += function, 2 + len(places.words), *places.words

    @property
    def count(self) -> int:
        """How many words the list of calls has."""
        return len(self._calls)

    def text(self) -> str:
        """All of it, with ``void run(ptr, ptr, ptr, ptr table)``."""
        self._read_numbers()
        for key, group, places in self._in_order:
            if key is None:
                self.stops.append((len(self._calls), host_of(group)))
            else:
                self._function(key, group, places)
        calls = ", ".join(f"i64 {word}" for word in self._calls)
        functions = ", ".join(f"ptr @{name}" for name in self._names)
        return "\n".join(
            [
                *sorted(self._declared),
                *self._bodies,
                f"@calls = internal constant [{len(self._calls)} x i64] [{calls}]",
                f"@functions = internal constant [{len(self._names)} x ptr] [{functions}]",
                RUN.format(place=len(self._graph.sizes)),
            ]
        )
