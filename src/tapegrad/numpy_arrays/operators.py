"""Operators of arrays that have no derivative, and products of matrices: by NumPy's rules for dtypes."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from tapegrad.deferred import look_up
from tapegrad.numpy_arrays.array import Array, as_arrays
from tapegrad.numpy_arrays.promotion import PAIRS, are_doubles, may_be_complex, promoted
from tapegrad.numpy_arrays.untracked import is_tracked, of_values, values_of
from tapegrad.numpy_protocol.operands import holds_tensors, stacked, with_large_matrix
from tapegrad.tensors import untracked_values
from tapegrad.tensors.tensor import Tensor, as_operand
from tapegrad.tensors.tracers import makes_constants_of_shapes

__all__: list[str] = []

_KINDS = frozenset([Array, Tensor, np.ndarray])
_product = Tensor.__matmul__


def _of_values(name: str) -> Callable[[Array, Any], Any]:
    """An operator of the values alone."""
    operate = getattr(operator, name)

    def function(x: Array, y: Any) -> Any:
        if untracked_values.decisions_in_use:
            untracked_values.compared(x, y)
        if holds_tensors(y):
            y = values_of(stacked(y))
        return of_values(operate, x, y)

    return function


def _exchanged(function: Callable[[Any, Any], Any]) -> Callable[[Array, Any], Any]:
    return lambda x, y: of_values(function, y, x)


COMPARED = "eq ge gt le lt ne"
BITS = "and_ lshift or_ rshift xor"
globals().update({name.strip("_"): _of_values(name) for name in f"{COMPARED} {BITS}".split()})
globals().update({f"r{name.strip('_')}": _exchanged(getattr(operator, name)) for name in BITS.split()})


def invert(x: Array) -> Any:
    """Each bit the other."""
    return of_values(operator.invert, x)


def rmatmul(x: Array, y: Any) -> Any:
    """``y @ x``."""
    return matmul(y, x)


@makes_constants_of_shapes
def matmul(x: Any, y: Any) -> Any:
    """``x @ y``."""
    if isinstance(x, Tensor) and type(y) in _KINDS and (x._row or (type(y) is Array and y._row)) and are_doubles((x, y)):
        return as_arrays(_product(x, y))
    x, y = (stacked(t) if holds_tensors(t) else np.asarray(t) if isinstance(t, (list, tuple)) else t for t in (x, y))
    tracked = is_tracked(x, y)
    if (may_be_complex(x) or may_be_complex(y)) and (tracked or type(x) in PAIRS or type(y) in PAIRS):
        return look_up("numpy_arrays.complex_arithmetic:complex_ufunc")(np.matmul, x, y)
    if not tracked:
        return of_values(operator.matmul, x, y)
    if any(not isinstance(t, (Tensor, np.ndarray, np.generic)) for t in (x, y)) or 0 in (np.ndim(x), np.ndim(y)):
        raise ValueError("matmul: an operand has no dimensions; write x * y for the product with a number")
    x, y = promoted(x, y)
    return as_arrays(_product(x if isinstance(x, Tensor) else as_operand(x), y))


def dot(x: Any, y: Any) -> Any:
    """`numpy.dot` of vectors and matrices of float64; None for anything else."""
    if type(x) not in _KINDS or type(y) not in _KINDS or not are_doubles((x, y)):
        return None
    if not {np.ndim(_values(x)), np.ndim(_values(y))} <= {1, 2}:
        return None
    product = with_large_matrix(x, y)
    return as_arrays(_product(x if isinstance(x, Tensor) else as_operand(x), y) if product is None else product)


def _values(x: Any) -> Any:
    return x._data if isinstance(x, Tensor) else x
