"""Functions of tensors with NumPy's names, arguments and defaults, made of the package's own.

Each has the name of the NumPy function that it answers for. Arguments that have no counterpart are left out of the signatures.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from operator import itemgetter
from typing import Any

import numpy as np

from tapegrad.numpy_protocol.operands import NotCovered, as_tensors, named, one
from tapegrad.ops.joining import cat
from tapegrad.ops.reductions import count
from tapegrad.ops.views import part, view
from tapegrad.recording.axes import axes as axes_of
from tapegrad.surface import functions as tg
from tapegrad.tensors.tensor import Tensor, array_of, as_operand
from tapegrad.tensors.tracers import makes_constants_of_shapes

__all__ = ["COUNTERPARTS", "every", "real"]

Axis = int | Sequence[int] | None


def real(x: Any) -> Tensor:
    """Integers as floats, as NumPy's means take them."""
    x = one(x)
    return x if x.dtype.kind == "f" else x.to(np.float64)


def every(x: Tensor, axis: Axis) -> tuple[int, ...]:
    """The axes of a reduction: all for None, and none for ``()``, which are all to PyTorch."""
    return tuple(range(x.ndim)) if axis is None else () if axis == () else axes_of(axis, x.ndim)


# Elementwise


_NUMBERS = frozenset([float, int])


def _clip(a: Any, a_min: Any = None, a_max: Any = None, *, min: Any = None, max: Any = None) -> Any:
    low, high = (min if a_min is None else a_min), (max if a_max is None else a_max)
    if type(low) in _NUMBERS and type(high) in _NUMBERS:
        return tg.clamp(one(a), low, high)
    low, high = (x if x is None else as_tensors(x)[0] for x in (low, high))
    if low is not None and high is not None and any(isinstance(bound, Tensor) and bound.requires_grad for bound in (low, high)):
        # As NumPy defines it. PyTorch's function gives neither bound a gradient where both are one and the element is below.
        return tg.clamp_max(tg.clamp_min(one(a), low), high)
    return one(a).clone() if low is None and high is None else tg.clamp(one(a), low, high)


@makes_constants_of_shapes
def _round(a: Any, decimals: int = 0) -> Any:
    x = one(a)
    return tg.round(x) if decimals == 0 else tg.round(x * 10.0**decimals) / 10.0**decimals


def _where(condition: Any, x: Any = None, y: Any = None) -> Any:
    if x is None and y is None:
        return tg.nonzero(one(condition), as_tuple=True)
    chosen = one(condition)
    return tg.where(chosen if chosen.dtype.kind == "b" else tg.ne(chosen, 0), *as_tensors(x, y))


def _nan_to_num(x: Any, copy: bool = True, nan: float = 0.0, posinf: Any = None, neginf: Any = None) -> Any:
    if not copy:
        raise NotCovered("copy=False writes into its argument; write x[...] = np.nan_to_num(x)")
    return named("nan_to_num")(one(x), nan, posinf, neginf)


def _real_part(val: Any) -> Any:
    return one(val)


# Shapes


def _shaped(a: Any) -> tuple[int, ...]:
    return tuple(one(a).shape)


def _size(a: Any, axis: Axis = None) -> int:
    x = one(a)
    return count(x.shape, every(x, axis))


