"""Dropout: random elements, or whole channels, are zero in training, and the others larger by as much."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from tapegrad.arrays.dtypes import type_name
from tapegrad.tensors.random import rand
from tapegrad.tensors.tensor import Tensor, array_of, wrap

__all__ = ["alpha_dropout", "dropout", "dropout1d", "dropout2d", "dropout3d", "feature_alpha_dropout"]


def dropout(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """Each element zero with probability `p`, else divided by ``1 - p``.

    Parameters
    ----------
    input : Tensor
    p : float
        Between 0 and 1.
    training : bool
        Otherwise `input` is returned as it is.
    inplace : bool
        Whether to write into `input`.

    Returns
    -------
    Tensor, of the shape of `input`
        Random numbers are those of `tapegrad.manual_seed`.

    Raises
    ------
    ValueError
        If `p` is not between 0 and 1.

    Examples
    --------
    >>> _ = tg.manual_seed(0)
    >>> sorted(set(tg.nn.functional.dropout(tg.ones(100), 0.75).tolist()))
    [0.0, 4.0]
    """
    return _dropped(input, array_of(input).shape, p, training, inplace)


def dropout1d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """`dropout` of whole channels of shape (l,): those of an input of shape (n, c, l) or (c, l)."""
    if array_of(input).ndim not in (2, 3):
        raise RuntimeError(f"dropout1d: Expected 2D or 3D input, but received a {array_of(input).ndim}D input.")
    return _dropped(input, _channels(input, 1), p, training, inplace)


def dropout2d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """`dropout` of whole channels: each ``input[n, c]`` is zero as a whole or not at all.

    Warns
    -----
    UserWarning
        If the input has not four dimensions; the first two count as batch and channels also then.
    """
    if array_of(input).ndim != 4:
        warnings.warn(
            f"dropout2d: Received a {array_of(input).ndim}-D input to dropout2d, which expects shape (n, c, h, w); the first two "
            "dimensions are taken for batch and channels.",
            stacklevel=2,
        )
    return _dropped(input, _channels(input, array_of(input).ndim - 2), p, training, inplace)


def dropout3d(input: Tensor, p: float = 0.5, training: bool = True, inplace: bool = False) -> Tensor:
    """`dropout` of whole channels of shape (d, h, w): those of an input of shape (n, c, d, h, w) or (c, d, h, w)."""
    return _dropped(input, _channels(input, 3), p, training, inplace)


def alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    """`dropout` that keeps mean zero and variance one, for `selu`: dropped elements get the least value that it has."""
    return _alpha_dropped(input, array_of(input).shape, p, training, inplace)


def feature_alpha_dropout(input: Tensor, p: float = 0.5, training: bool = False, inplace: bool = False) -> Tensor:
    """`alpha_dropout` of whole channels: each ``input[n, c]`` is dropped as a whole or not at all."""
    return _alpha_dropped(input, _channels(input, array_of(input).ndim - 2), p, training, inplace)


def _channels(input: Tensor, spatial: int) -> tuple[int, ...]:
    shape = array_of(input).shape
    kept = max(len(shape) - spatial, 0)
    return shape[:kept] + (1,) * (len(shape) - kept)


def _kept(input: Any, shape: tuple[int, ...], p: float) -> np.ndarray[Any, Any]:
    """Where elements are kept."""
    if array_of(input).dtype.kind != "f":
        raise RuntimeError(
            f"dropout: result type Double can't be cast to the desired output type {type_name(array_of(input).dtype)}; convert "
            "the tensor to a floating point dtype"
        )
    return np.asarray(array_of(rand(shape, dtype=np.float64)) >= p)


def _check(p: float) -> None:
    if not 0.0 <= p <= 1.0:
        raise ValueError(f"dropout probability has to be between 0 and 1, but got {p}")


def _dropped(input: Tensor, shape: tuple[int, ...], p: float, training: bool, inplace: bool) -> Tensor:
    _check(p)
    if not training or p == 0.0:
        return input
    factors = _kept(input, shape, p).astype(array_of(input).dtype)
    if p < 1.0:
        factors /= 1.0 - p
    return input.mul_(wrap(factors)) if inplace else input * wrap(factors)


def _alpha_dropped(input: Tensor, shape: tuple[int, ...], p: float, training: bool, inplace: bool) -> Tensor:
    _check(p)
    if not training or p == 0.0:
        return input
    least = 1.7580993408473766  # scale times alpha of selu
    kept = _kept(input, shape, p).astype(array_of(input).dtype)
    if p == 1.0:
        return input.mul_(wrap(kept)) if inplace else input * wrap(kept)
    scale = 1.0 / np.sqrt((least**2 * p + 1.0) * (1.0 - p))
    shift = (kept - 1.0) * (least * scale) + least * scale * p
    factors, shift = (kept * scale).astype(kept.dtype), shift.astype(kept.dtype)
    return input.mul_(wrap(factors)).add_(wrap(shift)) if inplace else input * wrap(factors) + wrap(shift)
