"""Recording strided linear maps (views, broadcasting, sums) and concatenations, which need no Python in the sweep.

A gather's transpose is a scatter, and the other way round.
"""

from __future__ import annotations

import math
from array import array
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from tapegrad.arrays.addresses import address_of
from tapegrad.arrays.floating_point_warnings import IGNORING, enter, leave
from tapegrad.arrays.memory_pool import SMALL
from tapegrad.recording.structural import as_result
from tapegrad.tape.tape import TAPE
from tapegrad.tensors.tensor import FLOATS, Tensor, array_of, is_recording, make, retry
from tapegrad.tensors.tracers import computed

__all__ = [
    "geometry_of",
    "join",
    "numbers_of_part",
    "piece",
    "pieces",
    "places_taken",
    "record_map",
    "reduce_sum",
    "reshape_copy",
    "scattered",
    "strided",
    "strided_copy",
    "strided_gather",
    "strided_place",
    "strided_scatter",
    "sum_to",
    "use_compiled",
]

_ADDRESS = TAPE.address
FLOAT64 = np.dtype(np.float64)


def _left_to_python(x: Tensor, name: int, axes: int, scale: float, result: Any) -> None:
    """There is no compiled form yet."""


_in_one_call: Any = _left_to_python


def use_compiled(function: Any) -> None:
    """Let sums be recorded by a compiled function, which gives None for what is not usual."""
    global _in_one_call
    _in_one_call = function


def reduce_sum(x: Tensor, name: str, over: tuple[int, ...], scale: float, result: Any) -> Tensor:
    """Record ``result = scale * sum(x, over)``.

    Parameters
    ----------
    over : tuple of int
        Non-negative axes.
    """
    if not (x._row and is_recording()):
        return make(as_result(result), 0)
    bits = -1
    if type(x._data) is not float and len(over) < x._data.ndim:
        bits = 0
        for d in over:
            bits += 1 << d if d < 63 else -(1 << 63)  # dimension 63 has the sign bit
    number = TAPE.name_number(name)
    found: Tensor | None = _in_one_call(x, number, bits, scale, result)
    if found is not None:
        return found
    value = as_result(result)
    row = TAPE.reduce_row(_ADDRESS, number, x._row, id(x._data), bits, scale, id(value))
    if row < 0:
        row = retry(lambda: TAPE.reduce_row(_ADDRESS, number, x._row, id(x._data), bits, scale, id(value)), (x,))
    return make(value, row)


def reshape_copy(x: Tensor, name: str, result: np.ndarray) -> Tensor:
    """Record a copy of `x` that has another shape but the same elements in C order."""
    return record_map(x, name, False, (result.size,), (1,), 0, 1.0, result)


def record_map(x: Tensor, name: str, scatters: bool, dims: Any, strides: Any, offset: int, scale: float, result: Any) -> Tensor:
    """Record ``result[i] = scale * x[offset + strides . i]``, or ``result[offset + strides . i] = scale * x[i]`` if it scatters."""
    value = as_result(result)
    if not (x._row and is_recording()):
        made = make(value, 0)
        return computed(_mapped, (x, scatters, dims, strides, offset, scale, np.shape(result)), {}, made) if TAPE.tracers else made
    if not dims:
        dims, strides = (1,), (1,)
    geometry = array("q", [len(dims), offset, *dims, *strides])
    at, _ = geometry.buffer_info()
    number = TAPE.name_number(name)

    def attempt() -> Any:
        return TAPE.map_row(_ADDRESS, int(scatters), number, x._row, id(x._data), at, scale, id(value))

    row = TAPE.map_row(_ADDRESS, int(scatters), number, x._row, id(x._data), at, scale, id(value))
    return make(value, row if row > 0 else retry(attempt, (x,)))


def _mapped(x: Any, scatters: bool, dims: Any, strides: Any, offset: int, scale: float, shape: Any) -> np.ndarray:
    """The value of a map of values that have no row."""
    flat = np.ascontiguousarray(x).reshape(-1)
    if scatters:
        return scattered(flat, dims, strides, offset, scale, shape)
    taken = strided(flat, dims, strides, offset)
    return (taken * flat.dtype.type(scale) if scale != 1.0 else taken).reshape(shape)


def strided_copy(x: Tensor, name: str, take: Callable[[Any], Any], shape: tuple[int, ...]) -> Tensor:
    """Record a copy of a strided view of `x`, which repeats elements or passes them in another order.

    Parameters
    ----------
    take : callable
        Takes the NumPy view of an array of x's shape.
    shape : tuple of int
        Shape of the result, which has as many elements as the view.
    """
    data = array_of(x)
    result = np.array(take(data), order="C").reshape(shape)
    return record_map(x, name, False, *geometry_of(data.shape, take), 1.0, result)


