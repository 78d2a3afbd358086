"""Samples of a categorical distribution that have a gradient."""

from __future__ import annotations

import numpy as np

from tapegrad.arrays.floating_point_warnings import quiet
from tapegrad.ops.normalisation import softmax
from tapegrad.tensors.random import rand_like
from tapegrad.tensors.tensor import Tensor, array_of, wrap

__all__ = ["gumbel_softmax"]


def gumbel_softmax(logits: Tensor, tau: float = 1, hard: bool = False, eps: float = 1e-10, dim: int = -1) -> Tensor:
    """The softmax of logits with noise: near to a sample of the categorical distribution that the logits give [1]_.

    Parameters
    ----------
    logits : Tensor
        Logarithms of weights, which need not sum to one.
    tau : float
        Temperature: the lower, the nearer to ones and zeros.
    hard : bool
        Whether the value is a one and zeros; the gradient stays that of the softmax.
    eps : float
        Has no effect, as in PyTorch.
    dim : int
        The dimension along which it is taken.

    Returns
    -------
    Tensor, of the shape of `logits`

    References
    ----------
    .. [1] E. Jang, S. Gu, B. Poole, "Categorical reparameterization with Gumbel-softmax", ICLR, 2017.

    Examples
    --------
    >>> tg.nn.functional.gumbel_softmax(tg.tensor([0.0, 1.0]), hard=True).sum()
    tensor(1.)
    """
    data = array_of(logits)
    with quiet():
        exponential = -np.log1p(-array_of(rand_like(logits.detach())))
        # A zero among the random numbers would make the noise infinite, and the softmax nan.
        noise = -np.log(np.maximum(exponential, np.finfo(data.dtype).eps / 2).astype(data.dtype))
    soft = softmax((logits + wrap(noise)) / tau, dim)
    if not hard:
        return soft
    values = array_of(soft)
    one_hot = np.zeros_like(values)
    np.put_along_axis(one_hot, np.argmax(values, dim, keepdims=True), 1.0, dim)
    return wrap(one_hot) - soft.detach() + soft
