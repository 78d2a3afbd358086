"""Several tensors put together."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import Any

import numpy as np
from numpy import ndarray

from tapegrad.arrays.dtypes import get_default_dtype
from tapegrad.arrays.memory_pool import SMALL
from tapegrad.arrays.sizes import MOST, check_count
from tapegrad.errors import ShapeError
from tapegrad.ops.shaping import reshape, unsqueeze
from tapegrad.recording.axes import axis
from tapegrad.recording.casting import cast, common_dtype
from tapegrad.recording.strided_maps import join
from tapegrad.recording.structural import Context, Structural, apply
from tapegrad.tape.tape import TAPE
from tapegrad.tensors.nested_sequences import MAX_DIMENSIONS
from tapegrad.tensors.tensor import Tensor, array_of, as_operand, is_recording, make

__all__ = [
    "atleast_1d",
    "atleast_2d",
    "atleast_3d",
    "block_diag",
    "cat",
    "column_stack",
    "concat",
    "concatenate",
    "dstack",
    "hstack",
    "row_stack",
    "stack",
    "vstack",
]

Array = np.ndarray[Any, Any]
EMPTY = (0,)
_FLOAT64 = np.dtype(np.float64)
_CONSTANT = make(0.0, 0)
_ADDRESS = TAPE.address
_CAT: int = TAPE.name_number("CatBackward0")


def cat(tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    """Tensors joined along an existing dimension.

    Parameters
    ----------
    tensors : sequence of Tensor
        All of one shape, apart from dimension `dim`. Tensors of shape ``(0,)`` fit to any other.
    dim : int
        Where they are joined.

    Returns
    -------
    Tensor
        Integers do not widen floats: ``float32`` with ``int64`` gives ``float32``.

    Raises
    ------
    ValueError
        If there is nothing to join.
    ShapeError
        If the shapes differ elsewhere than in `dim`.

    Examples
    --------
    >>> tg.cat([tg.tensor([1.0, 2.0]), tg.tensor([3.0])])
    tensor([1., 2., 3.])
    """
    inputs = _tensors(tensors, "cat")
    if type(dim) is int and dim == 0:
        found = cat_of_lists(inputs)
        if found is not None:
            return found
    if not inputs:
        raise ValueError("torch.cat(): expected a non-empty list of Tensors")
    arrays = [array_of(x) for x in inputs]
    # Shape (0,) is the empty list that a loop starts with: it fits to every shape.
    shape = next((array.shape for array in arrays if array.shape != EMPTY), EMPTY)
    position = axis(dim, len(shape))
    for k, array in enumerate(arrays):
        if array.ndim == 0:
            raise ShapeError(f"zero-dimensional tensor (at position {k}) cannot be concatenated; use stack")
        if array.shape == shape or array.shape == EMPTY:
            continue
        if array.ndim != len(shape):
            raise ShapeError(f"Tensors must have same number of dimensions: got {len(shape)} and {array.ndim}")
        _check_sizes(shape, array.shape, position, k)
    inputs, arrays = _same_dtype(inputs, arrays)
    joined = [array for array in arrays if array.ndim == len(shape)]
    # NumPy does not notice when the sum of the sizes wraps round.
    check_count([sum([array.size for array in joined])], "cat()")
    return join("CatBackward0", tuple(inputs), tuple(arrays), position, np.concatenate(joined, position))


def cat_of_lists(values: Sequence[Any], dim: int = 0) -> Tensor | None:
    """`cat` of float64 tensors or arrays that fit together whatever their lengths along `dim`; None if there is anything else."""
    inputs, parts, size, rank, tracked = [], [], 0, 0, False
    for x in values:
        if isinstance(x, Tensor):
            part = x._data
            tracked = tracked or x._row != 0
        elif TAPE.tracers and type(x) is ndarray:
            x = as_operand(x)
            part = x._data
        else:  # neither copied nor kept: the derivative needs no values
            part, x = x, _CONSTANT
        if type(part) is not ndarray or part.dtype is not _FLOAT64:
            return None
        if not rank:
            rank, shape = part.ndim, part.shape
            if rank <= dim:
                return None
        elif part.ndim != rank or (rank > 1 and not _fit(part.shape, shape, dim)):
            return None
        inputs.append(x)
        parts.append(part)
        size += part.size
    if not parts or size >= MOST:
        return None
    data, operands = tuple(parts), tuple(inputs)
    result = np.concatenate(data, dim)
    if tracked and is_recording():
        row = TAPE.join_row(_ADDRESS, _CAT, id(operands), id(data), dim, id(result))
        if row > 0:
            return make(result, row)
    return join("CatBackward0", operands, data, dim, result)


def _fit(shape: tuple[int, ...], other: tuple[int, ...], dim: int) -> bool:
    """Whether shapes of one rank are the same elsewhere than in a dimension."""
    return shape[:dim] == other[:dim] and shape[dim + 1 :] == other[dim + 1 :]


def hstack_of_lists(values: Sequence[Any]) -> Tensor | None:
    """`hstack` in the same way."""
    first = values[0]._data if values and isinstance(values[0], Tensor) else values[0] if values else None
    return cat_of_lists(values, int(first.ndim > 1)) if type(first) is ndarray else None


def vstack_of_lists(values: Sequence[Any]) -> Tensor | None:
    """`vstack` in the same way, of what has rows already."""
    return None if any(np.ndim(x._data if isinstance(x, Tensor) else x) < 2 for x in values) else cat_of_lists(values)


def concat(tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    """The same as `cat`."""
    return cat(tensors, dim)


def concatenate(tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    """The same as `cat`."""
    return cat(tensors, dim)


def stack(tensors: Sequence[Tensor], dim: int = 0) -> Tensor:
    """Tensors of one shape joined along a new dimension.

    Parameters
    ----------
    tensors : sequence of Tensor
    dim : int
        Position of the new dimension in the result.

    Returns
    -------
    Tensor

    Raises
    ------
    ShapeError
        If there is nothing to join, or the shapes differ.

    Examples
    --------
    >>> tg.stack([tg.tensor(1.0), tg.tensor(2.0)])
    tensor([1., 2.])
    """
    inputs = _tensors(tensors, "stack")
    if not inputs:
        raise ShapeError("stack expects a non-empty TensorList")
    arrays = [array_of(x) for x in inputs]
    shape = arrays[0].shape
    position = axis(dim, len(shape) + 1)
    for k, array in enumerate(arrays):
        if array.shape != shape:
            raise ShapeError(
                f"stack expects each tensor to be equal size, but got {list(shape)} at entry 0 and {list(array.shape)} at entry {k}"
            )
    inputs, arrays = _same_dtype(inputs, arrays)
    if len(shape) == MAX_DIMENSIONS:
        raise ShapeError(f"stack of tensors with {len(shape)} dimensions: a tensor has at most {MAX_DIMENSIONS}")
    check_count((len(inputs), *shape), "stack()")
    if position and (len(inputs) * arrays[0].size > SMALL or not all(array.flags.c_contiguous for array in arrays)):
        result = np.stack(arrays, position)
    elif position:  # in half of the time
        result = np.array(arrays).transpose(*range(1, position + 1), 0, *range(position + 1, len(shape) + 1)).copy()
    else:
        result = np.array(arrays)
    return join("StackBackward0", tuple(inputs), tuple([x._data for x in inputs]), position, result)


def hstack(tensors: Sequence[Tensor]) -> Tensor:
    """Tensors side by side: `cat` along dimension 1, or 0 for vectors and numbers.

    Examples
    --------
    >>> tg.hstack((tg.tensor([1.0, 2.0]), tg.tensor(3.0)))
    tensor([1., 2., 3.])
    """
    inputs = _raised(tensors, "hstack", _one)
    return cat(inputs, 0 if array_of(inputs[0]).ndim == 1 else 1)


def vstack(tensors: Sequence[Tensor]) -> Tensor:
    """Tensors one above the other: `cat` along dimension 0, vectors counting as rows.

    Examples
    --------
    >>> tg.vstack((tg.tensor([1.0, 2.0]), tg.tensor([3.0, 4.0])))
    tensor([[1., 2.],
            [3., 4.]])
    """
    return cat(_raised(tensors, "vstack", _two), 0)


def row_stack(tensors: Sequence[Tensor]) -> Tensor:
    """The same as `vstack`."""
    return vstack(tensors)


def dstack(tensors: Sequence[Tensor]) -> Tensor:
    """Tensors one behind the other: `cat` along dimension 2 of what `atleast_3d` makes of them.

    Examples
    --------
    >>> tg.dstack((tg.tensor([1.0, 2.0]), tg.tensor([3.0, 4.0])))
    tensor([[[1., 3.],
             [2., 4.]]])
    """
    return cat(_raised(tensors, "dstack", _three), 2)


def column_stack(tensors: Sequence[Tensor]) -> Tensor:
    """Tensors side by side, vectors and numbers counting as columns.

    Examples
    --------
    >>> tg.column_stack((tg.tensor([1.0, 2.0]), tg.tensor([3.0, 4.0])))
    tensor([[1., 3.],
            [2., 4.]])
    """
    return cat(_raised(tensors, "column_stack", _column), 1)


def atleast_1d(*tensors: Tensor | Sequence[Tensor]) -> Tensor | tuple[Tensor, ...]:
    """Tensors with a dimension of size one where they have none, as views.

    Parameters
    ----------
    *tensors : Tensor, or a sequence of them

    Returns
    -------
    Tensor or tuple of Tensor
        One for each that was given; those of enough dimensions are returned themselves.

    Examples
    --------
    >>> tg.atleast_1d(tg.tensor(1.0))
    tensor([1.])
    """
    return _each(tensors, "atleast_1d", _one)


def atleast_2d(*tensors: Tensor | Sequence[Tensor]) -> Tensor | tuple[Tensor, ...]:
    """Tensors with dimensions of size one put in front until they have two, as views.

    Parameters and results are those of `atleast_1d`.
    """
    return _each(tensors, "atleast_2d", _two)


def atleast_3d(*tensors: Tensor | Sequence[Tensor]) -> Tensor | tuple[Tensor, ...]:
    """Tensors with dimensions of size one added until they have three, as views.

    Vectors become ``(1, n, 1)``, matrices ``(m, n, 1)``.

    Parameters and results are those of `atleast_1d`.
    """
    return _each(tensors, "atleast_3d", _three)


def _one(x: Tensor) -> Tensor:
    return x if array_of(x).ndim else reshape(x, (1,))


def _two(x: Tensor) -> Tensor:
    ndim = array_of(x).ndim
    return x if ndim > 1 else unsqueeze(x, 0) if ndim else reshape(x, (1, 1))


def _three(x: Tensor) -> Tensor:
    ndim = array_of(x).ndim
    if ndim > 2:
        return x
    return unsqueeze(_two(x), -1) if ndim else reshape(x, (1, 1, 1))


def _column(x: Tensor) -> Tensor:
    return x if array_of(x).ndim > 1 else reshape(x, (array_of(x).size, 1))


def _raised(tensors: Sequence[Tensor], name: str, raise_rank: Callable[[Tensor], Tensor]) -> list[Tensor]:
    inputs = [raise_rank(x) for x in _tensors(tensors, name)]
    if not inputs:
        raise ShapeError(f"{name} expects a non-empty TensorList")
    return inputs


def _each(tensors: tuple[Any, ...], name: str, raise_rank: Callable[[Tensor], Tensor]) -> Tensor | tuple[Tensor, ...]:
    if len(tensors) == 1 and isinstance(tensors[0], Tensor):
        return raise_rank(tensors[0])
    given = tensors[0] if len(tensors) == 1 and isinstance(tensors[0], (tuple, list)) else tensors
    return tuple(raise_rank(x) for x in _tensors(given, name))


def block_diag(*tensors: Tensor) -> Tensor:
    """The matrix of zeros that has the given ones as blocks along its diagonal.

    Parameters
    ----------
    *tensors : Tensor, of at most two dimensions
        Vectors count as rows, 0-d tensors as matrices of one element.

    Returns
    -------
    Tensor of two dimensions

    Raises
    ------
    ShapeError
        If one has more than two dimensions.

    Examples
    --------
    >>> tg.block_diag(tg.tensor([[1.0, 2.0]]), tg.tensor(3.0))
    tensor([[1., 2., 0.],
            [0., 0., 3.]])
    """
    inputs = _tensors(tensors, "block_diag")
    for k, x in enumerate(inputs):
        if array_of(x).ndim > 2:
            raise ShapeError(
                f"torch.block_diag: Input tensors must have 2 or fewer dimensions. Input {k} has {array_of(x).ndim} dimensions"
            )
    if not inputs:
        return make(np.zeros((1, 0), get_default_dtype()), 0)
    inputs = [_two(x) for x in inputs]
    inputs, arrays = _same_dtype(inputs, [array_of(x) for x in inputs])
    corners = [(0, 0)]
    for array in arrays:
        (rows, columns), (top, left) = array.shape, corners[-1]
        corners.append((top + rows, left + columns))
    result = np.zeros(corners[-1], arrays[0].dtype)
    blocks = tuple((slice(top, bottom), slice(left, right)) for (top, left), (bottom, right) in pairwise(corners))
    for block, array in zip(blocks, arrays, strict=True):
        result[block] = array
    return apply(_BLOCK_DIAG, tuple(inputs), result, blocks)


def _block_diag_vjp(g: Tensor, ctx: Context) -> Sequence[Tensor | None]:
    return tuple(ctx.on.getitem(g, block) if wanted else None for block, wanted in zip(ctx.attrs, ctx.needs, strict=True))


_BLOCK_DIAG = Structural("BlockDiagBackward0", ((),), _block_diag_vjp, takes_stretched=True)


def _tensors(tensors: Sequence[Tensor], name: str) -> list[Tensor]:
    if isinstance(tensors, Tensor):
        raise TypeError(f"{name}(): argument 'tensors' (position 1) must be tuple of Tensors, not Tensor")
    inputs = list(tensors)
    for k, x in enumerate(inputs):
        if not isinstance(x, Tensor):
            raise TypeError(f"{name}(): expected Tensor as element {k} in argument 0, but got {type(x).__name__}")
    return inputs


def _check_sizes(first: tuple[int, ...], other: tuple[int, ...], position: int, number: int) -> None:
    for k, (wanted, size) in enumerate(zip(first, other, strict=True)):
        if wanted != size and k != position:
            raise ShapeError(
                f"Sizes of tensors must match except in dimension {position}. Expected size {wanted} but got size "
                f"{size} for tensor number {number} in the list."
            )


def _same_dtype(inputs: list[Tensor], arrays: list[Array]) -> tuple[list[Tensor], list[Array]]:
    dtype = arrays[0].dtype
    for array in arrays:
        if array.dtype is not dtype and array.dtype != dtype:
            break
    else:
        return inputs, arrays
    dtype = common_dtype(arrays)
    inputs = [cast(x, dtype) for x in inputs]
    return inputs, [array_of(x) for x in inputs]
