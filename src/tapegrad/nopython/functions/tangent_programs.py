"""Derivatives of decompositions as programs, from the symbols that their text was read backwards to.

First derivatives are what the text says at the values, and second ones what it says half way.
"""

from __future__ import annotations

import functools
import struct
from collections.abc import Callable
from typing import Any, NamedTuple

from tapegrad.nopython.functions.transposed import Symbol, Tangents, is_taken_away, tangents
from tapegrad.nopython.tape import matrix_programs as do
from tapegrad.nopython.tape.matrix_programs import Operation

__all__ = ["Part", "Program", "Result", "Rows"]

Shapes = list[tuple[Any, ...]]  # of the operand, and of the arrays that are given with it
Bound = Callable[[Shapes], Any]


class Part(NamedTuple):
    """An array that a program takes, or some of its columns: the operand is number 0. A vector is a row."""

    array: int
    turned: bool = False
    first: Bound | None = None
    end: Bound | None = None


class Result(NamedTuple):
    """An array that a decomposition gives: its numbers, and which tangent its rows are of; both may be turned."""

    numbers: int
    tangent: int
    turned: bool = False


class Rows(NamedTuple):
    """What makes the rows of a decomposition's results."""

    cotangent: Callable[..., Any]
    outputs: int
    asked: tuple[int, ...]
    operand: Part
    known: tuple[Part, ...]  # the outputs
    results: tuple[Result, ...]
    others: int = 0  # 1 if the text needs the operand itself
    flags: tuple[Any, ...] = ()
    more: Callable[[Program], None] = lambda program: None  # what is left to be done behind that

    def tangents(self, asked: tuple[int, ...]) -> Tangents:
        """Tangents of some outputs."""
        return tangents(self.cotangent, self.outputs, asked, self.others, self.flags)

    @functools.cache  # noqa: B019 - there are a dozen of these, which live as long as the module
    def program(self, curved: bool, straight: bool) -> Program:
        """For tapes with second derivatives or without; `straight` where nobody asks for those."""
        return Program(self, curved, straight)


