"""What all of `tapegrad.linalg` asks of its operands, and small pieces of matrices."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tapegrad.arrays.dtypes import type_name
from tapegrad.arrays.floating_point_warnings import quiet
from tapegrad.arrays.memory_pool import SMALL
from tapegrad.errors import LinAlgError, ShapeError
from tapegrad.linalg import lapack
from tapegrad.linalg.constant_matrices import identity, ones_of_triangle
from tapegrad.ops import elementwise
from tapegrad.ops.namespaces import TENSORS
from tapegrad.ops.triangles import tril, triu
from tapegrad.recording.strided_maps import strided_scatter
from tapegrad.tape.array_kernels import ARRAY_KERNELS
from tapegrad.tensors.tensor import Tensor, array_of, wrap

__all__ = [
    "FLOAT64",
    "Array",
    "broadcast_batches",
    "decompose",
    "diagonal_matrix",
    "identity_beside",
    "matrix",
    "mirrored",
    "off_diagonal",
    "square",
    "tensor_operand",
    "triangle",
]

Array = np.ndarray[Any, Any]
Shape = tuple[int, ...]
add_reduce: Any = np.add.reduce
FLOAT64 = np.dtype(np.float64)


def tensor_operand(x: Any, name: str, argument: str = "A") -> Array:
    """The data of an operand of a floating point dtype.

    Raises
    ------
    TypeError
        If it is no tensor.
    RuntimeError
        If its dtype is not a floating point one.
    """
    if not isinstance(x, Tensor):
        raise TypeError(f"{name}(): argument '{argument}' must be Tensor, not {type(x).__name__}. Use tg.tensor(...).")
    data = array_of(x)
    if data.dtype.kind != "f":
        raise RuntimeError(
            f"{name}: Expected a floating point or complex tensor as input. Got {type_name(data.dtype)}. Convert it first."
        )
    return data


def matrix(x: Any, name: str, argument: str = "A") -> Array:
    """The data of a matrix or a batch of matrices.

    Raises
    ------
    TypeError, RuntimeError
        If it is no tensor, not of a floating point dtype, or has fewer than two dimensions.
    """
    if type(x) is Tensor and type(data := x._data) is np.ndarray and data.dtype is FLOAT64 and data.ndim > 1:
        return data
    data = tensor_operand(x, name, argument)
    if data.ndim < 2:
        raise ShapeError(f"{name}: The input tensor {argument} must have at least 2 dimensions, but it has {data.ndim}.")
    if data.dtype.itemsize < 4:
        raise RuntimeError(f"{name}: Low precision dtypes not supported. Got {type_name(data.dtype)}; convert it to float32.")
    return data


def square(x: Any, name: str, argument: str = "A") -> Array:
    """The data of a square matrix or a batch of them.

    Raises
    ------
    TypeError, RuntimeError
        If it is not.
    """
    if type(x) is Tensor:
        data = x._data
        if type(data) is np.ndarray and data.dtype is FLOAT64 and data.ndim > 1 and data.shape[-1] == data.shape[-2]:
            return data  # a quarter of the time
    data = matrix(x, name, argument)
    if data.shape[-1] != data.shape[-2]:
        raise ShapeError(
            f"{name}: {argument} must be batches of square matrices, but they are {data.shape[-2]} by {data.shape[-1]} matrices"
        )
    return data


def decompose(function: Callable[..., Any], message: str, *arrays: Array, **options: Any) -> Any:
    """``function(*arrays)`` of NumPy's; where it fails, LinAlgError with `message` and the batch element that is at fault.

    Raises
    ------
    LinAlgError
    """
    if function is np.linalg.svd:
        arrays = (_without_infinities(arrays[0]),)
    try:
        return lapack.call(function, arrays, options)
    except np.linalg.LinAlgError:
        name, reason = message.split(": ", 1)
        raise LinAlgError(f"{name}: {_culprit(function, arrays, options)}{reason}") from None


def _without_infinities(a: Array) -> Array:
    """Matrices with nan in the place of those with inf: LAPACK looks for nan first, but loops for ever over some infinite ones."""
    if a.dtype is FLOAT64 and a.flags.c_contiguous and not ARRAY_KERNELS.has_infinities(id(a)):
        return a
    with quiet():
        if math.isfinite(add_reduce(a, None)):
            return a
    spoiled = np.isinf(a).any(axis=(-2, -1), keepdims=True)
    return np.where(spoiled, np.nan, a).astype(a.dtype) if spoiled.any() else a


def _culprit(function: Callable[..., Any], arrays: Sequence[Array], options: dict[str, Any]) -> str:
    batch = arrays[0].shape[:-2]
    for number, place in enumerate(np.ndindex(batch)):
        try:
            function(*(array[place] if array.shape[:-2] == batch else array for array in arrays), **options)
        except np.linalg.LinAlgError:
            return f"(Batch element {number}): " if batch else ""
    return ""


def broadcast_batches(name: str, a: Array, b: Array) -> Shape:
    """The shape that the batches of two operands broadcast to.

    Raises
    ------
    ShapeError
        If they do not broadcast.
    """
    batch = a.shape[:-2]
    if batch == b.shape[:-2]:
        return batch
    try:
        return np.broadcast_shapes(batch, b.shape[:-2])
    except ValueError:
        raise ShapeError(
            f"{name}: the batches of A and B, {list(a.shape[:-2])} and {list(b.shape[:-2])}, do not broadcast: each size of tensor "
            "a must match the size of tensor b, unless one of them is 1"
        ) from None


def triangle(x: Tensor, upper: bool, strict: bool = False) -> Tensor:
    """`x` with zeros below its diagonal (or above it); with `strict`, on it too."""
    data = array_of(x)
    if data.size > SMALL:
        return triu(x, int(strict)) if upper else tril(x, -int(strict))
    return elementwise._mul0(x, wrap(ones_of_triangle(*data.shape[-2:], upper, strict, data.dtype)))


def mirrored(x: Tensor, on: Any = TENSORS) -> Tensor:
    """Symmetric matrices with the lower triangles of others."""
    lower: Tensor = on.triangle(x, False)
    return lower + on.mT(on.triangle(x, False, True))


def off_diagonal(x: Tensor) -> Tensor:
    """`x` with zeros on its diagonal, whatever stands there."""
    return elementwise._mul0(x, wrap(1.0 - identity(x._data.shape[-1], x._data.dtype)))


def identity_beside(x: Tensor) -> Tensor:
    """The identity matrix with as many rows as a vector has elements."""
    return wrap(identity(x._data.shape[-1], x._data.dtype))


def diagonal_matrix(x: Tensor) -> Tensor:
    """Square matrices with these diagonals, and zeros."""
    *batch, n = array_of(x).shape
    count = int(np.prod(batch))
    return strided_scatter(x, (count, n), (n * n, n + 1), 0, 1.0, (*batch, n, n), "DiagEmbedBackward0")
