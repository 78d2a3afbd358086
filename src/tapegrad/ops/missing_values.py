"""Sums and means that leave nan out, and nan replaced by numbers."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tapegrad.arrays.dtypes import type_name
from tapegrad.arrays.floating_point_warnings import quiet
from tapegrad.ops import elementwise
from tapegrad.ops.comparing import isnan, logical_not
from tapegrad.ops.exponential_shares import total_of_few
from tapegrad.ops.reductions import Dims, add_reduce, reduce_along, reduced, sum
from tapegrad.recording.casting import cast
from tapegrad.recording.primal_values import choose
from tapegrad.recording.structural import Context, Structural, apply
from tapegrad.tape.tape import TAPE
from tapegrad.tensors import untracked_values
from tapegrad.tensors.tensor import Tensor, array_of, make, wrap
from tapegrad.tensors.tracers import computed

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

__all__ = ["nan_to_num", "nanmean", "nansum"]

Array = np.ndarray[Any, Any]


def nansum(x: Tensor, dim: Dims = None, keepdim: bool = False, *, dtype: DTypeLike | None = None) -> Tensor:
    """Sum of the elements that are not nan, of all of them or along dimensions; 0 where there are none.

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

    Examples
    --------
    >>> tg.nansum(tg.tensor([1.0, np.nan, 2.0]))
    tensor(3.)
    """
    if dtype is not None:
        x = cast(x, dtype)
    data = array_of(x)
    if data.dtype.kind != "f":
        return sum(x, dim, keepdim)
    attrs = reduced(dim, data.ndim), keepdim
    present = logical_not(isnan(x)) if TAPE.tracers or untracked_values.decisions_in_use else make(np.asarray(data == data), 0)
    return apply(_NANSUM, (x,), _sum_of_present((data,), attrs, array_of(present)), attrs, (present,))


def _sum_of_present(arrays: Sequence[Array], attrs: Any, present: Array) -> Any:
    (data,), (removed, keepdim) = arrays, attrs
    with quiet():
        return reduce_along(np.add, choose(present, data, data.dtype.type(0)), removed, keepdim)


def _nansum_vjp(g: Tensor, ctx: Context) -> Sequence[Tensor | None]:
    on = ctx.on
    removed, keepdim = ctx.attrs
    (present,) = ctx.extra
    mask = cast(present, ctx.dtypes[0]) if TAPE.tracers else make(present._data.astype(ctx.dtypes[0]), 0)
    return (elementwise._mul0(on.restore(g, removed, keepdim, ctx.shapes[0]), mask),)


_NANSUM = Structural("NansumBackward0", ((),), _nansum_vjp, forward=_sum_of_present)


def nanmean(x: Tensor, dim: Dims = None, keepdim: bool = False, *, dtype: DTypeLike | None = None) -> Tensor:
    """Mean of the elements that are not nan, of all of them or along dimensions; nan where there are none.

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

    Raises
    ------
    RuntimeError
        If the dtype is not a floating point one.

    Examples
    --------
    >>> tg.nanmean(tg.tensor([1.0, np.nan, 2.0]))
    tensor(1.5000)
    """
    data = array_of(x)
    if data.dtype.kind != "f":
        raise RuntimeError(
            f"nanmean(): expected input to have floating point or complex dtype but got {type_name(data.dtype)}; convert it"
        )
    total = nansum(x, dim, keepdim, dtype=dtype)
    present = add_reduce(~np.isnan(data), reduced(dim, data.ndim), np.int64, None, keepdim)
    return total / wrap(np.asarray(present, total.dtype))


def nan_to_num(x: Tensor, nan: float | None = None, posinf: float | None = None, neginf: float | None = None) -> Tensor:
    """A copy with numbers in place of nan and of the infinities; what was replaced gets no gradient.

    Parameters
    ----------
    x : Tensor
    nan : number, optional
        In place of nan; 0 by default.
    posinf, neginf : number, optional
        In place of the infinities; the largest and the smallest number of the dtype by default.

    Returns
    -------
    Tensor

    Examples
    --------
    >>> tg.nan_to_num(tg.tensor([1.0, np.nan, np.inf]), posinf=9.0)
    tensor([1., 0., 9.])
    """
    data = array_of(x)
    if data.dtype.kind != "f":
        return wrap(data.copy())
    limits = 0.0 if nan is None else nan, posinf, neginf
    finite = wrap(_finite(data, *limits))
    return elementwise._finite_or(x, computed(_finite, (x, *limits), {}, finite) if TAPE.tracers else finite)


def _finite(data: Any, nan: float, posinf: float | None, neginf: float | None) -> Array:
    total = total_of_few(data)
    if total is not None and data.ndim and math.isfinite(total):  # then all elements are, and NumPy need not look at each kind
        return np.array(data)
    with quiet():
        return np.nan_to_num(array_of(data) if isinstance(data, Tensor) else data, True, nan, posinf, neginf)
