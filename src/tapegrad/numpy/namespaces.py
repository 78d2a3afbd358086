"""Namespaces of NumPy whose functions take lists of tracked numbers, and give arrays that can hold them."""

from __future__ import annotations

import functools
import importlib
import types
from collections.abc import Callable
from typing import Any

import numpy as np

from tapegrad.deferred import look_up
from tapegrad.numpy.creation import (
    any_sequence,
    as_made_array,
    contiguous,
    converted,
    creating,
    enumerated,
    from_items,
    full,
    joined_columns,
    joined_rows,
    made_array,
)

__all__ = ["Namespace", "namespace"]

CREATING = (
    "arange bartlett blackman empty eye geomspace hamming hanning identity indices kaiser "
    "linspace logspace ones tri tril_indices triu_indices vander zeros"
)
# Functions of sequences of arrays, which are not arrays themselves.
OF_SEQUENCES = (
    "broadcast_arrays choose column_stack concat concatenate dstack einsum einsum_path hstack ix_ lexsort meshgrid multi_dot "
    "piecewise row_stack select stack unstack vstack"
)
NAMESPACES = frozenset(["numpy.fft", "numpy.lib", "numpy.lib.stride_tricks", "numpy.linalg"])
OWN: dict[str, Any] = {
    "array": made_array, "asarray": as_made_array, "asanyarray": as_made_array, "ascontiguousarray": contiguous,
    "asarray_chkfinite": as_made_array, "full": full, "fromiter": from_items, "ndenumerate": enumerated,
    "r_": joined_rows(), "c_": joined_columns(),
}  # fmt: skip


class Namespace:
    """A module of NumPy.

    Parameters
    ----------
    module : module
    """

    def __init__(self, module: types.ModuleType) -> None:
        self._module = module
        self.__name__, self.__doc__ = module.__name__.replace("numpy", __package__, 1), module.__doc__

    def __getattr__(self, name: str) -> Any:
        found = self._made(name, getattr(self._module, name))
        setattr(self, name, found)
        return found

    def __dir__(self) -> list[str]:
        return dir(self._module)

    def __repr__(self) -> str:
        return f"<namespace {self.__name__!r}>"

    def _made(self, name: str, found: Any) -> Any:
        if self._module is np and name in OWN:
            return OWN[name]
        if self._module is np and name in CREATING.split():
            return creating(found)
        if found is np.random or found is np.polynomial:
            return look_up(f"numpy.{name}")
        if isinstance(found, types.ModuleType):
            return namespace(found.__name__) if found.__name__ in NAMESPACES else found
        if found is np.vectorize:
            return look_up("numpy.element_by_element:vectorize")
        if found is np.lib.stride_tricks.as_strided:
            return look_up("numpy.creation:strided")
        if isinstance(found, np.ufunc) or not callable(found) or isinstance(found, type):
            return _ufunc(found) if isinstance(found, np.ufunc) else found
        if name == "block":  # whose lists are no arrays
            return found
        return (_taking_sequences if name in OF_SEQUENCES.split() else _taking_lists)(found)


def _taking_lists(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        if any_sequence(args):
            args = tuple(map(converted, args))
        if kwargs and any_sequence(kwargs.values()):
            kwargs = {name: converted(value) for name, value in kwargs.items()}
        return function(*args, **kwargs)

    return call


def _taking_sequences(function: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        given = [type(arg)(map(converted, arg)) if type(arg) in (list, tuple) else arg for arg in args]
        return function(*given, **kwargs)

    return call


class _ufunc:  # noqa: N801
    """A ufunc of NumPy's that takes lists of tracked numbers; its methods and attributes are the ufunc's."""

    def __init__(self, ufunc: np.ufunc) -> None:
        self._ufunc = ufunc
        self.__name__, self.__doc__ = ufunc.__name__, ufunc.__doc__

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        return self._ufunc(*(map(converted, args) if any_sequence(args) else args), **kwargs)

    def __getattr__(self, name: str) -> Any:
        return getattr(self._ufunc, name)

    def __repr__(self) -> str:
        return repr(self._ufunc)


@functools.cache
def namespace(name: str) -> Namespace:
    """The namespace for a module of NumPy."""
    return Namespace(importlib.import_module(name))
