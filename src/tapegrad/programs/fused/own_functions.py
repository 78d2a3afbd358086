"""Functions whose last digits are not NumPy's, but within two units of the exact ones, in less time.

The argument of an exponential is a multiple of log 2 and a rest, and the exponential of the rest is a polynomial of Taylor's
coefficients in pairs. That of NumPy is as fast; its hyperbolic tangent takes half as long again. Sines and cosines are those of the
rest of a multiple of pi / 2; where NumPy calls the C library for each element they take a tenth of its time.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Sequence

from tapegrad.programs.fused.expressions import Expressions

__all__ = ["LIMITS", "own_function"]

TURN = 1.5 * 2.0**52  # added and taken away again, it rounds to an integer, which its last digits are in between
LOG2 = 0.6931471803691238, 1.9082149292705877e-10  # in two parts, of which the first has few digits
ONE_AT = 22.0  # where tanh is one
QUARTER = 1.5707963267948966, 6.123233995736766e-17, -1.4973849048591698e-33  # of a turn, in three parts
LIMITS = {
    "sin": 2.0**30,
    "cos": 2.0**30,
}  # sizes up to which arguments have a rest of that many digits; of others NumPy's are taken


class _Nodes:
    """Operations of a graph on nodes and numbers."""

    def __init__(self, graph: Expressions) -> None:
        self._graph = graph

    def _operands(self, *values: int | float) -> list[int]:
        return [value if type(value) is int else self._graph.constant(value) for value in values]

    def do(self, operation: str, *values: int | float) -> int:
        return self._graph.node(operation, *self._operands(*values))

    def fma(self, x: int | float, y: int | float, z: int | float) -> int:
        return self.do("fma", x, y, z)

    def where(self, comparison: str, x: int | float, y: int | float, yes: int | float, no: int | float) -> int:
        return self.do("where", self.do(comparison, x, y), yes, no)

    def reduced(self, v: int) -> tuple[int, int]:
        """By how many powers of two an exponential is scaled, with `TURN`, and the exponential of the rest less one."""
        turned = self.fma(v, 1.0 / math.log(2.0), TURN)
        k = self.do("sub", turned, TURN)
        r = self.fma(k, -LOG2[1], self.fma(k, -LOG2[0], v))
        s = self.do("mul", r, r)
        pairs = [self.fma(r, 1.0 / math.factorial(2 * j + 3), 1.0 / math.factorial(2 * j + 2)) for j in range(6)]
        low, middle, high = (self.fma(s, pairs[j + 1], pairs[j]) for j in (0, 2, 4))
        f = self.do("mul", s, s)
        series = self.fma(self.do("mul", f, f), high, self.fma(f, middle, low))
        return turned, self.fma(s, series, r)


def tangent(graph: Expressions, x: int) -> int:
    """tanh(x): ``(exp(-2 |x|) - 1) / (exp(-2 |x|) + 1)``, with what numerator and denominator lost by rounding."""
    nodes = _Nodes(graph)
    size = nodes.do("abs", x)
    v = nodes.do("mul", -2.0, nodes.where("ogt", size, ONE_AT, ONE_AT, size))
    turned, less_one = nodes.reduced(v)
    w = nodes.do("power", turned)
    below = nodes.do("sub", w, 1.0)
    t = nodes.fma(w, less_one, below)
    lost = nodes.fma(w, less_one, nodes.do("sub", below, t))
    d = nodes.do("add", t, 2.0)
    inverse = nodes.do("div", 1.0, d)
    y = nodes.do("mul", t, inverse)
    of_d = nodes.do("add", nodes.do("sub", t, nodes.do("sub", d, 2.0)), lost)
    rest = nodes.do("add", nodes.fma(nodes.do("neg", y), d, t), nodes.fma(nodes.do("neg", y), of_d, lost))
    return nodes.do("copysign", nodes.fma(inverse, rest, y), x)


def _series(nodes: _Nodes, s: int, first: int, count: int) -> int:
    """Taylor's coefficients ``1/first! - s/(first + 2)! + ...``, so many of them, in pairs."""
    terms: Sequence[int | float] = [(-1.0) ** j / math.factorial(first + 2 * j) for j in range(count)]
    while len(terms) > 1:
        pairs = [nodes.fma(s, high, low) for low, high in zip(terms[::2], terms[1::2], strict=False)]
        terms = [*pairs, *terms[2 * len(pairs) :]]
        s = nodes.do("mul", s, s)
    return int(terms[0])


def _of_angle(graph: Expressions, x: int, quarters: float) -> int:
    """The sine of the size of an angle and so many quarters of a turn: that of the rest, or its cosine, of either sign."""
    nodes = _Nodes(graph)
    size = nodes.do("abs", x)
    k = nodes.do("sub", nodes.fma(size, 1.0 / QUARTER[0], TURN), TURN)
    # The first difference is exact: both are multiples of the last digit of the first part.
    r = nodes.fma(k, -QUARTER[1], nodes.fma(k, -QUARTER[0], size))
    rest = nodes.do("mul", k, -QUARTER[2])
    s = nodes.do("mul", r, r)
    sine = nodes.do("add", nodes.fma(nodes.do("mul", r, s), nodes.do("neg", _series(nodes, s, 3, 8)), rest), r)
    half = nodes.do("mul", s, 0.5)
    whole = nodes.do("sub", 1.0, half)
    lost = nodes.do("sub", nodes.do("sub", 1.0, whole), half)
    small = nodes.fma(nodes.do("mul", s, s), _series(nodes, s, 4, 7), nodes.fma(nodes.do("neg", r), rest, lost))
    cosine = nodes.do("add", whole, small)
    turned = nodes.do("mul", nodes.do("add", k, quarters), 0.5)
    below = nodes.do("floor", turned)
    found = nodes.where("une", turned, below, cosine, sine)
    halves = nodes.do("mul", below, 0.5)
    return nodes.where("une", halves, nodes.do("floor", halves), nodes.do("neg", found), found)


def sine(graph: Expressions, x: int) -> int:
    """sin(x), for numbers up to its limit."""
    nodes = _Nodes(graph)
    return nodes.do("mul", nodes.do("copysign", 1.0, x), _of_angle(graph, x, 0.0))


def cosine(graph: Expressions, x: int) -> int:
    """cos(x), for numbers up to its limit."""
    return _of_angle(graph, x, 1.0)


FUNCTIONS = {"tanh": tangent, "sin": sine, "cos": cosine}


@functools.cache
def own_function(name: str) -> Expressions | None:
    """The expressions of a function, whose first node is the argument and the last one the result; None if there are none."""
    if name not in FUNCTIONS:
        return None
    graph = Expressions()
    FUNCTIONS[name](graph, graph.load(0, 0, (), ()))
    return graph
