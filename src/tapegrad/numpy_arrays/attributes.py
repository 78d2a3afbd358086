"""Attributes of arrays as NumPy's arrays have them."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any

import numpy as np

from tapegrad.deferred import look_up  # shapes are asked for more often than the rest
from tapegrad.numpy_arrays.array import Array, as_arrays
from tapegrad.numpy_arrays.classes import class_of
from tapegrad.numpy_arrays.numbers import like
from tapegrad.tensors.tensor import array_of

if TYPE_CHECKING:
    from tapegrad.numpy_arrays.flat_iteration import FlatElements

__all__: list[str] = []


def shape(x: Array) -> tuple[int, ...]:
    """Lengths of the dimensions."""
    data = x._data
    return () if type(data) is float else data.shape


def ndim(x: Array) -> int:
    """Number of dimensions."""
    data = x._data
    return 0 if type(data) is float else data.ndim


def size(x: Array) -> int:
    """Number of elements."""
    return math.prod(shape(x))


class UnsizedError(AttributeError, TypeError):
    """A number is asked for its length: it has no such method, by which functions tell numbers from arrays."""


def length(x: Array) -> Any:
    """What `len` calls: the length of the first dimension.

    Raises
    ------
    UnsizedError
        If it is a number.
    """
    data = x._data
    if type(data) is np.ndarray and data.ndim:
        return data.__len__
    if class_of(x) is np.ndarray:
        return np.asarray(data).__len__  # which raises when it is called
    kind = class_of(x)
    raise UnsizedError(f"object of type '{'' if kind is float else 'numpy.'}{kind.__name__}' has no len()")


def itemsize(x: Array) -> int:
    """Bytes of one element."""
    return array_of(x).itemsize


def nbytes(x: Array) -> int:
    """Bytes of all elements."""
    return array_of(x).nbytes


def strides(x: Array) -> tuple[int, ...]:
    """Bytes from one element to the next along each dimension."""
    return array_of(x).strides


def flags(x: Array) -> Any:
    """What is known of the memory."""
    return array_of(x).flags


def device(x: Array) -> str:
    """Where the memory is."""
    return "cpu"


def T(x: Array) -> Array:
    """The axes in reverse order; a view."""
    return x if x.ndim < 2 else as_arrays(look_up("ops.transposing:T")(x))


def mT(x: Array) -> Array:
    """The last two axes exchanged; a view.

    Raises
    ------
    ValueError
        If there are fewer than two.
    """
    if x.ndim < 2:
        raise ValueError("matrix transpose with ndim < 2 is undefined")
    return as_arrays(look_up("ops.transposing:permute")(x, *range(x.ndim - 2), x.ndim - 1, x.ndim - 2))


def flat(x: Array) -> FlatElements:
    """The elements one after the other: what is read of them is a copy, what is written goes into the array."""
    found: FlatElements = look_up("numpy_arrays.flat_iteration:FlatElements")(x)
    return found


def real(x: Array) -> Array:
    """The real part; of real numbers the array itself."""
    return np.real(x) if array_of(x).dtype.kind == "c" else x


def imag(x: Array) -> Array:
    """The imaginary part; of real numbers zeros."""
    return np.imag(x) if array_of(x).dtype.kind == "c" else like(x, np.zeros_like(x))


def flat_assigned(x: Array, values: Any) -> None:
    """Write all elements, one after the other."""
    flat(x)[...] = values


def real_assigned(x: Array, values: Any) -> None:
    """Write all elements: of real numbers the real part is the array itself."""
    x[...] = values


def imag_assigned(x: Array, values: Any) -> None:
    """Refused, as NumPy does.

    Raises
    ------
    TypeError
        Always.
    """
    raise TypeError("array does not have imaginary part to set; make it complex first, as z = x + 0j")


def shape_assigned(x: Array, shape: Any) -> None:
    """Refused: others may hold views of the same elements.

    Raises
    ------
    AttributeError
        Always.
    """
    raise AttributeError("the shape of an array that is being differentiated is not changed in place; write x = x.reshape(shape)")


def base(x: Array) -> Any:
    """The array that this one is a view of."""
    return as_arrays(look_up("surface.attributes:base")(x))


def data(x: Array) -> Any:
    """Refused: the memory of values that are being differentiated.

    Raises
    ------
    AttributeError
        Always.
    """
    raise AttributeError("the memory of an array that is being differentiated is not to be had; x[...] is a view of it")
