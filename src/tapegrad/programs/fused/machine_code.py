"""Machine code of a path: compiled by LLVM from text, called with one table of addresses."""

from __future__ import annotations

import functools
import hashlib
import time
from collections.abc import Sequence
from typing import Any, NamedTuple, Protocol

import numpy as np

from tapegrad.arrays.floating_point_warnings import IGNORING, enter, leave
from tapegrad.engine import layout as at
from tapegrad.programs.fused.expressions import NUMBERS, Expressions
from tapegrad.programs.fused.kept_code import code_of, keep
from tapegrad.programs.fused.listings import Listing
from tapegrad.programs.fused.result_memory import ResultMemory
from tapegrad.programs.fused.schedule import scheduled
from tapegrad.programs.steps import Step, Value
from tapegrad.tape.tape import TAPE

__all__ = ["Compilable", "MachineCode", "compiled", "memory_of", "text_of"]

SMALL = 4096  # elements up to which a copy costs less than to ask for an address
QUICK = 20_000  # lines from which on LLVM's quick way of making code is taken


class Compilable(Protocol):
    """What machine code is made of: expressions, and where what is given and what is asked for stands."""

    graph: Expressions
    inputs: list[tuple[int, int]]
    gradients: list[tuple[int, int]]
    value: tuple[int, int]
    guards: tuple[int, int]
    has_guards: bool
    arrays: list[tuple[int, np.ndarray[Any, Any]]]
    before: list[Step]
    before_inputs: list[tuple[int, Value]]


class Text(NamedTuple):
    """The text of ``void run(ptr, ptr, ptr, ptr table)``.

    Attributes
    ----------
    text : str
    stops : list of (int, int)
        Where calls stop for what Python does, with its number.
    end : int
        Where they end.
    """

    text: str
    stops: list[tuple[int, int]]
    end: int


def text_of(path: Compilable) -> Text:
    """The text of a path."""
    graph = path.graph
    asked = [path.value, path.guards, *path.gradients]
    buffers = [buffer for buffer, _ in asked if buffer != NUMBERS] + graph.required
    slots = [slot for buffer, slot in asked if buffer == NUMBERS]
    listing = Listing(graph)
    for group in scheduled(graph, buffers, slots):
        listing.add(group)
    return Text(listing.text(), listing.stops, listing.count)


