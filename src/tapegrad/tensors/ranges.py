"""Tensors whose values follow from their index: ranges, the identity matrix, the places of a triangle."""

import math
import operator
from typing import Any

import numpy as np

from tapegrad.arrays import dtypes
from tapegrad.arrays.dtypes import as_dtype, float_or_default
from tapegrad.arrays.floating_point_warnings import quiet
from tapegrad.arrays.sizes import check_count
from tapegrad.tensors.constant_warnings import warn_of_number
from tapegrad.tensors.factories import Number, cast, finish
from tapegrad.tensors.tensor import Tensor, array_of

__all__ = ["arange", "eye", "linspace", "logspace", "tril_indices", "triu_indices"]


def eye(n: int, m: int | None = None, dtype: object = None, requires_grad: bool = False, *, device: object = None) -> Tensor:
    """Identity matrix of shape ``(n, m)``, square if `m` is not given."""
    rows, columns = (_count("eye", name, length) for name, length in (("n", n), ("m", n if m is None else m)))
    check_count((rows, columns), "eye()")
    return finish(np.eye(rows, columns, dtype=float_or_default(dtype)), requires_grad, device)


def arange(
    start: Number,
    end: Number | None = None,
    step: Number = 1,
    dtype: object = None,
    requires_grad: bool = False,
    *,
    device: object = None,
) -> Tensor:
    """Tensor of shape ``(ceil((end - start) / step),)`` with the values ``start + k * step`` before `end`.

    Parameters
    ----------
    start, end : number
        ``arange(end)`` starts at 0.
    step : number
        Distance of neighbours, not zero.
    dtype : dtype, optional
        int64 if all three are integers, else the default float. Of an integer dtype all three are truncated first.

    Raises
    ------
    RuntimeError
        If `step` is zero or leads away from `end`, or a bound is not finite.

    Examples
    --------
    >>> tg.arange(5, 0, -2)
    tensor([5, 3, 1])
    """
    if end is None:
        start, end = 0, start
    low, high, stride = (_number("arange", name, value) for name, value in (("start", start), ("end", end), ("step", step)))
    if not (math.isfinite(low) and math.isfinite(high) and math.isfinite(stride)):
        raise RuntimeError(f"arange(): unsupported range: {low} -> {high} by {stride}")
    if dtype is not None and as_dtype(dtype).kind in "iu":
        low, high, stride = int(low), int(high), int(stride)
    if stride == 0:
        raise RuntimeError("arange(): step must be nonzero")
    if (high - low) * stride < 0:
        raise RuntimeError(f"arange(): upper bound and lower bound inconsistent with step sign: {low} -> {high} by {stride}")
    check_count((math.ceil((high - low) / stride),), "arange()")
    if all(isinstance(value, int) for value in (low, high, stride)):
        return finish(cast(np.arange(low, high, stride), dtypes.int64 if dtype is None else as_dtype(dtype)), requires_grad, device)
    values = low + stride * np.arange(math.ceil((high - low) / stride), dtype=np.float64)
    return finish(cast(values, float_or_default(dtype)), requires_grad, device)


def linspace(
    start: Number, end: Number, steps: int, dtype: object = None, requires_grad: bool = False, *, device: object = None
) -> Tensor:
    """Tensor of shape ``(steps,)`` with equal distances, both ends included.

    Notes
    -----
    Counted from the nearer end, so that it is symmetric and both ends are exact.

    Examples
    --------
    >>> tg.linspace(0, 1, 5)
    tensor([0.0000, 0.2500, 0.5000, 0.7500, 1.0000])
    """
    low, high = (_number("linspace", name, value) for name, value in (("start", start), ("end", end)))
    count = _count("linspace", "number of steps", steps)
    check_count((count,), "linspace()")
    kind = float_or_default(dtype)
    if kind.kind != "f":  # integers have integers at both ends, as in PyTorch
        low, high = int(low), int(high)
    work = kind if kind.kind == "f" else dtypes.float64
    first, last = work.type(low), work.type(high)
    index = np.arange(count)
    distance = (last - first) / work.type(max(1, count - 1))
    values = np.where(index < max(1, count // 2), first + distance * index.astype(work), last - distance * index[::-1].astype(work))
    return finish(cast(values, kind), requires_grad, device)


def logspace(
    start: Number,
    end: Number,
    steps: int,
    base: float = 10.0,
    dtype: object = None,
    requires_grad: bool = False,
    *,
    device: object = None,
) -> Tensor:
    """Tensor of shape ``(steps,)`` with the powers of `base` whose exponents `linspace` gives.

    Examples
    --------
    >>> tg.logspace(-1, 1, 3)
    tensor([ 0.1000,  1.0000, 10.0000])
    """
    kind = float_or_default(dtype)
    low, high = (_number("logspace", name, value) for name, value in (("start", start), ("end", end)))
    if kind.kind != "f":
        low, high = int(low), int(high)
    exponents = array_of(linspace(low, high, steps, kind if kind.kind == "f" else dtypes.float64))
    with quiet():
        values = exponents.dtype.type(_number("logspace", "base", base)) ** exponents
    return finish(cast(values, kind), requires_grad, device)


def tril_indices(row: int, col: int, offset: int = 0, *, dtype: object = dtypes.int64, device: object = None) -> Tensor:
    """Row and column numbers of the elements on and below a diagonal.

    Parameters
    ----------
    row, col : int
        Shape of the matrix.
    offset : int
        How far above the main diagonal.
    dtype : dtype

    Returns
    -------
    Tensor of shape (2, n)

    Raises
    ------
    RuntimeError
        If a size is negative.

    Examples
    --------
    >>> tg.tril_indices(2, 2)
    tensor([[0, 1, 1],
            [0, 0, 1]])
    """
    return _places(np.tri(*_extents("tril_indices", row, col), offset, bool), dtype, device)


def triu_indices(row: int, col: int, offset: int = 0, *, dtype: object = dtypes.int64, device: object = None) -> Tensor:
    """Row and column numbers of the elements on and above a diagonal.

    Parameters, results and errors are those of `tril_indices`.
    """
    return _places(~np.tri(*_extents("triu_indices", row, col), offset - 1, bool), dtype, device)


def _extents(name: str, row: int, col: int) -> tuple[int, int]:
    for argument, extent in (("row", row), ("col", col)):
        if extent < 0:
            raise RuntimeError(f"{name}(): {argument} must be non-negative, got {extent}")
    return row, col


def _places(chosen: np.ndarray, dtype: object, device: object) -> Tensor:
    return finish(np.stack(np.nonzero(chosen)).astype(as_dtype(dtype)), device=device)


def _number(name: str, argument: str, value: Any) -> int | float:
    if isinstance(value, Tensor):
        warn_of_number(value)
    if isinstance(value, Tensor | np.ndarray | np.generic):
        value = value.item()
    if isinstance(value, bool):
        return int(value)
    if isinstance(value, int | float):
        return value
    raise TypeError(f"{name}(): argument '{argument}' must be Number, not {type(value).__name__}")


def _count(name: str, argument: str, value: Any) -> int:
    try:
        length = operator.index(value)
    except TypeError:
        raise TypeError(f"{name}(): argument '{argument}' must be int, not {type(value).__name__}") from None
    if length < 0:
        raise RuntimeError(f"{name}(): {argument} must be greater or equal to 0, got {length}")
    return length
