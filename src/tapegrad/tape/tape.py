"""The tape: what is loaded and reclaimed when, and the handles by which Python knows rows.

One process has one tape for eager code, whatever the number of threads: recording a row is a single call under the interpreter
lock. The columns are described in `tapegrad.engine.layout`, and `tapegrad.tape.column_memory` has their memory; what is compiled is
loaded when the first row is recorded.
"""

from __future__ import annotations

import weakref
from _thread import get_ident  # `threading` takes a millisecond
from functools import partial
from typing import Any

import numpy as np

from tapegrad.arrays.memory_pool import warm_allocator
from tapegrad.engine import layout as at
from tapegrad.errors import TapeFullError
from tapegrad.interrupts import at_once, undone
from tapegrad.kernels import library
from tapegrad.kernels.entries import ENTRIES, KERNEL_WORDS, KERNELS_OF, OTHER_NAMES
from tapegrad.kernels.opcodes import LOOPS
from tapegrad.tape.column_memory import MAXIMUM_ROWS, Columns
from tapegrad.tape.function_table import WORDS as FUNCTION_WORDS
from tapegrad.tape.function_table import functions_in
from tapegrad.tape.locks import changing as _changing
from tapegrad.tape.locks import loading as _loading_lock

__all__ = ["TAPE", "Claim", "Tape", "default_tape", "owner_of", "words_of"]

FIRST_ROWS, FIRST_WORDS, FIRST_HANDLES, FIRST_ANCHORS, FIRST_WRITTEN = 2 * at.LEAST_ROWS, 32768, 4096, 64, 256
# Rows that are always allowed before dead ones are looked for. Where the last result of a loop lives until the next one is there,
# dead rows are not at the end and stay until then, and each pass walks over them: with 8,192 that took a third of a short pass.
LEAST_LIMIT = 512
HANDLES_A_ROW = 64  # that may be read, when dead rows are looked for, for each row recorded since the last time
SMALLEST_SAVED_LIMIT = 1 << 26  # bytes of saved arrays that are always allowed before dead rows are looked for


def _compiled_here() -> Any:
    """The engine of a package that was installed without a built one."""
    from tapegrad.kernels import kernel_files

    return kernel_files.load()


def words_of(array: Any) -> memoryview[int]:
    """Single words of an int64 array, read twice as fast as from the array."""
    return memoryview(array)


def _loading(name: str) -> Any:
    """Stand-in for a compiled entry: loads it and what it needs, takes its own place, and calls it."""

    def load_and_call(*arguments: Any) -> Any:
        return TAPE.compiled(name)(*arguments)

    return load_and_call


class Claim:
    """A claim that rows keep their slots; it ends with the ``with`` block, or with the object."""

    __slots__ = ("__weakref__", "thread")

    def __init__(self) -> None:
        self.thread = get_ident()

    def __enter__(self) -> Claim:
        return self

    def __exit__(self, *exception: object) -> None:
        try:
            TAPE.pin(TAPE.address, -1)
        except BaseException:
            del self  # pins are counted anew by the claims that are left; the frames of an exception must not keep this one
            raise
        if TAPE.waiting:
            TAPE.release_waiting()


