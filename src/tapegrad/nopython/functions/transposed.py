"""Derivatives of decompositions forwards, out of the text that `tapegrad.linalg` has of them backwards.

A vjp is linear in the cotangents, and written with a few operations on matrices. It is run once on symbols, which remember what
was done with them; read from its end to its beginning, that is the derivative forwards: the tangents of the results by that of the
matrix. What comes out is the text of a function.
"""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

from tapegrad.nopython.functions import matrix_operations
from tapegrad.nopython.functions.matrix_operations import CODES
from tapegrad.nopython.numba_interface.linking import part

__all__ = ["tangents"]


class Symbol:
    """A matrix, or a vector, by the operation that gives it."""

    def __init__(self, op: str, *args: Any, options: tuple[Any, ...] = ()) -> None:
        self.op, self.args, self.options = op, args, options
        self.symbols = [arg for arg in args if isinstance(arg, Symbol)]

    def __add__(self, other: Any) -> Symbol:
        return Symbol("+", self, other)

    def __sub__(self, other: Any) -> Symbol:
        return Symbol("-", self, other)

    def __mul__(self, other: Any) -> Symbol:
        return Symbol("*", self, other)

    def __rmul__(self, other: Any) -> Symbol:
        return Symbol("*", other, self)

    def __truediv__(self, other: Any) -> Symbol:
        return Symbol("/", self, other)

    def __neg__(self) -> Symbol:
        return Symbol("neg", self)


class _Symbols:
    """What a vjp is written with, on symbols."""

    @staticmethod
    def matmul(x: Symbol, y: Symbol) -> Symbol:
        return Symbol("matmul", x, y)

    @staticmethod
    def mT(x: Symbol) -> Symbol:
        return x.args[0] if x.op == "mT" else Symbol("mT", x)

    @staticmethod
    def unsqueeze(x: Symbol, dim: int) -> Symbol:
        return Symbol("unsqueeze", x, options=(dim,))

    @staticmethod
    def identity_beside(x: Symbol) -> Symbol:
        return Symbol("identity", x)

    @staticmethod
    def off_diagonal(x: Symbol) -> Symbol:
        return Symbol("off_diagonal", x)

    @staticmethod
    def diagonal_matrix(x: Symbol) -> Symbol:
        return Symbol("diagonal_matrix", x)

    @staticmethod
    def triangle(x: Symbol, upper: bool, strict: bool = False) -> Symbol:
        return Symbol("triangle", x, options=(upper, strict))

    @staticmethod
    def triangular_cotangent(A: Symbol, B: Symbol, upper: bool, left: bool = True) -> Symbol:
        return Symbol("solve", A, B, options=(upper, left))


ON = _Symbols()


def _transposed(node: Symbol, bar: Symbol, place: int) -> Symbol:
    """What the bar of a node gives to the bar of one of its operands."""
    op, args = node.op, node.args
    other = args[1 - place] if len(args) == 2 else None
    if op == "+" or (op == "-" and place == 0):
        return bar
    if op in ("-", "neg"):
        return -bar
    if op == "*":
        return bar * other
    if op == "/" and place == 0:
        return bar / other
    if op == "matmul":
        return ON.matmul(bar, ON.mT(args[1])) if place == 0 else ON.matmul(ON.mT(args[0]), bar)
    if op == "mT":
        return ON.mT(bar)
    if op == "off_diagonal":
        return ON.off_diagonal(bar)
    if op == "diagonal_matrix":
        return Symbol("diagonal", bar)
    if op == "triangle":
        return Symbol("triangle", bar, options=node.options)
    if op == "solve" and place == 1:
        upper, left = node.options
        return ON.triangular_cotangent(ON.mT(args[0]), bar, not upper, left)
    raise NotImplementedError(f"the transpose of {op} at its operand {place} is not written here")


def _order(end: Symbol) -> list[Symbol]:
    """All that a symbol is made of, each behind its operands."""
    found: dict[int, Symbol] = {}

    def visit(node: Symbol) -> None:
        if id(node) not in found:
            for operand in node.symbols:
                visit(operand)
            found[id(node)] = node

    visit(end)
    return list(found.values())


