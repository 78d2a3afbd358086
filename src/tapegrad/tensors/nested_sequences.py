"""Nested Python sequences as arrays: shape, element type, and PyTorch's complaints about both."""

from collections.abc import Iterable
from itertools import chain
from typing import Any

import numpy as np

from tapegrad.arrays import dtypes
from tapegrad.arrays.dtypes import DType, promote_types
from tapegrad.arrays.foreign_arrays import plain_array
from tapegrad.tensors.tensor import Tensor, array_of

__all__ = ["array_from_nested", "number_type", "own_data"]

MAX_DIMENSIONS = 64  # NumPy's limit
PLAIN, FLOATS_ONLY = frozenset({float, int, bool}), frozenset({float})
LISTS_ONLY = frozenset({list})
_DTYPES: dict[type, DType] = {float: dtypes.float64, int: dtypes.int64, bool: dtypes.bool}


def array_from_nested(data: Any, dtype: DType | None) -> np.ndarray:
    """Fresh array of a number, or of numbers nested in sequences.

    Parameters
    ----------
    data : number or nested sequence of numbers
        Tensors and arrays of one element count as numbers.
    dtype : dtype or None
        None finds it: floats give the default dtype, integers int64, bools bool; NumPy numbers keep theirs.

    Raises
    ------
    ValueError
        If the sequences are ragged or nested too deep, or an integer exceeds int64.
    TypeError
        If there is text or a complex number in it.
    RuntimeError
        If there is anything else in it that is no number, or a value that `dtype` cannot hold.

    Warns
    -----
    UserWarning
        If there is a tracked tensor in it: the array does not depend on that.
    """
    if type(data) is list and data and (kinds := set(map(type, data))) <= PLAIN:
        if kinds == FLOATS_ONLY and dtype is None and dtypes.get_default_dtype() is dtypes.float64:
            return np.array(data)
        shape: tuple[int, ...] = (len(data),)  # most of what is given, in half the time
        flat = data
    else:
        shape = _shape_of_first(data)
        flat = []
        _gather(data, shape, 0, flat)
    kinds = set(map(type, flat))
    if kinds <= PLAIN:
        found = _promoted(map(number_type, kinds))
    else:
        found = _promoted({_leaf_type(leaf) for leaf in flat})
        flat = [leaf.item() if isinstance(leaf, Tensor | np.ndarray | np.generic) else leaf for leaf in flat]
    return _converted(flat, found if dtype is None else dtype).reshape(shape)


def own_data(data: Any) -> Any:
    """What most tensors are made of, as data of their own: float64 numbers, arrays, lists of numbers; None for anything else."""
    kind = type(data)
    if kind is float:
        return data if dtypes.get_default_dtype() is dtypes.float64 else None
    if kind is np.ndarray:
        dtype = data.dtype
        if dtype is dtypes.float64:
            return data.copy() if data.ndim else data.item()
        return data.copy() if data.ndim and (dtype is dtypes.int64 or dtype is dtypes.bool) else None
    if kind is not list:
        return None
    kinds, flat = set(map(type, data)), data
    if kinds == LISTS_ONLY:
        if len(set(map(len, data))) > 1:
            return None
        flat = list(chain.from_iterable(data))
        kinds = set(map(type, flat))
    if len(kinds) != 1 or (found := _DTYPES.get(kinds.pop())) is None:
        return None
    if found is dtypes.float64 and dtypes.get_default_dtype() is not found:
        return None
    try:
        return np.array(data, found)
    except OverflowError:  # an integer that is too large
        return None


def number_type(kind: type) -> DType:
    """Dtype that Python's ``float``, ``int`` and ``bool`` have as tensors."""
    if kind is float:
        return dtypes.get_default_dtype()
    return dtypes.int64 if kind is int else dtypes.bool


def _is_sequence(data: Any) -> bool:
    if issubclass(type(data), np.ndarray):
        return data.ndim > 0
    if isinstance(data, Tensor | dict | set | frozenset | str | bytes | np.void):
        return False
    return hasattr(data, "__len__") and hasattr(data, "__getitem__")


