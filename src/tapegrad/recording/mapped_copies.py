"""Copies by strided maps that are made once for a shape, and kept: small ones are computed and recorded in one compiled call."""

from __future__ import annotations

from array import array
from collections.abc import Callable
from typing import Any

import numpy as np

from tapegrad.arrays.memory_pool import SMALL
from tapegrad.recording.strided_maps import geometry_of, record_map
from tapegrad.tape.tape import TAPE
from tapegrad.tensors.tensor import Tensor, array_of, is_recording, make, retry

__all__ = ["KEPT_MAPS", "CopyMap", "copied", "placed", "rearrangement"]

_ADDRESS = TAPE.address
KEPT_MAPS = 256  # of each kind, for the next time
Shape = tuple[int, ...]


class CopyMap:
    """Where the elements of a copy stand in a tensor of one shape, or where those of a tensor stand in the copy.

    Parameters
    ----------
    name : str
        Of the node.
    whole : tuple of int
        The shape of what the map is of: the tensor's, or the result's.
    take : callable
        Takes the NumPy view of such an array that the other one has the elements of; it has no place twice if it is of the result.
    shape : tuple of int
        Of the result, which has as many elements as the view.
    """

    __slots__ = ("_words", "at", "dims", "name", "number", "offset", "shape", "strides", "take")

    def __init__(self, name: str, whole: Shape, take: Callable[[Any], Any], shape: Shape) -> None:
        self.name, self.take, self.shape, self.number = name, take, shape, TAPE.name_number(name)
        self.dims, self.strides, self.offset = geometry_of(whole, take)
        dims, strides = (self.dims, self.strides) if self.dims else ((1,), (1,))
        self._words = array("q", [len(dims), self.offset, *dims, *strides])
        self.at, _ = self._words.buffer_info()


def rearrangement(name: str, shape: Shape, apart: Shape, order: tuple[int, ...], target: Shape) -> CopyMap | None:
    """The copy that takes dimensions apart, exchanges them and puts them together; None if that leaves the elements in place."""
    whole = np.empty(shape, np.int8)

    def take(array: np.ndarray) -> np.ndarray:
        return array.reshape(apart).transpose(order)

    return None if np.may_share_memory(take(whole).reshape(target), whole) else CopyMap(name, shape, take, target)


def copied(x: Tensor, by: CopyMap) -> Tensor:
    """The copy of a view of `x` that a map says."""
    data = x._data
    if type(data) is not float and 0 < data.size <= SMALL and data.flags.c_contiguous and not TAPE.tracers:
        result = np.empty(by.shape, data.dtype)
        if result.size <= SMALL and (made := _by_compiled(x, by, 0, result)) is not None:
            return made
    result = np.array(by.take(array_of(x)), order="C").reshape(by.shape)
    return record_map(x, by.name, False, by.dims, by.strides, by.offset, 1.0, result)


def placed(x: Tensor, by: CopyMap, result: np.ndarray) -> Tensor:
    """`result`, which nobody else has, with the elements of `x` where a map says; the others are constants."""
    data = x._data
    if type(data) is not float and 0 < data.size <= SMALL and data.flags.c_contiguous and not TAPE.tracers:
        made = _by_compiled(x, by, 1, result)
        if made is not None:
            return made
    by.take(result)[...] = array_of(x)
    return record_map(x, by.name, True, by.dims, by.strides, by.offset, 1.0, result)


def _by_compiled(x: Tensor, by: CopyMap, scatters: int, result: np.ndarray) -> Tensor | None:
    """The copy by compiled code; None for elements of a size that it has no loop for."""
    data = x._data

    def attempt() -> Any:
        return TAPE.copy_row(_ADDRESS, scatters, by.number, x._row, id(data), by.at, id(result))

    tracked = x._row if x._row and is_recording() else 0
    row = TAPE.copy_row(_ADDRESS, scatters, by.number, tracked, id(data), by.at, id(result))
    if row < 0:
        if data.itemsize not in (4, 8):
            return None
        row = retry(attempt, (x,))
    return make(result, row)