def strided_place(x: Tensor, name: str, take: Callable[[Any], Any], result: np.ndarray) -> Tensor:
    """Record that `x` was written to the strided view of `result` that `take` takes; the other elements are constants."""
    return record_map(x, name, True, *geometry_of(result.shape, take), 1.0, result)


def geometry_of(shape: tuple[int, ...], take: Callable[[Any], Any]) -> tuple[Any, Any, int]:
    """Dimensions, strides and offset, in elements in C order, of a view of an array of `shape`."""
    whole = np.empty(shape, np.int8)
    part = take(whole)
    offset = address_of(part) - address_of(whole) if part.size else 0
    return part.shape, part.strides, offset


def places_taken(shape: tuple[int, ...], take: Callable[[Any], Any]) -> np.ndarray:
    """The numbers, counted through, of the elements that a strided view of an array of `shape` has."""
    size = math.prod(shape)
    if size <= SMALL:
        taken: np.ndarray = take(np.arange(size).reshape(shape))
        return taken
    dims, strides, offset = geometry_of(shape, take)
    return (numbers_of_part if math.prod(dims) <= SMALL else numbers_of_part.__wrapped__)(offset, dims, strides)


@lru_cache(256)
def numbers_of_part(start: int, dims: tuple[int, ...], strides: tuple[int, ...]) -> np.ndarray:
    """The numbers, counted through, of the elements that a strided view shows; read-only, since they serve many rows."""
    if len(dims) == 1:
        at = np.arange(start, start + dims[0] * strides[0], strides[0]) if strides[0] else np.full(dims, start)
    else:
        at = np.full((1,) * len(dims), start)
        for k, (extent, step) in enumerate(zip(dims, strides, strict=True)):
            at = at + (step * np.arange(extent)).reshape((-1,) + (1,) * (len(dims) - k - 1))
    at.flags.writeable = False
    return at


def _dense(x: Tensor) -> np.ndarray:
    return np.ascontiguousarray(x._data).reshape(-1)


def strided(flat: np.ndarray, dims: Any, strides: Any, offset: int) -> np.ndarray:
    """The view that a strided map reads or writes; NumPy checks that it stays inside."""
    if len(dims) == 1 and strides[0] == 1 and 0 <= offset <= flat.size - dims[0]:
        return flat[offset : offset + dims[0]]  # a third of the time
    size = flat.itemsize
    return np.ndarray(dims, flat.dtype, flat, offset * size, [s * size for s in strides])


def strided_gather(
    x: Tensor, dims: Any, strides: Any, offset: int, scale: float, shape: Any, name: str = "GatherBackward0"
) -> Tensor:
    """Strided linear map ``z[i] = scale * x[offset + strides . i]``, strides in elements of x in C order.

    Parameters
    ----------
    dims, strides : tuple of int
        Extent and stride of each index.
    shape : tuple of int
        Shape of the result, which has ``prod(dims)`` elements.
    """
    if type(x._data) is float:
        result = np.empty(shape)
        result.fill(x._data * scale)
        return record_map(x, name, False, dims, strides, offset, scale, result)
    flat = _dense(x)
    taken = strided(flat, dims, strides, offset)
    result = taken * flat.dtype.type(scale) if scale != 1.0 else taken.copy()
    return record_map(x, name, False, dims, strides, offset, scale, result.reshape(shape))


def piece(x: Tensor, start: int, value: np.ndarray, name: str) -> Tensor:
    """Record that neighbouring elements of `x`, from one on, were taken into `value`, which is contiguous."""
    return record_map(x, name, False, (value.size,), (1,), start, 1.0, value)


def pieces(x: Tensor, shapes: Sequence[tuple[int, ...]]) -> list[Tensor]:
    """Copies of the arrays of these shapes that stand one after the other in `x`."""
    found, start = [], 0
    for shape in shapes:
        size = math.prod(shape)
        found.append(strided_gather(x, (size,), (1,), start, 1.0, shape, "SliceBackward0"))
        start += size
    return found


def strided_scatter(
    x: Tensor, dims: Any, strides: Any, offset: int, scale: float, shape: Any, name: str = "ScatterBackward0"
) -> Tensor:
    """Transpose of `strided_gather`: ``z[offset + strides . i] += scale * x[i]`` into zeros of `shape`."""
    return record_map(x, name, True, dims, strides, offset, scale, scattered(_dense(x), dims, strides, offset, scale, shape))


