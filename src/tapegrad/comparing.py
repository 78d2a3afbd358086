"""Comparisons and logic: bool results, never tracked."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from tapegrad import dtypes
from tapegrad.quiet import IGNORING, enter, leave, quiet
from tapegrad.recording import check_broadcast
from tapegrad.tensor import Tensor, array_of, as_operand, make

__all__ = [
    "allclose",
    "bitwise_and",
    "bitwise_not",
    "bitwise_or",
    "bitwise_xor",
    "eq",
    "equal",
    "floor_divide",
    "ge",
    "gt",
    "isclose",
    "isfinite",
    "isinf",
    "isnan",
    "le",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "lt",
    "ne",
]


def _comparison(name: str, symbol: str, ufunc: Any, compare: Callable[[float, float], bool]) -> Callable[[Any, Any], Tensor]:
    def function(x: Any, y: Any) -> Tensor:
        a = x._data if isinstance(x, Tensor) else as_operand(x)._data
        b = y if type(y) is float else as_operand(y)._data
        if type(a) is float and type(b) is float:
            return make(np.array(compare(a, b)), 0)
        check_broadcast(a, b)
        token = enter(IGNORING)
        try:
            return make(np.asarray(ufunc(a, b)), 0)
        finally:
            leave(token)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = (
        f"Elementwise ``x {symbol} y``, as an untracked bool tensor.\n\n"
        "Parameters\n----------\nx, y : Tensor or number\n    Broadcast.\n"
    )
    return function


eq = _comparison("eq", "==", np.equal, operator.eq)
ne = _comparison("ne", "!=", np.not_equal, operator.ne)
lt = _comparison("lt", "<", np.less, operator.lt)
le = _comparison("le", "<=", np.less_equal, operator.le)
gt = _comparison("gt", ">", np.greater, operator.gt)
ge = _comparison("ge", ">=", np.greater_equal, operator.ge)


def _untracked(name: str, ufunc: Any, doc: str, integers_only: bool = False) -> Callable[..., Tensor]:
    def function(*operands: Any) -> Tensor:
        if len(operands) != ufunc.nin:  # NumPy would take one more for the place of the result
            raise TypeError(f"{name}() takes {ufunc.nin} operand(s), but got {len(operands)}")
        data = [as_operand(t)._data for t in operands]
        for a in data if integers_only else ():
            if type(a) is float or a.dtype.kind == "f":
                raise RuntimeError(
                    f"\"{name}_cpu\" not implemented for '{dtypes.type_name(np.asarray(a).dtype)}'; use bool or integer tensors"
                )
        check_broadcast(*data)
        return make(np.asarray(ufunc(*data)), 0)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = doc
    return function


logical_and = _untracked("logical_and", np.logical_and, "Elementwise ``x and y`` of truth values.")
logical_or = _untracked("logical_or", np.logical_or, "Elementwise ``x or y`` of truth values.")
logical_xor = _untracked("logical_xor", np.logical_xor, "Elementwise exclusive or of truth values.")
logical_not = _untracked("logical_not", np.logical_not, "Elementwise ``not x`` of truth values.")
bitwise_and = _untracked("bitwise_and", np.bitwise_and, "Elementwise ``x & y`` of bools or integers.", True)
bitwise_or = _untracked("bitwise_or", np.bitwise_or, "Elementwise ``x | y`` of bools or integers.", True)
bitwise_xor = _untracked("bitwise_xor", np.bitwise_xor, "Elementwise ``x ^ y`` of bools or integers.", True)
bitwise_not = _untracked("bitwise_not", np.invert, "Elementwise ``~x`` of bools or integers.", True)
isnan = _untracked("isnan", np.isnan, "Whether each element is nan.")
isinf = _untracked("isinf", np.isinf, "Whether each element is infinite.")
isfinite = _untracked("isfinite", np.isfinite, "Whether each element is finite.")


def floor_divide(x: Any, y: Any) -> Tensor:
    """Quotient rounded down; its derivative is not defined here, so the result is untracked.

    Raises
    ------
    RuntimeError
        For division of integers by zero.
    """
    a, b = as_operand(x)._data, as_operand(y)._data
    check_broadcast(a, b)
    dtype = dtypes.result_type(x, y)
    with quiet():
        b = np.asarray(b).astype(dtype)
    if dtype.kind != "f" and not np.all(b):
        raise RuntimeError("ZeroDivisionError: integer division by zero")
    with quiet():
        result = np.floor_divide(np.asarray(a).astype(dtype), b)
    return make(result.item() if result.ndim == 0 and dtype == dtypes.float64 else np.asarray(result), 0)


def equal(x: Tensor, other: Tensor) -> bool:
    """Whether two tensors have the same shape and elements."""
    return bool(np.array_equal(array_of(x), array_of(as_operand(other))))


def isclose(x: Tensor, other: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Tensor:
    """Whether ``|x - other| <= atol + rtol * |other|``, elementwise.

    Raises
    ------
    RuntimeError
        If a tolerance is negative or nan.
    TypeError
        If a tolerance is not a number.
    """
    _check_tolerances(rtol, atol)
    with quiet():
        return make(np.asarray(np.isclose(array_of(x), array_of(as_operand(other)), rtol, atol, equal_nan)), 0)


def allclose(x: Tensor, other: Any, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> bool:
    """Whether `isclose` holds for every element."""
    return bool(isclose(x, other, rtol, atol, equal_nan)._data.all())


def _check_tolerances(rtol: float, atol: float) -> None:
    for name, given in (("rtol", rtol), ("atol", atol)):
        if isinstance(given, bool) or not isinstance(given, (int, float)):
            raise TypeError(f"isclose(): {name} must be a number, not {type(given).__name__}")
        if not given >= 0:
            raise RuntimeError(f"{name} must be greater than or equal to zero, but got {given}")
