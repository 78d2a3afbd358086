"""What depends on a pattern alone: colours, the vectors of the products, and where each entry stands in what the products give."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from tapegrad.sparse.colouring import column_colours, star_colours
from tapegrad.tape.array_kernels import ARRAY_KERNELS

__all__ = ["Compression", "Info", "of_hessian", "of_jacobian"]

Matrix = np.ndarray[Any, Any]
BAND = 256  # products that stand in memory at once


@dataclass(frozen=True)
class Info:
    """How a sparse derivative is computed.

    Attributes
    ----------
    method : str
        ``"forward"`` or ``"reverse"`` products for a Jacobian, ``"star"`` for a Hessian.
    colours : int
        How many products that takes.
    order : str
        Of the colouring.
    entries : int
        Of the pattern.
    shape : tuple of int
    """

    method: str
    colours: int
    order: str
    entries: int
    shape: tuple[int, int]


class Compression:
    """Compressed products for one pattern, and the way back to its entries.

    Parameters
    ----------
    pattern : csr_array
        With sorted indices, each once.
    info : Info
    colours : ndarray of int
        One for each element of the vectors of products.
    rows : ndarray of int
        For each entry, in which row of the products it stands.
    columns : ndarray of int
        And in which column.
    """

    def __init__(self, pattern: Any, info: Info, colours: Matrix, rows: Matrix, columns: Matrix) -> None:
        self.pattern, self.info = pattern, info
        self.colours, self._rows, self._columns = colours, rows, columns
        self._bands: list[tuple[Matrix, Matrix | slice, Matrix]] | None = None

    def entries(self, product: Callable[[Matrix], Matrix]) -> Matrix:
        """Values of all entries from products with the columns of matrices."""
        if self._bands is None:
            self._bands = [self._band(start) for start in range(0, self.info.colours, BAND)]
        if len(self._bands) == 1:
            ((seeds, _, places),) = self._bands
            return product(seeds).reshape(-1).take(places)
        found = np.zeros(self.info.entries)
        for seeds, which, places in self._bands:
            found[which] = product(seeds).reshape(-1).take(places)
        return found

    def _band(self, start: int) -> tuple[Matrix, Matrix | slice, Matrix]:
        """Vectors of products, the entries that these give, and where."""
        count = min(BAND, self.info.colours - start)
        seeds = np.zeros((len(self.colours), count))
        own = np.flatnonzero((self.colours >= start) & (self.colours < start + count))
        seeds[own, self.colours[own] - start] = 1.0
        if count == self.info.colours:
            return seeds, slice(None), self._rows.astype(np.int64) * count + self._columns
        which = np.flatnonzero((self._columns >= start) & (self._columns < start + count))
        return seeds, which, self._rows[which].astype(np.int64) * count + (self._columns[which] - start)


def _rows_of(pattern: Any) -> Matrix:
    return np.repeat(np.arange(pattern.shape[0], dtype=np.int64), np.diff(pattern.indptr))


def of_jacobian(pattern: Any, mode: str = "auto", order: str = "auto") -> Compression:
    """Compression of a Jacobian's pattern: by columns (forward products) or rows (reverse), whichever takes fewer colours."""
    m, n = pattern.shape
    at_least = [int(np.diff(side.indptr).max(initial=0)) for side in (pattern, pattern.tocsc())]
    forward = reverse = None
    first = mode if mode != "auto" else "forward" if at_least[0] <= at_least[1] else "reverse"
    if first == "forward":
        forward = column_colours(pattern, order)
        if mode == "auto" and at_least[1] < forward[1]:
            reverse = column_colours(pattern.T.tocsr(), order)
    else:
        reverse = column_colours(pattern.T.tocsr(), order)
        if mode == "auto" and at_least[0] <= reverse[1]:
            forward = column_colours(pattern, order)
    if reverse is None or (forward is not None and forward[1] <= reverse[1]):
        assert forward is not None
        colours, count, name = forward
        info = Info("forward", count, name, pattern.nnz, (m, n))
        return Compression(pattern, info, colours, _rows_of(pattern), colours[pattern.indices])
    colours, count, name = reverse
    info = Info("reverse", count, name, pattern.nnz, (m, n))
    return Compression(pattern, info, colours, pattern.indices, colours[_rows_of(pattern)])


def of_hessian(pattern: Any, order: str = "auto") -> Compression:
    """Compression of a symmetric pattern by a star colouring."""
    n = pattern.shape[0]
    colours, count, name = star_colours(pattern, order)
    places, work = np.empty(pattern.nnz, np.int64), np.full(3 * count + 3, -1, np.int32)
    ends, items = pattern.indptr.astype(np.int64), pattern.indices.astype(np.int32)
    arrays = (ends, items, n, colours, count, places, work)
    wrong = ARRAY_KERNELS.star_places(*(a if isinstance(a, int) else a.ctypes.data for a in arrays)) if pattern.nnz else 0
    if wrong:
        raise RuntimeError("a colouring does not give every entry of the Hessian's pattern; please report this")
    rows = _rows_of(pattern)
    # An entry and its mirror image are read from one place: they are equal to the bit.
    mirror = _mirrored(pattern)
    places = np.where(rows > pattern.indices, places[mirror], places)
    info = Info("star", count, name, pattern.nnz, (n, n))
    return Compression(pattern, info, colours, places // max(count, 1), places % max(count, 1))


def _mirrored(pattern: Any) -> Matrix:
    """For each entry of a symmetric pattern the number of its mirror image."""
    from scipy.sparse import csr_array

    numbers = csr_array((np.arange(pattern.nnz), pattern.indices, pattern.indptr), shape=pattern.shape)
    found: Matrix = numbers.T.tocsr().data
    return found
