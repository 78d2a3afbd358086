"""Powers of what is given: of two, and of the elements of a vector."""

from __future__ import annotations

import operator

import numpy as np

from tapegrad.errors import ShapeError
from tapegrad.ops.elementwise import FUNCTIONS
from tapegrad.ops.joining import stack
from tapegrad.ops.shaping import unsqueeze
from tapegrad.recording.casting import cast
from tapegrad.tensors.tensor import Tensor, array_of, as_operand
from tapegrad.tensors.tracers import makes_constants_of_shapes

__all__ = ["ldexp", "powers_of_each", "vander"]


def ldexp(x: Tensor, other: Tensor) -> Tensor:
    """``x * 2**other``, elementwise.

    Parameters
    ----------
    x, other : Tensor
        Of shapes that broadcast. Exponents that are integers count as numbers of the dtype of `x`, if that is a float.

    Raises
    ------
    RuntimeError
        If the shapes do not broadcast.

    Examples
    --------
    >>> tg.ldexp(tg.tensor([1.0, 3.0]), tg.tensor([-1, 2]))
    tensor([ 0.5000, 12.0000])
    """
    if not isinstance(other, Tensor):
        raise TypeError(f"ldexp(): argument 'other' (position 2) must be Tensor, not {type(other).__name__}. Use tg.tensor(...).")
    dtype = array_of(x).dtype
    exponent = cast(other, dtype) if dtype.kind == "f" and array_of(other).dtype.kind in "biu" else other
    return FUNCTIONS["mul"](x, FUNCTIONS["exp2"](exponent))


@makes_constants_of_shapes
def vander(x: Tensor, N: int | None = None, increasing: bool = False) -> Tensor:
    """The matrix whose columns are the powers of a vector.

    Parameters
    ----------
    x : Tensor, shape (n,)
    N : int, optional
        How many columns; n if not given.
    increasing : bool
        Whether the powers begin with zero and do not end with it.

    Returns
    -------
    Tensor, shape (n, N)

    Raises
    ------
    RuntimeError
        If `x` is no vector, or `N` is negative.

    Examples
    --------
    >>> tg.vander(tg.tensor([1.0, 2.0, 3.0]))
    tensor([[1., 1., 1.],
            [4., 2., 1.],
            [9., 3., 1.]])
    """
    data = array_of(x)
    if data.ndim != 1:
        raise ShapeError(f"x must be a one-dimensional tensor, but has shape {list(data.shape)}")
    columns = len(data) if N is None else operator.index(N)
    if columns < 0:
        raise RuntimeError(f"N must be non-negative, but got {columns}")
    whole = x if data.dtype.kind == "f" else cast(x, np.dtype(np.int64))
    if not columns:
        return unsqueeze(whole, 1)[:, :0]
    powers = [as_operand(np.ones(len(data), array_of(whole).dtype))]
    for _ in range(columns - 1):
        powers.append(powers[-1] * whole)
    return stack(powers if increasing else powers[::-1], 1)


def powers_of_each(x: Tensor, *, N: int | None = None) -> Tensor:
    """The matrix whose rows are the powers of the elements of a vector, the lowest first.

    Parameters
    ----------
    x : Tensor, shape (..., n)
    N : int, optional
        How many powers; n if not given.

    Returns
    -------
    Tensor, shape (..., n, N)
        A number counts as a vector.

    Raises
    ------
    RuntimeError
        If there are fewer than two powers.

    Examples
    --------
    >>> tg.linalg.vander(tg.tensor([2.0, 3.0]), N=3)
    tensor([[1., 2., 4.],
            [1., 3., 9.]])
    """
    data = array_of(x)
    count = (data.shape[-1] if data.ndim else 1) if N is None else operator.index(N)
    if count < 2:
        raise RuntimeError(f"N must be greater than 1, but got {count} for a tensor of shape {list(data.shape)}")
    whole = x if data.dtype.kind == "f" else cast(x, np.dtype(np.int64))
    if not data.ndim:
        whole = unsqueeze(whole, 0)
    powers = [as_operand(np.ones_like(array_of(whole))), whole]
    for _ in range(count - 2):
        powers.append(powers[-1] * whole)
    return stack(powers, -1)
