"""Operands of rules by NumPy's promotion: a number has the dtype that it has, and only Python's numbers adapt."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np

from tapegrad.deferred import look_up
from tapegrad.numpy_arrays.untracked import PAIRS, is_tracked, of_values, plain
from tapegrad.numpy_protocol.operands import holds_tensors, stacked
from tapegrad.recording.casting import cast
from tapegrad.recording.primal_values import forward
from tapegrad.rules.table import RULES
from tapegrad.tensors.tensor import FLOATS, Tensor, make

__all__ = ["PAIRS", "are_doubles", "may_be_complex", "promoted", "rule_operands"]

_WEAK = frozenset([bool, int, float])
_FLOAT64 = np.dtype(np.float64)
_NUMBERS = frozenset([float, int, np.float64])  # which widen no array of doubles


def are_doubles(values: tuple[Any, ...]) -> bool:
    """Whether operands need no promotion: the common case, which NumPy's `result_type` takes five microseconds for."""
    for x in values:
        if isinstance(x, Tensor):
            x = x._data
        kind = type(x)
        if kind not in _NUMBERS and not (kind is np.ndarray and x.dtype is _FLOAT64):
            return False
    return True


def may_be_complex(x: Any) -> bool:
    """Whether an operand is complex: a number, an array, or a pair of arrays."""
    if isinstance(x, Tensor):
        x = x._data
    return isinstance(x, complex) or type(x) in PAIRS or getattr(getattr(x, "dtype", None), "kind", "f") == "c"


def promoted(*values: Any) -> tuple[Any, ...]:
    """Operands in the dtype that NumPy computes in.

    Raises
    ------
    TypeError
        If that is complex, or NumPy has none for them.
    """
    if are_doubles(values):
        return values
    values = tuple(np.asarray(x) if type(x) is range else x for x in values)
    kinds: list[Any] = [x if type(x) in _WEAK else getattr(plain(x), "dtype", x) for x in values]
    try:
        dtype = np.result_type(*kinds)
    except TypeError:
        strange = next(type(x).__name__ for x in kinds if not isinstance(x, (np.dtype, int, float, complex)))
        raise TypeError(
            f"what is being differentiated meets {strange}, which is no number of floating point; use float(...)"
        ) from None
    if dtype.kind == "c":
        raise TypeError("what is being differentiated meets complex numbers; write it with real and imaginary parts")
    return tuple(_in(dtype, x) for x in values) if dtype.kind == "f" else values


def _in(dtype: np.dtype[Any], x: Any) -> Any:
    if isinstance(x, Tensor):
        data = x._data
        if type(data) is float:
            return x if dtype == np.float64 else make(np.array(data, dtype), 0)
        if data.dtype == dtype:
            return x
        found = cast(x, dtype)
        found.__class__ = type(x)  # what NumPy's meaning has keeps it
        return found
    return x.astype(dtype) if issubclass(type(x), (np.ndarray, np.generic)) and x.dtype != dtype else x


def rule_operands(opcode: int, values: tuple[Any, ...]) -> Any:
    """Operands of a rule of which one is an array; its very result where nothing is differentiated."""
    values = tuple(map(_listed, values))
    ufunc = forward[opcode]
    operate = operator.pow if ufunc is np.power else ufunc  # which numbers have otherwise
    tracked = is_tracked(*values)
    if any(map(may_be_complex, values)) and (tracked or any(type(x) in PAIRS for x in values)):
        return look_up("numpy_arrays.complex_arithmetic:complex_ufunc")(ufunc, *values)
    if isinstance(ufunc, np.ufunc) and not tracked:
        return of_values(operate, *values)
    if len(values) == 1:
        return values
    if RULES[opcode].name == "where":
        return values[0], *promoted(*values[1:])
    if isinstance(ufunc, np.ufunc) and all(map(_is_array_of_floats, values)):
        return values  # whose loop converts them, and whose row takes both types
    return promoted(*values)


def _is_array_of_floats(x: Any) -> bool:
    data = x._data if isinstance(x, Tensor) else x
    if not isinstance(data, np.ndarray) or data.dtype not in FLOATS:
        return False
    return data.ndim > 0 or (data is not x and data.dtype == np.float32)  # others do not widen arrays here


def _listed(x: Any) -> Any:
    if issubclass(type(x), (list, tuple)):
        return stacked(x) if holds_tensors(x) else np.asarray(x)
    return x
