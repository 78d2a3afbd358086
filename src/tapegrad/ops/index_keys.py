"""What an index key means: a view, and index arrays that select from it."""

import operator
import warnings
from typing import Any

import numpy as np

from tapegrad.arrays.foreign_arrays import masked_elements
from tapegrad.frames import frames_of_package
from tapegrad.named_tuples import Named
from tapegrad.tape.tape import TAPE
from tapegrad.tensors.tensor import Tensor, array_of
from tapegrad.tensors.tracers import left

__all__ = ["FULL", "Key", "explain", "parse"]

Array = np.ndarray[Any, Any]

FULL = slice(None)
_LONG = np.dtype(np.int64)
_PLAIN = frozenset((int, slice, type(None), type(Ellipsis)))


class Key(Named):
    """An index key in two steps.

    Attributes
    ----------
    basic : tuple or None
        The NumPy key of a view, ending in an ellipsis so that it never yields a scalar; None for the tensor itself.
    node : str
        PyTorch's name for the last step of that view.
    advanced : tuple or None
        The NumPy key that selects from the view: full slices, masks and ``int64`` arrays, the last part being one of
        these. None if the key is basic, so that ``x[key]`` is a view.
    """

    __slots__ = ()
    basic: tuple[Any, ...] | None
    node: str
    advanced: tuple[Any, ...] | None


def parse(key: Any, shape: tuple[int, ...]) -> Key:
    """Split `key` into the two steps for a tensor of `shape`.

    Raises
    ------
    IndexError
        If a number is out of bounds, a mask does not fit, there are too many parts, or one is of no type that indexes.
    ValueError
        If a slice has a step that is not positive.
    """
    single = type(key) is not tuple
    parts: list[Any] = [part if type(part) in _PLAIN else _index(part) for part in ((key,) if single else key)]
    spare = len(shape) - _consumed(parts)
    if spare < 0:
        raise _too_many(parts, len(shape))
    basic: list[Any] = []
    advanced: list[Any] = []
    node = "AliasBackward0"
    dim = 0
    for part in parts:
        kind = type(part)
        if kind is int:
            extent = shape[dim]
            if not -extent <= part < extent:
                raise IndexError(f"index {part} is out of bounds for dimension {dim} with size {extent}")
            basic.append(part)
            node = "SelectBackward0"
            dim += 1
        elif kind is slice:
            if single or not _is_whole(part, shape[dim]):
                _check_step(part)
                node = "SliceBackward0"
            basic.append(part)
            advanced.append(FULL)
            dim += 1
        elif part is None:
            basic.append(None)
            advanced.append(FULL)
            node = "UnsqueezeBackward0"
        elif part is Ellipsis:
            basic += [FULL] * spare
            advanced += [FULL] * spare
            dim += spare
        elif part.dtype.kind == "i":
            basic.append(FULL)
            advanced.append(part)
            dim += 1
        elif part.ndim == 0:
            # True and False select all or nothing along a new dimension.
            basic.append(None)
            advanced.append(np.zeros(1 if part else 0, np.int64))
            node = "UnsqueezeBackward0"
        else:
            _check_mask(part, shape, dim)
            basic += [FULL] * part.ndim
            advanced.append(part)
            dim += part.ndim
    while advanced and advanced[-1] is FULL:
        advanced.pop()
    if not advanced:
        return Key((*basic, Ellipsis), node, None)
    trivial = all(part is FULL for part in basic)
    return Key(None if trivial else (*basic, Ellipsis), node, tuple(advanced))


def _index(part: Any) -> Any:
    """One part of a key as a number, a mask or an ``int64`` array."""
    if isinstance(part, Tensor):
        if TAPE.tracers:
            left(part)
        array = array_of(part)
        if array.dtype is _LONG and array.ndim:  # most of them: comparing dtypes takes longer than all the rest
            return array
        if array.dtype.kind == "f" or array.dtype in (np.int8, np.int16):
            raise IndexError(f"tensors used as indices must be long, int, byte or bool tensors, got {array.dtype}")
    elif isinstance(part, np.ndarray):
        array = part if type(part) is np.ndarray else _plain(part)
    elif isinstance(part, (bool, np.bool_)):
        return np.asarray(part)
    elif isinstance(part, (list, tuple, range)):
        array = _from_sequence(part)
    else:
        try:
            return operator.index(part)
        except TypeError:
            raise IndexError(
                "only integers, slices (`:`), ellipsis (`...`), None and long or byte Variables are valid indices (got "
                f"{type(part).__name__})"
            ) from None
    kind = array.dtype.kind
    if kind == "b":
        return array
    if array.dtype == np.uint8:
        warnings.warn(
            "indexing with dtype uint8 is now deprecated: it is taken as a mask; please use bool for a mask and int64 "
            "for indices instead.",
            stacklevel=frames_of_package() + 1,
        )
        return array.astype(np.bool_)
    if kind not in "iu":
        raise IndexError(f"tensors used as indices must be long, int, byte or bool tensors, got {array.dtype}")
    if array.dtype == np.uint64 and array.size and array.max() >= 2**63:
        raise IndexError(f"index {array.max()} is out of bounds for every dimension")
    return array.astype(np.int64, copy=False) if array.ndim else int(array)


