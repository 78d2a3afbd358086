"""Which rule stands for which operator or function of `math`, `numpy` and Python."""

from __future__ import annotations

import builtins
import cmath
import math
import operator
from collections.abc import Callable
from typing import Any

import numpy as np
from numba.core import types

from tapegrad.nopython.formulas.formula import BY_NAME

__all__ = ["CMATH", "COMPARISONS", "IN_PLACE", "RULE_OF", "UNDIFFERENTIATED"]

_OPERATORS = {
    operator.add: "add", operator.sub: "sub", operator.mul: "mul", operator.truediv: "div", operator.pow: "pow",
    operator.mod: "remainder", operator.neg: "neg", operator.pos: "_alias", builtins.abs: "abs", builtins.float: "_alias",
    builtins.pow: "pow", np.float64: "_alias", builtins.max: "maximum", builtins.min: "minimum", operator.floordiv: "floor",
    np.conjugate: "_alias", types.float64: "_alias", np.float32: "_alias", types.float32: "_alias",
}  # fmt: skip

# Names that NumPy and `math` have for rules, where they differ from the table's.
_NUMPY_NAMES = {
    "absolute": "abs", "fabs": "abs", "arccos": "acos", "arccosh": "acosh", "arcsin": "asin", "arcsinh": "asinh",
    "arctan": "atan", "arctan2": "atan2", "arctanh": "atanh", "divide": "div", "true_divide": "div", "multiply": "mul",
    "negative": "neg", "positive": "_alias", "power": "pow", "float_power": "pow", "rint": "round", "subtract": "sub",
    "degrees": "rad2deg", "radians": "deg2rad", "mod": "remainder",
    "floor_divide": "floor",
}  # fmt: skip
_MATH_NAMES = {"fabs": "abs", "degrees": "rad2deg", "radians": "deg2rad"}

# Rules whose name means something else in NumPy, or takes other arguments there.
_OTHERS = frozenset(["clip", "round", "where", "frac"])


def _table() -> dict[Callable[..., Any], str]:
    table: dict[Any, str] = dict(_OPERATORS)
    for module, names in ((np, _NUMPY_NAMES), (math, _MATH_NAMES)):
        for name in set(BY_NAME) - _OTHERS:
            if hasattr(module, name):
                table[getattr(module, name)] = name
        for name, rule in names.items():
            if hasattr(module, name):
                table[getattr(module, name)] = rule
    return table


RULE_OF: dict[Any, str] = _table()

# Functions whose result is complex, or which take complex numbers alone.
CMATH: dict[Any, str] = {
    getattr(cmath, name): name
    for name in [
        "exp",
        "log",
        "log10",
        "sqrt",
        "sin",
        "cos",
        "tan",
        "sinh",
        "cosh",
        "tanh",
        "asin",
        "acos",
        "atan",
        "asinh",
        "acosh",
        "atanh",
        "phase",
    ]
}

COMPARISONS = frozenset([operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge])

# Functions of a float that yield an integer or a truth value: their results are constants.
UNDIFFERENTIATED = frozenset(
    [operator.not_, math.isnan, math.isinf, math.isfinite, np.isnan, np.isinf, np.isfinite, np.signbit, builtins.int,
     np.int64, np.int32, builtins.bool, builtins.round, np.less, np.less_equal, np.greater, np.greater_equal, np.equal,
     np.not_equal, np.logical_not, np.logical_and, np.logical_or]
)  # fmt: skip

IN_PLACE = {
    operator.iadd: operator.add, operator.isub: operator.sub, operator.imul: operator.mul, operator.itruediv: operator.truediv,
    operator.ipow: operator.pow, operator.imod: operator.mod, operator.ifloordiv: operator.floordiv,
}  # fmt: skip
