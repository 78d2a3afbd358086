"""Values of elementwise rules: the rule's text evaluated on Python floats and on NumPy arrays."""

from __future__ import annotations

import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from tapegrad.arrays import dtypes
from tapegrad.arrays.floating_point_warnings import IGNORING, enter, leave
from tapegrad.kernels.opcodes import COMPILED_PRIMALS, MATH
from tapegrad.rules import special
from tapegrad.rules.table import RULES, Rule
from tapegrad.tape.tape import TAPE

__all__ = ["OPERATORS", "float_at_the_edge", "forward", "scalar_forward"]


def _np_sigmoid(x: Any) -> Any:
    e = np.exp(-np.abs(x))
    return np.where(x >= 0.0, 1.0, e) / (1.0 + e)


def _np_mul0(x: Any, y: Any) -> Any:
    # 0 * inf and 0 * nan are the only products that differ, and they are nan.
    z = x * y
    return np.where((x == 0.0) | (y == 0.0), 0.0, z) if np.isnan(np.add.reduce(z, None)) else z


# What rule text means on arrays and on floats.
ARRAY_NAMES: dict[str, Any] = {
    "abs": np.absolute, "acos": np.arccos, "acosh": np.arccosh, "asin": np.arcsin, "asinh": np.arcsinh, "atan": np.arctan,
    "atan2": np.arctan2, "atanh": np.arctanh, "ceil": np.ceil, "copysign": np.copysign, "cos": np.cos, "cosh": np.cosh,
    "exp": np.exp, "exp2": np.exp2, "expm1": np.expm1, "floor": np.floor, "fmod": np.fmod, "hypot": np.hypot, "log": np.log,
    "log10": np.log10, "log1p": np.log1p, "log2": np.log2, "logaddexp": np.logaddexp,
    "maximum": np.maximum, "minimum": np.minimum, "mul0": _np_mul0, "pow": np.power, "remainder": np.remainder,
    "round": np.round, "sigmoid": _np_sigmoid, "sign": np.sign, "sin": np.sin, "sinh": np.sinh,
    "sqrt": np.sqrt, "tan": np.tan, "tanh": np.tanh, "trunc": np.trunc, "where": np.where,
}  # fmt: skip

FLOAT_NAMES: dict[str, Any] = {name: getattr(math, name) for name in MATH}
FLOAT_NAMES |= {name: getattr(special, name) for name in special.__all__}
FLOAT_NAMES |= {
    "abs": abs,
    # Python's integers know no -0.0.
    "ceil": lambda x: math.copysign(math.ceil(x), x),
    "floor": lambda x: math.copysign(math.floor(x), x),
    "trunc": lambda x: math.copysign(math.trunc(x), x),
    "round": lambda x: math.copysign(round(x), x),
    "remainder": operator.mod,
}

UFUNCS = {
    "x + y": np.add,
    "x - y": np.subtract,
    "x * y": np.multiply,
    "x / y": np.true_divide,
    "-x": np.negative,
    "x * x": np.square,
}
OPERATORS: dict[str, Any] = {
    "x + y": operator.add,
    "x - y": operator.sub,
    "x * y": operator.mul,
    "x / y": operator.truediv,
    "-x": operator.neg,
}


def _call_of(rule: Rule) -> str:
    """The function whose call with the rule's arguments is all of its text; empty if it is more than that."""
    call = f"({', '.join(rule.args)})"
    name = rule.primal.removesuffix(call)
    return name if name != rule.primal and name.isidentifier() else ""


def _is_composed(rule: Rule) -> bool:
    return not (rule.primal in OPERATORS or _call_of(rule) in FLOAT_NAMES)


# Rule text is ours, never a user's. What is more than a call is parsed once for both, and all of it together: one by one takes
# four times as long.
_COMPOSED = [rule for rule in RULES if _is_composed(rule)]
_LAMBDAS = [f"lambda {', '.join(rule.args)}: {rule.primal}" for rule in _COMPOSED]
_TEXTS = compile(f"({', '.join(_LAMBDAS)})", "<rules>", "eval")
_NAMES = [rule.name for rule in _COMPOSED]
_ON_ARRAYS: dict[str, Callable[..., Any]] = dict(zip(_NAMES, eval(_TEXTS, ARRAY_NAMES), strict=True))
_ON_FLOATS: dict[str, Callable[..., Any]] = dict(zip(_NAMES, eval(_TEXTS, FLOAT_NAMES), strict=True))


def _compiled_forward(opcode: int) -> Callable[..., Any]:
    """Forward pass by a compiled loop, for functions that NumPy lacks."""
    alone = len(RULES[opcode].args) == 1

    def forward(x: Any, y: Any = 0.0) -> Any:
        TAPE.load()
        if alone and x.__class__ is np.ndarray and x.dtype == dtypes.float64 and x.flags.c_contiguous:
            out = np.empty(x.shape)
            at = x.__array_interface__["data"][0]
            TAPE.primal_block(opcode, x.size, at, at, out.__array_interface__["data"][0])
            return out
        dtype = np.result_type(x, y)
        xs, ys = np.broadcast_arrays(np.asarray(x, np.float64), np.asarray(y, np.float64))
        xs, ys = np.ascontiguousarray(xs), np.ascontiguousarray(ys)
        out = np.empty(np.broadcast_shapes(np.shape(x), np.shape(y)))
        TAPE.primal_block(opcode, out.size, xs.ctypes.data, ys.ctypes.data, out.ctypes.data)
        return out.astype(dtype, copy=False) if dtype in (dtypes.float32, dtypes.float16) else out

    return forward


def _forward(opcode: int, rule: Rule) -> Callable[..., Any]:
    if rule.primal in UFUNCS:
        return UFUNCS[rule.primal]
    if _call_of(rule) in ARRAY_NAMES:
        return ARRAY_NAMES[_call_of(rule)]
    if rule.name in COMPILED_PRIMALS or rule.name not in _ON_ARRAYS:
        return _compiled_forward(opcode)
    return _ON_ARRAYS[rule.name]


def _scalar_forward(rule: Rule) -> Callable[..., float]:
    if rule.primal in OPERATORS:
        return OPERATORS[rule.primal]
    return FLOAT_NAMES[_call_of(rule)] if _call_of(rule) in FLOAT_NAMES else _ON_FLOATS[rule.name]


forward: tuple[Callable[..., Any], ...] = tuple(_forward(opcode, rule) for opcode, rule in enumerate(RULES))
scalar_forward: tuple[Callable[..., float], ...] = tuple(_scalar_forward(rule) for rule in RULES)


def float_at_the_edge(opcode: int, *values: float) -> float:
    """A float result where Python's own function raises: overflow, poles, domain; IEEE values as on arrays."""
    token = enter(IGNORING)
    try:
        return float(forward[opcode](*(np.array([value]) for value in values))[0])
    finally:
        leave(token)
