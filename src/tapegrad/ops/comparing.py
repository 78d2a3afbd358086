"""Comparisons and logic: bool results, never tracked."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from tapegrad.arrays import dtypes
from tapegrad.arrays.floating_point_warnings import IGNORING, enter, leave, quiet
from tapegrad.recording.apply_rule import check_broadcast
from tapegrad.recording.parameter_names import bound
from tapegrad.tape.tape import TAPE
from tapegrad.tensors import untracked_values
from tapegrad.tensors.tensor import Tensor, array_of, as_operand, make
from tapegrad.tensors.tracers import computed

__all__ = [
    "allclose",
    "bitwise_and",
    "bitwise_left_shift",
    "bitwise_not",
    "bitwise_or",
    "bitwise_right_shift",
    "bitwise_xor",
    "eq",
    "equal",
    "gcd",
    "ge",
    "greater",
    "greater_equal",
    "gt",
    "isclose",
    "isfinite",
    "isinf",
    "isnan",
    "isneginf",
    "isposinf",
    "isreal",
    "lcm",
    "le",
    "less",
    "less_equal",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "lt",
    "ne",
    "not_equal",
    "signbit",
]


def _comparison(name: str, symbol: str, ufunc: Any, compare: Callable[[float, float], bool]) -> Callable[[Any, Any], Tensor]:
    def function(x: Any, other: Any) -> Tensor:
        a = x._data if isinstance(x, Tensor) else as_operand(x)._data
        b = other if type(other) is float else as_operand(other)._data
        if untracked_values.decisions_in_use:
            untracked_values.compared(x, other)
        if type(a) is float and type(b) is float:
            return make(np.array(compare(a, b)), 0)
        if not isinstance(a, float) and not isinstance(b, float) and a.shape != b.shape:
            check_broadcast(a, b)
        token = enter(IGNORING)
        try:
            return make(np.asarray(ufunc(a, b)), 0)
        finally:
            leave(token)

    function.__name__ = function.__qualname__ = name
    function.__doc__ = (
        f"Elementwise ``x {symbol} other``, as an untracked bool tensor.\n\n"
        "Parameters\n----------\nx, other : Tensor or number\n    Broadcast.\n"
    )
    return function


eq = _comparison("eq", "==", np.equal, operator.eq)
ne = _comparison("ne", "!=", np.not_equal, operator.ne)
lt = _comparison("lt", "<", np.less, operator.lt)
le = _comparison("le", "<=", np.less_equal, operator.le)
gt = _comparison("gt", ">", np.greater, operator.gt)
ge = _comparison("ge", ">=", np.greater_equal, operator.ge)


def _untracked(name: str, ufunc: Any, doc: str, integers_only: bool = False) -> Callable[..., Tensor]:
    wanted = getattr(ufunc, "nin", 1)

    def function(*operands: Any, **named: Any) -> Tensor:
        if named:
            operands = bound(name, ("input", "other")[:wanted], operands, named)
        if len(operands) != wanted:  # NumPy would take one more for the place of the result
            raise TypeError(f"{name}() takes {wanted} operand(s), but got {len(operands)}")
        data = [as_operand(t)._data for t in operands]
        if untracked_values.decisions_in_use:
            untracked_values.compared(*operands)
        for a in data if integers_only else ():
            if type(a) is float or a.dtype.kind == "f":
                raise RuntimeError(
                    f"\"{name}_cpu\" not implemented for '{dtypes.type_name(np.asarray(a).dtype)}'; use bool or integer tensors"
                )
        check_broadcast(*data)
        if integers_only:
            dtype = dtypes.result_type(*operands)
            data = [np.asarray(a, dtype) for a in data]
        made = make(np.asarray(ufunc(*data)), 0)
        return computed(ufunc, operands, {}, made) if TAPE.tracers else made

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
isposinf = _untracked("isposinf", lambda a: np.equal(a, np.inf), "Whether each element is positive infinity.")
isneginf = _untracked("isneginf", lambda a: np.equal(a, -np.inf), "Whether each element is negative infinity.")
isreal = _untracked("isreal", np.isreal, "Whether each element is a real number: all are.")
signbit = _untracked(
    "signbit",
    lambda a: np.signbit(a) if np.asarray(a).dtype.kind == "f" else np.less(a, 0),
    "Whether each element has the minus sign; -0.0 has.",
)
gcd = _untracked("gcd", np.gcd, "Elementwise greatest common divisor of integers.", True)
lcm = _untracked("lcm", np.lcm, "Elementwise least common multiple of integers.", True)
bitwise_left_shift = _untracked("bitwise_left_shift", np.left_shift, "Elementwise ``x << y`` of integers.", True)
bitwise_right_shift = _untracked("bitwise_right_shift", np.right_shift, "Elementwise ``x >> y`` of integers.", True)

not_equal, less, less_equal, greater, greater_equal = ne, lt, le, gt, ge


def equal(x: Tensor, other: Tensor) -> bool:
    """Whether two tensors have the same shape and elements."""
    if untracked_values.decisions_in_use:
        untracked_values.compared(x, other)
    return bool(np.array_equal(array_of(x), array_of(as_operand(other))))


def isclose(x: Tensor, other: Tensor, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> Tensor:
    """Whether ``|x - other| <= atol + rtol * |other|``, elementwise.

    Parameters
    ----------
    x, other : Tensor
        Of one dtype; broadcast.
    rtol, atol : number
        Not negative.
    equal_nan : bool
        Whether nan is close to nan.

    Raises
    ------
    RuntimeError
        If the dtypes differ, or a tolerance is negative or nan.
    TypeError
        If a tolerance is not a number.

    Examples
    --------
    >>> tg.isclose(tg.tensor([1.0, 2.0]), tg.tensor([1.0 + 1e-9, 2.1]))
    tensor([ True, False])
    """
    a, b = array_of(as_operand(x)), array_of(as_operand(other, x if isinstance(x, Tensor) else None))
    if a.dtype != b.dtype:
        raise RuntimeError(f"{dtypes.type_name(a.dtype)} did not match {dtypes.type_name(b.dtype)}; convert one of the tensors")
    for name, tolerance in (("rtol", rtol), ("atol", atol)):
        if isinstance(tolerance, bool) or not issubclass(type(tolerance), (int, float)):
            raise TypeError(f"isclose(): {name} must be a number, not {type(tolerance).__name__}")
        if not tolerance >= 0:
            raise RuntimeError(f"{name} must be greater than or equal to zero, but got {tolerance}")
    check_broadcast(a, b)
    if untracked_values.decisions_in_use:
        untracked_values.compared(x, other)
    with quiet():
        return make(np.asarray(np.isclose(a, b, rtol, atol, equal_nan)), 0)


def allclose(x: Tensor, other: Tensor, rtol: float = 1e-5, atol: float = 1e-8, equal_nan: bool = False) -> bool:
    """Whether `isclose` holds for every element; the parameters and errors are those of `isclose`.

    Examples
    --------
    >>> tg.allclose(tg.tensor([1.0, 2.0]), tg.tensor([1.0, 2.0 + 1e-9]))
    True
    """
    return bool(np.all(isclose(x, other, rtol, atol, equal_nan)._data))
