"""Numbers as code without loops or branches, in pieces that a compiler is quick with."""

from __future__ import annotations

from tapegrad.programs.fused.expressions import NUMBERS, Expressions
from tapegrad.programs.fused.lines import Lines
from tapegrad.programs.fused.schedule import COMPARISONS, Group

__all__ = ["straight_code"]

PIECE = 1200  # nodes, compilation is superlinear in them


def straight_code(graph: Expressions, group: Group, name: str) -> tuple[list[str], set[str], list[str]]:
    """Functions ``void name(ptr table)``, declarations, and their names in order."""
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
    text: list[str] = []
    declared: set[str] = set()
    for number, piece in enumerate(pieces):
        effects = [e for e in group.effects if piece_of.get(e.node, 0) == number]
        own = _Piece(group, {k: slot for k, slot in slots.items() if piece_of[k] != number})
        for node in piece:
            made = own.value(node)
            if node in slots:
                own.lines.do(f"store double {made}, ptr {own.place(NUMBERS, slots[node])}, align 8")
        for effect in effects:
            own.lines.do(f"store double {own.value(effect.node)}, ptr {own.place(effect.buffer, effect.offset)}, align 8")
        declared |= own.lines.declared
        text += [f"define internal void @{name}.{number}(ptr %table) {{", *own.head.lines, *own.lines.lines, "ret void", "}"]
    return text, declared, [f"{name}.{number}" for number in range(len(pieces))]


class _Piece:
    def __init__(self, group: Group, stored: dict[int, int]) -> None:
        self.group, self.graph, self.stored = group, group.graph, stored
        self.lines, self.head = Lines(), Lines()
        self._names: dict[int, str] = {}
        self._buffers: dict[int, str] = {}

    def place(self, buffer: int, offset: int) -> str:
        if buffer not in self._buffers:
            self.head.do(f"%t{buffer} = getelementptr ptr, ptr %table, i64 {buffer}")
            self.head.do(f"%p{buffer} = load ptr, ptr %t{buffer}, align 8")
            self._buffers[buffer] = f"%p{buffer}"
        return self.lines.element(self._buffers[buffer], offset)

    def value(self, node: int) -> str:
        if node not in self._names:
            self._names[node] = self._made(node)
        return self._names[node]

    def _made(self, node: int) -> str:
        operation, *operands = self.group.node(node)
        if operation == "constant":
            return self.lines.constant(self.graph.constants[node], 1)
        if operation == "load":
            return self.lines.new(f"load double, ptr {self.place(operands[0], operands[1])}, align 8")
        if node in self.stored:
            return self.lines.new(f"load double, ptr {self.place(NUMBERS, self.stored[node])}, align 8")
        if operation == "call":
            return self.lines.call(operands[0], [self.value(k) for k in operands[1:]], 1)
        return self.lines.operation(operation, [self.value(k) for k in operands], 1)