class Tape(Columns):
    """Columns of recorded rows.

    Attributes
    ----------
    address : int
        Address of the header, the first argument of every compiled entry.
    recording_off : int
        Number of threads in which gradient mode is off now; 0 lets operators skip the look at their thread's mode.
    """

    # Slots, because operators look up entries for every row: with as many attributes a dict answers three times slower.
    __slots__ = (
        "_name_numbers", "_releases", "anomalies", "claims", "inferring", "kernel_table", "kernels", "names",
        "observers", "on_load", "packers", "passes", "ready", "recording_off", "reshaped", "rules", "tables", "tracers",
        "waiting",
        *ENTRIES, *OTHER_NAMES,
    )  # fmt: skip

    def __init__(self) -> None:
        self.header = np.zeros(at.HEADER_WORDS, np.int64)
        self.address = self.header.ctypes.data
        for word, constant in ((at.NONE, None), (at.TRUE, True), (at.FALSE, False), (at.TAPE_OBJECT, self)):
            self.header[word] = id(constant)
        self.row_limit = MAXIMUM_ROWS
        self.recording_off = 0  # compiled code has it as a word too, and changes both
        self.anomalies = 0  # 1 while they are looked for
        self.inferring = 0  # number of threads in inference mode now
        self.observers = 0  # how many are told of each row now, in all threads
        self.reshaped = False  # whether a tensor was ever given data of another shape or dtype
        self.names: list[str] = [""]
        self._name_numbers: dict[str, int] = {"": 0}
        self.kernels: Any = None
        self.ready = False
        self.kernel_table = np.zeros(at.KERNEL_COUNT + len(LOOPS) + FUNCTION_WORDS, np.int64)
        self.claims: set[Any] = set()  # weak references to claims
        self.passes: set[Any] = set()  # weak references to the working memory of passes
        self.waiting: list[partial[Any]] = []  # called when no pass can be looking at the objects that they release
        self._releases = map(partial.__call__, iter(self.waiting.pop, None))  # no bytecode between taking one and calling it
        self.on_load: list[Any] = []  # called once the engine is loaded
        self.tables: Any = weakref.WeakSet()  # of objects that belong to rows
        self.versions: dict[int, Any] = {}  # owner of written memory: its version counter, for messages
        self.packers = 0  # how many pairs of hooks are to pack saved values now, in all threads
        self.tracers = 0  # how many calls are followed now, in all threads
        for name in (*ENTRIES, *OTHER_NAMES):
            setattr(self, name, _loading(name))
        self.columns: dict[str, np.ndarray] = {}

    def load(self) -> None:
        """Load the compiled engine and allocate the first columns."""
        if self.ready:
            return
        with _loading_lock:
            if self.kernels is None:
                undone(partial(setattr, self, "kernels", None), self._load)  # interrupted: the next use starts anew

    def _load(self) -> None:
        self.kernels = library.find() or _compiled_here()
        warm_allocator()
        self.rules = self.kernels.rules
        header = self.header
        header[at.RULES] = self.rules.ctypes.data
        header[at.KERNEL_TABLE] = self.kernel_table.ctypes.data
        header[at.ARRAY_TYPE], header[at.FLOAT_TYPE] = id(np.ndarray), id(float)
        header[at.SAVED_LIMIT] = SMALLEST_SAVED_LIMIT
        header[at.HANDLE_FREE] = header[at.ANCHOR_FREE] = header[at.UNREFERENCED_HIGH] = -1
        header[at.UNREFERENCED_LOW] = at.NO_ROW
        self._grow_rows(FIRST_ROWS)
        self._grow_side(FIRST_WORDS)
        self._grow_constants(FIRST_ROWS)
        self._grow_handles("handle", at.HANDLE, FIRST_HANDLES)
        self._grow_handles("anchor", at.ANCHOR, FIRST_ANCHORS)
        self._move("move_written", "written", np.zeros((FIRST_WRITTEN, 2), np.int64), FIRST_WRITTEN, 0)
        self._set_limit()
        for follow in self.on_load:
            follow()
        self.ready = True

    def compiled(self, name: str) -> Any:
        """A compiled entry, which becomes an attribute of the tape."""
        self.load()
        with _loading_lock:
            return self._compiled(name)

    def need(self, kernel: str) -> None:
        """Load a kernel for rows that are recorded from now on."""
        self.load()
        with _loading_lock:
            self._need(kernel)

    def _need(self, kernel: str) -> None:
        for name in (kernel, "other_scalars") if kernel in LOOPS else (kernel,):  # the rule's numbers may be recorded next
            self.kernel_table[KERNEL_WORDS[name]] = getattr(self.kernels, name).get()

    def _compiled(self, name: str) -> Any:
        for kernel in KERNELS_OF.get(name, ()):
            self._need(kernel)
        if "elementwise_step" in KERNELS_OF.get(name, ()):
            functions_in(self.kernel_table)
            self.header[at.ELEMENTWISE_ROW] = self.kernels.elementwise_row.get()
        if name == "scalar_row":
            self.header[at.SCALARS_READY] = 1
        if name == "reduce_row":
            self.header[at.SUMS_READY] = 1
        if name == "view_row":
            self.header[at.ITEMS_READY] = 1
        if name == "operation_row":
            self.header[at.HOSTS_READY] = 1
        if name == "new_anchor":
            self._compiled("drop_anchor")  # the collector may ask for it at any moment from now on
        entry = getattr(self.kernels, OTHER_NAMES.get(name, name)).get()
        setattr(self, name, entry)
        return entry

    def make_room(self, rows: int = 8, words: int = 256) -> None:
        """After a refusal: reclaim dead rows where that pays, else grow.

        Parameters
        ----------
        rows, words : int
            What the refused call needs at most.

        Raises
        ------
        TapeFullError
            If more rows are alive than can be numbered.
        MemoryError
            If a column cannot grow; nothing recorded is lost.
        """
        with _changing:
            moves = self._make_room(rows, words)
        self._let_die(moves)

    def _make_room(self, rows: int, words: int) -> int:
        """The number of moves before."""
        header = self.header
        moves = int(header[at.MOVES])
        if header[at.PINS]:
            self.count_pins()
        pinned = bool(header[at.PINS])
        if not pinned:
            self._collect()
        header[at.SAVED_LIMIT] = max(SMALLEST_SAVED_LIMIT, 2 * int(header[at.SAVED_BYTES]))
        # Looking for dead rows again after as many rows as are alive now keeps its cost constant a row, and growing while less
        # than half is free that of growing.
        used = self.rows
        if used + rows > self.row_limit:
            raise TapeFullError(
                f"the tape is full: {used} rows are alive and at most {self.row_limit} can be numbered. Drop results that are "
                "no longer needed, call backward() more often, or record under no_grad()."
            )
        if 2 * (used + rows) > header[at.CAPACITY]:
            self._grow_rows(min(max(2 * int(header[at.CAPACITY]), used + 2 * rows), MAXIMUM_ROWS))
        self._set_limit(pinned)
        used = int(header[at.SIDE_ROWS])
        if 2 * (used + words) > header[at.SIDE_CAPACITY]:
            self._grow_side(max(2 * int(header[at.SIDE_CAPACITY]), used + 2 * words))
        used = int(header[at.CONSTANTS])
        if 2 * (used + rows) > header[at.CONSTANT_CAPACITY]:
            self._grow_constants(max(2 * int(header[at.CONSTANT_CAPACITY]), used + 2 * rows))
        if header[at.HANDLE_FREE] < 0 or self._free_handles_are_few():
            self._grow_handles("handle", at.HANDLE, 2 * int(header[at.HANDLE_CAPACITY]))
        return moves

    def claim(self) -> Claim:
        """Keep rows from moving, and what they saved alive, until the end of a ``with`` block."""
        claim = Claim()
        try:
            self.claims.add(weakref.ref(claim, self.claims.discard))
            self.pin(self.address, 1)
        except BaseException:
            del claim  # the frames of an exception must not keep it
            raise
        return claim

    def release_waiting(self) -> None:
        """Release what passes have freed, unless other passes may be looking at it."""
        while self.waiting and not self.header[at.PINS]:
            try:
                next(self._releases)
            except IndexError:  # another thread was first
                return

    def count_pins(self) -> None:
        """Count anew: an exception may have ended a pass between two steps, and then nobody is left who would unpin."""
        header = self.header
        for _ in range(8):  # others may pin and unpin while this counts
            clock = int(header[at.PIN_CLOCK])
            passes = [state for link in list(self.passes) if (state := link()) is not None]
            right = sum(link() is not None for link in list(self.claims)) + sum(state.words[at.PINNED] for state in passes)
            right += int(header[at.RELEASING])
            if right >= header[at.PINS] or self.correct_pins(self.address, clock, right) == right:
                break

    def collect(self) -> None:
        """Drop every row that no handle can reach, and move the others together."""
        with _changing:
            moves = int(self.header[at.MOVES])
            self._collect()
        self._let_die(moves)

    def _collect(self) -> None:
        if self.header[at.PINS]:
            self.count_pins()
        if not self.rows or self.header[at.PINS]:
            return
        count = -2
        while count == -2:
            # Rows may be recorded while this allocates; then there is too little room and the next try has more.
            slots = self.rows + 64
            words = int(self.header[at.SIDE_ROWS]) + 1024
            new_slot, trash = np.zeros(slots, np.int32), np.zeros(words, np.int64)
            collect = partial(self.collect_rows, self.address, new_slot.ctypes.data, slots, trash.ctypes.data, words)
            # Destructors may run any code, so they are called when nobody is waiting for the lock.
            release = partial(self.waiting.append, partial(self._release, trash))
            count, _ = at_once(collect, release)
        self._set_limit()

    def _release(self, trash: np.ndarray) -> None:
        """Release the objects that a collection found; their addresses come first, then zeros."""
        if trash[0]:
            self.release_all(trash.ctypes.data, int(np.count_nonzero(trash)))

    def _let_die(self, moves: int) -> None:
        """What may run any code after a collection, when nobody waits for the lock."""
        self.release_waiting()
        if self.header[at.MOVES] != moves:
            for table in list(self.tables):
                table.forget_gone()

    def _set_limit(self, pinned: bool = False) -> None:
        """Allow as many rows as are alive now before dead ones are looked for again.

        While a pass pins the tape nobody knows what is alive, so only a few more rows are allowed before the next look. A look
        reads all handles and anchors there ever were at once, so it must not come often after a graph with many.
        """
        rows = self.rows
        allowed = rows + max(at.LEAST_ROWS, rows // 8) if pinned else 2 * rows + 64
        numbers = int(self.header[at.HANDLE_CAPACITY]) + int(self.header[at.ANCHOR_CAPACITY])
        least = max(LEAST_LIMIT, numbers // HANDLES_A_ROW)
        self.header[at.LIMIT] = min(int(self.header[at.CAPACITY]), self.row_limit, max(least, allowed))

    def note_written(self, array: np.ndarray) -> None:
        """The memory of `array` was written: values saved from it before are stale."""
        self.load()
        while self.mark_written(self.address, id(array)) < 0:
            self.make_room_for_written(1)

    # Rows seen from Python.

    def has_row(self, slot: int) -> bool:
        """Whether a row stands at a slot, and not only the place of one that is gone."""
        return 0 <= slot < self.rows and bool(self.columns["held"][slot] != at.VACANT)

    def slot(self, handle: int) -> int:
        """Where the row of a handle stands now."""
        found: int = self.columns["handle"].item(handle)
        return found

    def anchor(self, slot: int) -> int:
        """A new anchor at a row, for the time of a claim: where it stands is ``columns["anchor"]``, negative if the row is gone."""
        while not (anchor := int(self.new_anchor(self.address, slot))):
            with _changing:
                self._grow_handles("anchor", at.ANCHOR, 2 * int(self.header[at.ANCHOR_CAPACITY]))
        return anchor

    def note_reshaped(self) -> None:
        """Note that a tensor was given data of another shape or dtype."""
        self.header[at.RESHAPED] = 1
        self.reshaped = True

    def name_number(self, name: str) -> int:
        """The number under which a node name is recorded."""
        number = self._name_numbers.get(name)
        if number is None:
            number = self._name_numbers.setdefault(name, len(self._name_numbers))
            if number == len(self.names):
                self.names.append(name)
        return number

    def new_handle(self, slot: int) -> int:
        """A further handle on a row.

        Raises
        ------
        IndexError
            If no row stands at the slot.
        """
        handle = int(self.another_handle(self.address, slot))
        if handle == at.GONE:
            raise IndexError(f"no row stands at slot {slot} of the {self.rows} rows of the tape")
        if handle < 0:
            self.make_room()
            handle = int(self.another_handle(self.address, slot))
        return handle

    def flag(self, slot: int, flags: int = 0, clear: int = 0) -> None:
        """Set and clear flags of a row."""
        self.change_flags(self.address, slot, clear, flags)

    def flags(self, slot: int) -> int:
        """Flags of a row; none for a slot without a row."""
        return int(self.columns["flags"][slot]) if slot < self.rows else 0


TAPE = Tape()


def owner_of(array: np.ndarray) -> int:
    """Address of the object that owns an array's memory, as the compiled engine finds it."""
    obj: Any = array
    while type(obj) is np.ndarray and obj.base is not None:
        obj = obj.base
    return id(obj)


def default_tape() -> Tape:
    """The tape on which eager operations are recorded."""
    return TAPE