def _lengths(shape: Any, count: int) -> tuple[int, ...]:
    """A shape for so many elements, with the length that is given as -1 filled in."""
    wanted = tuple(map(int, shape)) if isinstance(shape, (tuple, list, np.ndarray)) else (int(shape),)
    known = math.prod(n for n in wanted if n != -1)
    if wanted.count(-1) > 1 or (known != count if -1 not in wanted else not known or count % known):
        raise ValueError(f"cannot reshape array of size {count} into shape {wanted}")
    return tuple(count // known if n == -1 else n for n in wanted)


def _reshape(a: Any, /, shape: Any, order: str = "C", *, copy: bool | None = None) -> Any:
    x = one(a)
    if copy is not None:
        return _reshaped_as_asked(x, shape, order, copy)
    lengths = _lengths(shape, x.numel())
    if not _runs_backwards(x, order):
        return tg.reshape(x, lengths)
    turned = tg.reshape(x.permute(*range(x.ndim)[::-1]), lengths[::-1])
    return turned.permute(*range(len(lengths))[::-1])


def _reshaped_as_asked(x: Tensor, shape: Any, order: str, copy: bool) -> Any:
    found = _reshape(x, shape, order)
    is_view = np.may_share_memory(array_of(found), array_of(x))
    if not is_view and not copy and array_of(x).size:
        raise ValueError("Unable to avoid creating a copy while reshaping.")
    return tg.clone(found) if is_view and copy else found


def _runs_backwards(x: Tensor, order: str) -> bool:
    """Whether elements are read with the first index fastest."""
    if order in ("C", "F"):
        return order == "F"
    flags = array_of(x).flags
    if order == "K" and not flags.forc:
        raise NotCovered(f"order 'K' of an array of shape {tuple(x.shape)} that lies in memory neither in order 'C' nor 'F'")
    if order in ("A", "K"):
        return array_of(x).flags.fnc
    raise ValueError(f"order must be one of 'C', 'F', 'A', or 'K' (got {order!r})")


def _ravel(a: Any, order: str = "C") -> Any:
    return _reshape(a, (-1,), order).contiguous()


def _transpose(a: Any, axes: Any = None) -> Any:
    x = one(a)
    return x.permute(*(range(x.ndim)[::-1] if axes is None else axes))


def _matrix_transpose(x: Any, /) -> Any:
    return one(x).mT


def _swapaxes(a: Any, axis1: int, axis2: int) -> Any:
    return tg.transpose(one(a), axis1, axis2)


def _moveaxis(a: Any, source: Any, destination: Any) -> Any:
    return one(a).movedim(source, destination)


def _squeeze(a: Any, axis: Axis = None) -> Any:
    x = one(a)
    if axis is None:
        return tg.squeeze(x)
    axes = every(x, axis)
    if not axes:
        return x[...]
    if any(x.shape[k] != 1 for k in axes):
        raise ValueError(
            f"cannot select an axis to squeeze out which has size not equal to one: axis {axis} of shape {list(x.shape)}"
        )
    return tg.squeeze(x, axes)


def _expand_dims(a: Any, axis: Any) -> Any:
    x = one(a)
    axes = (axis,) if isinstance(axis, int) else tuple(axis)
    if not axes:
        return x[...]
    for k in sorted(axes_of(axes, x.ndim + len(axes))):
        x = x.unsqueeze(k)
    return x


def _broadcast_to(array: Any, shape: Any) -> Any:
    shape = (shape,) if isinstance(shape, int) else tuple(shape)
    if any(size < 0 for size in shape):
        raise ValueError("all elements of broadcast shape must be non-negative")
    return tg.broadcast_to(one(array), shape)


def _broadcast_arrays(*args: Any) -> Any:
    return tg.broadcast_tensors(*map(one, args))


def _copy(a: Any, order: str = "K") -> Any:
    return copy_in_order(one(a), order)


def copy_in_order(x: Tensor, order: str, dtype: Any = None) -> Tensor:
    """A copy whose elements lie in memory as NumPy would lay them."""
    flags = array_of(x).flags
    if order == "F" or (order in ("A", "K") and flags.fnc):
        backwards = range(x.ndim)[::-1]
        return copy_in_order(x.permute(*backwards), "C", dtype).permute(*backwards)
    return tg.clone(x) if dtype is None or dtype == x.dtype else tg.clone(x.to(dtype))


def _copyto(dst: Any, src: Any, casting: Any = "same_kind", where: Any = True) -> None:
    if isinstance(dst, Tensor) or isinstance(where, Tensor):
        raise NotCovered("write into a Tensor with t.copy_(...) or t[mask] = ...")
    np.copyto(dst, np.asarray(src), casting=casting, where=where)


def _astype(x: Any, dtype: Any, /, *, copy: bool = True) -> Any:
    return one(x).to(dtype, copy=copy)


def _diag(v: Any, k: int = 0) -> Any:
    x = one(v)
    return tg.diagonal(x, k) if x.ndim == 2 else tg.diag(x, k)


def _diagflat(v: Any, k: int = 0) -> Any:
    return tg.diagflat(one(v), k)


def _diagonal(a: Any, offset: int = 0, axis1: int = 0, axis2: int = 1) -> Any:
    return tg.diagonal(one(a), offset, axis1, axis2)


def _tril(m: Any, k: int = 0) -> Any:
    return tg.tril(one(m), k)


def _triu(m: Any, k: int = 0) -> Any:
    return tg.triu(one(m), k)


def _full_like(a: Any, fill_value: Any, dtype: Any = None, *, shape: Any = None) -> Any:
    x = one(a)
    value = one(fill_value).to(x.dtype if dtype is None else dtype)
    return _broadcast_to(value, x.shape if shape is None else shape).clone()


# Rearranging


def _flip(m: Any, axis: Axis = None) -> Any:
    x, axes = one(m), None if axis is None else tuple(every(one(m), axis))
    if type(x) is not Tensor and x.ndim:
        return view(x, "FlipBackward0", lambda array: np.flip(array, axes))
    return x.flip(*every(x, axis)) if x.ndim and axis != () else x.clone()


def _fliplr(m: Any) -> Any:
    return _flip(m, 1)


def _flipud(m: Any) -> Any:
    return _flip(m, 0)


def _rot90(m: Any, k: int = 1, axes: Any = (0, 1)) -> Any:
    x = one(m)
    if type(x) is not Tensor:
        return view(x, "Rot90Backward0", lambda array: np.rot90(array, k, axes))
    return tg.rot90(x, k, axes)


def _tile(A: Any, reps: Any) -> Any:
    return tg.tile(one(A), (reps,) if isinstance(reps, int) else tuple(reps))


def _repeat(a: Any, repeats: Any, axis: int | None = None) -> Any:
    return tg.repeat_interleave(one(a), repeats if isinstance(repeats, (int, Tensor)) else one(repeats), axis)


@makes_constants_of_shapes
def _take(a: Any, indices: Any, axis: int | None = None, out: Any = None, mode: str = "raise") -> Any:
    if out is not None:
        raise NotCovered("give out by its name")
    x, index = one(a), one(indices)
    if mode != "raise":
        index = _inside(array_of(index), x.numel() if axis is None else x.shape[axis], mode)
    if axis is None:
        return x.reshape(-1)[index]
    found = x[(*[slice(None)] * (axis % max(1, x.ndim)), index)]
    return found if index.ndim else tg.clone(found)  # one place is none of an array of places, which would give a copy


@makes_constants_of_shapes
def _inside(index: Any, length: int, mode: str) -> Tensor:
    """Places out of bounds as NumPy brings them back."""
    if mode not in ("wrap", "clip"):
        raise ValueError(f"clipmode must be one of 'clip', 'raise', or 'wrap' (got {mode!r})")
    if not length and index.size:
        raise IndexError("cannot do a non-empty take from an empty axes.")
    return as_operand(index % max(length, 1) if mode == "wrap" else np.clip(index, 0, length - 1))


def _take_along_axis(arr: Any, indices: Any, axis: int | None = -1) -> Any:
    return tg.take_along_dim(one(arr), one(indices), axis)


def _compress(condition: Any, a: Any, axis: int | None = None) -> Any:
    return _take(a, tg.nonzero(one(condition)).reshape(-1), axis)


def _diff(a: Any, n: int = 1, axis: int = -1, prepend: Any = None, append: Any = None) -> Any:
    x = one(a)
    if n < 0:
        raise ValueError(f"order must be non-negative but got {n}")
    if not x.ndim:
        raise ValueError("diff requires input that is at least one dimensional")
    k = axes_of(axis, x.ndim)[0]
    if n and (prepend is not None or append is not None):
        ends = [None if end is None else one(end) for end in (prepend, append)]
        one_long = (*x.shape[:k], 1, *x.shape[k + 1 :])
        before, after = (None if end is None else end if end.ndim else _broadcast_to(end, one_long) for end in ends)
        x = _concatenate([part for part in (before, x, after) if part is not None], k)
    for _ in range(n):
        x = _without_end(x, k, 0) - _without_end(x, k, -1)
    return x


def _without_end(x: Tensor, position: int, end: int) -> Tensor:
    """All but the first (0) or the last (-1) along a dimension, for an operation that saves no values."""
    kept = slice(1, None) if end == 0 else slice(0, -1)
    return part(x, "SliceBackward0", itemgetter((*[slice(None)] * position, kept, Ellipsis)), copies=False)


def _concatenate(arrays: Any, /, axis: int | None = 0, *, dtype: Any = None) -> Any:
    parts = [one(x).reshape(-1) for x in arrays] if axis is None else [one(x) for x in arrays]
    _check_ranks(parts)
    return _in(dtype, cat(parts, axis or 0))


def _in(dtype: Any, joined: Any) -> Any:
    return joined if dtype is None else joined.to(dtype)


def _stack(arrays: Any, axis: int = 0, *, dtype: Any = None) -> Any:
    return _in(dtype, tg.stack([one(x) for x in arrays], axis))


def _check_ranks(parts: Sequence[Tensor]) -> None:
    """Raise where PyTorch lets an empty list be joined to anything.

    Raises
    ------
    ValueError
        If the numbers of dimensions differ.
    """
    ranks = [x.ndim for x in parts]
    if len(set(ranks)) > 1:
        raise ValueError(f"all the input arrays must have same number of dimensions, but they have {ranks}")


def _hstack(tup: Any, *, dtype: Any = None) -> Any:
    parts = [one(x) for x in tup]
    _check_ranks([x for x in parts if x.ndim] if all(x.ndim < 2 for x in parts) else parts)
    return _in(dtype, tg.hstack(parts))


def _vstack(tup: Any, *, dtype: Any = None) -> Any:
    return _in(dtype, tg.vstack([one(x) for x in tup]))


def _dstack(tup: Any) -> Any:
    return tg.dstack([one(x) for x in tup])


def _column_stack(tup: Any) -> Any:
    return tg.column_stack([one(x) for x in tup])


def _append(arr: Any, values: Any, axis: int | None = None) -> Any:
    return _concatenate((arr, values), axis)


def _split(ary: Any, indices_or_sections: Any, axis: int = 0) -> Any:
    x = one(ary)
    if isinstance(indices_or_sections, int) and x.shape[axis] % indices_or_sections:
        raise ValueError("array split does not result in an equal division")
    return _array_split(x, indices_or_sections, axis)


def _array_split(ary: Any, indices_or_sections: Any, axis: int = 0) -> Any:
    sections = indices_or_sections if isinstance(indices_or_sections, int) else [int(k) for k in indices_or_sections]
    return list(tg.tensor_split(one(ary), sections, axis))


_NAMES = (
    "append array_split astype broadcast_arrays broadcast_to clip column_stack compress concatenate copy copyto diag diagflat "
    "diagonal diff dstack expand_dims flip fliplr flipud full_like hstack matrix_transpose moveaxis nan_to_num ravel "
    "repeat reshape rot90 round size split squeeze stack swapaxes take take_along_axis tile transpose tril triu vstack where"
)
COUNTERPARTS: dict[str, Callable[..., Any]] = {name: globals()[f"_{name}"] for name in _NAMES.split()}
COUNTERPARTS |= {"around": _round, "permute_dims": _transpose, "real": _real_part, "shape": _shaped}
