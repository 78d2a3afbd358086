"""Linear tapes: the derivative of recorded rows at one point as plain numbers, and the compiled sweeps over it.

The tape itself is not needed any more once a linear tape is written, so a product can be taken at any time and any number of times.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tapegrad.arrays.addresses import address_of
from tapegrad.arrays.memory_pool import working_empty
from tapegrad.autograd.decoded_rows import object_at, origin
from tapegrad.autograd.messages import saved_record_of
from tapegrad.autograd.sweep_memory import Sweep, borrow
from tapegrad.deferred import look_up
from tapegrad.engine import LANES
from tapegrad.engine import layout as at
from tapegrad.engine import linear_layout as lin
from tapegrad.linear.linear_entries import entry_of, load_needed, second_words
from tapegrad.tape.tape import TAPE, words_of
from tapegrad.tensors.grad_mode import with_recording
from tapegrad.tensors.tensor import Tensor, is_leaf, register_leaf

if TYPE_CHECKING:
    from tapegrad.linear.hosted_rows import HostedRow  # which tapes without rows of Python's need not

__all__ = ["LinearTape", "linear_tape"]

_ADDRESS = TAPE.address
MOST_PLACES = 2**31 - 1  # places are int32
Matrix = np.ndarray
ONE, SOME, MANY = LANES
# Of arrays this long on the average a few vectors take less time one by one than in a block of eight: three take 1.1 instead of
# 4.4 ms at 1e5 elements, 24 instead of 34 microseconds at 1e3.
# Where a block leaves the nearer caches that is so up to six: six take 0.90 to 0.97 of the time at 4.8e4 places, less where others
# have used the caches meanwhile, and five 3.1 instead of 7.1 ms at 1.3e6.
LONG_ROWS, FEW, MORE, LARGE = 64, 4, 6, 1 << 21
# Elements of inputs from which on rows of Python's, which a single product with a Hessian cannot walk through once, are better
# left to the recorded gradient: what a linear tape with second partials keeps of longer arrays leaves the caches.
LONG = 1 << 16
CACHED = 1 << 25  # bytes that sweeps work on up to which many lanes are faster than some; beyond, memory decides
POOLED = 1 << 24  # bytes of memory that one call needs up to which the pool keeps it for the next one
FLOAT64 = np.dtype(np.float64)


def linear_tape(
    leaves: Sequence[Tensor], outputs: Sequence[Tensor], second: bool = False, ends: bool = False, once: bool = False
) -> LinearTape | None:
    """The linear tape from leaves to outputs.

    Parameters
    ----------
    leaves, outputs : sequence of Tensor
    second : bool
        Whether second partials are wanted: of one output, or of what `weighted_results` makes of several.
    ends : bool
        Whether leaves may be results of operations, which count as independent of each other and of what they were made of.
    once : bool
        Whether one product with second partials is all that it is for.

    Returns
    -------
    LinearTape or None
        None if a row between them is one that the compiled sweeps cannot take, or a leaf comes twice or is a result of operations;
        or where another way to the one product is quicker.

    Raises
    ------
    RuntimeError
        If values that a derivative needs were released or overwritten.
    """
    if TAPE.anomalies or any(t._meta is not None and t._meta.left for t in leaves):
        return None  # anomalies are looked for row by row; a leaf that has left a row may have more than one
    if len(set(map(id, leaves))) < len(leaves) or not (ends or all(map(is_leaf, leaves))):
        return None  # every leaf has places of its own, and no row leads beyond them
    for t in (*leaves, *outputs):
        if t._row < 0:
            register_leaf(t)
    sizes = [_size(t) for t in leaves]
    tape = LinearTape(sum(sizes), second, once)
    if second and len(outputs) > 1:
        tape.spare = len(outputs), sum(map(_size, outputs))
    if not any(t._row for t in outputs):
        tape.outputs = [(-1, _size(t)) for t in outputs]
        tape.places = tape._words[lin.PLACES] = tape.inputs
        return tape
    TAPE.load()
    with TAPE.claim():
        inputs, tops = [origin(TAPE.slot(t._row)) for t in leaves], [TAPE.slot(t._row) if t._row else -1 for t in outputs]
        state = borrow()
        tracked = [slot for slot in tops if slot >= 0]
        state.request(inputs, max(tracked), ends)
        state.plan(tracked)
        try:
            done = tape.write(state, inputs, sizes)
            if done:
                tape.outputs = [(tape.place(slot), _size(t)) for slot, t in zip(tops, outputs, strict=True)]
        finally:
            TAPE.clear(_ADDRESS, state.address, int(state.header[at.LOW]))
        state.finish()
    tape.forget_rows()
    return tape if done else None


def _room(count: int) -> Matrix:
    """Memory of numbers. What one call alone needs, and most of which it never touches, would drive all else out of the pool."""
    return _pooled(count) if 8 * count <= POOLED else np.empty(count)


def _pooled(count: int) -> Matrix:
    return working_empty((count,))


def _laid_out(matrix: Matrix) -> tuple[int, int, int]:
    """Address of a matrix of numbers, and its strides in elements."""
    down, across = matrix.strides
    return address_of(matrix), down // 8, across // 8


def _size(t: Tensor) -> int:
    return 1 if type(t._data) is float else int(t._data.size)


class LinearTape:
    """Entries of a linear tape, and the products that they give.

    Attributes
    ----------
    inputs : int
        Number of elements of all leaves; they have the first places.
    places : int
        Number of all places.
    known : dict
        What is known of the structure, for whoever asks for patterns; that of all tapes on this memory.
    fingerprint : bytes or None
        That of the structure, once somebody has asked: weighing changes signs of zeros that it is made of.
    slots : ndarray of int or None
        While rows are observed, where those stood whose places are `slot_places`.
    outputs : list of (int, int)
        First place and number of elements of each output; place -1 for one that depends on no leaf.
    is_weighed : bool
        Whether second partials have adjoints in them.
    spare : (int, int)
        How many maps of one dimension, and factors of these, there is memory for besides.
    """

    def __init__(self, inputs: int, second: bool, once: bool = False) -> None:
        self.inputs, self.places, self.second, self._once = inputs, inputs, second, once
        self.outputs: list[tuple[int, int]] = []
        self.spare = 0, 0
        self.header = np.zeros(lin.LINEAR_WORDS, np.int64)
        self.address = address_of(self.header)
        self._words = words_of(self.header)
        self.memory: list[np.ndarray] = []
        self.hosts: dict[int, HostedRow] = {}
        self.known: dict[str, Any] = {}
        self.fingerprint: bytes | None = None
        self.slots: Matrix | None = None
        self.slot_places: Matrix | None = None
        self._row_places = np.empty(0, np.int64)
        self._low = 0
        self.is_weighed = False
        self._output_words: Matrix | None = None
        self._adjoints: Matrix | None = None  # of a pass for the gradient, until second partials are weighted with them

    def write(self, state: Sweep, slots: Sequence[int], sizes: Sequence[int]) -> bool:
        """Write the rows of a planned pass; False if there is one that cannot be."""
        header, planned = self._words, state.words
        if self.second:
            header[lin.WITH_SECOND] = lin.ANY_PRODUCT
            header[lin.SECOND_TABLE], header[lin.SECOND_SCALAR], header[lin.SECOND_BLOCK] = second_words()
        if entry_of("measure_linear")(_ADDRESS, state.address, self.address) or self.inputs + header[lin.PLACES] > MOST_PLACES:
            return False
        self._low, top, entries = planned[at.LOW], planned[at.TOP], header[lin.ENTRIES]
        self._row_places = np.empty(top + 1 - self._low, np.int64)
        self._row_places.fill(-1)
        place = 0
        for slot, size in zip(slots, sizes, strict=True):
            if slot >= self._low and state.offsets[slot] != at.UNSEEN:
                self._row_places[slot - self._low] = place
            place += size
        header[lin.PLACE_OF] = address_of(self._row_places) - 8 * self._low
        if self._once and not self._find_roles(state) and self.inputs > LONG:
            return False
        maps, factors = self.spare
        entries += maps
        self.memory = [
            np.empty(lin.ENTRY_BYTES * entries // 8 + 1, np.int64),
            np.empty(lin.CURVE_BYTES * entries // 8 + 1 if self.second else 1),
            np.empty(header[lin.PROGRAM_WORDS] + maps * (lin.MAP_DIMENSIONS + 3) + 1, np.int64),
            (_room if self._once else _pooled)(header[lin.FACTOR_COUNT] + factors + 1),
        ]
        for word, array in zip((lin.ENTRY, lin.CURVES, lin.PROGRAM, lin.FACTORS), self.memory, strict=True):
            header[word] = address_of(array)
        header[lin.PLACES] = self.inputs
        load_needed()
        entry_of("linearise")(_ADDRESS, state.address, self.address)
        self.places = header[lin.PLACES]
        return header[lin.WITH_SECOND] == lin.ONE_PRODUCT or self._add_hosts()

    def _find_roles(self, state: Sweep) -> bool:
        """Find what the one product needs of each row; False if it is not taken in one walk: rows are short, or Python's."""
        header = self._words
        if header[lin.PLACES] < LONG_ROWS * header[lin.ENTRIES]:
            return False
        roles = self._roles = np.zeros(len(self._row_places), np.int64)
        header[lin.ROLE] = address_of(roles) - 8 * self._low
        if entry_of("find_roles")(_ADDRESS, state.address, self.address):
            return False
        self._owners = np.empty(lin.OWNER_WORDS * (len(roles) + 1), np.int64)
        header[lin.OWNER] = address_of(self._owners)
        header[lin.WITH_SECOND] = lin.ONE_PRODUCT
        return True

    def _add_hosts(self) -> bool:
        """Keep what the rows need whose derivative is Python; False if one runs itself or lacks what is wanted."""
        entries = self.entries
        is_hosted = entries.view(np.int32)[:, 0] == lin.HOSTED
        # Their values are differentiated in `push`, which those of inference mode cannot be.
        return not np.count_nonzero(is_hosted) or with_recording(self._host, is_hosted.nonzero()[0].tolist(), entries)

    def _host(self, hosted: list[int], entries: Matrix) -> bool:
        for number in hosted:
            slot = entries.item(number, 1)
            record = saved_record_of(slot)
            if object_at(record.payload).runs_itself:
                return False
            made = look_up("linear.hosted_rows:HostedRow")(slot, record, self.place, linear_tape)
            if self.second and not made.has_curvature:
                return False
            self.hosts[number] = made
        return True

    @property
    def entries(self) -> Matrix:
        """Entries as words, of shape (entries, 4)."""
        if not self.memory:
            return np.empty((0, 4), np.int64)
        return self.memory[0][: lin.ENTRY_BYTES // 8 * self._words[lin.ENTRIES]].reshape(-1, lin.ENTRY_BYTES // 8)

    @property
    def programs(self) -> Matrix:
        """Words of all maps."""
        return self.memory[2][: self._words[lin.PROGRAM_WORDS]] if self.memory else np.empty(0, np.int64)

    @property
    def curves(self) -> Matrix:
        """Second partials of entries that are curved, of shape (entries, 3): of these only, and until `curve` is called."""
        return self.memory[1][: 3 * len(self.entries)].reshape(-1, 3) if self.memory else np.empty((0, 3))

    @property
    def factors(self) -> Matrix:
        """Factors of all maps that have one for each element."""
        return self.memory[3][: self._words[lin.FACTOR_COUNT]] if self.memory else np.empty(0)

    def place(self, slot: int) -> int:
        """First place of a row; -1 if it depends on no input."""
        number = slot - self._low
        return int(self._row_places[number]) if 0 <= number < len(self._row_places) else -1

    def forget_rows(self) -> None:
        """Drop what leads from rows to places; who observes rows has asked for it."""
        if TAPE.observers:
            own = np.flatnonzero(self._row_places >= 0)
            self.slots, self.slot_places = own + self._low, self._row_places[own]
        self._row_places = np.empty(0, np.int64)

    def push(self, tangents: Matrix) -> Matrix:
        """Products of the Jacobian with the columns of a matrix of shape (inputs, k)."""

        def sweep(lanes: int, columns: Matrix, out: Matrix) -> None:
            dots = self._fresh(lanes)
            if self.hosts:
                look_up("linear.hosted_sweeps:push_between")(self, lanes, dots, columns, out)
            else:
                run = entry_of(f"push_columns_{lanes}")
                run(self.address, address_of(dots), *self._ends(), *_laid_out(columns), *_laid_out(out), columns.shape[1])

        return self._in_blocks(tangents, self.inputs, sum(size for _, size in self.outputs), sweep)

    def pull(self, cotangents: Matrix) -> Matrix:
        """Products of the transposed Jacobian with the columns of a matrix of shape (results, k)."""

        def sweep(lanes: int, columns: Matrix, out: Matrix) -> None:
            bars = self._fresh(lanes)
            if self.hosts:
                look_up("linear.hosted_sweeps:pull_between")(self, lanes, bars, columns, out)
            else:
                run = entry_of(f"pull_columns_{lanes}")
                run(self.address, address_of(bars), *self._ends(), *_laid_out(columns), *_laid_out(out), columns.shape[1])
            if self.second and not self.is_weighed and cotangents.shape == (1, 1) and cotangents[0, 0] == 1.0:
                self._adjoints = bars

        return self._in_blocks(cotangents, sum(size for _, size in self.outputs), self.inputs, sweep)

    def curve(self, tangents: Matrix) -> Matrix:
        """Products of the Hessian with the columns of a matrix of shape (inputs, k)."""
        if self._words[lin.WITH_SECOND] == lin.ONE_PRODUCT:
            return self._curve_once(tangents)
        self.weigh()

        def sweep(lanes: int, columns: Matrix, out: Matrix) -> None:
            dots, bars = self._fresh(lanes), self._fresh(lanes)
            if self.hosts:
                look_up("linear.hosted_sweeps:curve_between")(self, lanes, dots, bars, columns, out)
            else:
                run, both = entry_of(f"curve_columns_{lanes}"), (address_of(dots), address_of(bars))
                run(self.address, *both, self.inputs, *_laid_out(columns), *_laid_out(out), columns.shape[1])

        return self._in_blocks(tangents, self.inputs, self.inputs, sweep)

    def _curve_once(self, tangents: Matrix) -> Matrix:
        """Column by column, of which there is one as a rule."""
        ((place, _),) = self.outputs
        products = np.zeros(tangents.shape[::-1]) if place < 0 else np.empty(tangents.shape[::-1])
        dots, bars, changes = (_room(self.places) for _ in range(3))
        for column, product in zip(tangents.T if place >= 0 else (), products, strict=False):
            direction = np.ascontiguousarray(column, np.float64)
            entry_of("curve_once")(self.address, *map(address_of, (dots, direction, bars, changes, product)), place)
        return products.T

    def weigh(self) -> None:
        """Multiply the adjoints of the one output into second partials, unless that was done."""
        if self.is_weighed:
            return
        if self._adjoints is None:
            self.pull(np.ones((1, 1)))
        bars, self._adjoints = self._adjoints, None
        assert bars is not None  # `pull` kept them
        for row in self.hosts.values():
            row.weigh(bars)
        weigh, address, place = entry_of("weigh"), self.address, address_of(bars)
        # It multiplies in place, so it must not happen twice. No interrupt comes between the next step and the call, and
        # without memory for its arguments the call does not begin.
        self.is_weighed = True
        try:
            weigh(address, place)
        except MemoryError:
            self.is_weighed = False
            raise

    def _fresh(self, lanes: int) -> Matrix:
        return working_empty((self.places, lanes))

    def _ends(self) -> tuple[int, int, int]:
        """Number of inputs, and where the outputs are and how many, in the form of the compiled sweeps."""
        if self._output_words is None:
            self._output_words = np.array(self.outputs, np.int64)
        return self.inputs, address_of(self._output_words), len(self.outputs)

    def _in_blocks(self, columns: Matrix, needed: int, rows: int, sweep: Callable[[int, Matrix, Matrix], None]) -> Matrix:
        """Sweep over all columns, several lanes at once."""
        assert self._words[lin.WITH_SECOND] != lin.ONE_PRODUCT, "this tape has what one product needs, and no more"
        given, count = columns.shape
        if given != needed:
            raise ValueError(f"products with vectors of {needed} elements, but these have {given}")
        if columns.dtype != FLOAT64 or not columns.flags.aligned:
            columns = np.array(columns, np.float64)
        if count == ONE:
            results = np.empty((rows, ONE))
            sweep(ONE, columns, results)
            return results
        many = MANY if 8 * MANY * self.places <= CACHED else SOME
        few = MORE if 8 * SOME * self.places > LARGE else FEW
        single = few if self.places - self.inputs > LONG_ROWS * self._words[lin.ENTRIES] else 1
        # What comes column by column is written so.
        results = working_empty((count, rows)).T if 1 < count <= single else working_empty((rows, count))
        start = 0
        while start < count:
            rest = count - start
            lanes = ONE if rest <= single else many if rest > MANY // 2 else SOME
            stop = count if lanes == ONE and not self.hosts else min(start + lanes, count)
            sweep(lanes, columns[:, start:stop], results[:, start:stop])
            start = stop
        return results
