"""NumPy's functions that write into an array, on arrays that can hold what is differentiated."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tapegrad.frames import is_inside_driver
from tapegrad.numpy_arrays.array import Array, as_arrays
from tapegrad.numpy_arrays.untracked import is_tracked, values_of, write_constants
from tapegrad.numpy_protocol.operands import holds_tensors, one
from tapegrad.ops.slice_writing import index_add
from tapegrad.surface.conversions import to
from tapegrad.tensors.tensor import as_operand

__all__ = ["WRITING", "accumulate_at"]


def _own(a: Any, name: str) -> Array:
    if not isinstance(a, Array):
        what = "an array of NumPy's" if isinstance(a, np.ndarray) else type(a).__name__
        made = " Make it with np.zeros_like(x), or with the functions of tapegrad.numpy." if is_inside_driver() else ""
        raise TypeError(f"{name} cannot write what is being differentiated into {what}, where it has no derivative.{made}")
    return a


def _values(v: Any) -> Any:
    return as_arrays(one(v)) if isinstance(v, (list, tuple)) and holds_tensors(v) else v


def put(a: Any, ind: Any, v: Any, mode: str = "raise") -> None:
    """Write values at places of the flattened array."""
    _own(a, "numpy.put").put(values_of(ind), _values(v), mode)


def place(arr: Any, mask: Any, vals: Any) -> None:
    """Write the first values into the places of a mask, again and again."""
    _own(arr, "numpy.place").put(np.flatnonzero(values_of(mask)), _values(vals))


def putmask(a: Any, mask: Any, values: Any) -> None:
    """Write the values of the same places, repeated, into those of a mask."""
    places = np.flatnonzero(values_of(mask))
    flat = np.ravel(_values(values))
    if flat.size:
        _own(a, "numpy.putmask").put(places, flat[places % flat.size])


def copyto(dst: Any, src: Any, casting: Any = "same_kind", where: Any = True) -> None:
    """Write values, on request only into the places of a mask."""
    source = _values(src)
    whole = _own(dst, "numpy.copyto")
    dtype = getattr(source, "dtype", None)
    if dtype is not None and not np.can_cast(dtype, whole.dtype, casting):
        raise TypeError(f"Cannot cast array data from {dtype!r} to {whole.dtype!r} according to the rule {casting!r}")
    mask = values_of(where)
    if mask is True:
        whole[...] = source
        return
    mask = np.broadcast_to(mask, whole.shape)
    whole[mask] = np.broadcast_to(source, whole.shape)[mask] if np.ndim(source) else source


def fill_diagonal(a: Any, val: Any, wrap: bool = False) -> None:
    """Write the main diagonal."""
    whole = _own(a, "numpy.fill_diagonal")
    marked = np.zeros(whole.shape, bool)
    np.fill_diagonal(marked, True, wrap)
    whole.put(np.flatnonzero(marked), _values(val))


def put_along_axis(arr: Any, indices: Any, values: Any, axis: int | None) -> None:
    """Write values at places along an axis."""
    whole, index = _own(arr, "numpy.put_along_axis"), values_of(indices)
    numbers = np.arange(whole.size).reshape(whole.shape)
    places = np.take_along_axis(numbers, np.asarray(index), axis)
    values = _values(values)
    whole.put(places.ravel(), np.broadcast_to(values, places.shape).ravel() if np.ndim(values) else values)


def accumulate_at(ufunc: Any, a: Any, indices: Any, b: Any = None) -> None:
    """``ufunc.at``: an operation for each index, also where one occurs more than once."""
    whole = _own(a, f"numpy.{ufunc.__name__}.at")
    if not is_tracked(whole, b):
        given = () if b is None else (values_of(b),)
        write_constants(whole, lambda array: ufunc.at(array, values_of(indices), *given), b)
        return
    places = np.arange(whole.size).reshape(whole.shape)[values_of(indices)]
    part = np.broadcast_to(as_arrays(one(b)), places.shape) if b is not None else None
    if part is not None and ufunc in (np.add, np.subtract):
        change = as_arrays(to(as_operand(part.ravel()), whole.dtype))
        zeros = np.zeros(whole.size, whole.dtype)
        total = as_arrays(index_add(as_operand(zeros), 0, as_operand(places.ravel()), change))
        whole[...] = ufunc(whole, total.reshape(whole.shape))
        return
    if np.unique(places).size != places.size:
        raise TypeError(
            f"numpy.{ufunc.__name__}.at with an index that occurs twice is not covered for what is being differentiated; "
            "np.add.at and np.subtract.at are"
        )
    chosen = whole.ravel()[places.ravel()]
    whole.put(places.ravel(), ufunc(chosen) if part is None else ufunc(chosen, part.ravel()))


WRITING: dict[Any, Callable[..., None]] = {
    getattr(np, name): globals()[name] for name in ("copyto", "fill_diagonal", "place", "put", "put_along_axis", "putmask")
}
