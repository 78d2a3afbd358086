"""Second partials of a statement, by edge pushing over its tree [1]_.

The nodes are walked from the root to the leaves. Adjoints and a symmetric map of second derivatives between pairs of nodes are
kept; a node hands both on to its operands and is done with. All of it happens while the statement is compiled: what is left are
the instructions for the second derivatives by pairs of leaves, and a pair that has none by its form costs nothing.

References
----------
.. [1] R. M. Gower, M. P. Mello, "A new framework for the computation of Hessians", Optimization Methods and Software 27(2), 2012.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

from llvmlite import ir

from tapegrad.nopython.formulas.formula import product

__all__ = ["SecondDerivatives", "is_number", "llvm_of", "plain_product", "plus", "times"]

Multiplication = Callable[[Any, Any, Any], Any]


def times(builder: Any, x: Any, y: Any, multiply: Multiplication = product) -> Any:
    """The absolute-zero product of LLVM values, or another one; an int is 1 or -1, known while compiling."""
    for a, b in ((x, y), (y, x)):
        if isinstance(a, int):
            if isinstance(b, int):
                return a * b
            return b if a == 1 else builder.fneg(b)
    return multiply(builder, x, y)


def plain_product(builder: Any, x: Any, y: Any) -> Any:
    """The product that is nan for zero times what is infinite or nan."""
    return builder.fmul(x, y)


def llvm_of(x: Any) -> Any:
    """An LLVM value."""
    return ir.DoubleType()(float(x)) if isinstance(x, int) else x


def plus(builder: Any, x: Any, y: Any) -> Any:
    """The sum of LLVM values, of which the first may be 0, known while compiling."""
    if is_number(x, 0):
        return y
    return builder.fadd(llvm_of(x), llvm_of(y))


def is_number(x: Any, number: int) -> bool:
    """Whether a factor is a number known while compiling, and which."""
    return isinstance(x, int) and x == number


class Between(NamedTuple):
    """A second derivative between two nodes, in either order."""

    a: Any
    b: Any
    value: Any


class SecondDerivatives:
    """The symmetric map of second derivatives of the root between nodes that are not done with."""

    def __init__(self, builder: Any, multiply: Multiplication = product) -> None:
        self.builder, self.multiply = builder, multiply
        self.map: dict[tuple[int, int], Between] = {}

    def _add(self, a: Any, b: Any, value: Any, twice: bool = False) -> None:
        """Add to a second derivative; `twice` where both orders of two paths end at one node."""
        if twice:
            value = self.builder.fmul(ir.DoubleType()(2.0), llvm_of(value))
        key = (min(id(a), id(b)), max(id(a), id(b)))
        known = self.map.get(key)
        self.map[key] = Between(a, b, value if known is None else plus(self.builder, known.value, value))

    def _times(self, x: Any, y: Any) -> Any:
        return times(self.builder, x, y, self.multiply)

    def push(self, node: Any) -> None:
        """Hand on what stands at a node whose adjoint is complete."""
        at = [(key, between) for key, between in self.map.items() if between.a is node or between.b is node]
        for key, _ in at:
            del self.map[key]
        for _, (a, b, value) in at:
            if a is b:
                for i, (x, p) in enumerate(node.args):
                    for j, (y, q) in enumerate(node.args[i:]):
                        self._add(x, y, self._times(self._times(p, q), value), x is y and j > 0)
            else:
                other = b if a is node else a
                for x, p in node.args:
                    self._add(x, other, self._times(p, value), x is other)
        for x, y, second, different in node.seconds:
            self._add(x, y, self._times(node.adjoint, second), x is y and different)

    def triplets(self, row_of: Callable[[Any], Any]) -> list[tuple[Any, Any, Any]]:
        """Rows and second partials that are left, half of those by one leaf twice."""
        builder, half = self.builder, ir.DoubleType()(0.5)
        found = []
        for a, b, value in self.map.values():
            second = llvm_of(value)
            found.append((row_of(a), row_of(b), builder.fmul(half, second) if a is b else second))
        return found
