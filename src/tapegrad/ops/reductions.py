"""Sums, means, products and logical reductions.

An empty tuple of dimensions means all of them, as in PyTorch; `any` and `all` take it to mean none.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tapegrad.arrays.dtypes import accumulation_dtype, type_name
from tapegrad.arrays.floating_point_warnings import IGNORING, enter, leave
from tapegrad.arrays.memory_pool import SMALL
from tapegrad.deferred import look_up
from tapegrad.engine.layout import MANY
from tapegrad.ops import elementwise
from tapegrad.ops.shaping import reshape
from tapegrad.recording.axes import axes, axis
from tapegrad.recording.casting import cast
from tapegrad.recording.strided_maps import reduce_sum
from tapegrad.recording.structural import Context, Structural, apply
from tapegrad.tensors import untracked_values
from tapegrad.tensors.tensor import Tensor, array_of, wrap

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

__all__ = ["all", "any", "count_nonzero", "mean", "prod", "sum"]

Array = np.ndarray[Any, Any]
Dims = int | Sequence[int] | None

_ALL = tuple(tuple(range(ndim)) for ndim in range(65))
_LONG = np.dtype(np.int64)
add_reduce: Any = np.add.reduce  # NumPy's stubs know keepdims only as a literal
multiply_reduce: Any = np.multiply.reduce


def reduced(dim: Dims, ndim: int) -> tuple[int, ...]:
    """The dimensions that a reduction over `dim` removes: sorted, counted from the front."""
    if dim is None:
        return _ALL[ndim]
    if type(dim) is int and 0 <= dim < ndim:
        return (dim,)
    if isinstance(dim, (tuple, list)) and not dim:
        return _ALL[ndim]
    found = axes(dim, ndim)
    return found if ndim else ()


def restore(x: Tensor, axes: tuple[int, ...], keepdim: bool, shape: tuple[int, ...]) -> Tensor:
    """A reduction over `axes` of something of `shape`, with the removed dimensions back as dimensions of size one."""
    if keepdim or len(axes) == len(shape):
        return x  # a 0-d tensor broadcasts as it is
    return reshape(x, tuple(1 if k in axes else extent for k, extent in enumerate(shape)))


def sum(x: Tensor, dim: Dims = None, keepdim: bool = False, *, dtype: DTypeLike | None = None) -> Tensor:
    """Sum of the elements, of all of them or along dimensions.

    Parameters
    ----------
    x : Tensor
    dim : int or sequence of int, optional
        What to sum over; everything by default.
    keepdim : bool
        Keep the summed dimensions, with size one.
    dtype : dtype, optional
        Cast to it first. Integers and bools are summed as ``int64`` unless it is given.

    Returns
    -------
    Tensor

    Raises
    ------
    IndexError
        If `dim` is out of range.

    Examples
    --------
    >>> tg.sum(tg.tensor([[1.0, 2.0], [3.0, 4.0]]), dim=0)
    tensor([4., 6.])
    """
    if dtype is not None:
        x = cast(x, dtype)
    data = x._data
    if type(data) is float:
        return reduce_sum(x, "SumBackward0" if dim is None else "SumBackward1", reduced(dim, 0), 1.0, data)
    result_dtype = None if data.dtype.kind == "f" else _LONG if dtype is None else data.dtype
    if dim is None and not keepdim:
        return reduce_sum(x, "SumBackward0", _ALL[data.ndim], 1.0, total(data, result_dtype))
    removed = reduced(dim, data.ndim)
    token = enter(IGNORING)
    try:
        if data.size > SMALL:
            result = reduce_along(np.add, data, removed, keepdim, result_dtype)
        else:
            result = add_reduce(data, removed, result_dtype, None, keepdim)
    finally:
        leave(token)
    return reduce_sum(x, "SumBackward0" if dim is None else "SumBackward1", removed, 1.0, result)


def reduce_along(function: Any, data: Any, removed: tuple[int, ...], keepdim: bool, dtype: Any = None) -> Any:
    """``function.reduce`` over axes, which takes long for each of many short runs."""
    if data.size > SMALL:
        found = look_up("ops.run_reductions:along_runs")(function, data, removed, keepdim)
        if found is not None:
            return found
    return function.reduce(data, removed, dtype, None, keepdim)


def total(data: Any, dtype: Any) -> Any:
    """Sum of all elements; nan from opposite infinities is a value and no warning."""
    token = enter(IGNORING)
    try:
        if data.size >= MANY and data.itemsize >= 4 and data.dtype.kind == "f" and data.flags.c_contiguous:
            return _total_of_many(data)
        return np.add.reduce(data, None, dtype)
    finally:
        leave(token)


def _total_of_many(data: Any) -> Any:
    """Sum of a long contiguous array: of each row of 1024 elements in the processor's vectors, then of the row sums pairwise.

    NumPy's own sum takes 1.7 times as long in the cache and twice as long in memory. A row is short enough for the rounding errors
    of its chain of additions to stay small.
    """
    if data.itemsize == 8:
        found = look_up("ops.run_reductions:sum_of_many")(data)
        if found is not None:
            return found
    return look_up("ops.run_reductions:rows_and_rest")(data.reshape(-1))


def mean(x: Tensor, dim: Dims = None, keepdim: bool = False, *, dtype: DTypeLike | None = None) -> Tensor:
    """Mean of the elements, of all of them or along dimensions.

    Parameters
    ----------
    x : Tensor, of a floating point dtype
    dim : int or sequence of int, optional
        What to average over; everything by default.
    keepdim : bool
        Keep the averaged dimensions, with size one.
    dtype : dtype, optional
        Cast to it first.

    Returns
    -------
    Tensor
        nan where there is nothing to average.

    Raises
    ------
    RuntimeError
        If the dtype is not a floating point one.
    IndexError
        If `dim` is out of range.

    Examples
    --------
    >>> tg.mean(tg.tensor([1.0, 2.0, 6.0]))
    tensor(3.)
    """
    if dtype is not None:
        x = cast(x, dtype)
    data = x._data
    name = "MeanBackward0" if dim is None else "MeanBackward1"
    if type(data) is float:
        return reduce_sum(x, name, reduced(dim, 0), 1.0, data)
    if data.dtype.kind != "f":
        raise RuntimeError(
            "mean(): could not infer output dtype. Input dtype must be either a floating point or complex dtype. Got: "
            f"{type_name(data.dtype)}. Give dtype= or convert the tensor."
        )
    if dim is None and not keepdim and data.size and data.itemsize > 2:
        size = data.size
        return reduce_sum(x, name, _ALL[data.ndim], 1.0 / size, total(data, None) / size)
    return mean_over(x, name, reduced(dim, data.ndim), keepdim)


def mean_over(x: Tensor, name: str, removed: tuple[int, ...], keepdim: bool) -> Tensor:
    """Mean over axes counted from the front, of a floating point tensor, recorded under a node's name."""
    data = array_of(x)
    size = count(data.shape, removed)
    token = enter(IGNORING)
    try:
        # half precision is summed in single, where it does not overflow
        dtype = np.float32 if data.itemsize == 2 else None
        if data.size > SMALL:
            summed = reduce_along(np.add, data, removed, keepdim, dtype)
        else:
            summed = add_reduce(data, removed, dtype, None, keepdim)
        result = np.divide(summed, size)
        if data.itemsize < 8:
            result = result.astype(data.dtype, copy=False)
    finally:
        leave(token)
    return reduce_sum(x, name, removed, 1.0 / size if size else np.nan, result)


