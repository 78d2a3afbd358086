"""Inverses and solutions of linear systems: values of Numba's own functions, derivatives of the text that `tapegrad.linalg` has.

An inverse is the solution for the unit matrix. What is to be solved in a derivative is solved by the known inverse.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
from numba.core import types

from tapegrad.linalg.solving import solve_cotangents
from tapegrad.nopython.functions.transposed import Symbol, Tangents, is_taken_away, tangents
from tapegrad.nopython.numba_interface.linking import overload, part
from tapegrad.nopython.tape.array_rows import with_rows
from tapegrad.nopython.tape.matrix_rows import carried_rows, residual_rows
from tapegrad.nopython.tape.row_writing import primals
from tapegrad.nopython.types.curved_tape import is_curved, straight
from tapegrad.nopython.types.variable import has_variables

__all__ = ["inv", "solve"]


def _text(given: Tangents) -> str:
    """A function of the tape, the matrix with its inverse, the solution, and the tangents of both operands."""
    names = {
        id(symbol): name for symbols, name in ((given.known, "k"), (given.moved, "d")) for symbol, name in _named(symbols, name)
    }
    moving = given.moving()

    def text(node: Symbol) -> str:
        if id(node) in names:
            return names[id(node)]
        product, rest = (node.args[1], text(node.args[0])) if node.op == "+" else (node, "0.0")
        if is_taken_away(product, moving):
            return f"residual_rows(tape, {text(product.args[0].args[0])}, {text(product.args[1])}, {rest})"
        if node.op != "solve":
            raise NotImplementedError(f"{node.op} is not written for the tangent of a solution")
        system, right = node.args
        return f"carried_rows(tape, {text(system)}[1], {text(right)})"

    (wanted,) = given.wanted
    return f"def tangent(tape, k0, k1, d0, d1):\n    return {text(wanted)}"


def _named(symbols: list[Symbol], name: str) -> Iterator[tuple[Symbol, str]]:
    return ((symbol, f"{name}{k}") for k, symbol in enumerate(symbols))


def _solution_moved() -> Any:
    """That function: it is short, and compiled where it is used, as its operands are arrays of several types."""
    space: dict[str, Any] = {"carried_rows": carried_rows, "residual_rows": residual_rows, "__name__": __name__}
    text = _text(tangents(solve_cotangents, 1, (0,), others=1, operands=2))
    exec(compile(text, "<tapegrad solve_cotangents>", "exec"), space)
    return part(space["tangent"])


SOLUTION = _solution_moved()


def solution(tape, a, b, values, inverse):
    """The solution of linear equations, which is this one; b may be one number, that of a constant."""
    raise NotImplementedError


@overload(solution)
def _solution(tape, a, b, values, inverse):
    def first(tape, a, b, values, inverse):
        return with_rows(values, SOLUTION(tape, (primals(a), inverse), values, a, b))

    def second(tape, a, b, values, inverse):
        # Where the matrix stays and the solution has moved, the slope times the step is all that the solution moves by:
        # A dX = dB - dA (X + dX).
        system = primals(a), inverse
        moved = with_rows(values, SOLUTION(straight(tape), system, values, a, b))
        return with_rows(values, SOLUTION(tape, system, moved, a, b))

    return second if is_curved(tape) else first


def inv(tape, a):
    raise NotImplementedError


@overload(inv)
def _inv(tape, a):
    if not has_variables(a):
        return lambda tape, a: np.linalg.inv(a)

    def impl(tape, a):
        values = np.linalg.inv(primals(a))
        return solution(tape, a, 1.0, values, values)

    return impl


def solve(tape, a, b):
    raise NotImplementedError


@overload(solve)
def _solve(tape, a, b):
    if not has_variables(types.Tuple((a, b))):
        return lambda tape, a, b: np.linalg.solve(a, b)

    def impl(tape, a, b):
        values = np.linalg.solve(primals(a), primals(b))
        return solution(tape, a, b, values, np.linalg.inv(primals(a)))

    return impl
