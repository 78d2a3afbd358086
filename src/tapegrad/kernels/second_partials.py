"""Second partials of the rules, derived from the text of the first ones by the same table.

A partial is an expression of operators and functions, each of which is a row of the table itself, so its derivative follows by the
chain rule from the partials that stand there. Products of the chain rule are absolute-zero products, as everywhere: a masked branch
cannot poison a derivative of second order either.
"""

from __future__ import annotations

import ast
import functools
from typing import Any

import numpy as np

from tapegrad.kernels.opcodes import SECOND_LOOPS, USES, names_in
from tapegrad.rules.table import COMMON, RULES, Rule

__all__ = ["PAIRS", "derivative", "second_partial", "second_partials", "second_table", "second_texts"]

PAIRS = ((0, 0), (0, 1), (1, 1), (0, 2), (1, 2), (2, 2))
NAMES = ("x", "y", "w")
ZERO, ONE = "0.0", "1.0"
_OPERATORS: dict[type, str] = {ast.Add: "add", ast.Sub: "sub", ast.Mult: "mul", ast.Div: "div"}
# Text calls private rules by their names without the underscore.
_RULES = {rule.name.removeprefix("_"): rule for rule in RULES}


class _Substitution(ast.NodeTransformer):
    """Expressions in the place of names."""

    def __init__(self, expressions: dict[str, ast.expr]) -> None:
        self.expressions = expressions

    def visit_Name(self, node: ast.Name) -> ast.expr:
        """The expression for a name."""
        return self.expressions.get(node.id, node)


def derivative(text: str, by: str, inner: str) -> str:
    """Derivative of an expression by one of its names.

    Parameters
    ----------
    text : str
        In ``x``, ``y``, ``w`` and the result ``z``.
    by : str
        One of the first three.
    inner : str
        Derivative of ``z`` by that name.

    Returns
    -------
    str
        An expression in the same names; ``"0.0"`` if it is zero everywhere.
    """
    return _derivative(ast.parse(text, mode="eval").body, by, inner)


def _derivative(node: ast.expr, by: str, inner: str) -> str:
    if isinstance(node, ast.Name):
        return ONE if node.id == by else inner if node.id == "z" else ZERO
    if isinstance(node, (ast.Constant, ast.Compare)):
        return ZERO
    if isinstance(node, ast.UnaryOp):
        return _product("-1.0", _derivative(node.operand, by, inner))
    if isinstance(node, ast.BinOp):
        return _chain(_RULES[_OPERATORS[type(node.op)]], node, [node.left, node.right], by, inner)
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        return _chain(_RULES[node.func.id], node, node.args, by, inner)
    raise AssertionError(f"rule text must not hold {ast.unparse(node)}")


def _chain(rule: Rule, whole: ast.expr, arguments: list[ast.expr], by: str, inner: str) -> str:
    expressions = dict(zip(rule.args, arguments, strict=True)) | {"z": whole}
    terms = []
    for argument, partial in zip(arguments, rule.partials, strict=True):
        slope = _derivative(argument, by, inner)
        if partial is None or slope == ZERO:
            continue
        outer: Any = _Substitution(expressions).visit(ast.parse(partial, mode="eval").body)
        term = _product(ast.unparse(outer), slope)
        if term != ZERO:
            terms.append(term)
    return " + ".join(f"({term})" if len(terms) > 1 else term for term in terms) or ZERO


def _product(outer: str, slope: str) -> str:
    if ZERO in (outer, slope):
        return ZERO
    if slope == ONE:
        return outer
    if outer == ONE:
        return slope
    return f"-({slope})" if outer == "-1.0" else f"mul0({outer}, {slope})"


def second_partial(rule: Rule, i: int, j: int) -> str:
    """Derivative of the partial of a rule by argument `i`, by argument `j`; zero where there is none."""
    first, other = rule.partials[i], rule.partials[j]
    return ZERO if first is None or other is None else derivative(first, NAMES[j], other)


@functools.cache
def second_partials() -> dict[tuple[int, int], str]:
    """Second partials that are not zero, by opcode and pair of arguments."""
    found = {}
    for opcode, rule in enumerate(RULES):
        for number, (i, j) in enumerate(PAIRS):
            if j < len(rule.args):
                text = second_partial(rule, i, j)
                if text != ZERO:
                    found[opcode, number] = text
    return found


def second_texts() -> list[str]:
    """The distinct expressions of common rules that need a loop."""
    return sorted({text for (opcode, _), text in second_partials().items() if opcode < COMMON})


def second_table() -> np.ndarray:
    """For each rule and pair of arguments the number of its expression (-1 where it is zero), and the values that this uses."""
    numbers = {text: k for k, text in enumerate(second_texts())}
    bits = {"x": 1, "y": 2, "w": 4, "z": 8}
    table = np.full((len(RULES), 2 * len(PAIRS)), -1, np.int64)
    for (opcode, number), text in second_partials().items():
        table[opcode, number] = numbers[text] if opcode < COMMON else SECOND_LOOPS + number
        table[opcode, len(PAIRS) + number] = sum(bit for name, bit in bits.items() if name in names_in(text))
        i, j = PAIRS[number]
        # A row saves what its first partials use, so nothing else may be used here.
        assert not table[opcode, len(PAIRS) + number] & ~(USES[opcode][i] | USES[opcode][j]), (RULES[opcode].name, text)
    return table
