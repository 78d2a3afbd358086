"""Working memory of a reverse pass: its plan, the adjoints, and the leaves that it reaches."""

from __future__ import annotations

import math
import weakref
from collections.abc import Sequence
from functools import partial
from typing import Any

import numpy as np

from tapegrad.autograd.decoded_rows import Argument, dtype_of, object_at, opcode_of, shape_of
from tapegrad.autograd.messages import explain
from tapegrad.autograd.pass_state import Visits
from tapegrad.engine import layout as at
from tapegrad.tape import column_memory
from tapegrad.tape.tape import TAPE, words_of
from tapegrad.tensors.retained_gradients import watchers_of
from tapegrad.tensors.tensor import FLOATS, Tensor

__all__ = ["Sweep", "borrow", "sweep_at", "wrong_shape"]

_ADDRESS = TAPE.address
LARGEST_KEPT_BUFFER = at.LARGEST_KEPT
MOST_WAITING = 64  # passes that wait to release objects before lost claims are looked for
_pool: list[Sweep] = []
_by_address: weakref.WeakValueDictionary[int, Sweep] = weakref.WeakValueDictionary()
_tape_words = words_of(TAPE.header)


class Sweep:
    """Working memory of a pass; kept for the next one. A pass inside another one, or in another thread, has its own."""

    def __init__(self) -> None:
        self.header = np.zeros(at.SWEEP_WORDS, np.int64)
        self.address = self.header.ctypes.data
        self.words = words_of(self.header)
        self.fixed = [
            np.empty(2 * at.FREE_CAPACITY, np.int64),
            np.empty(at.STACK_CAPACITY, np.int64),
            np.empty(at.SCRATCH_BLOCKS * at.BLOCK, np.float64),
            np.zeros(2048, np.int64),
        ]
        for word, array in zip((at.FREE, at.STACK, at.SCRATCH, at.WORK), self.fixed, strict=True):
            self.header[word] = array.ctypes.data
        self.header[at.KERNELS] = TAPE.kernel_table.ctypes.data
        self.offsets = np.empty(0, np.int64)
        self.bar = np.empty(0)
        self.header[at.BAR_OWNER] = id(self.bar)
        self.reached = np.empty((0, at.LEAF_WORDS), np.int64)
        self.leaf_words = words_of(np.empty(0, np.int64))
        self.trash = np.empty(0, np.int64)
        self.marks: np.ndarray | None = None
        self.marking, self.marking_at = np.empty(0, np.uint8), 0  # its memory, which a further pass uses again
        self.marking_words = words_of(self.marking)
        self.targets: list[np.ndarray] = []
        self.placed: dict[int, int] = {}  # leaves whose adjoints stand in arrays of their own, and their tenants: row and number
        self.taken: dict[int, np.ndarray] = {}  # by number: cotangents that became the adjoints of such leaves
        self.handed: dict[int, np.ndarray] = {}  # by row: those that became the adjoints of rows whose derivative is Python, too
        self.shown: list[tuple[Tensor, np.ndarray]] = []  # tensors that retain their gradients, and those
        self.accumulates = True  # whether leaves get what is contributed to them
        self.ends = False  # whether the pass ends at the requested rows, and another one goes on from there
        self.seen: Visits | None = None
        TAPE.passes.add(weakref.ref(self, TAPE.passes.discard))
        _by_address[self.address] = self

    def __del__(self) -> None:
        if not hasattr(self, "words"):
            return  # an exception came before it had any
        # Lost in an exception: what it freed is released all the same.
        self.abandon()
        if self.words[at.TRASH_COUNT]:
            TAPE.waiting.append(partial(self.drop_trash))
            TAPE.release_waiting()

    def drop_trash(self) -> None:
        """Release what the rows of the pass had saved."""
        TAPE.drop_trash(self.address)

    def settle(self) -> None:
        """The same at the end of a pass; then the memory is ready for another one."""
        TAPE.drop_trash(self.address)
        self._rest()

    def _rest(self) -> None:
        """Wait for the next pass, which may be one in compiled code."""
        if _tape_words[at.IDLE_SWEEP] or not _tape_words[at.BACKWARD] or not TAPE.offer(_ADDRESS, self.address, id(self)):
            _pool.append(self)

    def reset(self) -> None:
        """Make ready for a pass over the tape as it is now."""
        header = self.words
        rows = _tape_words[at.ROWS]
        if len(self.offsets) < rows:
            self.offsets = column_memory.allocate(min(2 * rows + 1024, _tape_words[at.CAPACITY]), np.int64)
            self.offsets.fill(at.UNSEEN)
            header[at.OFFSET], header[at.OFFSET_CAPACITY] = self.offsets.ctypes.data, len(self.offsets)
        leaves = _tape_words[at.LEAVES]
        if header[at.REACHED_CAPACITY] < leaves:
            self.reached = np.empty((2 * leaves + 16, at.LEAF_WORDS), np.int64)
            self.leaf_words = words_of(self.reached.reshape(-1))
            header[at.REACHED], header[at.REACHED_CAPACITY] = self.reached.ctypes.data, len(self.reached)
        if 2 * (_tape_words[at.WRITTEN_COUNT] + leaves) >= _tape_words[at.WRITTEN_CAPACITY]:
            TAPE.make_room_for_written(leaves)
        header[at.PEAK] = header[at.PENDING] = header[at.FREE_COUNT] = header[at.STACK_COUNT] = header[at.REACHED_COUNT] = 0
        header[at.MARKS] = header[at.TRASH_COUNT] = header[at.LOW] = header[at.TAKES] = 0
        header[at.TOP] = header[at.STOPPED_AT] = -1

    def request(self, slots: Sequence[int], top: int, ends: bool = False) -> None:
        """Restrict the pass to the paths that lead to these rows, and on request let it end there."""
        count, words = max(top, *slots) + 1, self.words
        if len(self.marking) < count:
            self.marking = np.empty(2 * count, np.uint8)
            self.marking_at = self.marking.ctypes.data
            self.marking_words = words_of(self.marking)
        self.marks = marks = self.marking[:count]
        marks.fill(0)
        for slot in slots:
            marks[slot] = at.REQUESTED
        words[at.MARKS], words[at.PATH_LOW] = self.marking_at, min(slots)
        TAPE.mark_paths(_ADDRESS, self.address, top)
        if ends:
            self.ends = True
            for slot in slots:
                marks[slot] = at.REQUESTED

    def ends_at(self, slot: int) -> bool:
        """Whether what happens to the gradient of a row is the business of another pass, which this one is a part of."""
        return self.ends and self.marks is not None and bool(self.marks[slot] & at.REQUESTED)

    def plan(self, slots: Sequence[int]) -> None:
        """Plan the pass from the rows `slots`.

        Raises
        ------
        RuntimeError
            If values that it needs were released or overwritten; the tape is unchanged.
        """
        for slot in slots:
            TAPE.add_root(_ADDRESS, self.address, slot)
        status = TAPE.plan(_ADDRESS, self.address)
        if status != at.DONE:
            stopped = int(self.header[at.STOPPED_AT])
            TAPE.clear(_ADDRESS, self.address, 0)
            raise explain(status, stopped)
        words = self.words
        words[at.STOPPED_AT] = -1
        words[at.CURRENT] = words[at.TOP]

    def adjoint(self, slot: int) -> np.ndarray:
        """The adjoint of a row as an array on the buffer."""
        if opcode_of(slot)[1]:
            return self.wide_adjoint(slot)
        place = int(self.offsets[slot]) >> 2
        return self.bar[place : place + 1].reshape(())

    def wide_adjoint(self, slot: int) -> np.ndarray:
        """The same for a row that has a record."""
        place, shape = self.offsets.item(slot) >> 2, shape_of(slot)
        size = math.prod(shape)
        if not 0 <= place < len(self.bar):
            return self.handed[slot] if slot in self.handed else self._in_the_place_of_a_leaf(slot).reshape(shape)
        if dtype_of(slot).itemsize == 8:
            return self.bar[place : place + size].reshape(shape)
        return self.bar[place : place + (size + 1) // 2].view(np.float32)[:size].reshape(shape)

    def _in_the_place_of_a_leaf(self, slot: int) -> np.ndarray:
        """The adjoint of a row that only passes elements on, or of the leaf that it passes them to."""
        for leaf in self.leaves():
            if slot in (leaf[at.LEAF_SLOT], leaf[at.LEAF_TENANT]):
                return self.leaf_adjoint(leaf[at.LEAF_SLOT])
        raise AssertionError("an adjoint outside of the buffer is that of a leaf, or of its tenant")

    def allocate(self) -> None:
        """Memory for the planned adjoints and for the objects that the pass will release."""
        header = self.words
        peak, objects = header[at.PEAK], header[at.SAVED_COUNT]
        if len(self.bar) < peak:
            self.bar = column_memory.allocate(max(peak, min(2 * len(self.bar), LARGEST_KEPT_BUFFER), 1024), np.float64)
            header[at.BAR], header[at.BAR_CAPACITY], header[at.BAR_OWNER] = self.bar.ctypes.data, len(self.bar), id(self.bar)
        if len(self.trash) < objects:
            self.trash = np.empty(2 * objects + 64, np.int64)
            header[at.TRASH], header[at.TRASH_CAPACITY] = self.trash.ctypes.data, len(self.trash)

    def aim(self, k: int, array: np.ndarray, mode: int) -> None:
        """Let the adjoint of the k-th leaf go to an array; a big one is computed there at once."""
        if mode == at.WRITE and array.size > at.LARGEST_BLOCK:
            TAPE.place_leaf(self.address, k, id(array))
        else:
            words = self.leaf_words
            words[at.LEAF_WORDS * k + at.LEAF_TARGET] = id(array)
            words[at.LEAF_WORDS * k + at.LEAF_MODE] = mode

    def place(self, k: int, array: np.ndarray) -> None:
        """The same for a new array, in the place of which a cotangent's may serve (`take`)."""
        self.aim(k, array, at.WRITE)
        self.settle_in(k, array)

    def settle_rooms(self, count: int) -> None:
        """The same for the arrays that compiled code has made for leaves; and what it has handed on is handed on by Python."""
        words = self.words
        words[at.TAKES] = 0
        if words[at.HANDED_COUNT]:
            for k in range(at.HANDED, at.HANDED + 2 * words[at.HANDED_COUNT], 2):
                self.handed[words[k]] = object_at(words[k + 1])
            TAPE.drop_handed(self.address)
        for k in range(count if words[at.AIMS_FIRST] else 0):
            room = self.leaf_words[at.LEAF_WORDS * k + at.LEAF_ROOM]
            if room:
                self.settle_in(k, object_at(room))

    def settle_in(self, k: int, array: np.ndarray) -> None:
        """Let a large array in which the adjoint of the k-th leaf stands give way to a cotangent's."""
        if array.size > at.LARGEST_BLOCK and array.dtype.itemsize == 8:
            words = self.leaf_words
            self.placed[words[at.LEAF_WORDS * k + at.LEAF_SLOT]] = k
            tenant = words[at.LEAF_WORDS * k + at.LEAF_TENANT]
            if tenant >= 0 and shape_of(tenant) == array.shape:
                self.placed[tenant] = k

    def take(self, slot: int, array: np.ndarray) -> bool:
        """Let a float64 array that nobody else has be the adjoint of a row; False if it has contributions already.

        That is for leaves with a place, and for large rows whose derivative is Python: what happens to others is compiled.
        """
        k = self.placed.get(slot)
        if not self.offsets.item(slot) & at.UNWRITTEN:
            return False
        if k is None:
            if array.size <= at.LARGEST_BLOCK or opcode_of(slot) != (at.HOST, True):
                return False
            self.handed[slot] = array
            self.offsets[slot] = 4 * ((array.__array_interface__["data"][0] - self.words[at.BAR]) // 8)
            return True
        self.taken[k] = array
        TAPE.place_leaf(self.address, k, id(array))
        if self.leaf_words[at.LEAF_WORDS * k + at.LEAF_ROOM]:
            self.leaf_words[at.LEAF_WORDS * k + at.LEAF_ROOM] = id(array)
        self.offsets[slot] -= at.UNWRITTEN
        return True

    def leaves(self) -> list[list[int]]:
        """Words of the leaves that are reached."""
        found: list[list[int]] = self.reached[: int(self.header[at.REACHED_COUNT])].tolist()
        return found

    def visits(self) -> Visits:
        """What this pass remembers."""
        if self.seen is None:
            self.seen = Visits(lambda slot: bool(self.offsets[slot] != at.UNSEEN))
        return self.seen

    def show(self, slot: int, captured: dict[int, np.ndarray]) -> None:
        """Take the adjoint of a row for those who want it."""
        adjoint = self.adjoint(slot)
        if self.marks is not None and slot < len(self.marks) and self.marks[slot] & at.REQUESTED:
            captured[slot] = adjoint.copy()
        if TAPE.columns["flags"][slot] & at.WATCHED and not self.ends_at(slot):
            self.shown.extend((t, adjoint.copy()) for t in watchers_of(slot))

    def is_wanted(self, argument: Argument) -> bool:
        """Whether this pass needs the adjoint of an argument."""
        return bool(TAPE.wants(_ADDRESS, self.address, argument.slot))

    def contribute(self, slot: int, cotangent: Tensor, shape: tuple[int, ...], name: str) -> None:
        """Add to the adjoint of a row.

        Raises
        ------
        RuntimeError
            If the shape is another one.
        """
        data = cotangent._data
        if type(data) is not float and data.dtype not in FLOATS:
            data = data.astype(np.float64)
        if np.shape(data) != shape or TAPE.add_to_adjoint(_ADDRESS, self.address, slot, id(data)) < 0:
            raise wrong_shape(name, data, shape)

    def leaf_adjoint(self, slot: int) -> np.ndarray:
        """The adjoint of a leaf, which may stand in an array of its own."""
        count = int(self.header[at.REACHED_COUNT])
        k = int(np.flatnonzero(self.reached[:count, at.LEAF_SLOT] == slot)[0])
        if self.reached[k, at.LEAF_MODE] == at.IN_PLACE:
            target: np.ndarray = object_at(int(self.reached[k, at.LEAF_TARGET]))
            return target
        return self.adjoint(slot)

    def abandon(self) -> bool:
        """Let rows move again though the pass is not over; whether it had kept them from it."""
        pinned = bool(self.words[at.PINNED])
        self.words[at.PINNED] = 0
        return pinned

    def finish(self) -> None:
        """Give big buffers back; then the memory is ready for another pass."""
        words = self.words
        self.targets.clear()
        self.placed.clear()
        self.taken.clear()
        self.handed.clear()
        self.shown.clear()
        if self.marks is not None:  # the common passes take it as it is
            self.marks, self.ends = None, False
            words[at.MARKS] = 0
        if words[at.BAR_CAPACITY] > LARGEST_KEPT_BUFFER:
            self.bar = np.empty(0)
            words[at.BAR_CAPACITY], words[at.BAR_OWNER] = 0, id(self.bar)
        # Filling it takes as long as a pass over its rows, so it is kept while there are as many.
        if words[at.OFFSET_CAPACITY] > LARGEST_KEPT_BUFFER and words[at.OFFSET_CAPACITY] > 4 * TAPE.rows:
            self.offsets = np.empty(0, np.int64)
            words[at.OFFSET_CAPACITY] = 0
        if not words[at.TRASH_COUNT]:
            self._rest()
            return
        # Another thread's pass may have just read where these objects are.
        TAPE.waiting.append(partial(self.settle))
        if len(TAPE.waiting) > MOST_WAITING:
            TAPE.count_pins()
        TAPE.release_waiting()


def wrong_shape(name: str, data: Any, shape: tuple[int, ...]) -> RuntimeError:
    """The error for a derivative that gives a cotangent of another shape."""
    return RuntimeError(
        f"Function {name} returned an invalid gradient: got shape {list(np.shape(data))} but expected "
        f"shape compatible with {list(shape)}"
    )


def sweep_at(address: int) -> Sweep:
    """The pass whose words are there."""
    return _by_address[address]


def borrow() -> Sweep:
    """Working memory that no other pass uses now."""
    try:
        state = _pool.pop()
    except IndexError:
        state = Sweep()
    state.reset()
    return state