class Program:
    """Operations, and what they are given: parts of the arrays, and places of the results, which are numbered from -1 downwards."""

    def __init__(self, rows: Rows, curved: bool, straight: bool) -> None:
        self.operations: list[Operation] = []
        self.given: list[Part] = []
        self._moves: set[int] = set()
        self._curved, self._straight = curved, straight
        step = self.take(do.STEP, rows.operand)
        self._moves.add(step)
        known = [self.take(do.LIFTED, part) for part in (*[rows.operand] * rows.others, *rows.known)]
        if curved:
            self._curved, self._straight = False, True
            moved = self._of(rows.tangents(tuple(range(rows.outputs))), known, step)
            self._curved, self._straight = True, False
            moves = [*[step] * rows.others, *moved]
            known = [self.add(do.HALF_WAY, a, b, pairs=1) for a, b in zip(known, moves, strict=True)]
        self.moved = dict(zip(rows.asked, self._of(rows.tangents(rows.asked), known, step), strict=True))
        for number, (numbers, tangent, turned) in enumerate(rows.results):
            self.write(Part(numbers, turned), self.moved[tangent], Part(-1 - number, turned))
        rows.more(self)

    def words(self) -> list[int]:
        """All operations as the kernels read them."""
        return [word for operation in self.operations for word in operation]

    def _number(self, part: Part) -> int:
        self.given.append(part)
        return len(self.given) - 1

    def take(self, op: int, part: Part, b: int = 0) -> int:
        """The matrix of something given."""
        made = self.add(op, self._number(part), b)
        if op == do.COPIED or (op == do.WITH_ROWS and b in self._moves):
            self._moves.add(made)
        return made

    def write(self, numbers: Part, moved: int, target: Part) -> None:
        """Write numbers with the rows of a matrix to a place."""
        self.add(do.WRITTEN, self._number(numbers), moved, self._number(target))

    def add(self, op: int, a: int = 0, b: int = 0, c: int = 0, pairs: int = 0, seconds: int = 0, option: int = 0) -> int:
        """An operation; its number."""
        straight = int(self._straight)
        self.operations.append(Operation(op, a, b, c, pairs, seconds, straight, option))
        made = len(self.operations) - 1
        if pairs or (do.TRANSPOSED <= op <= do.TRIANGLE and a in self._moves):
            self._moves.add(made)
        return made

    def product(self, a: int, b: int) -> int:
        """A product of matrices."""
        of_a, of_b = a in self._moves, b in self._moves
        return self.add(do.PRODUCT, a, b, pairs=of_a + of_b, seconds=int(of_a and of_b))

    def _of(self, given: Tangents, known: list[int], step: int) -> list[int]:
        """Tangents by what is known and the step of the operand; in the order in which a function would compute them."""
        made = dict(zip(map(id, given.known), known, strict=True)) | {id(given.moved[0]): step}
        moving = given.moving()

        def of(node: Any) -> int:
            if not isinstance(node, Symbol):
                return self.add(do.NUMBER, option=_bits(float(node)))
            if id(node) not in made:
                made[id(node)] = self._made(node, of, moving)
            return made[id(node)]

        for node in given.shared():
            of(node)
        return [of(node) for node in given.wanted]

    def _made(self, node: Symbol, of: Callable[[Any], int], moving: set[int]) -> int:
        """A symbol by operations; what moves is a tangent, whose value is zero and need not be computed."""
        op, args, options = node.op, node.args, node.options
        if op == "+" and is_taken_away(args[1], moving):
            a, x, b = of(args[1].args[0].args[0]), of(args[1].args[1]), of(args[0])
            return self._residual(a, x, b)
        if is_taken_away(node, moving):
            return self._residual(of(args[0].args[0]), of(args[1]), -1)
        if op == "matmul" and id(args[1]) in moving:
            return self._carried(of(args[0]), of(args[1]))
        if op == "matmul":
            return self.product(of(args[0]), of(args[1]))
        if op in do.ELEMENTWISE:
            return self._elementwise(op, of(args[0]), of(args[1]))
        if op == "neg":
            return self._elementwise("*", of(-1.0), of(args[0]))
        if op == "solve" and options:
            return self._solved(args, options, of)
        a = of(args[0])
        if op == "unsqueeze" and options == (-2,):  # a vector is a row
            return a
        if op == "triangle":
            upper, strict = options
            return self.add(do.TRIANGLE, a, option=upper + 2 * strict)
        return self.add(PLAIN[op], a)

    def _residual(self, a: int, x: int, b: int) -> int:
        return self.add(do.RESIDUAL, a, x, b, pairs=1, seconds=int(x in self._moves))

    def _carried(self, x: int, a: int) -> int:
        return self.add(do.CARRIED, x, a, pairs=1, seconds=int(x in self._moves))

    def _elementwise(self, op: str, a: int, b: int) -> int:
        moves = a in self._moves or b in self._moves
        return self.add(do.ELEMENTWISE[op], a, b, pairs=2 * moves, seconds=3 * moves * (op in "*/"))

    def _solved(self, args: tuple[Any, ...], options: tuple[Any, ...], of: Callable[[Any], int]) -> int:
        """The solution of equations with a triangular matrix, whose right side is a tangent, by the inverse."""
        (upper, left), system = options, of(args[0])
        if not left:
            system, upper = self.add(do.TRANSPOSED, system), not upper
        inverse = self.add(do.INVERSE_OF_TRIANGLE, system, option=int(upper))
        right = of(args[1])
        if not left:
            right = self.add(do.TRANSPOSED, right)
        if self._curved:  # the inverse moves too, by the first term of Neumann's series
            self._straight = True
            known = self._carried(inverse, right)
            self._straight = False
            right = self._residual(system, known, right)
        found = self._carried(inverse, right)
        return found if left else self.add(do.TRANSPOSED, found)


PLAIN = {
    "mT": do.TRANSPOSED, "unsqueeze": do.TRANSPOSED, "identity": do.IDENTITY, "diagonal": do.DIAGONAL,
    "off_diagonal": do.OFF_DIAGONAL,
}  # fmt: skip


def _bits(number: float) -> int:
    """The word that a number is."""
    found: int = struct.unpack("q", struct.pack("d", number))[0]
    return found