def _shape_of_first(data: Any) -> tuple[int, ...]:
    # PyTorch takes the lengths along the first elements for the shape, and measures the others against it.
    shape: list[int] = []
    while _is_sequence(data):
        shape.append(len(data))
        if len(shape) > MAX_DIMENSIONS:
            raise ValueError(f"too many dimensions: the sequences are nested deeper than {MAX_DIMENSIONS}")
        if not shape[-1]:
            return tuple(shape)
        data = data[0]
    if shape and isinstance(data, str | bytes):
        raise ValueError(f"too many dimensions '{type(data).__name__}': a tensor holds numbers, not text")
    return tuple(shape)


def _gather(data: Any, shape: tuple[int, ...], dim: int, flat: list[Any]) -> None:
    if dim == len(shape):
        flat.append(data)
        return
    if not _is_sequence(data):
        raise TypeError(f"not a sequence: expected one of length {shape[dim]} at dim {dim} (got {type(data).__name__} {data!r})")
    if len(data) != shape[dim]:
        raise ValueError(f"expected sequence of length {shape[dim]} at dim {dim} (got {len(data)})")
    if dim == len(shape) - 1:
        flat.extend(data)
        return
    for part in data:
        _gather(part, shape, dim + 1, flat)


def _leaf_type(leaf: Any) -> DType:
    if isinstance(leaf, Tensor):
        from tapegrad.tensors.constant_warnings import warn_of_number

        warn_of_number(leaf)
    if issubclass(type(leaf), Tensor | np.ndarray):
        values = array_of(leaf) if isinstance(leaf, Tensor) else plain_array(leaf)
        if values.size != 1:
            raise ValueError(
                f"only one element tensors can be converted to Python scalars, got one of shape {values.shape}; "
                "use tg.stack or tg.cat to join tensors"
            )
        return values.dtype
    if issubclass(type(leaf), np.generic) and not isinstance(leaf, str | bytes | complex):
        return dtypes.as_dtype(leaf.dtype)  # numpy.float64 too, though it is a Python float
    for kind in (bool, int, float):
        if isinstance(leaf, kind):
            return number_type(kind)
    if isinstance(leaf, str | bytes):
        raise TypeError(f"new(): invalid data type '{type(leaf).__name__}': a tensor holds numbers, not {leaf!r}")
    if isinstance(leaf, complex):
        raise TypeError(f"complex numbers are not supported (got {leaf!r}); keep real and imaginary parts apart")
    if _is_sequence(leaf):
        raise TypeError(f"'{type(leaf).__name__}' object cannot be interpreted as a number: {leaf!r}")
    raise RuntimeError(f"Could not infer dtype of {type(leaf).__name__}; a tensor is made from numbers")


def _promoted(found: Iterable[DType]) -> DType:
    result: DType | None = None
    for dtype in found:
        result = dtype if result is None else promote_types(result, dtype)
    return dtypes.get_default_dtype() if result is None else result


def _converted(flat: list[Any], dtype: DType) -> np.ndarray:
    if dtype.kind in "iu":
        return _integers(flat, dtype)
    if dtype == dtypes.float64:
        return np.array(flat, dtype=dtype)
    with np.errstate(over="ignore"):  # beyond float32 is inf, as in PyTorch
        return np.array(flat, dtype=dtype)


def _integers(flat: list[Any], dtype: DType) -> np.ndarray:
    try:
        exact = flat if float not in map(type, flat) else [int(value) for value in flat]
        wide = np.array(exact, dtype=np.int64)
    except (OverflowError, ValueError):
        value = next(value for value in flat if value != value or not -(2**63) <= value < 2**63)
        if isinstance(value, float):
            raise RuntimeError(f"value cannot be converted to type {dtype.name} without overflow: {value}") from None
        raise ValueError(f"Overflow when unpacking long long: {value} does not fit in int64") from None
    if dtype == dtypes.int64:
        return wide
    limits = np.iinfo(dtype)
    outside = (wide < limits.min) | (wide > limits.max)
    if outside.any():
        value = wide[outside][0]
        raise RuntimeError(
            f"value cannot be converted to type {dtype.name} without overflow: {value} is not in [{limits.min}, {limits.max}]"
        )
    return wide.astype(dtype)
