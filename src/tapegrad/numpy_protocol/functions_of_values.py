"""NumPy's functions that have no derivative, of the values of tensors."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tapegrad.numpy_protocol.operands import one
from tapegrad.tape.tape import TAPE
from tapegrad.tensors.tensor import Tensor, array_of, wrap
from tapegrad.tensors.tracers import computed, makes_constants_of_shapes

__all__ = ["of_arrays", "of_shapes", "of_values"]


def _on(convert: Callable[[Tensor], Any], function: Any) -> Callable[..., Any]:
    """A NumPy function of tensors converted to arrays."""

    def changed(value: Any) -> Any:
        if isinstance(value, Tensor):
            return convert(value)
        nested = isinstance(value, (list, tuple)) and any(isinstance(x, (Tensor, list, tuple)) for x in value)
        return list(map(changed, value)) if nested else value

    def call(*args: Any, **kwargs: Any) -> Any:
        return function(*map(changed, args), **{name: changed(value) for name, value in kwargs.items()})

    return call


def of_values(function: Any) -> Callable[..., Any]:
    """A function of values whose results are tensors instead of arrays."""
    own = _on(array_of, function)

    def call(*args: Any, **kwargs: Any) -> Any:
        result = own(*args, **kwargs)
        if TAPE.tracers:
            parts = tuple(map(_wrapped, result)) if isinstance(result, tuple) else _wrapped(result)
            return computed(function, args, kwargs, parts)
        return tuple(_as_result(x) for x in result) if isinstance(result, tuple) else _as_result(result)

    return call


def of_shapes(function: Any) -> Callable[..., Any]:
    """A function of shapes and dtypes whose result is a tensor instead of an array."""
    own = _on(array_of, function)

    @makes_constants_of_shapes
    def call(*args: Any, **kwargs: Any) -> Any:
        return _as_result(own(*args, **kwargs))

    return call


def _wrapped(value: Any) -> Any:
    """The same as an untracked tensor, of which nobody is told as of a constant."""
    return wrap(value) if issubclass(type(value), (np.ndarray, np.generic)) else value


def _as_result(value: Any) -> Any:
    return one(value) if issubclass(type(value), (np.ndarray, np.generic)) else value


def of_arrays(function: Any) -> Callable[..., Any]:
    """A function of untracked tensors as `numpy.asarray` converts them."""
    return _on(np.asarray, function)
