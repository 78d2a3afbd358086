"""Derivatives of a call of a compiled function: the call is recorded once, and sweeps over its tape give products with vectors."""

from __future__ import annotations

import ctypes
import gc
import threading
from collections.abc import Callable
from typing import Any

import numpy as np

from tapegrad.interrupts import undone
from tapegrad.linear.front_passes import FrontPass
from tapegrad.nopython.recorder import Recorder
from tapegrad.nopython.tape.column_memory import give_back, take
from tapegrad.nopython.tape.columns import PAIRS, PARTIAL_COLUMN, ROW_COLUMN, ROWS, SECOND_COLUMN, TRIPLET_COLUMN, TRIPLETS
from tapegrad.nopython.tape.lane_sweeps import CURVE, PULL, PUSH, curve_once, weigh
from tapegrad.nopython.tape.reverse_sweep import sweep
from tapegrad.nopython.tape.sweep_along import curve_along

__all__ = ["Recording", "flatten", "gradient"]

NO_ROW = np.zeros(1, np.int32)
ONE = np.ones(1)


class Recording:
    """A call of a compiled function on a tape: its value, and the linear map between its inputs and its results.

    Inputs and results are laid out as one vector each, in the order of the arguments that were asked for. The tape's memory goes
    back when the object dies or is closed.

    Parameters
    ----------
    record : Recorder
    arguments : list
        As `Recorder.arguments` gives them.
    curved : bool
        Whether `curve` will be called; it takes a tape with second partials.
    direction : ndarray, optional
        A vector over all inputs if `curve_along` will be called in place of `curve`.
    has_aux : bool
        Whether the function returns a pair, of which the second is handed on.

    Attributes
    ----------
    value, aux : object
        What the function returned.
    points : list
        Arguments that it is differentiated by.
    inputs, results : int
        Numbers of elements of these, and of the value.
    """

    compiled = True  # as the sweeps over linear tapes of eager graphs are
    is_weighed = False

    __slots__ = ("_lock", "aux", "columns", "inputs", "name", "outs", "points", "results", "value")

    def __init__(
        self,
        record: Recorder,
        arguments: list[Any],
        curved: bool = False,
        has_aux: bool = False,
        direction: np.ndarray | None = None,
    ) -> None:
        self.name = record.name
        self.points = [arguments[k] for k in record.argnums]
        self._lock = threading.Lock()  # a pullback may be called by several threads, and sweeps let others run
        self.columns: Any = take()
        if direction is not None:
            undone(self.close, self.columns.steer, direction)
        found = undone(self.close, record.record, self.columns, arguments, curved, has_aux)
        self.value, self.aux = found[0], found[2] if has_aux else None
        rows: list[Any] = []
        flatten(found[1], rows)
        self.outs: np.ndarray = np.concatenate([np.ravel(part) for part in rows]).astype(np.int32) if rows else NO_ROW[:0]
        self.inputs, self.results = sum(_size(point) for point in self.points), len(self.outs)

    def close(self) -> None:
        """Give the tape back; no products can be asked for any more."""
        columns, self.columns = self.columns, None
        if columns is not None:
            give_back(columns)

    def __enter__(self) -> Recording:
        return self

    def __exit__(self, *exception: object) -> None:
        self.close()

    def __del__(self, give_back: Any = give_back, is_finalized: Callable[[Any], bool] = gc.is_finalized) -> None:
        columns = getattr(self, "columns", None)
        if columns is not None and not is_finalized(self):  # in a cycle, destructors of other objects may use it after this
            give_back(columns)

    @property
    def rows(self) -> int:
        """Number of the last row."""
        return int(self.columns.header[ROWS])

    @property
    def references(self) -> np.ndarray:
        """Numbers of rows in the pairs, of which the first of each row carries a flag; a view of the tape."""
        return _words(int(self.columns.header[ROW_COLUMN]), int(self.columns.header[PAIRS]))

    @property
    def triplets(self) -> np.ndarray:
        """Numbers of a row and of the two that it has a second partial by, for each such partial; a view of the tape."""
        count = int(self.columns.header[TRIPLETS])
        return _words(int(self.columns.header[TRIPLET_COLUMN]), 3 * count).reshape(count, 3)

    @property
    def linear_rows(self) -> tuple[int, ...]:
        """Address of the pairs' rows, of their partials, how many pairs, inputs and rows there are: for compiled code."""
        header = self.columns.header
        return int(header[ROW_COLUMN]), int(header[PARTIAL_COLUMN]), int(header[PAIRS]), self.inputs, int(header[ROWS])

    @property
    def second_partials(self) -> tuple[int, ...]:
        """Address of the triplets, of their second partials, and how many there are."""
        header = self.columns.header
        return int(header[TRIPLET_COLUMN]), int(header[SECOND_COLUMN]), int(header[TRIPLETS])

    def gradient(self) -> np.ndarray:
        """Gradient of a single result."""
        with self._lock:
            return gradient(self.columns, int(self.outs[0]))[1 : self.inputs + 1].copy()

    def push(self, tangents: np.ndarray) -> np.ndarray:
        """Products of the Jacobian with the columns of a matrix of shape (inputs, k)."""
        return self._products(PUSH, "tangents", tangents, self.results)

    def pull(self, cotangents: np.ndarray) -> np.ndarray:
        """Products of the transposed Jacobian with the columns of a matrix of shape (results, k)."""
        return self._products(PULL, "bar", cotangents, self.inputs)

    def _products(self, sweeps: Any, work: str, given: np.ndarray, count: int) -> np.ndarray:
        columns = self.columns
        places = int(columns.header[ROWS]) + 1
        given = np.ascontiguousarray(given, np.float64)
        found = np.empty((count, given.shape[1]))
        with self._lock:
            for lanes, start, stop in _blocks(given.shape[1]):
                array = columns.room(work, places * lanes)
                sweeps[lanes].get()(columns.address, _at(array), *self._sides(given, found), start, stop)
        return found

    def _sides(self, given: np.ndarray, found: np.ndarray) -> tuple[int, ...]:
        """Rows of the results, and two matrices, as sweeps take them."""
        return _at(self.outs), self.results, _at(given), self.inputs, _at(found), given.shape[1]

    def curve(self, tangents: np.ndarray, cotangents: np.ndarray = ONE) -> np.ndarray:
        """Products of the Hessian of a weighted sum of the results with the columns of a matrix of shape (inputs, k)."""
        assert not self.columns.directed, "second partials were recorded along one direction only"
        found = np.empty((self.inputs, tangents.shape[1]))
        given, seeds = np.ascontiguousarray(tangents, np.float64), np.ascontiguousarray(cotangents, np.float64)
        with self._lock:
            if tangents.shape[1] == 1:
                self._curve_once(given, seeds, found)
            elif tangents.shape[1]:
                self._curve(given, seeds, found)
        return found

    def curve_along(self, cotangents: np.ndarray = ONE) -> np.ndarray:
        """Product of the Hessian of a weighted sum of the results with the direction."""
        columns, found = self.columns, np.empty(self.inputs)
        seeds = np.ascontiguousarray(cotangents, np.float64)
        with self._lock:
            bars = columns.zeros(2 * (int(columns.header[ROWS]) + 1))
            rows = _at(self.outs), self.results
            curve_along.get()(columns.address, _at(bars), *rows, _at(seeds), _at(found), self.inputs)
        return found

    def hessian(self, cotangents: np.ndarray = ONE) -> np.ndarray | None:
        """The Hessian of a weighted sum of the results; None where many rows have edges at once, and products are quicker."""
        limit = self.inputs * int(self.columns.header[PAIRS])
        return FrontPass(self, True, np.asarray(cotangents, np.float64), limit).matrix()

    def _curve_once(self, given: np.ndarray, seeds: np.ndarray, found: np.ndarray) -> None:
        columns = self.columns
        places = int(columns.header[ROWS]) + 1
        tangents, bars = columns.room("tangents", places), columns.room("bar", 2 * places)
        rows = _at(self.outs), self.results
        curve_once.get()(columns.address, _at(tangents), _at(bars), *rows, _at(seeds), _at(given), _at(found), self.inputs)

    def _curve(self, given: np.ndarray, seeds: np.ndarray, found: np.ndarray) -> None:
        columns = self.columns
        places = int(columns.header[ROWS]) + 1
        bar, weights = columns.room("bar", places), columns.room("weights", int(columns.header[TRIPLETS]))
        pulled = np.empty((self.inputs, 1))
        PULL[1].get()(columns.address, _at(bar), *self._sides(seeds.reshape(-1, 1), pulled), 0, 1)
        weigh.get()(columns.address, _at(bar), _at(weights))
        for lanes, start, stop in _blocks(given.shape[1]):
            tangents, bar = columns.room("tangents", places * lanes), columns.room("bar", places * lanes)
            matrices = _at(given), self.inputs, _at(found), given.shape[1]
            CURVE[lanes].get()(columns.address, _at(tangents), _at(bar), _at(weights), *matrices, start, stop)