def count(shape: tuple[int, ...], axes: tuple[int, ...]) -> int:
    """How many elements go into one result of a reduction over `axes`."""
    size = 1
    for k in axes:
        size *= shape[k]
    return size


def prod(x: Tensor, dim: int | None = None, keepdim: bool = False, *, dtype: DTypeLike | None = None) -> Tensor:
    """Product of the elements, of all of them or along one dimension.

    Parameters
    ----------
    x : Tensor
    dim : int, optional
        What to multiply along; everything by default.
    keepdim : bool
        Keep the dimension, with size one.
    dtype : dtype, optional
        Cast to it first. Integers and bools are multiplied as ``int64`` unless it is given.

    Returns
    -------
    Tensor

    Notes
    -----
    Derivatives are exact where elements are zero, in every order: the product of the other elements is then formed from
    running products instead of by division.

    Examples
    --------
    >>> x = tg.tensor([2.0, 0.0, 4.0], requires_grad=True)
    >>> tg.prod(x).backward()
    >>> x.grad
    tensor([0., 8., 0.])
    """
    x = cast(x, accumulation_dtype(array_of(x).dtype) if dtype is None else dtype)
    data = array_of(x)
    position = None if dim is None else axis(dim, data.ndim)
    if data.ndim == 0:
        position = None
    token = enter(IGNORING)
    try:
        result = _product((data,), (position, keepdim))
    finally:
        leave(token)
    return apply(_PROD if dim is None else _PROD_ALONG, (x,), result, (position, keepdim))


