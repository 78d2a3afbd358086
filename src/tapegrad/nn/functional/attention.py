"""Scaled dot product attention."""

from __future__ import annotations

import math
from functools import lru_cache

import numpy as np

from tapegrad.arrays.memory_pool import SMALL
from tapegrad.nn.functional.dropping import dropout
from tapegrad.ops import elementwise
from tapegrad.ops.transposing import transpose
from tapegrad.tensors.tensor import Tensor, array_of, wrap

__all__ = ["scaled_dot_product_attention"]


@lru_cache(maxsize=64)
def _small_triangle(rows: int, columns: int) -> np.ndarray:
    return np.tri(rows, columns, dtype=bool)


def _triangle(rows: int, columns: int) -> np.ndarray:
    """Which keys each query may look at, if it must not look ahead; nobody writes into it."""
    return _small_triangle(rows, columns) if rows * columns <= SMALL else np.tri(rows, columns, dtype=bool)


def scaled_dot_product_attention(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
) -> Tensor:
    """Means of the values, weighted by the softmax of how well each query fits each key.

    Parameters
    ----------
    query : Tensor, shape (..., l, e)
    key : Tensor, shape (..., s, e)
    value : Tensor, shape (..., s, d)
    attn_mask : Tensor, shape (..., l, s), optional
        Where each query may look (bool), or what is added to the fit.
    dropout_p : float
        Probability with which a weight is dropped.
    is_causal : bool
        Whether query ``i`` may look at keys up to ``i`` only.
    scale : float, optional
        Factor of the fit; ``1 / sqrt(e)`` if not given.

    Returns
    -------
    Tensor, shape (..., l, d)
        Zero where a query may look at no key.

    Raises
    ------
    RuntimeError
        If both `attn_mask` and `is_causal` are given, or the shapes do not fit together.

    Examples
    --------
    >>> q, k = tg.zeros(1, 2), tg.ones(2, 2)
    >>> tg.nn.functional.scaled_dot_product_attention(q, k, tg.tensor([[1.0], [3.0]]))
    tensor([[2.]])
    """
    if attn_mask is not None and is_causal:
        raise RuntimeError("Explicit attn_mask should not be set when is_causal=True")
    factor = 1.0 / math.sqrt(array_of(query).shape[-1]) if scale is None else scale
    # Half of it goes to each side, as in PyTorch: the product keeps neither the queries nor the keys themselves.
    half = math.sqrt(abs(factor))
    fit = (query * math.copysign(half, factor)) @ (transpose(key, -2, -1) * half)
    if is_causal:
        attn_mask = wrap(_triangle(*array_of(fit).shape[-2:]))
    if attn_mask is None:
        weights = fit.softmax(-1)
    else:
        allowed = array_of(attn_mask)
        if allowed.dtype.kind == "b":
            fit = elementwise.where(attn_mask, fit, -math.inf)
        else:
            fit = fit + attn_mask
        blind = (array_of(fit) == -math.inf).all(-1, keepdims=True)
        if blind.any():
            # The softmax of nothing is 0/0.
            weights = elementwise.where(wrap(blind), 0.0, elementwise.where(wrap(blind), 0.0, fit).softmax(-1))
        else:
            weights = fit.softmax(-1)
    return dropout(weights, dropout_p) @ value