class MachineCode:
    """Compiled value and gradient of a path.

    Attributes
    ----------
    before : list of Step
        What is computed before it runs.
    seconds : float
        What its making took.
    step : int
        Address of the step that runs it.
    number : callable
        Gives one of the numbers by its place.
    value, guards : int
        Places of the value and of how many guards failed, -1 if there are none.
    results : list of (int, ndarray or None, ResultMemory or None)
        Where each gradient is: the place of a number, or -1 and the array that it is copied from, or what has memory for it.

    Notes
    -----
    The code has the C signature of NumPy's inner loops, whose last argument is the table: the entry that runs steps again calls it.
    """

    __slots__ = (
        "_arrays", "_has_others", "_inputs", "_kept", "_large", "_numbers", "_pieces", "_slots", "_small", "_step", "_table",
        "before", "before_inputs", "guards", "number", "results", "seconds", "step", "value",
    )  # fmt: skip

    def __init__(self, path: Compilable, shapes: Sequence[tuple[int, ...]]) -> None:
        started = time.perf_counter()
        sizes = path.graph.sizes
        text = text_of(path)
        engine, address = compiled(text.text)
        memory, self._table = memory_of(path, text.end)
        ends = [0, *(stop for stop, _ in text.stops), text.end]
        hosts = [path.graph.hosts[number] for _, number in text.stops]
        self._pieces = list(zip(ends[:-1], ends[1:], [*hosts, None], strict=True)) if hosts else []
        self._numbers = memory[NUMBERS]
        self.number = self._numbers.item
        self._kept: list[Any] = [engine, memory]
        words = [0] * at.STEP_WORDS
        words[:4] = at.LOOP_STEP, address, self._table.ctypes.data, 1
        self._step = np.array(words, np.int64)
        self.step = self._step.ctypes.data
        self.before, self.before_inputs = path.before, path.before_inputs
        self.value, self.guards = path.value[1], path.guards[1] if path.has_guards else -1
        # Small arrays are copied, of large ones the address is given.
        own = {buffer: memory[buffer] for buffer in range(1, len(sizes)) if sizes[buffer] <= SMALL}
        given = {buffer for buffer in own if buffer not in path.graph.singles}  # what is copied in words of eight bytes
        self._inputs = len(path.inputs)
        self._slots = [(k, slot) for k, (_, slot) in enumerate(path.inputs) if slot >= 0]
        self._small = [(k, own[buffer]) for k, (buffer, _) in enumerate(path.inputs) if buffer in given]
        large = [(k, buffer) for k, (buffer, _) in enumerate(path.inputs) if buffer > NUMBERS and buffer not in given]
        self._large = [(k, buffer, memory[buffer].dtype) for k, buffer in large]
        self.results: list[tuple[int, Any, Any]] = [
            (
                slot,
                own.get(buffer),
                None if slot >= 0 or buffer in own else ResultMemory(shape, self._table, buffer, memory[buffer].dtype),
            )
            for (buffer, slot), shape in zip(path.gradients, shapes, strict=True)
        ]
        for k, shape in enumerate(shapes):
            slot, result, room = self.results[k]
            if result is not None:
                self.results[k] = slot, result.reshape(shape), room
        self._arrays = [result for _, result, _ in self.results if result is not None]
        self._has_others = len(self._arrays) < len(self.results)
        self.seconds = time.perf_counter() - started

    def gradient(self, values: Sequence[Any]) -> tuple[float, list[Any]] | None:
        """Value and gradient for other inputs; None if the function would go another way."""
        numbers = self._numbers
        if (self.before or self.before_inputs) and not self._has_done(values):
            return None
        for k, slot in self._slots:
            numbers[slot] = values[k]
        for k, own in self._small:
            value = values[k]
            own[:] = value if value.ndim == 1 else value.reshape(-1)
        if not self._large:
            return self.run()
        held = [np.require(values[k], dtype, ["C", "A"]) for k, _, dtype in self._large]
        for (_, buffer, _), array in zip(self._large, held, strict=True):
            self._table[buffer] = array.ctypes.data
        return self.run()

    def run(self) -> tuple[float, list[Any]] | None:
        """The same for inputs that are in their places."""
        found = self._prepared() if self._has_others else None
        if not self._pieces:
            TAPE.replay(TAPE.address, self.step, 0, 1)
        elif not self._has_run():
            return None
        if self.guards >= 0 and self.number(self.guards):
            return None
        if found is None:
            return self.number(self.value), [result.copy() for result in self._arrays]
        for k, (slot, own, _) in enumerate(self.results):
            if slot >= 0:
                found[k] = self.number(slot)
            elif own is not None:
                found[k] = own.copy()
        return self.number(self.value), found

    def alone(self) -> MachineCode | None:
        """Itself, if Python does nothing while it runs."""
        return None if self._pieces else self

    def _has_run(self) -> bool:
        """Run the pieces, and let Python do what comes between them; whether it could."""
        token = enter(IGNORING)
        try:
            for first, last, host in self._pieces:
                if first != last:
                    self._table[-2:] = first, last
                    TAPE.replay(TAPE.address, self.step, 0, 1)
                if host is not None and not host.run():
                    return False
        except Exception:  # the steps raise it again
            return False
        finally:
            leave(token)
        return True

    def _prepared(self) -> list[Any]:
        """New memory for large gradients, and room for the others."""
        return [None if room is None else room.fresh() for _, _, room in self.results]

    def places(self) -> list[tuple[int, int]]:
        """Where each input goes, and how many numbers are copied there; -1 if it is the address of an array that goes there."""
        found = [(0, 0)] * self._inputs
        for k, slot in self._slots:
            found[k] = self._numbers.ctypes.data + 8 * slot, 1
        for k, own in self._small:
            found[k] = own.ctypes.data, own.size
        for k, buffer, _ in self._large:
            found[k] = self._table.ctypes.data + 8 * buffer, -1
        return found

    def _has_done(self, values: Sequence[Any]) -> bool:
        """Whether what is computed before the code was, and as it was recorded."""
        for k, value in self.before_inputs:
            value.array[...] = values[k]
        token = enter(IGNORING)
        try:
            return all(step.run() for step in self.before)
        except Exception:  # the steps raise it again
            return False
        finally:
            leave(token)


def memory_of(path: Compilable, end: int) -> tuple[dict[int, np.ndarray[Any, Any]], np.ndarray[Any, Any]]:
    """Memory for each buffer, and the table of their addresses, with where calls begin and end behind it."""
    sizes = path.graph.sizes
    kinds = [np.float32 if buffer in path.graph.singles else np.float64 for buffer in range(len(sizes))]
    memory: dict[int, np.ndarray[Any, Any]] = {buffer: np.zeros(max(size, 1), kinds[buffer]) for buffer, size in enumerate(sizes)}
    memory |= dict(path.arrays)
    for slot, value in path.graph.numbers.items():
        memory[NUMBERS][slot] = value
    table = np.array([*(memory[buffer].ctypes.data for buffer in range(len(sizes))), 0, end], np.int64)
    for place, address in (pair for pairs in path.graph.loops.values() for pair in pairs):
        table[place] = address
    return memory, table


@functools.cache
def _processor() -> tuple[str, str]:
    """This one, and what it has."""
    import llvmlite.binding as llvm

    return llvm.get_host_cpu_name(), f"{llvm.get_host_cpu_features().flatten()},-prefer-256-bit"


def compiled(text: str) -> tuple[Any, int]:
    """What owns the machine code of a text, and the address of its function ``run``."""
    import llvmlite
    import llvmlite.binding as llvm

    llvm.initialize_native_target()
    llvm.initialize_native_asmprinter()
    processor, features = _processor()
    level = 2 if text.count("\n") < QUICK else 0
    target = llvm.Target.from_default_triple()
    machine = target.create_target_machine(processor, features, opt=level, jit=True)
    made_of = llvmlite.__version__, llvm.llvm_version_info, target.triple, processor, features, level, text
    key = hashlib.sha256("\0".join(map(str, made_of)).encode()).hexdigest()
    code = code_of(key)
    if code is None:
        code = machine.emit_object(llvm.parse_assembly(text))
        keep(key, code)
    engine = llvm.create_mcjit_compiler(llvm.parse_assembly(""), machine)
    engine.add_object_file(llvm.ObjectFileRef.from_data(code))
    engine.finalize_object()
    return engine, int(engine.get_function_address("run"))
