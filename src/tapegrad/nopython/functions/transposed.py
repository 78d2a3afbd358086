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
from tapegrad.nopython.tape.array_rows import carried_rows, residual_rows

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
    def solve_cotangent(A: Symbol, B: Symbol, vector: bool, left: bool) -> Symbol:
        if vector or not left:
            raise NotImplementedError("equations are written as A @ X = B here")
        return Symbol("solve", A, B)

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
    if op == "solve" and place == 1 and not node.options:
        return ON.solve_cotangent(ON.mT(args[0]), bar, False, True)
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


def _written(node: Symbol, text: Callable[[Any], str], moving: set[int]) -> str:
    """A symbol as a call; what moves is a tangent, whose value is zero and need not be computed."""
    op, options = node.op, node.options
    if op == "+" and _is_taken_away(node.args[1], moving):
        product = node.args[1]
        return f"residual(tape, {text(product.args[0].args[0])}, {text(product.args[1])}, {text(node.args[0])})"
    if _is_taken_away(node, moving):
        return f"residual(tape, {text(node.args[0].args[0])}, {text(node.args[1])}, 0.0)"
    args = [text(arg) for arg in node.args]
    if op == "matmul" and id(node.args[1]) in moving:
        return f"carried(tape, {args[0]}, {args[1]})"
    if op in CODES:
        return f"elementwise(tape, {args[0]}, {args[1]}, {CODES[op]})"
    if op == "unsqueeze":  # a vector is a row
        return args[0] if options == (-2,) else f"transposed({args[0]})"
    if op == "triangle":
        return f"triangle({args[0]}, {options[0]}, {options[1]})"
    if op == "solve" and not options:
        return f"solved(tape, {args[0]}, {args[1]})"
    if op == "solve":
        upper, left = options
        if left:
            return f"solved(tape, triangular({args[0]}, {upper}), {args[1]})"
        return f"transposed(solved(tape, triangular(transposed({args[0]}), {not upper}), transposed({args[1]})))"
    return FORMS[op].format(*args)


def _is_taken_away(node: Any, moving: set[int]) -> bool:
    """Whether a symbol is the product of a tangent, negated, and what is known."""
    return isinstance(node, Symbol) and node.op == "matmul" and node.args[0].op == "neg" and id(node.args[0]) in moving


def _text(wanted: Sequence[Symbol], moved: Sequence[Symbol], names: dict[int, str], arguments: str) -> str:
    """A function that computes symbols; what is used once stands where it is used."""
    moving = {id(symbol) for symbol in moved}
    uses: dict[int, int] = {}
    nodes: dict[int, Symbol] = {}
    for end in wanted:
        for node in _order(end):
            nodes.setdefault(id(node), node)
            if any(id(operand) in moving for operand in node.symbols):
                moving.add(id(node))
    for node in [*nodes.values(), Symbol("result", *wanted)]:
        for operand in node.symbols:
            uses[id(operand)] = uses.get(id(operand), 0) + 1
    lines = [f"def tangents({arguments}):"]

    def text(value: Any) -> str:
        if not isinstance(value, Symbol):
            return f"number({float(value)})"
        return names[id(value)] if id(value) in names else _written(value, text, moving)

    for key, node in nodes.items():
        if key not in names and uses[key] > 1:
            lines.append(f"    t{len(lines)} = {_written(node, text, moving)}")
            names[key] = f"t{len(lines) - 1}"
    lines.append(f"    return {', '.join(map(text, wanted))},")
    return "\n".join(lines)


@functools.cache
def tangents(
    cotangents: Callable[..., Any],
    outputs: int,
    asked: tuple[int, ...],
    others: int = 0,
    flags: tuple[Any, ...] = (),
    operands: int = 1,
    in_place: bool = False,
) -> Any:
    """A function, to be recorded, of the tangents of some outputs of an operation by those of its operands.

    Parameters
    ----------
    cotangents : callable
        The cotangent of the operand, or of each: of `ON`, the cotangents of the outputs, what is known besides, the outputs, and
        flags.
    outputs : int
        How many outputs there are.
    asked : tuple of int
        Which of them are asked for.
    others : int
        How many operands are known besides.
    flags : tuple
        Given to the text as they are.
    operands : int
        How many cotangents the text gives.
    in_place : bool
        Whether products are written where they are used: a longer text is sooner compiled if each is a function.

    Returns
    -------
    Dispatcher
        A function of the tape, what is known, the outputs, and the tangents of the operands; it returns a tuple. All are matrices
        as in `matrix_operations`, or of numbers where they are constant. A matrix of equations is given with its inverse.
    """
    bars = [Symbol("bar") for _ in range(outputs)]
    known = [Symbol("known") for _ in range(others + outputs)]
    given = cotangents(ON, *bars, *known, *flags)
    ends = [given] if operands == 1 else list(given)
    nodes = _order(Symbol("all", *ends))[:-1]
    depends = {id(bars[k]) for k in asked}
    for node in nodes:
        if any(id(operand) in depends for operand in node.symbols):
            depends.add(id(node))
    moved = [Symbol("tangent") for _ in ends]
    found: dict[int, Symbol] = {id(end): tangent for end, tangent in zip(ends, moved, strict=True)}
    for node in reversed(nodes):
        if id(node) in depends and id(node) in found:
            for place, operand in enumerate(node.args):
                if id(operand) in depends:
                    more = _transposed(node, found[id(node)], place)
                    found[id(operand)] = found[id(operand)] + more if id(operand) in found else more
    names = {id(symbol): f"k{k}" for k, symbol in enumerate(known)} | {id(symbol): f"d{k}" for k, symbol in enumerate(moved)}
    arguments = ", ".join(["tape", *(f"k{k}" for k in range(len(known))), *(f"d{k}" for k in range(operands))])
    text = _text([found[id(bars[k])] for k in asked], moved, names, arguments)
    space: dict[str, Any] = {made: getattr(matrix_operations, made) for made in matrix_operations.__all__} | {"__name__": __name__}
    if in_place:
        space |= {"carried": carried_rows, "residual": residual_rows}
    exec(compile(text, f"<tapegrad {cotangents.__name__}>", "exec"), space)
    return part(space["tangents"])