def gradient(columns: Any, row: int) -> np.ndarray:
    """Adjoints of all rows, from that of one."""
    count = columns.header.item(ROWS)
    bar: np.ndarray = columns.adjoints()
    if 0 < row <= count:
        bar[row] = 1.0
        sweep.get()(columns.address, _at(bar))
    return bar


def _at(array: np.ndarray) -> int:
    """The address of a contiguous array, which the caller holds."""
    return array.ctypes.data


def _blocks(count: int) -> list[tuple[int, int, int]]:
    """How many lanes to take for which columns of a matrix."""
    if count == 1:
        return [(1, 0, 1)]
    whole = count // 32 * 32 if count % 32 <= 8 else count
    found = [(32, 0, whole)] if whole else []
    return found + ([(8, whole, count)] if whole < count else [])


def flatten(value: Any, found: list[Any]) -> None:
    """Append what tuples hold to a list, or what is no tuple itself."""
    if isinstance(value, (tuple, list)):
        for part in value:
            flatten(part, found)
    else:
        found.append(value)


def _size(point: Any) -> int:
    if isinstance(point, tuple):
        return sum(_size(item) for item in point)
    return point.size if isinstance(point, np.ndarray) else 1


def _words(address: int, count: int) -> np.ndarray:
    if not count:
        return np.empty(0, np.int32)
    return np.ctypeslib.as_array(ctypes.cast(address, ctypes.POINTER(ctypes.c_int32)), (count,))
