"""Angles and distances between vectors."""

from __future__ import annotations

import numpy as np

from tapegrad.ops.cosines import cosines
from tapegrad.recording.apply_rule import check_broadcast
from tapegrad.recording.axis_names import with_numpy_names
from tapegrad.recording.casting import cast, common_dtype
from tapegrad.tensors.tensor import Tensor, array_of

__all__ = ["cosine_similarity", "normalize", "pairwise_distance"]


@with_numpy_names
def cosine_similarity(x1: Tensor, x2: Tensor, dim: int = 1, eps: float = 1e-8) -> Tensor:
    """Cosine of the angle between the vectors along a dimension.

    Parameters
    ----------
    x1, x2 : Tensor
        Broadcast against each other.
    dim : int
    eps : float
        Shorter vectors count as this long.

    Returns
    -------
    Tensor, without the dimension

    Examples
    --------
    >>> tg.nn.functional.cosine_similarity(tg.tensor([[1.0, 0.0]]), tg.tensor([[1.0, 1.0]]))
    tensor([0.7071])
    """
    a, b = array_of(x1), array_of(x2)
    if a.shape == b.shape and a.dtype == b.dtype:
        return cosines(x1, x2, dim, eps)
    dtype = common_dtype((a, b))
    x1, x2 = cast(x1, dtype), cast(x2, dtype)
    a, b = array_of(x1), array_of(x2)
    check_broadcast(a, b)
    common = np.broadcast_shapes(a.shape, b.shape)
    first, second = (x if own.shape == common else x.expand(common) for x, own in ((x1, a), (x2, b)))
    return cosines(first, second, dim, eps)


def pairwise_distance(x1: Tensor, x2: Tensor, p: float = 2.0, eps: float = 1e-6, keepdim: bool = False) -> Tensor:
    """Norm of the differences along the last dimension.

    Parameters
    ----------
    x1, x2 : Tensor, shape (n, d) or (d,)
        Broadcast against each other.
    p : float
        Order of the norm.
    eps : float
        Added to every difference.
    keepdim : bool
        Keep the dimension, with size one.

    Returns
    -------
    Tensor, shape (n,) or ()

    Examples
    --------
    >>> tg.nn.functional.pairwise_distance(tg.tensor([[3.0, 4.0]]), tg.zeros(1, 2), eps=0.0)
    tensor([5.])
    """
    return (x1 - x2 + eps).norm(p, -1, keepdim=keepdim)


def normalize(input: Tensor, p: float = 2.0, dim: int = 1, eps: float = 1e-12) -> Tensor:
    """Vectors along a dimension divided by their norm, or by `eps` if that is larger.

    Parameters
    ----------
    input : Tensor
    p : float
        Order of the norm.
    dim : int
    eps : float

    Returns
    -------
    Tensor, of the shape of `input`

    Examples
    --------
    >>> tg.nn.functional.normalize(tg.tensor([[3.0, 4.0]]))
    tensor([[0.6000, 0.8000]])
    """
    return input / input.norm(p, dim, keepdim=True).clamp(min=eps)
