"""The operators of tensors that are rows of the table of rules.

A definition says how its operation is recorded, whatever the operands are. What `Tensor` has under the operator's name is that
rule's form from `ops.elementwise`, which does the same and is quicker where operands are common: it is the attribute of the class,
so nothing is called in between. Once the engine is loaded, `ops.compiled_operators` puts the compiled form
(`engine.operators.operate`) there.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tapegrad.kernels.opcodes import OPCODES
from tapegrad.ops.elementwise import FUNCTIONS, REFLECTED, method
from tapegrad.recording.apply_rule import apply_rule
from tapegrad.tensors.tensor import Tensor

__all__ = ["DEFINITIONS", "OPERATORS"]


def add(x: Tensor, y: Any) -> Tensor:
    """``x + y``."""
    return apply_rule(OPCODES["add"], x, y)


def sub(x: Tensor, y: Any) -> Tensor:
    """``x - y``."""
    return apply_rule(OPCODES["sub"], x, y)


def rsub(x: Tensor, y: Any) -> Tensor:
    """``y - x``."""
    return apply_rule(OPCODES["sub"], y, x)


def mul(x: Tensor, y: Any) -> Tensor:
    """``x * y``."""
    return apply_rule(OPCODES["mul"], x, y)


def truediv(x: Tensor, y: Any) -> Tensor:
    """``x / y``."""
    return apply_rule(OPCODES["div"], x, y)


_exchanged_div = REFLECTED[OPCODES["div"]]


def rtruediv(x: Tensor, y: Any) -> Tensor:
    """``y / x``; as PyTorch rounds it, a number is multiplied by the reciprocal."""
    return FUNCTIONS["mul"](FUNCTIONS["reciprocal"](x), y) if issubclass(type(y), (int, float)) else _exchanged_div(x, y)


def mod(x: Tensor, y: Any) -> Tensor:
    """``x % y``."""
    return apply_rule(OPCODES["remainder"], x, y)


def rmod(x: Tensor, y: Any) -> Tensor:
    """``y % x``."""
    return apply_rule(OPCODES["remainder"], y, x)


def power(x: Tensor, y: Any) -> Tensor:
    """``x ** y``."""
    return apply_rule(OPCODES["pow"], x, y)


def rpower(x: Tensor, y: Any) -> Tensor:
    """``y ** x``."""
    return apply_rule(OPCODES["pow"], y, x)


def neg(x: Tensor) -> Tensor:
    """``-x``."""
    return apply_rule(OPCODES["neg"], x)


def absolute(x: Tensor) -> Tensor:
    """``abs(x)``."""
    return apply_rule(OPCODES["abs"], x)


DEFINITIONS: dict[str, Callable[..., Tensor]] = {
    "__add__": add, "__radd__": add, "__sub__": sub, "__rsub__": rsub, "__mul__": mul, "__rmul__": mul,
    "__truediv__": truediv, "__rtruediv__": rtruediv, "__mod__": mod, "__rmod__": rmod, "__pow__": power, "__rpow__": rpower,
    "__neg__": neg, "__abs__": absolute,
}  # fmt: skip
_RULES = {add: "add", sub: "sub", mul: "mul", truediv: "div", mod: "remainder", power: "pow", neg: "neg", absolute: "abs"}
_REFLECTED = {rsub: "sub", rmod: "remainder", rpower: "pow"}

# Attributes of `Tensor`.
OPERATORS = DEFINITIONS | {name: method(_RULES[function]) for name, function in DEFINITIONS.items() if function in _RULES}
OPERATORS |= {name: REFLECTED[OPCODES[_REFLECTED[function]]] for name, function in DEFINITIONS.items() if function in _REFLECTED}
