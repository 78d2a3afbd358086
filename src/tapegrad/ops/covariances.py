"""Covariances and correlations of variables, which are the rows of a matrix."""

from __future__ import annotations

import numpy as np

from tapegrad.arrays import dtypes
from tapegrad.arrays.dtypes import type_name
from tapegrad.errors import ShapeError
from tapegrad.ops.arithmetic import clamp
from tapegrad.ops.diagonals import diagonal
from tapegrad.ops.elementwise import FUNCTIONS
from tapegrad.ops.products import matmul
from tapegrad.ops.reductions import mean, sum
from tapegrad.ops.shaping import reshape, squeeze, unsqueeze
from tapegrad.ops.transposing import t
from tapegrad.recording.casting import cast
from tapegrad.tensors.tensor import Tensor, array_of
from tapegrad.tensors.tracers import looks_at_values, makes_constants_of_shapes

__all__ = ["corrcoef", "correlations", "cov", "products_of_deviations"]


def cov(input: Tensor, *, correction: int = 1, fweights: Tensor | None = None, aweights: Tensor | None = None) -> Tensor:
    """Covariances of the rows of a matrix, whose columns are observations.

    Parameters
    ----------
    input : Tensor, shape (variables, observations), (observations,) or ()
    correction : int
        What is subtracted from the number of observations in the divisor.
    fweights : Tensor of int, shape (observations,), optional
        How often each observation was made.
    aweights : Tensor, shape (observations,), optional
        Weight of each observation.

    Returns
    -------
    Tensor, shape (variables, variables), or () for one variable

    Raises
    ------
    RuntimeError
        If there are more than two dimensions, or weights are negative, of another shape or dtype.

    Examples
    --------
    >>> tg.cov(tg.tensor([[1.0, 2.0, 3.0], [3.0, 2.0, 1.0]]))
    tensor([[ 1., -1.],
            [-1.,  1.]])
    """
    rows = _rows("cov", input)
    if fweights is None and aweights is None:
        return squeeze(products_of_deviations(rows, rows.shape[1] - correction))
    return squeeze(_weighted(rows, correction, fweights, aweights))


def corrcoef(input: Tensor) -> Tensor:
    """Correlation coefficients of the rows of a matrix, whose columns are observations.

    Parameters
    ----------
    input : Tensor, shape (variables, observations), (observations,) or ()

    Returns
    -------
    Tensor, shape (variables, variables), or () for one variable
        Between -1 and 1; nan where a variable is constant.

    Raises
    ------
    RuntimeError
        If there are more than two dimensions.

    Examples
    --------
    >>> tg.corrcoef(tg.tensor([[1.0, 2.0, 3.0], [6.0, 4.0, 2.0]]))
    tensor([[ 1., -1.],
            [-1.,  1.]])
    """
    rows = _rows("corrcoef", input)
    return correlations(squeeze(products_of_deviations(rows, rows.shape[1] - 1)))


@makes_constants_of_shapes
def products_of_deviations(rows: Tensor, free: float) -> Tensor:
    """Mean products of the rows' deviations from their means, of which `free` are independent."""
    apart = rows - mean(rows, 1, True)
    return matmul(apart, t(apart)) / float(max(free, 0))


def correlations(c: Tensor) -> Tensor:
    """The correlations that belong to covariances."""
    if c.ndim == 0:
        return c / c
    deviations = FUNCTIONS["sqrt"](diagonal(c))
    return clamp(c / unsqueeze(deviations, 1) / deviations, -1.0, 1.0)


def _rows(name: str, input: Tensor) -> Tensor:
    data = array_of(input)
    if data.ndim > 2:
        raise ShapeError(f"{name}(): expected input to have two or fewer dimensions but got an input with {data.ndim} dimensions")
    rows = input if data.ndim == 2 else reshape(input, (1, -1))
    return rows if data.dtype.kind == "f" else cast(rows, dtypes.get_default_dtype())


@looks_at_values
def _weighted(rows: Tensor, correction: int, fweights: Tensor | None, aweights: Tensor | None) -> Tensor:
    """Covariances where observations count by their weights."""
    count = rows.shape[1]
    for name, weights, kinds in (("fweights", fweights, "iu"), ("aweights", aweights, "f")):
        if weights is None:
            continue
        data = array_of(weights)
        if data.shape != (count,):
            raise ShapeError(f"cov(): expected {name} of shape [{count}], one for each observation, but got {list(data.shape)}")
        if data.dtype.kind not in kinds:
            wanted = "integral" if kinds == "iu" else "floating point"
            raise RuntimeError(f"cov(): expected {name} to have {wanted} dtype but got {name} with {type_name(data.dtype)} dtype")
        if (data < 0).any():
            raise RuntimeError(f"cov(): {name} cannot be negative, but the least is {data.min()}")
    given = [] if fweights is None else [cast(fweights, array_of(rows).dtype)]
    given += [] if aweights is None else [aweights]
    weights = given[0] if len(given) == 1 else given[0] * given[1]
    total = sum(weights)
    if not np.any(array_of(total)):
        raise RuntimeError("cov(): weights sum to zero, can't be normalized")
    apart = rows - sum(rows * weights, 1, True) / total
    free = total - correction if aweights is None else total - correction * sum(weights * given[-1]) / total
    return matmul(apart, t(apart * weights)) / clamp(free, min=0.0)
