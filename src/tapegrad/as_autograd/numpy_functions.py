"""Functions that ``autograd.numpy`` has and NumPy has not, or not like that."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

import tapegrad.numpy as tnp
from tapegrad.as_autograd.tracing import getval
from tapegrad.tensors.tensor import Tensor

__all__ = [
    "array_from_args",
    "atleast_1d",
    "atleast_2d",
    "atleast_3d",
    "balanced_eq",
    "column_stack",
    "concatenate",
    "concatenate_args",
    "eigh",
    "eigvalsh",
    "hstack",
    "make_diagonal",
    "match_complex",
    "metadata",
    "repeat_to_match_shape",
    "replace_zero",
    "row_stack",
    "stack",
    "unbroadcast",
    "unbroadcast_f",
    "vstack",
    "where",
]

Metadata = tuple[tuple[int, ...], int, Any, bool]


def metadata(A: Any) -> Metadata:
    """Shape, number of dimensions, dtype, and whether it is complex."""
    value = getval(A)
    return np.shape(value), np.ndim(value), np.result_type(value), np.iscomplexobj(value)


def unbroadcast(x: Any, target_meta: Metadata, broadcast_idx: int = 0) -> Any:
    """The sum of an array over what broadcasting has repeated; a cotangent in the shape of the operand.

    Parameters
    ----------
    x : array
    target_meta : tuple
        What `metadata` gives of the operand.
    broadcast_idx : int
        Where dimensions were added.
    """
    shape, ndim, _, iscomplex = target_meta
    while np.ndim(x) > ndim:
        x = np.sum(x, axis=broadcast_idx)
    repeated = tuple(axis for axis, length in enumerate(shape) if length == 1 and np.shape(x)[axis] != 1)
    if repeated:
        x = np.sum(x, axis=repeated, keepdims=True)
    return np.real(x) if np.iscomplexobj(getval(x)) and not iscomplex else x


def unbroadcast_f(target: Any, f: Callable[[Any], Any]) -> Callable[[Any], Any]:
    """A function of a cotangent, with its results summed to the shape of an operand."""
    target_meta = metadata(target)
    return lambda g: unbroadcast(f(g), target_meta)


def repeat_to_match_shape(g: Any, shape: tuple[int, ...], dtype: Any, axis: Any, keepdims: bool) -> tuple[Any, int]:
    """The cotangent of a reduction in the shape of its operand, and of how many elements each was made."""
    if not shape:
        return g, 1
    axes = range(len(shape)) if axis is None else [axis % len(shape)] if isinstance(axis, int) else [k % len(shape) for k in axis]
    kept = tuple(1 if k in axes else length for k, length in enumerate(shape))
    return np.broadcast_to(np.reshape(g, kept), shape), int(np.prod([shape[k] for k in axes]))


def replace_zero(x: Any, val: Any) -> Any:
    """An array with another value in place of zeros."""
    return np.where(x, x, val)


def balanced_eq(x: Any, z: Any, y: Any) -> Any:
    """1 where `x` equals `z` and `y` does not, 1/2 where both do."""
    return (x == z) / (1.0 + (x == y))


def match_complex(target: Any, x: Any) -> Any:
    """The real part of an array if the target is real."""
    return np.real(x) if np.iscomplexobj(getval(x)) and not np.iscomplexobj(getval(target)) else x


def where(condition: Any, *args: Any, **kwargs: Any) -> Any:
    """`numpy.where`; of Python's numbers alone, it gives one of Python's numbers.

    Raises
    ------
    ValueError
        If only one of both choices is given.
    """
    if not args and not kwargs:
        return tnp.where(condition)
    if len(args) + len(kwargs) != 2:
        raise ValueError("either both or neither of x and y should be given")
    x = args[0] if args else kwargs["x"]
    y = args[1] if len(args) > 1 else kwargs["y"]
    found = tnp.where(condition, x, y)
    if isinstance(found, np.ndarray) and not any(map(_is_array, (condition, x, y))):
        return found.tolist()
    return found


def _is_array(x: Any) -> bool:
    return isinstance(x, (Tensor, np.ndarray, np.generic)) or (isinstance(x, (list, tuple)) and any(map(_is_array, x)))


def _of_iterables(name: str) -> Callable[..., Any]:
    """NumPy's function of a sequence of arrays, which takes any iterable of them."""
    function = getattr(tnp, name)

    @functools.wraps(function)
    def call(arrays: Iterable[Any], *args: Any, **kwargs: Any) -> Any:
        given = arrays if isinstance(arrays, (list, tuple, np.ndarray, Tensor)) else list(arrays)
        return function(given, *args, **kwargs)

    return call


column_stack, concatenate, hstack, stack, vstack = map(_of_iterables, ("column_stack", "concatenate", "hstack", "stack", "vstack"))
row_stack = vstack


def _at_least(name: str, places: Callable[[int], tuple[int, ...]]) -> Callable[..., Any]:
    """NumPy's function that adds dimensions, also of what is being differentiated."""
    function = getattr(np, name)

    def one(x: Any) -> Any:
        if not isinstance(x, Tensor):
            return function(x)
        added = places(np.ndim(x._data))  # of the array itself NumPy's takes two microseconds
        return np.expand_dims(x, added) if added else x

    @functools.wraps(function)
    def call(*arys: Any) -> Any:
        if len(arys) == 1 and not isinstance(arys[0], (list, tuple)):
            return one(arys[0])
        found = [one(tnp.array(x) if isinstance(x, (list, tuple)) else x) for x in arys]
        return found[0] if len(found) == 1 else tuple(found)

    return call


atleast_1d = _at_least("atleast_1d", lambda ndim: () if ndim else (0,))
atleast_2d = _at_least("atleast_2d", lambda ndim: tuple(range(max(0, 2 - ndim))))
atleast_3d = _at_least("atleast_3d", lambda ndim: {0: (0, 1, 2), 1: (0, 2), 2: (2,)}.get(ndim, ()))


def _of_triangle(a: Any, UPLO: str) -> Any:
    """The symmetric matrix of which one triangle is read, so that the other one has no part in the derivative."""
    if not isinstance(a, Tensor):
        return a
    half = np.tril(a, -1) if UPLO in ("L", "l") else np.triu(a, 1)
    return half + np.swapaxes(half, -1, -2) + a * np.eye(np.shape(a)[-1])


def eigh(a: Any, UPLO: Any = "L") -> Any:
    """`numpy.linalg.eigh`, whose derivative is by the triangle that is read."""
    return np.linalg.eigh(_of_triangle(a, UPLO), UPLO)


def eigvalsh(a: Any, UPLO: Any = "L") -> Any:
    """`numpy.linalg.eigvalsh`, whose derivative is by the triangle that is read."""
    return np.linalg.eigvalsh(_of_triangle(a, UPLO), UPLO)


def concatenate_args(axis: int, *args: Any) -> Any:
    """Arrays one after the other."""
    return tnp.concatenate(args, axis)


def array_from_args(array_args: Any, array_kwargs: Any, *args: Any) -> Any:
    """An array of the values that are given."""
    return tnp.array(list(args), *array_args, **array_kwargs)


def make_diagonal(D: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
    """Matrices whose diagonals are the last dimension of an array.

    Raises
    ------
    NotImplementedError
        For other axes than the last two, and other diagonals than the main one.
    """
    if (offset, axis1, axis2) not in ((0, -1, -2), (0, -2, -1)):
        raise NotImplementedError("make_diagonal makes main diagonals of the last axes: offset=0, axis1=-1, axis2=-2")
    return D[..., None] * np.eye(np.shape(D)[-1])
