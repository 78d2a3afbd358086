"""The class that `isinstance` finds in an array of ours: that of NumPy's value in its place.

``isinstance(x, np.ndarray)`` asks for the type of `x`, and then for ``x.__class__``. NumPy has no other hook for it, and functions
choose by it what they compute. Code of the package that means the type asks ``type(x)``.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy import ndarray

from tapegrad.tensors.tensor import Meta, Tensor, meta_of

__all__ = ["answering", "class_given", "class_of"]

_float64: type = np.float64


def class_of(t: Tensor) -> type:
    """Class of the value that NumPy has in the place of an array: `numpy.ndarray`, or that of a number.

    What has no dimensions is a number unless it is a view, and for an argument of a driver what was given.
    """
    data = t._data
    if type(data) is ndarray and data.ndim:
        return ndarray
    meta: Meta | None = t._meta
    if meta is not None:
        given: type | None = getattr(meta, "given_as", None)
        if given is not None or meta.base is not None:
            return given or ndarray
    return _float64 if type(data) is float else data.dtype.type


def class_given(value: Any) -> type | None:
    """The class by which a function that is given a value knows it; None for tensors, which have no place in NumPy."""
    kind = type(value)
    if kind is float or kind is ndarray:
        return kind
    if issubclass(kind, Tensor):
        answered: type = value.__class__
        return None if issubclass(answered, Tensor) else answered
    for known in (np.generic, ndarray, float):
        if issubclass(kind, known):
            return kind if known is np.generic else known
    return None


def answering(t: Tensor, kind: type | None) -> Tensor:
    """An array that a function is given in the place of a value of some class."""
    if kind is not None and class_of(t) is not kind:
        meta_of(t).given_as = kind
    return t
