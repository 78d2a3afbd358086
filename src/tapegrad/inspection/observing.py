"""Rows as they are recorded, each with its value, its operands and the line of the user's code; and their adjoints.

While a call is observed all operations take their Python forms, and rows keep their slots. Nothing of this costs while nobody
observes.
"""

from __future__ import annotations

import threading
from _ctypes import PyObj_FromPtr
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from ctypes import c_int64
from time import perf_counter
from typing import Any

import numpy as np

from tapegrad.arrays.floating_point_warnings import quiet
from tapegrad.autograd.decoded_rows import Argument, arguments_of, name_of, opcode_of, payload_at
from tapegrad.autograd.row_derivatives import contributions
from tapegrad.autograd.sweep_memory import borrow
from tapegrad.engine import layout as at
from tapegrad.inspection.source_lines import SourceLine, present_line
from tapegrad.tape.locks import packing as _lock
from tapegrad.tape.tape import TAPE
from tapegrad.tensors.grad_mode import without_recording
from tapegrad.tensors.operator_dispatch import RECORDING, count, surround
from tapegrad.tensors.tensor import Tensor, array_of, make

__all__ = ["ObservedRow", "Observer", "each_adjoint", "observed"]

Value = Any  # a float or an array


class ObservedRow:
    """What is known of a row.

    Attributes
    ----------
    slot : int
    name : str
        PyTorch's name of the node.
    line : SourceLine or None
    value : float or ndarray
        The result; an array that is written in place later shows what was written.
    operands : list of float or ndarray
    arguments : tuple of Argument
        The rows of the operands.
    seconds : float
        Since the row before was recorded, or the observer began.
    """

    __slots__ = ("arguments", "line", "name", "operands", "seconds", "slot", "value")

    def __init__(self, slot: int, line: SourceLine | None, value: Value, operands: list[Value]) -> None:
        self.slot, self.line, self.value, self.operands = slot, line, value, operands
        self.name, self.seconds = name_of(slot), 0.0
        self.arguments = () if opcode_of(slot)[0] == at.LEAF else arguments_of(slot)

    @property
    def operation(self) -> str:
        """The name without PyTorch's ending."""
        return "leaf" if self.name == "AccumulateGrad" else self.name.partition("Backward")[0]

    @property
    def parents(self) -> list[int]:
        """Slots of the tracked operands."""
        return [argument.slot for argument in self.arguments if argument.slot >= 0]


class Observer:
    """Who is told of each row of a thread."""

    def __init__(self) -> None:
        self.thread = threading.get_ident()
        self.rows: dict[int, ObservedRow] = {}
        self.since = perf_counter()

    def row(self, row: ObservedRow) -> None:
        """A row was recorded."""
        self.rows[row.slot] = row


_observers: list[Observer] = []


def _operands(entry: str, arguments: tuple[Any, ...]) -> list[Value]:
    """Values of the operands that a recording entry was given."""
    if entry == "scalar_row":
        return [arguments[4], arguments[6]][: arguments[2]]
    if entry.startswith("array"):
        return [PyObj_FromPtr(word) for word in arguments[3:-2:2]]
    if entry == "join_row":
        return list(PyObj_FromPtr(arguments[3]))
    if entry == "host_row":
        inputs = PyObj_FromPtr(arguments[6]).inputs
        return [PyObj_FromPtr(word) for word in (c_int64 * inputs).from_address(arguments[4])]
    return [PyObj_FromPtr(arguments[4 if entry == "map_row" else 3])]


def _result(entry: str, arguments: tuple[Any, ...]) -> Value:
    if entry == "scalar_row":
        return arguments[-1]
    return PyObj_FromPtr(arguments[-2 if entry.startswith("array") else -1])


def _telling(name: str) -> Callable[[Any], Any]:
    def layer(entry: Any) -> Any:
        def call(*arguments: Any) -> Any:
            handle = entry(*arguments)
            if handle > 0:
                thread = threading.get_ident()
                found = [observer for observer in _observers if observer.thread == thread]
                if found:
                    now = perf_counter()
                    row = ObservedRow(TAPE.slot(handle), present_line(), _result(name, arguments), _operands(name, arguments))
                    for observer in found:
                        row.seconds = now - observer.since
                        observer.row(row)
                        observer.since = perf_counter()
            return handle

        return call

    return layer


_LAYERS = {name: _telling(name) for name in RECORDING}


def _settle() -> None:
    with _lock:
        wanted = len(_observers)
        if wanted and not TAPE.observers:
            TAPE.load()
            surround("observers", _LAYERS)
        count("observers", wanted - TAPE.observers)
        if not wanted:
            surround("observers", None)


@contextmanager
def observed(observer: Observer) -> Iterator[Observer]:
    """Tell an observer of each row that this thread records, and keep all rows in their slots."""
    TAPE.load()
    with TAPE.claim():
        _observers.append(observer)
        try:
            _settle()
            yield observer
        finally:
            _observers.remove(observer)
            _settle()


def leaf_row(slot: int, line: SourceLine | None = None) -> ObservedRow:
    """A leaf, of which nobody is told when it is registered."""
    return ObservedRow(slot, line, payload_at(slot).data, [])


def each_adjoint(roots: Sequence[Tensor]) -> Iterator[tuple[int, np.ndarray, list[tuple[Argument, np.ndarray]]]]:
    """Rows from results down to the leaves: slot, complete adjoint, and what the row sends to its arguments.

    Results count with ones. No hook is called, no gradient accumulated and nothing released. The caller has a claim.
    """
    state = borrow()
    slots = sorted({TAPE.slot(t._row) for t in roots}, reverse=True)
    state.plan(slots)
    low, top = state.words[at.LOW], state.words[at.TOP]
    reached = ((state.offsets[low : top + 1] != at.UNSEEN).nonzero()[0][::-1] + low).tolist()
    TAPE.clear(TAPE.address, state.address, low)
    adjoints: dict[int, np.ndarray] = {}
    for t in roots:
        slot = TAPE.slot(t._row)
        adjoints[slot] = adjoints.get(slot, 0.0) + np.ones_like(array_of(t))
    for slot in reached:
        g = adjoints.pop(slot, None)
        if g is None:
            continue
        sent: list[tuple[Argument, np.ndarray]] = []
        if opcode_of(slot)[0] != at.LEAF:
            own = make(g.item() if g.ndim == 0 and g.dtype == np.float64 else g.copy(), 0)
            found = without_recording(contributions, state, slot, (own,), lambda argument: argument.slot >= 0)
            sent = [(argument, np.array(array_of(c))) for argument, c in found if argument.slot >= 0]
        for argument, c in sent:
            before = adjoints.get(argument.slot)
            with quiet():
                adjoints[argument.slot] = c if before is None else before + c
        yield slot, g, sent
    state.reset()
    state.finish()
