"""Where a matrix has entries: index arrays row after row, without SciPy, whose import takes longer than a small problem."""

from __future__ import annotations

from typing import Any

import numpy as np

from tapegrad.tape.array_kernels import ARRAY_KERNELS

__all__ = ["Sparsity"]

Ints = np.ndarray[Any, np.dtype[np.int32]]
Words = np.ndarray[Any, np.dtype[np.int64]]
Vector = np.ndarray[Any, Any]


class Sparsity:
    """A pattern: columns of entries row after row, ascending, each once.

    Parameters
    ----------
    indptr : ndarray of int, shape (rows + 1,)
        Where the entries of each row end, with a zero in front.
    indices : ndarray of int, shape (nnz,)
        Columns.
    shape : tuple of int
    """

    __slots__ = ("indices", "indptr", "shape")

    def __init__(self, indptr: Vector, indices: Vector, shape: tuple[int, int]) -> None:
        self.indptr: Ints = np.ascontiguousarray(indptr, np.int32)
        self.indices: Ints = np.ascontiguousarray(indices, np.int32)
        self.shape = shape

    @classmethod
    def from_rows(cls, ends: Vector, columns: Vector, shape: tuple[int, int]) -> Sparsity:
        """That of rows whose entries are there once each, in any order."""
        made = cls(ends, columns, shape)
        ascends, starts = made.indices[1:] > made.indices[:-1], made.indptr[1:-1]
        ascends[starts[(starts > 0) & (starts < made.nnz)] - 1] = True
        return made if ascends.all() else made.transposed().transposed()

    @classmethod
    def from_pairs(cls, rows: Vector, columns: Vector, shape: tuple[int, int]) -> Sparsity:
        """That of entries in any order, which may come more than once."""
        rows, columns = np.ascontiguousarray(rows, np.int32), np.ascontiguousarray(columns, np.int32)
        ends, order = _ordered(rows, shape[0], _ordered(columns, shape[1])[1])
        rows, columns = rows[order], columns[order]
        is_new = np.ones(len(rows), bool)
        is_new[1:] = (rows[1:] != rows[:-1]) | (columns[1:] != columns[:-1])
        return cls(ends, columns, shape) if is_new.all() else cls(_ends_of(is_new, ends), columns[is_new], shape)

    @classmethod
    def from_matrix(cls, matrix: Any) -> Sparsity:
        """That of a csr_array, whatever its numbers are."""
        return cls.from_pairs(_rows(matrix.indptr), matrix.indices, matrix.shape)

    @classmethod
    def dense(cls, shape: tuple[int, int]) -> Sparsity:
        """That of a matrix full of entries."""
        rows, columns = shape
        return cls(columns * np.arange(rows + 1), np.tile(np.arange(columns, dtype=np.int32), rows), shape)

    @property
    def nnz(self) -> int:
        """Number of entries."""
        return len(self.indices)

    def rows(self) -> Ints:
        """The row of each entry."""
        return _rows(self.indptr)

    def by_columns(self) -> Ints:
        """Numbers of entries in the order of the transpose; of each one's mirror image, if the pattern is symmetric."""
        return _ordered(self.indices, self.shape[1])[1]

    def transposed(self) -> Sparsity:
        """That of the transpose."""
        rows, columns = self.shape
        ends, order = _ordered(self.indices, columns)
        return Sparsity(ends, self.rows()[order], (columns, rows))

    def is_symmetric(self) -> bool:
        """Whether each entry has a mirror image."""
        other = self.transposed()
        return np.array_equal(other.indices, self.indices) and np.array_equal(other.indptr, self.indptr)

    def part(self, chosen: Vector) -> Sparsity:
        """That of some of the entries, given as truth values."""
        return Sparsity(_ends_of(chosen, self.indptr), self.indices[chosen], self.shape)

    def united(self, other: Sparsity) -> Sparsity:
        """That of the entries of two matrices of one shape."""
        rows, columns = np.concatenate([self.rows(), other.rows()]), np.concatenate([self.indices, other.indices])
        return Sparsity.from_pairs(rows, columns, self.shape)

    def to_scipy(self) -> Any:
        """A csr_array of truth values, of the caller's own."""
        from scipy.sparse import csr_array

        made = csr_array((np.ones(self.nnz, bool), self.indices.copy(), self.indptr.copy()), shape=self.shape)
        made.has_canonical_format = True
        return made


def _rows(ends: Vector) -> Ints:
    found: Ints = np.repeat(np.arange(len(ends) - 1, dtype=np.int32), np.diff(ends))
    return found


def _ordered(keys: Ints, lines: int, before: Ints | None = None) -> tuple[Words, Ints]:
    """Where the entries of each key end, with a zero in front, and numbers of entries by ascending keys, else as before."""
    before = np.arange(len(keys), dtype=np.int32) if before is None else before
    ends, order = np.zeros(lines + 2, np.int64), np.empty(len(keys), np.int32)
    arrays = (keys, before, len(keys), lines, ends, order)
    ARRAY_KERNELS.order_entries(*(a if isinstance(a, int) else a.ctypes.data for a in arrays))
    return ends[:-1], order


def _ends_of(chosen: Vector, ends: Vector) -> Vector:
    """Where the rows of chosen entries end."""
    found: Vector = np.concatenate([np.zeros(1, np.int64), np.cumsum(chosen)])[ends]
    return found
