"""Rule text: what it consists of, as operations of machine code."""

from __future__ import annotations

import ast
import functools

from tapegrad.kernels.opcodes import FUNCTIONS

__all__ = ["ARITHMETIC", "BY_LOOPS", "COMPARED", "EXACT", "LIBRARY", "SLOW_LOOPS", "TEXTS", "Unfused", "parsed"]

ARITHMETIC: dict[type, str] = {ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "div"}
COMPARED: dict[type, str] = {ast.Eq: "oeq", ast.NotEq: "une", ast.Lt: "olt", ast.LtE: "ole", ast.Gt: "ogt", ast.GtE: "oge"}
# Exact in every implementation, so that the processor's own instructions serve.
EXACT = frozenset(["abs", "sqrt", "floor", "ceil", "trunc", "round", "copysign"])
# Functions of the C library. Not hypot: numbers have that of the math module, whose last digit is another.
LIBRARY = frozenset(FUNCTIONS)
# What rule text calls and is text itself, with the bits of `tapegrad.rules.special`.
TEXTS = {
    "mul0": "where(x == 0.0, 0.0, where(y == 0.0, 0.0, x * y))",
    "sign": "where(x > 0.0, 1.0, where(x < 0.0, -1.0, where(x == 0.0, 0.0, x)))",
    "maximum": "where(x > y, x, where(x != x, x, y))",
    "minimum": "where(x < y, x, where(x != x, x, y))",
    "fmax": "where(x >= y, x, where(y != y, x, y))",
    "fmin": "where(x <= y, x, where(y != y, x, y))",
    "sigmoid": "where(x >= 0.0, 1.0, exp(-abs(x))) / (1.0 + exp(-abs(x)))",
    "exp2": "pow(2.0, x)",
    "logaddexp": "where(x == y, x + 0.6931471805599453, where(x > y, x, y) + log1p(exp(-abs(x - y))))",
}
BY_LOOPS = LIBRARY | {"sigmoid"}  # what partials on arrays call by NumPy's loops, as in the sweep
SLOW_LOOPS = frozenset(["logaddexp"])  # that call the C library's functions element by element, after branches
parsed = functools.cache(lambda text: ast.parse(text, mode="eval").body)


class Unfused(Exception):  # noqa: N818 - it never reaches a user
    """Something of which there is no machine code."""
