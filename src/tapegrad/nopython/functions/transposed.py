"""Derivatives of decompositions forwards, out of the text that `tapegrad.linalg` has of them backwards.

A vjp is linear in the cotangents, and written with a few operations on matrices. It is run once on symbols, which remember what
was done with them; read from its end to its beginning, that is the derivative forwards: the tangents of the results by that of the
matrix.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any, NamedTuple

from tapegrad.linalg.matrices import mirrored
from tapegrad.linalg.matrix_cotangents import matrix_cotangent
from tapegrad.linalg.vector_gaps import between_eigenvectors, between_singular_vectors

__all__ = ["Symbol", "Tangents", "is_taken_away", "tangents"]


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
    def between_eigenvectors(turned: Any, g_values: Any, values: Any) -> Any:
        return between_eigenvectors(turned, g_values, values, ON)

    @staticmethod
    def between_singular_vectors(left: Any, right: Any, g_values: Any, values: Any) -> Any:
        return between_singular_vectors(left, right, g_values, values, ON)

    @staticmethod
    def triangle(x: Symbol, upper: bool, strict: bool = False) -> Symbol:
        return Symbol("triangle", x, options=(upper, strict))

    @staticmethod
    def mirrored(x: Symbol) -> Any:
        return mirrored(x, ON)  # type: ignore[arg-type]

    @staticmethod
    def matrix_cotangent(b_bar: Any, x: Any, left: bool = True) -> Any:
        return matrix_cotangent(b_bar, x, left, ON)

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


class Tangents(NamedTuple):
    """What is asked for, of symbols that are known and of tangents of the operands."""

    wanted: list[Symbol]
    known: list[Symbol]
    moved: list[Symbol]

    def moving(self) -> set[int]:
        """Which symbols are tangents, so that their values are zero and need not be computed."""
        found = {id(symbol) for symbol in self.moved}
        for node in self.nodes():
            if any(id(operand) in found for operand in node.symbols):
                found.add(id(node))
        return found

    def nodes(self) -> list[Symbol]:
        """All that is asked for is made of, each behind its operands."""
        return _order(Symbol("result", *self.wanted))[:-1]

    def shared(self) -> list[Symbol]:
        """What is used more than once, and so computed before the rest."""
        uses: dict[int, int] = {}
        for node in [*self.nodes(), Symbol("result", *self.wanted)]:
            for operand in node.symbols:
                uses[id(operand)] = uses.get(id(operand), 0) + 1
        return [node for node in self.nodes() if uses[id(node)] > 1]


def is_taken_away(node: Any, moving: set[int]) -> bool:
    """Whether a symbol is the product of a tangent, negated, and what is known."""
    return isinstance(node, Symbol) and node.op == "matmul" and node.args[0].op == "neg" and id(node.args[0]) in moving


@functools.cache
def tangents(
    cotangents: Callable[..., Any],
    outputs: int,
    asked: tuple[int, ...],
    others: int = 0,
    flags: tuple[Any, ...] = (),
    operands: int = 1,
) -> Tangents:
    """The tangents of some outputs of an operation by those of its operands.

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

    Returns
    -------
    Tangents
        Known are the operands, and then the outputs.
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
    return Tangents([found[id(bars[k])] for k in asked], known, moved)
