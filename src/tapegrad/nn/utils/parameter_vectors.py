"""All parameters as one vector, and back."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from tapegrad.errors import ShapeError
from tapegrad.ops.joining import cat
from tapegrad.tensors.tensor import Tensor, array_of, wrap

__all__ = ["parameters_to_vector", "vector_to_parameters"]


def parameters_to_vector(parameters: Iterable[Tensor]) -> Tensor:
    """The elements of parameters, one after the other.

    Parameters
    ----------
    parameters : iterable of Tensor

    Returns
    -------
    Tensor, shape (n,)
        Recorded, as the parameters are.

    Examples
    --------
    >>> tg.nn.utils.parameters_to_vector([tg.tensor([[1.0, 2.0]]), tg.tensor(3.0)])
    tensor([1., 2., 3.])
    """
    return cat([p.reshape(-1) for p in parameters])


def vector_to_parameters(vec: Tensor, parameters: Iterable[Tensor]) -> None:
    """Copy the elements of a vector into parameters, one after the other.

    Parameters
    ----------
    vec : Tensor, shape (n,)
        With as many elements as the parameters have together.
    parameters : iterable of Tensor

    Raises
    ------
    TypeError
        If `vec` is not a tensor.
    RuntimeError
        If it has another shape. Nothing is changed then.

    Notes
    -----
    As with ``p.data = ...``, parameters get other memory, so graphs that were recorded before keep their values. Unlike in PyTorch
    the memory is not shared with `vec`.

    Examples
    --------
    >>> x, y = tg.zeros(2, requires_grad=True), tg.tensor(0.0, requires_grad=True)
    >>> tg.nn.utils.vector_to_parameters(tg.tensor([1.0, 2.0, 3.0]), [x, y])
    >>> x, y
    (tensor([1., 2.], requires_grad=True), tensor(3., requires_grad=True))
    """
    if not isinstance(vec, Tensor):
        raise TypeError(f"expected tapegrad.Tensor, but got: {type(vec).__name__}")
    listed, values = list(parameters), array_of(vec)
    total = sum(array_of(p).size for p in listed)
    if values.shape != (total,):
        raise ShapeError(f"the parameters have {total} elements in all, but the vector has shape {list(values.shape)}")
    offset = 0
    for p in listed:
        own = array_of(p)
        part = np.array(values[offset : offset + own.size]).reshape(own.shape)
        p.data = wrap(part.item() if type(p._data) is float else part)
        offset += own.size
