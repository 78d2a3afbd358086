"""Values that count as constants."""

from __future__ import annotations

from typing import Any

from tapegrad.numpy_arrays.array import as_arrays
from tapegrad.numpy_arrays.promotion import PAIRS
from tapegrad.numpy_arrays.untracked import constant as given_by_numpy
from tapegrad.numpy_arrays.untracked import values_of
from tapegrad.surface.attributes import detach
from tapegrad.tape.tape import TAPE
from tapegrad.tensors.tensor import Tensor
from tapegrad.tensors.tracers import computed

__all__ = ["stop_gradient"]


def _itself(x: Any) -> Any:
    return x


def stop_gradient(x: Any) -> Any:
    """The value as a constant: nothing has a derivative by what it was made from.

    Parameters
    ----------
    x : array, Tensor, number, or nested tuples, lists and dicts of them

    Returns
    -------
    object
        Of the same type and structure, on the same memory; what is no array or tensor as it is.

    Notes
    -----
    An array that a driver hands to a function refuses ``float(x[0])``, ``x[0].item()`` and ``math.exp(x[0])``, which would lose its
    derivative. Where that is meant, this says so: ``float(tg.stop_gradient(x[0]))``.

    Examples
    --------
    >>> tg.grad(lambda x: (x * tg.stop_gradient(x)).sum())(np.array([1.0, 2.0]))
    array([1., 2.])
    """
    if isinstance(x, Tensor):
        constant = detach(x)
        if type(x) is not Tensor:
            as_arrays(constant)
        return computed(_itself, (x,), {}, constant) if TAPE.tracers else constant
    if type(x) in PAIRS:
        pair: Any = x
        return given_by_numpy(values_of(pair.real) + 1j * values_of(pair.imag))
    if isinstance(x, dict):
        return {name: stop_gradient(value) for name, value in x.items()}
    if type(x) in (tuple, list):
        return type(x)(map(stop_gradient, x))
    return x
