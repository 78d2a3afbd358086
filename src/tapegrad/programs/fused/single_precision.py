"""Values of float32 among expressions: all is computed in float64, and each value is rounded where NumPy's float32 loops round it.

A sum, difference, product, quotient or square root of float32 numbers that is computed in float64 and then rounded has the bits of
one in float32: float64 has more than twice as many digits, and two more. Functions are NumPy's float32 loops. So values of both
types go together, and derivatives are what the sweep has, which computes in float64 and rounds adjoints.
"""

from __future__ import annotations

import ast
from collections.abc import Sequence
from typing import Any

import numpy as np

from tapegrad.arrays.floating_point_warnings import quiet
from tapegrad.kernels.opcodes import calls_in
from tapegrad.programs.fused.rule_text import ARITHMETIC, COMPARED, EXACT, TEXTS, Unfused, parsed
from tapegrad.recording.primal_values import ARRAY_NAMES, BY_LIBRARY
from tapegrad.rules.table import RULES

__all__ = ["FLOAT32", "OF_SINGLES", "ROUNDED", "RoundedNodes", "loop_named"]

FLOAT32 = np.dtype(np.float32)
ROUNDED = "single"  # the operation that rounds
OF_SINGLES = ".f"  # how names of loops over float32 end
CHOOSING = frozenset(["sign", "maximum", "minimum", "fmax", "fmin"])  # by comparisons: the values are some of float32
KEPT = frozenset(["neg", "fill"]) | EXACT - {"sqrt"}  # operations whose values are so if their operands are


def loop_named(name: str) -> tuple[Any, np.dtype[Any]]:
    """The ufunc of a loop's name, and the dtype that it is over."""
    is_single = name.endswith(OF_SINGLES)
    return getattr(np, name.removesuffix(OF_SINGLES)), FLOAT32 if is_single else np.dtype(np.float64)


def _rounded(value: float) -> float:
    with quiet():
        return float(np.float32(value))


class RoundedNodes:
    """Nodes of a graph that are values of float32.

    Attributes
    ----------
    singles : set of int
        Buffers of float32.
    """

    nodes: list[tuple[Any, ...]]
    spaces: list[tuple[int, ...]]
    constants: dict[int, float]

    def __init__(self) -> None:
        self.singles: set[int] = set()
        self._are_single: dict[int, bool] = {}

    def node(self, operation: str, *operands: Any, space: tuple[int, ...] | None = None) -> int:
        """A node of the graph."""
        raise NotImplementedError

    def constant(self, value: float) -> int:
        """A number that is the same in every run."""
        raise NotImplementedError

    def product(self, x: int, y: int) -> int:
        """A product, but for those by one."""
        raise NotImplementedError

    def level(self, operands: Sequence[int]) -> list[int]:
        """Operands of one space."""
        raise NotImplementedError

    def text(self, text: str, names: dict[str, int], by_loops: bool = False) -> int:
        """Rule text in float64."""
        raise NotImplementedError

    def rounded(self, k: int) -> int:
        """A node rounded to float32."""
        if k in self.constants:
            return self.constant(_rounded(self.constants[k]))
        return k if self.is_single(k) else self.node(ROUNDED, k)

    def is_single(self, k: int) -> bool:
        """Whether it is known that a node has no digits to be rounded."""
        if k not in self._are_single:
            self._are_single[k] = self._is_single(k)
        return self._are_single[k]

    def _is_single(self, k: int) -> bool:
        operation, *own = self.nodes[k]
        if operation == "constant":
            value = self.constants[k]
            return value != value or _rounded(value) == value
        if operation in ("load", "matmul"):
            return (own[0] if operation == "load" else self.nodes[own[0]][1]) in self.singles
        if operation == "loop":
            return bool(own[0].endswith(OF_SINGLES))
        if operation in KEPT:
            return all(map(self.is_single, own))
        return operation == ROUNDED or (operation == "where" and self.is_single(own[1]) and self.is_single(own[2]))

    def rounded_value(self, opcode: int, operands: Sequence[int]) -> int:
        """The value of a rule on operands of float32, with numbers among them that are rounded first.

        Raises
        ------
        Unfused
            If it is computed in another way than by NumPy's loops one after the other.
        """
        rule = RULES[opcode]
        if rule.name in BY_LIBRARY or any(ARRAY_NAMES.get(name) is None for name in calls_in(rule.primal)):
            raise Unfused(f"{rule.name} of dtype float32")
        names = dict(zip(rule.args, self.level([self.rounded(k) for k in operands]), strict=True))
        return self._rounded_text(parsed(rule.primal), names)

    def rounded_text(self, text: str, names: dict[str, int]) -> int:
        """Rule text on values of float32."""
        return self._rounded_text(parsed(text), names)

    def _rounded_text(self, tree: Any, names: dict[str, int]) -> int:
        if isinstance(tree, ast.Name):
            return names[tree.id]
        if isinstance(tree, ast.Constant):
            return self.constant(_rounded(float(tree.value)))  # type: ignore[arg-type]
        if isinstance(tree, ast.UnaryOp):
            return self.node("neg", self._rounded_text(tree.operand, names))
        if isinstance(tree, ast.BinOp):
            x, y = self._rounded_text(tree.left, names), self._rounded_text(tree.right, names)
            operation = ARITHMETIC[type(tree.op)]
            return self.rounded(self.product(x, y) if operation == "mul" else self.node(operation, x, y))
        if isinstance(tree, ast.Compare):
            x, y = self._rounded_text(tree.left, names), self._rounded_text(tree.comparators[0], names)
            return self.node(COMPARED[type(tree.ops[0])], x, y)
        return self._rounded_call(tree.func.id, [self._rounded_text(argument, names) for argument in tree.args])

    def _rounded_call(self, name: str, operands: list[int]) -> int:
        if name == "where" or name in EXACT:
            return self.rounded(self.node(name, *operands))
        if name in CHOOSING:
            return self.rounded(self.text(TEXTS[name], dict(zip("xy", operands, strict=False))))
        if name == "sigmoid":
            return self._rounded_text(parsed(TEXTS[name]), {"x": operands[0]})
        function = ARRAY_NAMES[name]
        if not isinstance(function, np.ufunc) or all(k in self.constants for k in operands):
            raise Unfused(f"{name} of dtype float32")
        space = next((self.spaces[k] for k in operands if self.spaces[k]), ())
        return self.node("loop", function.__name__ + OF_SINGLES, *self.level(operands), space=space)