def scattered(x: np.ndarray, dims: Any, strides: Any, offset: int, scale: float, shape: Any) -> np.ndarray:
    """The value of `strided_scatter` for the elements of an array."""
    if not x.size:  # asked before sums are taken, which have elements where what is summed has none
        return np.zeros(shape, x.dtype)
    values = x.reshape(dims)
    if scale != 1.0:
        values = values * values.dtype.type(scale)
    if strides[-1:] == [1] and values.size == math.prod(shape) and _follow_each_other(dims, strides):
        return values.reshape(shape) + values.dtype.type(0)  # what is added to zeros is no -0.0
    out = np.zeros(shape, values.dtype)
    flat = out.reshape(-1)
    if 0 in strides:
        values = values.sum(axis=tuple([d for d, s in enumerate(strides) if s == 0]), keepdims=True)
    if _is_injective(values.shape, strides):
        places = strided(flat, values.shape, strides, offset)
        places += values
    else:
        index = np.full(values.shape, offset)
        for d, s in enumerate(strides):
            index += s * np.arange(values.shape[d]).reshape((-1,) + (1,) * (values.ndim - d - 1))
        np.add.at(flat, index.reshape(-1), values.reshape(-1))
    return out


def _follow_each_other(dims: Sequence[int], strides: Sequence[int]) -> bool:
    """Whether places are those of an array in C order."""
    expected = 1
    for extent, stride in zip(reversed(dims), reversed(strides), strict=True):
        if stride != expected:
            return False
        expected *= extent
    return True


def _is_injective(dims: Sequence[int], strides: Sequence[int]) -> bool:
    """Whether no two indices lead to the same place: each stride exceeds all that the smaller ones can reach."""
    if len(dims) == 1:
        return dims[0] <= 1 or strides[0] != 0
    reach = 0
    for stride, extent in sorted((abs(s), n) for s, n in zip(strides, dims, strict=True) if n > 1):
        if stride <= reach:
            return False
        reach += stride * (extent - 1)
    return True


def join(name: str, inputs: tuple[Tensor, ...], data: tuple[Any, ...], at: int, result: np.ndarray) -> Tensor:
    """Record a concatenation of `inputs` along axis `at` of `result` (for a stack, along the new axis).

    Parameters
    ----------
    inputs : tuple of Tensor
    data : tuple of ndarray or float
        Theirs, of the result's dtype.
    """
    for t in inputs:
        if t._row:
            break
    else:
        made = make(result, 0)
        return computed(_joined, (inputs, at, result.shape, result.dtype), {}, made) if TAPE.tracers else made
    dtype = result.dtype
    if (dtype is not FLOAT64 and dtype not in FLOATS) or not is_recording():
        return make(result, 0)
    row = TAPE.join_row(_ADDRESS, TAPE.name_number(name), id(inputs), id(data), at, id(result))
    return make(result, row if row > 0 else _join_after_refusal(name, inputs, data, at, result))


def _joined(parts: Sequence[Any], at: int, shape: tuple[int, ...], dtype: Any) -> np.ndarray:
    """The value of a concatenation, or of a stack, whose axis the parts lack."""
    outer = math.prod(shape[:at])
    return np.concatenate([np.asarray(part, dtype).reshape(outer, -1) for part in parts], 1).reshape(shape)


def _join_after_refusal(name: str, inputs: tuple[Tensor, ...], data: tuple[Any, ...], at: int, result: np.ndarray) -> int:
    count, number = len(inputs), TAPE.name_number(name)
    return retry(
        lambda: TAPE.join_row(_ADDRESS, number, id(inputs), id(data), at, id(result)), inputs, 2 * count + 8, 4 * count + 512
    )


def sum_to(t: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Sum over the axes that broadcasting `shape` to ``t.shape`` added or stretched."""
    own = () if type(t._data) is float else t._data.shape
    if own == shape:
        return t
    extra = len(own) - len(shape)
    stretched = [d for d, n in enumerate(shape, extra) if n == 1 and own[d] != 1]
    over = (*range(extra), *stretched) if extra else tuple(stretched)
    total = t._data
    if over:
        token = enter(IGNORING)
        try:
            total = np.add.reduce(total, axis=over, keepdims=True)
        finally:
            leave(token)
    return reduce_sum(t, "SumBackward1", over, 1.0, np.asarray(total).reshape(shape) if extra else total)