def _plain(part: Array) -> Array:
    """An index array of a subclass as a plain one."""
    if masked_elements(part):
        raise IndexError("a masked array with masked elements cannot index: what lies under a mask is no index; .filled(...) it")
    return part.view(np.ndarray)


def _from_sequence(part: Any) -> Array:
    try:
        array = np.asarray(_plain_items(part))
    except ValueError:
        raise ValueError(f"expected sequence of length {_lengths(part)}: the rows of an index list must be equally long") from None
    return array if array.size else array.astype(np.int64)


def _plain_items(part: Any) -> Any:
    if isinstance(part, (list, tuple)):
        return [_plain_items(item) for item in part]
    if part is None or part is Ellipsis or isinstance(part, slice):
        raise IndexError(f"a list that indexes holds integers or bools, not {part!r}; use a tuple to index several dimensions")
    return array_of(part) if isinstance(part, Tensor) else part


def _lengths(part: Any) -> str:
    found = {len(item) if isinstance(item, (list, tuple)) else 1 for item in part}
    return " or ".join(map(str, sorted(found)))


def _consumed(parts: list[Any]) -> int:
    """How many dimensions of the tensor the parts name."""
    total = ellipses = 0
    for part in parts:
        if isinstance(part, np.ndarray):
            total += part.ndim if part.dtype.kind == "b" else 1
        elif part is Ellipsis:
            ellipses += 1
        elif part is not None:
            total += 1
    if ellipses > 1:
        raise IndexError("an index can only have a single ellipsis ('...')")
    return total


def _too_many(parts: list[Any], ndim: int) -> IndexError:
    if ndim == 0:
        if len(parts) == 1 and isinstance(parts[0], int):
            return IndexError("invalid index of a 0-dim tensor. Use `tensor.item()` to convert a 0-dim tensor to a number")
        if isinstance(parts[0], slice):
            return IndexError("slice() cannot be applied to a 0-dim tensor.")
    return IndexError(f"too many indices for tensor of dimension {ndim}")


def _is_whole(part: slice, extent: int) -> bool:
    if part.start is None and part.stop is None and part.step is None:
        return True
    _check_step(part)
    return part.indices(extent) == (0, extent, 1)


def _check_step(part: slice) -> None:
    if part.step is not None and operator.index(part.step) <= 0:
        raise ValueError(f"step must be greater than zero, got {part.step}; use flip to reverse a dimension")


def _check_mask(mask: Array, shape: tuple[int, ...], dim: int) -> None:
    for k, extent in enumerate(mask.shape):
        if extent != shape[dim + k]:
            raise IndexError(
                f"The shape of the mask {list(mask.shape)} at index {k} does not match the shape of the indexed tensor "
                f"{list(shape)} at index {dim + k}"
            )


def explain(advanced: tuple[Any, ...], shape: tuple[int, ...]) -> IndexError:
    """The error for index arrays that NumPy refused on an array of `shape`."""
    dim = 0
    shapes = []
    for part in advanced:
        if part is FULL:
            dim += 1
        elif part.dtype.kind == "b":
            shapes.append([int(np.count_nonzero(part))])
            dim += part.ndim
        else:
            extent = shape[dim]
            wrong = part[(part < -extent) | (part >= extent)]
            if wrong.size:
                return IndexError(f"index {int(wrong[0])} is out of bounds for dimension {dim} with size {extent}")
            shapes.append(list(part.shape))
            dim += 1
    listed = ", ".join(map(str, shapes))
    return IndexError(f"shape mismatch: indexing tensors could not be broadcast together with shapes {listed}")