def _product(arrays: Sequence[Any], attrs: tuple[int | None, bool]) -> Any:
    position, keepdim = attrs
    data = arrays[0]
    return multiply_reduce(data, position, data.dtype, None, keepdim)  # without the dtype NumPy would widen it


def _prod_vjp(g: Tensor, ctx: Context) -> Sequence[Tensor | None]:
    on = ctx.on
    x, z = ctx.inputs[0], ctx.result
    position, keepdim = ctx.attrs
    shape = ctx.shapes[0]
    axes = _ALL[len(shape)] if position is None else (position,)
    g = on.restore(g, axes, keepdim, shape)
    if is_normal(z._data):
        others = on.restore(z, axes, keepdim, shape) / x
    else:
        # A zero, or an underflow: z / x is 0/0 or has lost its digits.
        along = 0 if position is None else position
        flat = on.reshape(x, (-1,)) if position is None else x
        before, after = (look_up("ops.scans:exclusive_product")(flat, along, backwards) for backwards in (False, True))
        others = elementwise._mul0(before, after)
        if position is None:
            others = on.reshape(others, shape)
    return (elementwise._mul0(g, others),)


def is_normal(value: Any) -> bool:
    """Whether no number is zero, infinite, nan, or so small that it has lost digits."""
    if type(value) is float:
        return 2.2250738585072014e-308 <= abs(value) < np.inf
    size, limits = np.abs(value), np.finfo(value.dtype)
    return bool(((size >= limits.tiny) & (size <= limits.max)).all())


_PROD = Structural("ProdBackward0", ((0, "z"),), _prod_vjp, forward=_product)
_PROD_ALONG = Structural("ProdBackward1", ((0, "z"),), _prod_vjp, forward=_product)


def any(x: Tensor, dim: Dims = None, keepdim: bool = False) -> Tensor:
    """Whether some element is nonzero, of all of them or along dimensions; never tracked.

    Returns
    -------
    Tensor of bool (of ``uint8`` for ``uint8``)
    """
    return _logical(np.logical_or, x, dim, keepdim)


def all(x: Tensor, dim: Dims = None, keepdim: bool = False) -> Tensor:
    """Whether every element is nonzero, of all of them or along dimensions; never tracked.

    Returns
    -------
    Tensor of bool (of ``uint8`` for ``uint8``)
    """
    return _logical(np.logical_and, x, dim, keepdim)


def count_nonzero(x: Tensor, dim: Dims = None) -> Tensor:
    """How many elements are nonzero, of all of them or along dimensions; nan counts; never tracked.

    Parameters
    ----------
    x : Tensor
    dim : int or sequence of int, optional

    Returns
    -------
    Tensor of int64

    Examples
    --------
    >>> tg.count_nonzero(tg.tensor([[1.0, 0.0], [2.0, 3.0]]), 1)
    tensor([1, 2])
    """
    data = array_of(x)
    if untracked_values.decisions_in_use:
        untracked_values.compared(x)
    return wrap(np.asarray(add_reduce(data != 0, reduced(dim, data.ndim), np.int64)))


def _logical(combine: Any, x: Tensor, dim: Dims, keepdim: bool) -> Tensor:
    data = array_of(x)
    # Unlike the other reductions, PyTorch's logical ones take an empty tuple at its word.
    removed = () if isinstance(dim, (tuple, list)) and not dim else reduced(dim, data.ndim)
    result = combine.reduce(data, removed, None, None, bool(keepdim))
    return wrap(np.asarray(result, np.uint8 if data.dtype == np.uint8 else np.bool_))
