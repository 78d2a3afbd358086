"""The logarithm of the multivariate gamma function, of which Wishart's and Student's densities of matrices are made."""

from __future__ import annotations

import math
from functools import lru_cache
from typing import Any

import numpy as np

from tapegrad.arrays.dtypes import get_default_dtype
from tapegrad.ops.elementwise import FUNCTIONS
from tapegrad.ops.reductions import sum
from tapegrad.ops.shaping import unsqueeze
from tapegrad.tensors.tensor import Tensor, array_of, make

__all__ = ["mvlgamma"]


@lru_cache(maxsize=64)
def _halves(p: int, dtype: Any) -> np.ndarray[Any, Any]:
    """What is added to the argument for each dimension, which nobody writes into."""
    return (-0.5 * np.arange(p)).astype(dtype)


def mvlgamma(x: Tensor, p: int) -> Tensor:
    """Logarithm of the gamma function of `p` dimensions, elementwise.

    Parameters
    ----------
    x : Tensor
        Larger than ``(p - 1) / 2``.
    p : int
        Positive.

    Raises
    ------
    RuntimeError
        If `p` is not positive.

    Examples
    --------
    >>> tg.mvlgamma(tg.tensor([3.0]), 1)
    tensor([0.6931])
    """
    if p < 1:
        raise RuntimeError(f"p has to be greater than or equal to 1, got {p}")
    dtype = array_of(x).dtype if array_of(x).dtype.kind == "f" else get_default_dtype()
    return sum(FUNCTIONS["lgamma"](unsqueeze(x, -1) + make(_halves(p, dtype), 0)), -1) + p * (p - 1) / 4.0 * math.log(math.pi)
