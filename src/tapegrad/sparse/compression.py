"""What depends on a pattern alone: colours, the vectors of the products, and where each entry stands in what the products give."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from tapegrad.arrays.addresses import address_of
from tapegrad.arrays.memory_pool import working_empty
from tapegrad.named_tuples import Named
from tapegrad.sparse.colouring import acyclic_colours, column_colours, star_colours
from tapegrad.sparse.sparsity import Sparsity
from tapegrad.tape.array_kernels import ARRAY_KERNELS

__all__ = ["Bidirectional", "Compression", "Info", "Substitution", "of_hessian", "of_jacobian"]

Matrix = np.ndarray[Any, Any]
BAND = 256  # products that stand in memory at once
GAIN = 0.75  # part of the colours of one direction beyond which two directions are not worth two sets of products


class Info(Named):
    """How a sparse derivative is computed.

    Attributes
    ----------
    method : str
        ``"forward"``, ``"reverse"`` or ``"bidirectional"`` (both) products for a Jacobian, ``"star"`` or ``"acyclic"`` ones for a
        Hessian; or one pass over the rows of a compiled function, ``"rows"`` (of the Jacobian, each by itself) or ``"edges"``
        (edge-pushing).
    colours : int
        How many products that takes; zero for one pass.
    order : str
        Of the colouring; of forward products first where there are two.
    entries : int
        Of the pattern.
    shape : tuple of int
    """

    __slots__ = ()
    method: str
    colours: int
    order: str
    entries: int
    shape: tuple[int, int]


class Compression:
    """Compressed products for one pattern, and the way back to its entries.

    Parameters
    ----------
    pattern : Sparsity
    info : Info
    colours : ndarray of int
        One for each element of the vectors of products.
    rows : ndarray of int
        For each entry, in which row of the products it stands.
    columns : ndarray of int
        And in which column.
    """

    def __init__(self, pattern: Sparsity, info: Info, colours: Matrix, rows: Matrix, columns: Matrix) -> None:
        self.pattern, self.info = pattern, info
        self.colours, self._rows, self._columns = colours, rows, columns
        self._bands: list[tuple[Matrix, Matrix | slice, Matrix]] | None = None
        self._by_columns: Matrix | None = None
        self._size = pattern.shape[0 if info.method == "forward" else 1] * info.colours

    @functools.cached_property
    def directions(self) -> list[Matrix]:
        """The vectors of all products."""
        return list((self.colours == np.arange(self.info.colours)[:, None]).astype(np.float64))

    def entries(self, product: Callable[[Matrix], Matrix]) -> Matrix:
        """Values of all entries from products with the columns of matrices."""
        if self._bands is None:
            self._bands = [self._band(start) for start in range(0, self.info.colours, BAND)]
        if len(self._bands) == 1:
            ((seeds, _, places),) = self._bands
            products = product(seeds)
            if not products.flags.c_contiguous:
                if seeds.flags.c_contiguous:  # vectors go in one by one, too
                    self._bands = [(np.asfortranarray(seeds), slice(None), places)]
                products, places = products.T, self._transposed(places.dtype, len(products))
            return self._picked(products, places)
        found = np.zeros(self.info.entries)
        for seeds, which, places in self._bands:
            found[which] = product(seeds).reshape(-1).take(places)
        return found

    def _picked(self, products: Matrix, places: Matrix) -> Matrix:
        """What stands at places in contiguous products."""
        if products.size != self._size:
            raise RuntimeError("products of another shape than the pattern's; please report this")
        if places.dtype != np.int32:
            return products.reshape(-1).take(places)
        found = working_empty(places.shape)
        ARRAY_KERNELS.pick_numbers(address_of(products), address_of(places), places.size, address_of(found))
        return found

    def _transposed(self, dtype: Any, rows: int) -> Matrix:
        """Places in products that stand column by column."""
        if self._by_columns is None:
            self._by_columns = self._columns.astype(dtype) * dtype.type(rows) + self._rows.astype(dtype)
        return self._by_columns

    def _band(self, start: int) -> tuple[Matrix, Matrix | slice, Matrix]:
        """Vectors of products, the entries that these give, and where."""
        count = min(BAND, self.info.colours - start)
        seeds = np.zeros((len(self.colours), count))
        own = np.flatnonzero((self.colours >= start) & (self.colours < start + count))
        seeds[own, self.colours[own] - start] = 1.0
        if count == self.info.colours:
            kind: Any = np.int32 if self._size < 2**31 else np.int64
            return seeds, slice(None), self._rows.astype(kind) * kind(count) + self._columns.astype(kind)
        which = np.flatnonzero((self._columns >= start) & (self._columns < start + count))
        return seeds, which, self._rows[which].astype(np.int64) * count + (self._columns[which] - start)


def of_jacobian(pattern: Sparsity, mode: str = "auto", order: str = "auto") -> Compression | Bidirectional:
    """Compression of a Jacobian's pattern: by columns (forward products) or rows (reverse), whichever takes fewer colours.

    Both are taken where a few long rows or columns keep either from having few colours.
    """
    at_least = [int(lengths.max(initial=0)) for lengths in _lengths(pattern)]
    forward = reverse = None
    is_free = mode == "auto"
    first = mode if not is_free else "forward" if at_least[0] <= at_least[1] else "reverse"
    if first == "forward":
        forward = _forward(pattern, order)
        if is_free and at_least[1] < forward.info.colours:
            reverse = _reverse(pattern, order)
    else:
        reverse = _reverse(pattern, order)
        if is_free and at_least[0] <= reverse.info.colours:
            forward = _forward(pattern, order)
    one = min((c for c in (forward, reverse) if c is not None), key=lambda c: c.info.colours)
    return (_in_both(pattern, one.info.colours, order) if is_free else None) or one


def _lengths(pattern: Sparsity) -> tuple[Matrix, Matrix]:
    """How many entries rows and columns have."""
    return np.diff(pattern.indptr), np.bincount(pattern.indices, minlength=pattern.shape[1])


def _forward(pattern: Sparsity, order: str) -> Compression:
    colours, count, name = column_colours(pattern, order)
    # What has no entry here is in no vector: it may have entries of which the other direction takes care.
    colours = np.where(_lengths(pattern)[1] > 0, colours, -1)
    info = Info("forward", count, name, pattern.nnz, pattern.shape)
    return Compression(pattern, info, colours, pattern.rows(), colours[pattern.indices])


def _reverse(pattern: Sparsity, order: str) -> Compression:
    colours, count, name = column_colours(pattern.transposed(), order)
    colours = np.where(np.diff(pattern.indptr) > 0, colours, -1)
    info = Info("reverse", count, name, pattern.nnz, pattern.shape)
    return Compression(pattern, info, colours, pattern.indices, colours[pattern.rows()])


class Bidirectional:
    """Compressed products in both directions, of which each gives its part of the entries [1]_.

    References
    ----------
    .. [1] T. F. Coleman, A. Verma, "The efficient computation of sparse Jacobian matrices using automatic differentiation", SIAM
       Journal on Scientific Computing 19(4), 1998.
    """

    def __init__(self, pattern: Sparsity, is_reverse: Matrix, order: str) -> None:
        self.pattern, self._is_reverse = pattern, is_reverse
        self._forward, self._reverse = (_forward(pattern.part(~is_reverse), order), _reverse(pattern.part(is_reverse), order))
        self.colours, self.row_colours = self._forward.colours, self._reverse.colours
        one, other = self._forward.info, self._reverse.info
        name = one.order if one.order == other.order else f"{one.order}, {other.order}"
        self.info = Info("bidirectional", one.colours + other.colours, name, pattern.nnz, pattern.shape)

    def entries_from(self, push: Callable[[Matrix], Matrix], pull: Callable[[Matrix], Matrix]) -> Matrix:
        """Values of all entries from forward and from reverse products with the columns of matrices."""
        found = np.empty(self.info.entries)
        found[~self._is_reverse] = self._forward.entries(push)
        found[self._is_reverse] = self._reverse.entries(pull)
        return found


def _in_both(pattern: Sparsity, colours: int, order: str) -> Bidirectional | None:
    """Long rows by reverse products and the others by forward ones, or long columns forwards and the others in reverse.

    None if that takes more than `GAIN` of the colours that one direction takes.
    """
    rows, lengths, best = pattern.rows(), _lengths(pattern), None
    limit = GAIN * colours
    for side, (own, across) in enumerate(((rows, pattern.indices), (pattern.indices, rows))):
        longest = colours // 2
        while longest >= 1:
            is_long = lengths[side] > longest
            entries, of_short = int(lengths[side][is_long].sum()), int(lengths[side][~is_long].max(initial=0))
            # Long rows have entries in some column as often as in columns on the average, at least.
            if 0 < entries < pattern.nnz and of_short + entries / max(1, lengths[1 - side].size) <= limit:
                of_long = is_long[own]
                if of_short + int(np.bincount(across[of_long]).max(initial=0)) <= limit:
                    made = Bidirectional(pattern, of_long if side == 0 else ~of_long, order)
                    if made.info.colours <= limit:
                        best, limit = made, made.info.colours - 1
            longest //= 2
    return best


def of_hessian(pattern: Sparsity, order: str = "auto") -> Compression:
    """Compression of a symmetric pattern by a star colouring."""
    n = pattern.shape[0]
    colours, count, name = star_colours(pattern, order)
    places, work = np.empty(pattern.nnz, np.int64), np.full(3 * count + 3, -1, np.int32)
    ends, items = pattern.indptr.astype(np.int64), pattern.indices
    arrays = (ends, items, n, colours, count, places, work)
    wrong = ARRAY_KERNELS.star_places(*(a if isinstance(a, int) else a.ctypes.data for a in arrays)) if pattern.nnz else 0
    if wrong:
        raise RuntimeError("a colouring does not give every entry of the Hessian's pattern; please report this")
    # An entry and its mirror image are read from one place: they are equal to the bit.
    places = np.where(pattern.rows() > pattern.indices, places[pattern.by_columns()], places)
    info = Info("star", count, name, pattern.nnz, (n, n))
    return Compression(pattern, info, colours, places // max(count, 1), places % max(count, 1))


class Substitution:
    """Products by an acyclic colouring of a symmetric pattern, of which entries are found one after the other.

    An entry has the rounding of those before it in its tree, so it is taken on request only.
    """

    def __init__(self, pattern: Sparsity, order: str) -> None:
        n = pattern.shape[0]
        colours, count, name = acyclic_colours(pattern, order)
        self.pattern, self.colours = pattern, colours
        self.info = Info("acyclic", count, name, pattern.nnz, (n, n))
        ends, items = pattern.indptr.astype(np.int64), pattern.indices
        self._mirror = pattern.by_columns().astype(np.int64)
        rows = pattern.rows().astype(np.int64)
        self._diagonal = np.flatnonzero(rows == items)
        self._own = rows[self._diagonal] * count + colours[rows[self._diagonal]]
        self._sources, self._targets = np.empty(pattern.nnz + 1, np.int32), np.empty(pattern.nnz + 1, np.int32)
        self._entries, work, where = (
            np.empty(pattern.nnz + 1, np.int64),
            np.zeros(3 * n * count + 1, np.int32),
            np.zeros(n * count + 1, np.int64),
        )
        arrays = (ends, items, self._mirror, n, colours, count, self._sources, self._targets, self._entries, work, where)
        self._steps = ARRAY_KERNELS.order_substitution(*(a if isinstance(a, int) else a.ctypes.data for a in arrays))
        if 2 * self._steps + len(self._diagonal) != pattern.nnz:
            raise RuntimeError("a colouring does not give every entry of the Hessian's pattern; please report this")
        self._entries = self._entries[: self._steps]

    def entries(self, product: Callable[[Matrix], Matrix]) -> Matrix:
        """Values of all entries from products with the columns of a matrix."""
        count = self.info.colours
        seeds = np.zeros((len(self.colours), count))
        seeds[np.arange(len(self.colours)), self.colours] = 1.0
        products = np.array(product(seeds), order="C")
        found, values = np.empty(self.info.entries), np.empty(self._steps)
        found[self._diagonal] = products.reshape(-1)[self._own]
        arrays = (products, self._sources, self._targets, self._steps, values)
        ARRAY_KERNELS.substitute_entries(*(a if isinstance(a, int) else a.ctypes.data for a in arrays))
        found[self._entries] = values
        found[self._mirror[self._entries]] = values
        return found