FORMS = {
    "matmul": "product(tape, {0}, {1})", "mT": "transposed({0})", "identity": "identity({0}.shape[1])", "diagonal": "diagonal({0})",
    "neg": "elementwise(tape, number(-1.0), {0}, 2)", "off_diagonal": "off_diagonal({0})",
}  # fmt: skip


def _written(node: Symbol, text: Callable[[Any], str]) -> str:
    args = [text(arg) for arg in node.args]
    op, options = node.op, node.options
    if op in CODES:
        return f"elementwise(tape, {args[0]}, {args[1]}, {CODES[op]})"
    if op == "unsqueeze":  # a vector is a row
        return args[0] if options == (-2,) else f"transposed({args[0]})"
    if op == "triangle":
        return f"triangle({args[0]}, {options[0]}, {options[1]})"
    if op == "solve":
        upper, left = options
        if left:
            return f"solved(tape, {args[0]}, {args[1]}, {upper})"
        return f"transposed(solved(tape, transposed({args[0]}), transposed({args[1]}), {not upper}))"
    return FORMS[op].format(*args)


def _text(wanted: Sequence[Symbol], names: dict[int, str], arguments: str) -> str:
    """A function that computes symbols; what is used once stands where it is used."""
    uses: dict[int, int] = {}
    nodes: dict[int, Symbol] = {}
    for end in wanted:
        for node in _order(end):
            nodes.setdefault(id(node), node)
    for node in [*nodes.values(), Symbol("result", *wanted)]:
        for operand in node.symbols:
            uses[id(operand)] = uses.get(id(operand), 0) + 1
    lines = [f"def tangents({arguments}):"]

    def text(value: Any) -> str:
        if not isinstance(value, Symbol):
            return f"number({float(value)})"
        return names[id(value)] if id(value) in names else _written(value, text)

    for key, node in nodes.items():
        if key not in names and uses[key] > 1:
            lines.append(f"    t{len(lines)} = {_written(node, text)}")
            names[key] = f"t{len(lines) - 1}"
    lines.append(f"    return {', '.join(map(text, wanted))},")
    return "\n".join(lines)


@functools.cache
def tangents(
    cotangent: Callable[..., Any], outputs: int, asked: tuple[int, ...], others: int = 0, flags: tuple[Any, ...] = ()
) -> Any:
    """A function, to be recorded, of the tangents of some outputs of an operation by that of its operand.

    Parameters
    ----------
    cotangent : callable
        The cotangent of the operand: of `ON`, the cotangents of the outputs, what is known besides, the outputs, and flags.
    outputs : int
        How many outputs there are.
    asked : tuple of int
        Which of them are asked for.
    others : int
        How many operands are known besides.
    flags : tuple
        Given to the text as they are.

    Returns
    -------
    Dispatcher
        A function of the tape, what is known, the outputs, and the tangent of the operand; it returns a tuple. All are matrices as
        in `matrix_operations`.
    """
    bars = [Symbol("bar") for _ in range(outputs)]
    known = [Symbol("known") for _ in range(others + outputs)]
    end = cotangent(ON, *bars, *known, *flags)
    nodes = _order(end)
    depends = {id(bars[k]) for k in asked}
    for node in nodes:
        if any(id(operand) in depends for operand in node.symbols):
            depends.add(id(node))
    moved = Symbol("tangent")
    found: dict[int, Symbol] = {id(end): moved}
    for node in reversed(nodes):
        if id(node) in depends and id(node) in found:
            for place, operand in enumerate(node.args):
                if id(operand) in depends:
                    more = _transposed(node, found[id(node)], place)
                    found[id(operand)] = found[id(operand)] + more if id(operand) in found else more
    names = {id(symbol): f"k{k}" for k, symbol in enumerate(known)} | {id(moved): "d"}
    arguments = ", ".join(["tape", *(f"k{k}" for k in range(len(known))), "d"])
    text = _text([found[id(bars[k])] for k in asked], names, arguments)
    space: dict[str, Any] = {made: getattr(matrix_operations, made) for made in matrix_operations.__all__} | {"__name__": __name__}
    exec(compile(text, f"<tapegrad {cotangent.__name__}>", "exec"), space)
    return part(space["tangents"])
