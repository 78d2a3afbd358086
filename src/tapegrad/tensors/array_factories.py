"""Tensors of what is there already, by names that go back to NumPy's."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapegrad.arrays.dtypes import float_or_default
from tapegrad.tensors.factories import Number, as_tensor, finish, tensor
from tapegrad.tensors.tensor import Tensor, array_of

__all__ = ["asarray", "scalar_tensor"]


def asarray(
    obj: Any, *, dtype: object = None, device: object = None, copy: bool | None = None, requires_grad: bool | None = None
) -> Tensor:
    """Tensor of any data, which shares memory with it where it can.

    Parameters
    ----------
    obj : number, nested sequence of numbers, ndarray, or Tensor
    dtype : dtype, optional
        Another dtype than that of the data makes a copy.
    device : device or str, optional
        The CPU.
    copy : bool, optional
        Whether to copy; without it only where it must be.
    requires_grad : bool, optional
        Whether operations on the result are recorded; if not given, whether those on `obj` are. A tensor keeps its graph, but with
        False.

    Raises
    ------
    ValueError
        If no copy is wanted and there must be one.

    Examples
    --------
    >>> a = np.zeros(2)
    >>> t = tg.asarray(a)
    >>> a[0] = 5.0
    >>> t
    tensor([5., 0.])
    """
    if copy is False and not isinstance(obj, (Tensor, np.ndarray)):
        raise ValueError(f"can't alias arbitrary sequence into a tensor: {type(obj).__name__} has no memory of elements to share")
    given = obj.detach() if isinstance(obj, Tensor) and requires_grad is False else obj
    found = as_tensor(given, dtype, device=device)
    shared = isinstance(given, (Tensor, np.ndarray)) and np.shares_memory(array_of(found), _memory(given))
    apart = found is not given and not shared
    if copy is False and apart and found.numel():
        raise ValueError(f"can't alias data of dtype {_memory(given).dtype} as {found.dtype} without a copy; leave copy=False away")
    if copy and not apart:
        found = found.clone()
    return found.requires_grad_() if requires_grad and not found.requires_grad else found


def _memory(given: Any) -> Any:
    return array_of(given) if isinstance(given, Tensor) else given


def scalar_tensor(s: Number, *, dtype: object = None, requires_grad: bool = False, device: object = None) -> Tensor:
    """Tensor without dimensions that holds a number, of the default dtype if no other is given.

    Examples
    --------
    >>> tg.scalar_tensor(2)
    tensor(2.)
    """
    return finish(array_of(tensor(s, float_or_default(dtype))), requires_grad, device)
