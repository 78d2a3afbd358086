"""Edge-pushing for Hessians of functions of arrays: one pass over rows of single elements in the place of products."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from tapegrad.linear.linear_entries import ONE
from tapegrad.linear.linear_tape import LinearTape
from tapegrad.sparse.edges import OnePass, Vector, has_rows
from tapegrad.sparse.sparsity import Sparsity

if TYPE_CHECKING:
    from tapegrad.sparse.element_rows import ElementLayout

__all__ = ["ElementPass", "one_pass_for"]

# Nanoseconds of a step of a pass, of a pair or triplet in it, and of a place in the three sweeps of a product.
STEP, PASSED, PRODUCT = 1.0, 20.0, 2.5
ROWS = 1.5  # pairs and triplets of a place, at least
HOSTED = 5.0  # of an element of an operation that Python computes, in a product
MOST_WORK = 1 << 36


class ElementPass(OnePass):
    """The Hessian of a function of arrays, from the linear tape that a call recorded.

    Parameters
    ----------
    pattern : Sparsity
        As for `OnePass`.
    """

    def __init__(self, pattern: Sparsity) -> None:
        super().__init__(pattern, True)
        self._layout: ElementLayout | None = None

    def entries_of(self, derivative: Any, weights: Vector = ONE) -> Vector | None:
        """Values of all entries of a derivative that is known; None where that is none."""
        if self._layout is None or self._way is None:
            return None
        return super().entries_of(self._layout.rows(derivative.linear_tape))

    def is_quicker(self, derivative: Any, colours: int) -> bool:
        """Whether it takes less time than the products for so many colours; tried once."""
        tape = derivative.linear_tape
        products = colours * (PRODUCT * tape.places + HOSTED * sum(row.size for row in tape.hosts.values()))
        if products < ROWS * PASSED * (tape.places - tape.inputs) or not self._lay(tape):
            return False
        assert self._layout is not None  # it was laid
        limit = (products - PASSED * (self._layout.pairs + self._layout.triplets)) / STEP
        return limit > 0 and self._settle(tape, int(limit))

    def settle(self, derivative: Any, limit: int = MOST_WORK) -> bool:
        """Find the places for a derivative of this structure; whether there are few rows in work at once."""
        tape = derivative.linear_tape
        self._way = None
        return _is_curved(tape) and self._lay(tape) and self._settle(tape, limit)

    def is_known(self, derivative: Any) -> bool:
        """Whether a derivative has the structure of the latest."""
        tape = derivative.linear_tape
        return self._layout is not None and _is_curved(tape) and self._layout.fits(tape)

    def _lay(self, tape: LinearTape) -> bool:
        """Put the elements in order; whether all of their partials are known."""
        if self._layout is None or not self._layout.fits(tape):
            from tapegrad.sparse.element_rows import ElementLayout  # which most functions need not

            self._way = None
            try:
                self._layout = ElementLayout(tape)
            except NotImplementedError:
                self._layout = None
        return self._layout is not None

    def _settle(self, tape: LinearTape, limit: int) -> bool:
        assert self._layout is not None  # it was laid
        self._way = self._way_for(self._layout.rows(tape), limit)
        return self._way is not None


def one_pass_for(pattern: Sparsity, derivative: Any, second: bool) -> OnePass | None:
    """The pass over the rows of what was recorded; None where there are none."""
    if has_rows(derivative):
        return OnePass(pattern, second)
    return ElementPass(pattern) if second and _is_curved(getattr(derivative, "linear_tape", None)) else None


def _is_curved(tape: Any) -> bool:
    return isinstance(tape, LinearTape) and tape.second and len(tape.outputs) == 1
