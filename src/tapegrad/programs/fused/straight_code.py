"""Numbers as code without loops or branches, in pieces that a compiler is quick with."""

from __future__ import annotations

from collections.abc import Iterator

from tapegrad.programs.fused.expressions import NUMBERS, Effect
from tapegrad.programs.fused.lines import Lines
from tapegrad.programs.fused.schedule import COMPARISONS, Group
from tapegrad.programs.fused.shared_functions import Places
from tapegrad.programs.fused.single_precision import FLOAT32, loop_named

__all__ = ["PIECE", "pieces_of", "straight_code"]

PIECE = 1200  # nodes, compilation is superlinear in them


def straight_code(group: Group, places: Places) -> tuple[list[str], set[str]]:
    """Lines of a function, and declarations."""
    own = _Piece(group, {}, places)
    for node in group.needed():  # in their order: a chain may be deep
        if group.node(node)[0] not in ("constant", "load"):
            own.value(node)
    for effect in group.effects:
        own.write(effect)
    return [*own.head.lines, *own.lines.lines], own.lines.declared


def pieces_of(group: Group, name: str) -> Iterator[tuple[str, list[str], set[str], Places]]:
    """The same of many numbers: names, lines, declarations and places of functions, in their order."""
    graph = group.graph
    nodes = [k for k in group.needed() if group.node(k)[0] not in ("constant", "load")]
    pieces = [nodes[k : k + PIECE] for k in range(0, len(nodes), PIECE)] or [[]]
    piece_of = {node: number for number, piece in enumerate(pieces) for node in piece}
    slots: dict[int, int] = {}  # of what later pieces need
    for number, piece in enumerate(pieces):
        pending = [k for node in piece for k in group.operands_of(node)]
        while pending:
            k = pending.pop()
            if piece_of.get(k, number) != number:
                if group.node(k)[0] in COMPARISONS:  # made again: it is no number
                    pending += group.operands_of(k)
                elif k not in slots:
                    slots[k] = graph.slot()
    for number, piece in enumerate(pieces):
        places = Places(graph, apart=False)
        own = _Piece(group, {k: slot for k, slot in slots.items() if piece_of[k] != number}, places)
        for node in piece:
            value = own.value(node)
            if node in slots:
                own.lines.do(f"store double {value}, ptr {own.place(NUMBERS, slots[node])}, align 8")
        for effect in group.effects:
            if piece_of.get(effect.node, 0) == number:
                own.write(effect)
        yield f"{name}.{number}", [*own.head.lines, *own.lines.lines], own.lines.declared, places


class _Piece:
    def __init__(self, group: Group, stored: dict[int, int], places: Places) -> None:
        self.group, self.graph, self.stored, self.places = group, group.graph, stored, places
        self.lines = Lines(group.graph.fast)
        self._names: dict[int, str] = {}
        self.head = Lines()
        self._has_room = False  # for the arguments of NumPy's loops

    def place(self, buffer: int, offset: int) -> str:
        return self.lines.element(*self.places.pointer(buffer, offset), buffer in self.graph.singles)

    def write(self, effect: Effect) -> None:
        value = self.value(effect.node)
        self.lines.store(value, self.place(effect.buffer, effect.offset), 1, effect.buffer in self.graph.singles)

    def value(self, node: int) -> str:
        if node not in self._names:
            self._names[node] = self._made(node)
        return self._names[node]

    def _made(self, node: int) -> str:
        operation, *operands = self.group.node(node)
        if operation == "constant":
            return self.lines.constant(self.graph.constants[node], 1)
        if operation == "load":
            return self.lines.read(self.place(operands[0], operands[1]), 1, operands[0] in self.graph.singles)
        if node in self.stored:
            return self.lines.new(f"load double, ptr {self.place(NUMBERS, self.stored[node])}, align 8")
        if operation == "call":
            return self.lines.call(operands[0], [self.value(k) for k in operands[1:]], 1)
        if operation == "loop":
            return self._by_loop(operands[0], [self.value(k) for k in operands[1:]])
        return self.lines.operation(operation, [self.value(k) for k in operands], 1)

    def _by_loop(self, name: str, values: list[str]) -> str:
        """NumPy's loop over one element, as NumPy calls it for numbers: without steps."""
        if not self._has_room:
            self._has_room = True
            self.head.do("%numbers = alloca [3 x double], align 16")
            self.head.do("%places = alloca [3 x ptr]")
            self.head.do("%count = alloca i64")
            self.head.do("%strides = alloca [3 x i64]")
        places = [self.lines.element("%numbers", k) for k in range(len(values) + 1)]
        is_single = loop_named(name)[1] == FLOAT32
        for place, value in zip(places, values, strict=False):
            self.lines.store(value, place, 1, is_single)
        steps = [0] * len(values) + [8]
        self.lines.called_loop(self.places.loop(name), list(zip(places, steps, strict=True)), 1, ("%places", "%count", "%strides"))
        return self.lines.read(places[-1], 1, is_single)
