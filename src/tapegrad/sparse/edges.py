"""Sparse derivatives by one pass over rows in the place of products, and when that is quicker."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from tapegrad.arrays.memory_pool import large_empty
from tapegrad.deferred import look_up
from tapegrad.linear.linear_entries import ONE
from tapegrad.sparse.compression import Info
from tapegrad.sparse.sparsity import Sparsity
from tapegrad.tape.array_kernels import ARRAY_KERNELS

if TYPE_CHECKING:
    from tapegrad.linear.front_passes import Rows
    from tapegrad.linear.section_passes import SectionPass

__all__ = ["OnePass", "Vector", "fewest_colours", "has_rows"]

Vector = np.ndarray[Any, Any]
# Nanoseconds of a step of a pass, of a row's pair or triplet in it, and of one in products with 8 and 32 vectors: of bundle
# adjustment, 2.4e6 pairs.
STEP, PASSED, EIGHT, MANY = 1.0, 4.0, 8.0, 36.0


def has_rows(derivative: Any) -> bool:
    """Whether one pass can go over what was recorded."""
    return hasattr(derivative, "linear_rows")


class OnePass:
    """Entries of a pattern by one pass: edge-pushing for Hessians, adjoints of each output for Jacobians.

    Parameters
    ----------
    pattern : Sparsity
        Symmetric if it is that of a Hessian.
    second : bool
        Whether it is.
    """

    def __init__(self, pattern: Sparsity, second: bool) -> None:
        self.pattern, self._second = pattern, second
        self.info = Info("edges" if second else "rows", 0, "none", pattern.nnz, pattern.shape)
        self.colours: Vector = np.full(pattern.shape[1], -1, np.int32)
        self._ends, self._items = pattern.indptr.astype(np.int64), pattern.indices
        self._source: Vector | None = None
        if second:
            is_lower = pattern.indices <= pattern.rows()
            lower = pattern.part(is_lower)
            self._ends, self._items = lower.indptr.astype(np.int64), lower.indices
            numbers = np.cumsum(is_lower, dtype=np.int32) - 1
            self._source = np.where(is_lower, numbers, numbers[pattern.by_columns()])
        self._way: SectionPass | _RowByRow | None = None
        self._structure: tuple[Vector, ...] = ()

    def entries_of(self, rows: Rows, weights: Vector = ONE) -> Vector | None:
        """Values of all entries of rows that are known; None where these need more room at once than there is."""
        if self._way is None:
            return None
        found = self._way.values(rows, len(self._items), weights)
        if found is None or self._source is None:
            return found
        whole: Vector = large_empty(self._source.shape, found.dtype)
        ARRAY_KERNELS.pick_numbers(found.ctypes.data, self._source.ctypes.data, len(whole), whole.ctypes.data)
        return whole

    def is_quicker(self, rows: Rows, colours: int) -> bool:
        """Whether it takes less time than the products for so many colours; tried once."""
        limit = (_nanoseconds_of_products(rows, colours, self._second) - PASSED * _passed(rows, self._second)) / STEP
        return limit > 0 and self.settle(rows, int(limit))

    def settled_for(self, rows: Rows) -> OnePass:
        """The same for rows of another structure. What other threads may use stays as it is."""
        import copy

        made = copy.copy(self)
        made.settle(rows)
        return made

    def settle(self, rows: Rows, limit: int = 1 << 62) -> bool:
        """Find the places for rows of this structure; whether that took no more steps than `limit`."""
        self._way = self._way_for(rows, limit)
        self._structure = tuple(column.copy() for column in _structure(rows, self._second))
        return self._way is not None

    def _way_for(self, rows: Rows, limit: int) -> SectionPass | _RowByRow | None:
        """The pass by sections, or else the one that goes on row by row; None if it takes more steps than `limit`."""
        from tapegrad.linear.section_passes import sections_of  # which products need not

        sections = sections_of(rows, self._second, self._ends, self._items)
        if sections is not None:
            return sections if sections.steps <= limit else None
        places = look_up("linear.front_passes:FrontPass")(rows, self._second, limit=limit).places(self._ends, self._items)
        return None if places is None else _RowByRow(places, self._second)

    def is_known(self, rows: Rows) -> bool:
        """Whether these rows have the structure of the latest."""
        now = _structure(rows, self._second)
        return len(now) == len(self._structure) and all(map(_are_equal, now, self._structure))


class _RowByRow:
    """A pass over a front, with the places that were found for it."""

    def __init__(self, places: Vector, second: bool) -> None:
        self._places, self._second = places, second

    def values(self, rows: Rows, count: int, weights: Vector) -> Vector | None:
        """As `SectionPass.values`; None if the front is too narrow."""
        found: Vector | None = look_up("linear.front_passes:FrontPass")(rows, self._second, weights).values(self._places, count)
        return found


def _structure(rows: Any, second: bool) -> tuple[Vector, ...]:
    """What the order of the pass depends on."""
    return (rows.references, rows.outs, rows.triplets) if second else (rows.references, rows.outs)


def _are_equal(one: Vector, other: Vector) -> bool:
    """Whether columns of int32 are the same."""
    if one.shape != other.shape:
        return False
    words, rest = divmod(one.size, 2)
    addresses = one.ctypes.data, other.ctypes.data
    return bool(ARRAY_KERNELS.are_equal(*addresses, words)) and (not rest or one.reshape(-1)[-1] == other.reshape(-1)[-1])


def _passed(rows: Rows, second: bool) -> int:
    return int(rows.linear_rows[2] + (rows.second_partials[2] if second else 0))


def _nanoseconds_of_products(rows: Rows, colours: int, second: bool) -> float:
    """About so long the products for so many colours take."""
    whole, rest = divmod(colours, 32)
    each = MANY * (whole + (rest > 8)) + (EIGHT if 0 < rest <= 8 else 0.0)
    return each * (_passed(rows, second) + (rows.linear_rows[2] if second else 0))


def fewest_colours(pattern: Sparsity) -> int:
    """No star or acyclic colouring of a symmetric pattern has fewer: two colours have a forest between them."""
    n = max(1, pattern.shape[0])
    return 1 + max(0, pattern.nnz - n) // (2 * n)
