"""The memory of the tape's columns: how it grows, and how much it is.

New memory comes first, so that running out of it leaves everything as it was. One column after the other is copied and swapped
within a compiled call, so rows that other threads or destructors record meanwhile are in whichever memory is current; the limit is
raised last.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tapegrad.engine import layout as at
from tapegrad.tape.locks import changing as _changing

__all__ = ["MAXIMUM_ROWS", "ROW_COLUMNS", "Columns", "allocate"]

MAXIMUM_ROWS = 2**31 - 1024  # references are int32

if TYPE_CHECKING:
    from tapegrad.tape.entry_types import Entries
else:
    Entries = object  # entries are attributes, and no methods: a look-up less for every row

# Column: header word of its address, dtype.
ROW_COLUMNS = {
    "opcode": (at.OPCODE, np.uint16),
    "flags": (at.FLAGS, np.uint8),
    "held": (at.HELD, np.int32),
    "first": (at.FIRST, np.int32),
    "second": (at.SECOND, np.int32),
    "value": (at.VALUE, np.float64),
}


def allocate(length: int, dtype: Any) -> np.ndarray:
    """Memory of a column; the one place where the tape asks for memory."""
    return np.empty(length, dtype)


def _padded(length: int) -> int:
    # Capacities that are powers of two put the same row of every column into the same cache set, which made recording
    # three times slower at 216 MB; an odd number of cache lines keeps them apart.
    return length + 8 * 67


class Columns(Entries):
    """Columns of rows, of records, of constants and of handles.

    Attributes
    ----------
    columns : dict of str to ndarray
    header : ndarray
        What compiled code knows of the tape.
    address : int
        Where the header is.
    versions : dict
        Owner of written memory: its version counter, for messages.
    """

    __slots__ = ("address", "columns", "header", "row_limit", "versions")
    address: int
    columns: dict[str, np.ndarray]
    header: np.ndarray
    row_limit: int
    versions: dict[int, Any]

    @property
    def rows(self) -> int:
        """Number of rows in the columns now."""
        return int(self.header[at.ROWS])

    def _move(self, entry: str, name: str, grown: np.ndarray, *words: int) -> None:
        """Let the engine use a larger array as a column."""
        before = self.columns.get(name)  # its memory is read until the entry returns
        status = getattr(self, entry)(self.address, id(self.columns), id(name), id(grown), *words)
        del before
        if status < 0:
            raise MemoryError(f"no memory is left for the tape's column {name!r}; nothing recorded is lost")

    def _grow_rows(self, capacity: int) -> None:
        grown = {name: allocate(_padded(capacity), dtype) for name, (_, dtype) in ROW_COLUMNS.items()}
        if capacity <= self.header[at.CAPACITY]:
            return  # a destructor that ran meanwhile was first
        last = [*ROW_COLUMNS][-1]
        for name, (word, dtype) in ROW_COLUMNS.items():
            size = np.dtype(dtype).itemsize
            self._move("move_column", name, grown[name], word, size, at.ROWS, 0, at.CAPACITY, capacity, name is last)
        self.header[at.LIMIT] = min(int(self.header[at.CAPACITY]), self.row_limit)

    def _grow_side(self, words: int) -> None:
        grown = allocate(_padded(words), np.int64)
        if words > self.header[at.SIDE_CAPACITY]:
            self._move("move_column", "side", grown, at.SIDE, 8, at.SIDE_ROWS, 0, at.SIDE_CAPACITY, words, True)

    def _grow_constants(self, capacity: int) -> None:
        grown = allocate(_padded(capacity), np.float64)
        grown[0] = 0.0  # padding: what an absent operand reads
        if capacity > self.header[at.CONSTANT_CAPACITY]:
            self._move("move_column", "constant", grown, at.CONSTANT, 8, at.CONSTANTS, 8, at.CONSTANT_CAPACITY, capacity, True)

    def _grow_handles(self, name: str, word: int, capacity: int) -> None:
        before = int(self.header[word + 1])
        grown = allocate(_padded(capacity), np.int32)
        if capacity > self.header[word + 1] == before:
            self._move("move_handles", name, grown, word, before, capacity)

    def _free_handles_are_few(self) -> bool:
        handles = self.columns["handle"][: int(self.header[at.HANDLE_CAPACITY])]
        return bool(4 * np.count_nonzero(handles < 0) < len(handles))

    def make_room_for_written(self, more: int) -> None:
        """Let the table of written arrays take `more` entries; those older than every record cannot matter any more."""
        with _changing:
            table = self.columns["written"]
            living = int(np.count_nonzero((table[:, 0] != 0) & (table[:, 1] >= self._oldest_serial())))
            size = len(table)
            while size < 4 * (living + more) + 256:
                size *= 2
            fresh = np.zeros((size, 2), np.int64)
            self._move("move_written", "written", fresh, size, self._oldest_serial())
            owners = set(self.columns["written"][:, 0].tolist())
            self.versions = {owner: version for owner, version in self.versions.copy().items() if owner in owners}

    def _oldest_serial(self) -> int:
        side = self.columns["side"]
        return int(side[at.SERIAL]) if self.header[at.SIDE_ROWS] else int(self.header[at.CLOCK]) + 1

    def memory(self) -> dict[str, int]:
        """What the tape holds.

        Returns
        -------
        dict
            ``rows``; ``row_bytes`` (bytes a row takes in the columns); ``used_bytes`` (of the columns, in use: rows, records,
            constants and handles); ``column_bytes`` (capacity of all columns);
            ``saved_bytes`` (arrays that rows keep alive, counted once a use).
        """
        return {
            "rows": self.rows,
            "row_bytes": sum(np.dtype(dtype).itemsize for _, dtype in ROW_COLUMNS.values()),
            "used_bytes": self._used_bytes(),
            "column_bytes": sum(column.nbytes for column in self.columns.values()),
            "saved_bytes": int(self.header[at.SAVED_BYTES]),
        }

    def _used_bytes(self) -> int:
        header = self.header
        rows = self.rows * sum(np.dtype(dtype).itemsize for _, dtype in ROW_COLUMNS.values())
        handles = self.columns["handle"][: int(header[at.HANDLE_CAPACITY])] if "handle" in self.columns else np.empty(0)
        return rows + 8 * int(header[at.SIDE_ROWS] + header[at.CONSTANTS]) + 4 * int(np.count_nonzero(handles >= 0))
