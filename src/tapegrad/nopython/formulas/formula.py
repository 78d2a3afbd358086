"""Partials from the rule table's text to LLVM instructions.

The text is the same that the eager sweep compiles. Here an operation's partials are needed while it is recorded, in the middle of
a user's function, so they are written straight into it: compiling each as a function took 20 ms apiece.
"""

from __future__ import annotations

import ast
import functools
import math
import types as python_types
from collections.abc import Callable
from typing import Any

import numpy as np
from llvmlite import ir
from numba.core import types
from numba.core.typing import signature

from tapegrad.kernels.opcodes import MATH
from tapegrad.nopython.numba_interface.linking import part
from tapegrad.rules import special
from tapegrad.rules.table import POWERS, RULES, Rule

__all__ = ["BY_NAME", "Writer", "constant_power", "pairs_of", "partial", "product", "second_text"]

BY_NAME: dict[str, Rule] = {rule.name: rule for rule in RULES}
F64 = ir.DoubleType()

Values = dict[str, Any]
ARITHMETIC: dict[type, str] = {ast.Add: "fadd", ast.Sub: "fsub", ast.Mult: "fmul", ast.Div: "fdiv"}
COMPARISONS: dict[type, str] = {ast.Eq: "==", ast.NotEq: "!=", ast.Lt: "<", ast.LtE: "<=", ast.Gt: ">", ast.GtE: ">="}

# Functions that compiled code gets from elsewhere than `math` or `tapegrad.rules.special`.
# NumPy's remainder does not raise where the divisor is zero, whatever the user's decorator says of division.
NUMPY: dict[str, Any] = {"ceil": np.ceil, "floor": np.floor, "remainder": np.remainder, "round": np.rint, "trunc": np.trunc}
OPERATORS: dict[str, Any] = {"abs": abs}


@functools.cache
def _parsed(text: str) -> ast.expr:
    return ast.parse(text, mode="eval").body


def call(context: Any, builder: Any, function: Any, *args: Any) -> Any:
    """Numba's own implementation of a scalar function of floats."""
    tys = (types.float64,) * len(args)
    kind = context.typing_context.resolve_value_type(function)
    sig = kind.get_call_type(context.typing_context, tys, {})
    result = context.get_function(kind, sig)(builder, args)
    return context.cast(builder, result, sig.return_type, types.float64)


@functools.cache
def _special(name: str) -> Any:
    """A function of `tapegrad.rules.special`, with those that it calls compiled."""
    return _with_called(getattr(special, name))


@functools.cache
def _with_called(function: Any) -> Any:
    space = function.__globals__
    called = {other: space.get(other) for other in function.__code__.co_names}
    called = {other: found for other, found in called.items() if getattr(found, "__module__", "").startswith("tapegrad.rules.")}
    if not called:
        return function
    space = space | {other: part(error_model="numpy")(_with_called(found)) for other, found in called.items()}
    return python_types.FunctionType(function.__code__, space, function.__name__)


class Writer(ast.NodeVisitor):
    """Writes the instructions that evaluate an expression of rule text."""

    def __init__(self, context: Any, builder: Any, values: Values) -> None:
        self.context, self.builder, self.values = context, builder, values
        self.calls: dict[str, Any] | None = None  # what was called already, where that is kept

    def remember(self, rule: Rule) -> None:
        """Evaluate each call once in all expressions of a rule: second partials repeat much, and a sine's is the value itself."""
        self.calls = {rule.primal: self.values["z"]}

    def visit_Name(self, node: ast.Name) -> Any:
        return self.values[node.id]

    def visit_Constant(self, node: ast.Constant) -> Any:
        return F64(float(node.value))  # type: ignore[arg-type]

    def visit_UnaryOp(self, node: ast.UnaryOp) -> Any:
        return self.builder.fneg(self.visit(node.operand))

    def visit_BinOp(self, node: ast.BinOp) -> Any:
        return getattr(self.builder, ARITHMETIC[type(node.op)])(self.visit(node.left), self.visit(node.right))

    def visit_Compare(self, node: ast.Compare) -> Any:
        symbol = COMPARISONS[type(node.ops[0])]
        compare: Callable[..., Any] = self.builder.fcmp_unordered if symbol == "!=" else self.builder.fcmp_ordered
        left = self.visit(node.left)
        if left.type != F64:  # a condition in the place of a number, as derivatives of `where` have it
            left = self.builder.uitofp(left, F64)
        return compare(symbol, left, self.visit(node.comparators[0]))

    def visit_Call(self, node: ast.Call) -> Any:
        text = "" if self.calls is None else ast.unparse(node)
        if self.calls is not None and text in self.calls:
            return self.calls[text]
        result = self._called(node)
        if self.calls is not None:
            self.calls[text] = result
        return result

    def _called(self, node: ast.Call) -> Any:
        name = node.func.id  # type: ignore[attr-defined]
        args = [self.visit(arg) for arg in node.args]
        if name == "where":
            return self.builder.select(*args)
        if name == "mul0":
            return product(self.builder, *args)
        if name == "sign":
            return sign(self.builder, *args)
        if name in NUMPY:
            return call(self.context, self.builder, NUMPY[name], *args)
        if name in OPERATORS:
            return call(self.context, self.builder, OPERATORS[name], *args)
        if name in special.__all__:
            sig = signature(types.float64, *[types.float64] * len(args))
            return self.context.compile_internal(self.builder, _special(name), sig, args)
        return call(self.context, self.builder, getattr(math if name in MATH else np, name), *args)

    def generic_visit(self, node: ast.AST) -> Any:
        raise NotImplementedError(f"rule text may not use {type(node).__name__}")


def sign(builder: Any, x: Any) -> Any:
    """-1, 0 or 1; nan for nan. In place, since most functions with a branch have an absolute value, too."""
    zero = F64(0.0)
    rest = builder.select(builder.fcmp_ordered("<", x, zero), F64(-1.0), builder.fmul(x, zero))
    return builder.select(builder.fcmp_ordered(">", x, zero), F64(1.0), rest)


def product(builder: Any, x: Any, y: Any) -> Any:
    """The absolute-zero product: zero if either factor is zero."""
    zero = F64(0.0)
    either = builder.or_(builder.fcmp_ordered("==", x, zero), builder.fcmp_ordered("==", y, zero))
    return builder.select(either, zero, builder.fmul(x, y))


def partial(writer: Writer, text: str | None) -> Any:
    """A partial: None if there is none, 1 or -1 if it is that always, or an LLVM value."""
    if text is None or text == "0.0":
        return None
    if text in ("1.0", "-1.0"):
        return 1 if text == "1.0" else -1
    return writer.visit(_parsed(text))


def pairs_of(rule: Rule) -> list[tuple[int, int]]:
    """Pairs of arguments by which there are second partials."""
    return [(i, j) for i in range(len(rule.partials)) for j in range(i, len(rule.partials))]


@functools.cache
def second_text(rule: Rule, i: int, j: int) -> str:
    """The second partial of a rule by two of its arguments; only recordings of second derivatives ask for it."""
    from tapegrad.kernels.second_partials import second_partial

    return second_partial(rule, i, j)


def constant_power(exponent: float) -> Rule | None:
    """The rule of a power with this exponent that needs no general power."""
    if exponent in POWERS:
        return BY_NAME[POWERS[exponent]]
    if exponent == 1.0:
        return BY_NAME["_alias"]
    if exponent == int(exponent) and 3 < exponent <= 16:
        return BY_NAME["pow"]._replace(partials=(f"{exponent} * ({' * '.join(['x'] * int(exponent - 1))})",))
    return None
