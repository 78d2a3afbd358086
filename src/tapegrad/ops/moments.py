"""Variance and standard deviation, alone and with the mean."""

from __future__ import annotations

import warnings
from collections.abc import Sequence
from typing import Any

import numpy as np

from tapegrad.arrays.floating_point_warnings import IGNORING, enter, leave
from tapegrad.ops import elementwise
from tapegrad.ops.norms import are_exact, without_zeros
from tapegrad.ops.reductions import Dims, count, mean_over, reduce_along, reduced
from tapegrad.recording.structural import Context, Structural, apply
from tapegrad.tensors.tensor import Tensor, array_of

__all__ = ["std", "std_mean", "var", "var_mean"]


def var(
    x: Tensor,
    dim: Dims | bool = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: float | None = None,
) -> Tensor:
    """Variance of the elements, of all of them or along dimensions.

    Parameters
    ----------
    x : Tensor, of a floating point dtype
    dim : int or sequence of int, optional
        What to reduce; everything by default. A bool is taken as `unbiased`.
    unbiased : bool, optional
        Divide by ``n - 1`` (the default) or by ``n``.
    keepdim : bool
        Keep the dimensions, with size one.
    correction : number, optional
        Divide by ``n - correction``; instead of `unbiased`.

    Returns
    -------
    Tensor

    Raises
    ------
    RuntimeError
        If the dtype is not a floating point one.
    TypeError
        If both `unbiased` and `correction` are given.

    Warns
    -----
    UserWarning
        If ``n - correction`` is not positive; the result is nan or inf then.

    Examples
    --------
    >>> tg.var(tg.tensor([1.0, 2.0, 3.0]))
    tensor(1.)
    """
    return _spread(_VAR, "var", x, dim, unbiased, keepdim, correction)


def std(
    x: Tensor,
    dim: Dims | bool = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: float | None = None,
) -> Tensor:
    """Standard deviation of the elements: the square root of `var`, with the same parameters.

    The derivative is zero where all elements are equal.

    Examples
    --------
    >>> tg.std(tg.tensor([1.0, 2.0, 3.0]))
    tensor(1.)
    """
    return _spread(_STD, "std", x, dim, unbiased, keepdim, correction)


def var_mean(
    x: Tensor,
    dim: Dims | bool = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: float | None = None,
) -> tuple[Tensor, Tensor]:
    """Variance and mean of the elements, with the parameters of `var`.

    Returns
    -------
    var, mean : Tensor

    Examples
    --------
    >>> tg.var_mean(tg.tensor([1.0, 2.0, 3.0]))
    (tensor(1.), tensor(2.))
    """
    spread = _spread(_VAR_OF_TWO, "var_mean", x, dim, unbiased, keepdim, correction)
    return spread, _mean_beside("VarMeanBackward0", x, dim, keepdim)


def std_mean(
    x: Tensor,
    dim: Dims | bool = None,
    unbiased: bool | None = None,
    keepdim: bool = False,
    *,
    correction: float | None = None,
) -> tuple[Tensor, Tensor]:
    """Standard deviation and mean of the elements, with the parameters of `var`.

    Returns
    -------
    std, mean : Tensor

    Examples
    --------
    >>> tg.std_mean(tg.tensor([1.0, 2.0, 3.0]))
    (tensor(1.), tensor(2.))
    """
    spread = _spread(_STD_OF_TWO, "std_mean", x, dim, unbiased, keepdim, correction)
    return spread, _mean_beside("StdMeanBackward0", x, dim, keepdim)


def _mean_beside(node: str, x: Tensor, dim: Dims | bool, keepdim: bool) -> Tensor:
    return mean_over(x, node, reduced(None if isinstance(dim, bool) else dim, array_of(x).ndim), keepdim)


def _spread(
    op: Structural,
    name: str,
    x: Tensor,
    dim: Dims | bool,
    unbiased: bool | None,
    keepdim: bool,
    correction: float | None,
) -> Tensor:
    if isinstance(dim, bool):
        if unbiased is not None:
            raise TypeError(f"{name}(): dim must be int or tuple of ints, not bool")
        dim, unbiased = None, dim
    if correction is None:
        correction = 1 if unbiased is None or unbiased else 0
    elif unbiased is not None:
        raise TypeError(f"{name}(): give either unbiased or correction, not both")
    data = array_of(x)
    if data.dtype.kind != "f":
        raise RuntimeError(f"std and var only support floating point and complex dtypes, got {data.dtype}")
    removed = reduced(dim, data.ndim)
    size = count(data.shape, removed)
    freedom = size - correction
    if freedom <= 0:
        freedom = 0
        warnings.warn(
            f"{name}(): degrees of freedom is <= 0. Correction should be strictly less than the reduction factor "
            "(input numel divided by output numel).",
            stacklevel=3,
        )
    attrs = (removed, keepdim, freedom)
    token = enter(IGNORING)
    try:
        value = (_deviation if op is _STD or op is _STD_OF_TWO else _variance)((data,), attrs)
    finally:
        leave(token)
    return apply(op, (x,), value, attrs)


def _variance(arrays: Sequence[Any], attrs: Any) -> Any:
    (data,), (removed, keepdim, freedom) = arrays, attrs
    size: Any = float(count(data.shape, removed))
    if data.itemsize < 8:  # float64 is what numbers are anyway
        size, freedom = np.float64(size).astype(data.dtype), np.asarray(freedom, data.dtype)
    centred = data - reduce_along(np.add, data, removed, True) / size
    return reduce_along(np.add, centred * centred, removed, keepdim) / freedom


def _deviation(arrays: Sequence[Any], attrs: Any) -> Any:
    return np.sqrt(_variance(arrays, attrs))


def _var_vjp(g: Tensor, ctx: Context) -> Sequence[Tensor | None]:
    on = ctx.on
    removed, keepdim, freedom = ctx.attrs
    x = ctx.inputs[0]
    centred = x - on.mean(x, removed, keepdim=True)
    g = on.restore(g, removed, keepdim, ctx.shapes[0])
    if freedom == 0:
        return (g * (centred * np.inf),)
    return (elementwise._mul0(g * (2.0 / freedom), centred),)


def _std_vjp(g: Tensor, ctx: Context) -> Sequence[Tensor | None]:
    on = ctx.on
    removed, keepdim, freedom = ctx.attrs
    x, z = ctx.inputs[0], ctx.result
    centred = x - on.mean(x, removed, keepdim=True)
    if freedom == 0:
        return (on.restore(g / z, removed, keepdim, ctx.shapes[0]) * (centred * np.inf),)
    # Equal elements: the derivative is taken as zero, in every order, instead of 0/0.
    value = z._data
    if type(value) is not float or not value > 0.0:
        g, z = without_zeros(g, z)
    quotient = g / z
    if not are_exact(quotient, g, z):
        quotient, centred = g, centred / on.restore(z, removed, keepdim, ctx.shapes[0])
    return (elementwise._mul0(on.restore(quotient, removed, keepdim, ctx.shapes[0]) * (1.0 / freedom), centred),)


_VAR = Structural("VarBackward0", ((0,),), _var_vjp, forward=_variance)
_STD = Structural("StdBackward0", ((0, "z"),), _std_vjp, forward=_deviation)
_VAR_OF_TWO = Structural("VarMeanBackward0", ((0,),), _var_vjp, forward=_variance)
_STD_OF_TWO = Structural("StdMeanBackward0", ((0, "z"),), _std_vjp, forward=_deviation)
