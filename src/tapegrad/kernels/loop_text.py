"""Text of loops over a block of elements, from that of rules: by the C library, or with what NumPy's loops give for the block."""

from __future__ import annotations

import ast
from collections import Counter
from collections.abc import Callable

from tapegrad.engine.layout import BLOCK, ROOM_BLOCKS
from tapegrad.kernels.opcodes import BLOCKS, FUNCTIONS, OWN_LOOPS, calls_in, names_in

__all__ = ["loop_text", "two_ways"]


class _Shared(ast.NodeTransformer):
    """Calls that an expression has more than once are made once: the compiler cannot know that the C library's give the same."""

    def __init__(self, whole: ast.expr) -> None:
        self._counts = Counter(ast.unparse(node) for node in ast.walk(whole) if isinstance(node, ast.Call))
        self._names: dict[str, str] = {}
        self.lines: list[str] = []

    def visit_Call(self, node: ast.Call) -> ast.expr:
        text = ast.unparse(node)
        self.generic_visit(node)
        if self._counts[text] == 1:
            return node
        if text not in self._names:
            self._names[text] = f"shared{len(self._names)}"
            self.lines.append(f"{self._names[text]} = {ast.unparse(node)}")
        return ast.Name(self._names[text])


def loop_text(names: set[str], value: str, out: str = "out") -> list[str]:
    """Lines of a loop that computes an expression at each element."""
    kept = [f"value{k}" for k in range(ROOM_BLOCKS)]
    reads = [f"{name} = {name}s[j]" for name in ("x", "y", "w", "z", *kept) if name in names]
    whole = ast.parse(value, mode="eval").body
    shared = _Shared(whole)
    value = ast.unparse(shared.visit(whole))
    return ["for j in range(n):", *(f"    {line}" for line in (*reads, *shared.lines)), f"    {out}[j] = {value}"]


def two_ways(text: str, loop: Callable[[str], list[str]], is_value: bool = False) -> list[str]:
    """A loop that calls the C library for each element, and one that has what NumPy's loops gave for the block, or ours.

    Of what has a loop of ours there are two of the latter, with that loop and without. That writes a value that is nothing else.
    """
    if not _Staged(text).calls:
        return loop(text)
    lines = ["if functions == 0:", *_indented(loop(text))]
    if OWN_LOOPS[0] in calls_in(text):
        own = _Staged(text, with_own=True)
        rest = own.lines("out_at") if is_value and own.rest == "value0" else [*own.lines(), *loop(own.rest)]
        lines += [f"elif words_at(functions)[{_word(OWN_LOOPS[0])}] != 0:", *_indented(rest)]
    staged = _Staged(text)
    return [*lines, "else:", *_indented([*staged.lines(), *loop(staged.rest)])]


def _indented(lines: list[str]) -> list[str]:
    return [f"    {line}" for line in lines]


def _word(function: str) -> int:
    """Place of a function's loop in their table."""
    return 2 * [*FUNCTIONS, *OWN_LOOPS].index(function)


class _Staged(ast.NodeTransformer):
    """Calls of functions that NumPy has loops of, or we, become names of blocks of their values."""

    def __init__(self, text: str, with_own: bool = False) -> None:
        self.calls: list[tuple[str, list[str]]] = []
        self._names: dict[str, str] = {}
        self._own = OWN_LOOPS if with_own else []
        self.rest = ast.unparse(self.visit(ast.parse(text, mode="eval").body))

    def visit_Call(self, node: ast.Call) -> ast.expr:
        self.generic_visit(node)
        assert isinstance(node.func, ast.Name)
        if node.func.id in self._own:
            return self._value(node.func.id, [ast.unparse(a) for a in node.args])
        if node.func.id == "sigmoid":
            (x,) = map(ast.unparse, node.args)
            e = ast.unparse(self._value("exp", [f"-abs({x})"]))
            return ast.parse(f"where({x} >= 0.0, 1.0, {e}) / (1.0 + {e})", mode="eval").body
        if node.func.id == "logaddexp":
            x, y = (f"({ast.unparse(operand)})" for operand in node.args)
            distance = ast.unparse(ast.parse(f"-abs({x} - {y})", mode="eval"))
            rest = ast.unparse(self._value("log1p", [ast.unparse(self._value("exp", [distance]))]))
            return ast.parse(f"where({x} == {y}, {x} + 0.6931471805599453, maximum({x}, {y}) + {rest})", mode="eval").body
        if node.func.id in FUNCTIONS or node.func.id in BLOCKS:
            return self._value(node.func.id, [ast.unparse(a) for a in node.args])
        return node

    def _value(self, name: str, arguments: list[str]) -> ast.Name:
        key = f"{name}({', '.join(arguments)})"
        if key not in self._names:
            self._names[key] = f"value{len(self.calls)}"
            self.calls.append((name, arguments))
        return ast.Name(self._names[key])

    def lines(self, into: str = "") -> list[str]:
        """The calls, one after the other; what they are given is computed to the first two blocks of the room, values behind."""
        if len(self.calls) > ROOM_BLOCKS - 2:
            raise ValueError("a partial calls more functions than there are blocks for their values")
        lines = ["table = words_at(functions)"]
        for k, (name, arguments) in enumerate(self.calls):
            places = []
            for number, argument in enumerate(arguments):
                if argument in ("x", "y", "w", "z"):
                    places.append(f"{argument}_at")
                    continue
                lines += [f"given{number}_at = room_at + {8 * BLOCK * number}", f"given{number} = f64(given{number}_at, n)"]
                lines += loop_text(names_in(argument), argument, f"given{number}")
                places.append(f"given{number}_at")
            lines += [f"value{k}_at = {into or f'room_at + {8 * BLOCK * (2 + k)}'}", f"value{k}s = f64(value{k}_at, n)"]
            if name in BLOCKS:
                lines.append(f"{name}_block(n, {', '.join(f'f64({place}, n)' for place in places)}, value{k}s)")
                continue
            word, is_binary = _word(name), len(arguments) - 1
            lines.append(
                f"call_loop(table[{word}], table[{word + 1}], n, {places[0]}, 8, {places[-1]}, 8, value{k}_at, 8, {is_binary})"
            )
        return lines
