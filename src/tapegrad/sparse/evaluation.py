"""A sparse derivative from call to call: one plan as long as the structure stays what it was, a larger one where it does not."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import numpy as np

from tapegrad.arrays.memory_pool import pooled_copy
from tapegrad.deferred import look_up
from tapegrad.drivers.derivatives import Derivative
from tapegrad.linear.linear_entries import ONE
from tapegrad.linear.linear_tape import LinearTape
from tapegrad.named_tuples import Named
from tapegrad.sparse.compression import Bidirectional, Compression, Substitution, of_hessian, of_jacobian
from tapegrad.sparse.edges import OnePass, fewest_colours
from tapegrad.sparse.element_passes import one_pass_for
from tapegrad.sparse.patterns import MOST_ENTRIES, Structure, fingerprint, first_pattern, second_pattern
from tapegrad.sparse.sparsity import Sparsity
from tapegrad.tensors.grad_mode import with_recording

if TYPE_CHECKING:
    from tapegrad.sparse.patterns import Structured

Coloured = Compression | Bidirectional | Substitution
Plan = Coloured | OnePass

__all__ = ["Evaluation", "PatternError", "checked_pattern", "matrix_of", "pattern_of", "structured"]

_OVER = {"edges": "elements, or of a compiled function", "rows": "a compiled function"}
# That machine code takes at once, each by itself, for Jacobians and Hessians: 25 take a sixth of the time of sweeps for a Jacobian;
# 17 take the same time for a Hessian, whose expressions are longer.
MOST_DIRECTIONS = 32, 8
MOST_KNOWN = 256  # structures that are remembered
MOST_STEPS = 1 << 33  # of edge-pushing for a pattern
FAR_OFF = 1e-3  # what rounding in single precision does not explain
TOLERANCE = 1e-8  # of products with random vectors that are compared, by the size of what is summed


class PatternError(ValueError):
    """A pattern without an entry that the derivative has."""


def structured(derivative: Any, second: bool) -> Structured | None:
    """What patterns are read from; None where the general passes give the products.

    A Hessian whose second partials are not in a linear tape is the Jacobian of the recorded gradient.
    """
    if not isinstance(derivative, Derivative):
        recording: Structured = derivative
        return recording
    found: LinearTape | None = derivative.linear_tape
    if found is None and second:
        found = with_recording(derivative.of_gradient).linear_tape
    return found


def pattern_of(derivative: Any, second: bool, warn: bool = True, locate: Callable[[], str] | None = None) -> Sparsity:
    """Pattern of a Jacobian or Hessian.

    Parameters
    ----------
    derivative : Derivative or Recording
    second : bool
        Whether it is the Hessian.
    warn : bool
        Whether to warn of what is dense.
    locate : callable, optional
        Tells the row that made it dense, in words.

    Raises
    ------
    MemoryError
        If there are too many entries.

    Warns
    -----
    RuntimeWarning
        If it is dense, in whole or in a large part, because nothing is known of what is in it.
    """
    import warnings

    n = derivative.inputs
    m = n if second else derivative.results
    tape = structured(derivative, second)
    if tape is None:
        if m * n > MOST_ENTRIES:
            raise MemoryError(f"nothing is known of the structure of a derivative of {m} by {n} entries; give pattern=")
        if warn and m * n >= 1024:
            warnings.warn(
                f"tapegrad.sparse: the {'Hessian' if second else 'Jacobian'} is taken to be dense ({m} by {n}): an operation in it "
                "(a custom function, a hook, a compiled function called in Python, or one without a second derivative in compiled "
                "sweeps) says nothing of its structure. Give pattern= if that is not so.",
                RuntimeWarning,
                stacklevel=2,
            )
        return Sparsity.dense((m, n))
    if not second:
        return Sparsity.from_rows(*first_pattern(tape, warn, locate), (m, n))
    if isinstance(tape, LinearTape) and not tape.second:
        half = Sparsity.from_rows(*first_pattern(tape, warn, locate, "Hessian"), (n, n))
        return half.united(half.transposed())
    # Where few rows have edges at once that tells less often what comes again: 0.2 instead of 7 s for bundle adjustment.
    pushed = None
    if not isinstance(tape, LinearTape):
        pushed = look_up("linear.front_passes:FrontPass")(tape, True, limit=MOST_STEPS).pattern()
    rows, columns = second_pattern(tape, warn, locate) if pushed is None else pushed
    return Sparsity.from_pairs(np.concatenate([rows, columns]), np.concatenate([columns, rows]), (n, n))


def checked_pattern(pattern: Any, shape: tuple[int, int], second: bool) -> Sparsity:
    """A pattern that the user gave, in the form of ours.

    Raises
    ------
    ValueError
        If its shape is another one, or that of a Hessian is not symmetric.
    """
    from scipy.sparse import csr_array, issparse

    if not issparse(pattern):
        pattern = np.asarray(pattern) != 0
    given = csr_array(pattern)
    if given.shape != shape:
        raise ValueError(f"pattern= has shape {given.shape}, but the derivative has shape {shape}")
    made = Sparsity.from_matrix(given)
    if second and not made.is_symmetric():
        raise ValueError("pattern= of a Hessian must be symmetric: give both halves, as (P + P.T) != 0 does")
    return made


class _Known(Named):
    """What is known of the structure.

    It is replaced as a whole: where threads meet, or an exception comes in between, no structure counts as known whose entries the
    pattern has not.

    Attributes
    ----------
    structures : frozenset of bytes
        Fingerprints of those that the pattern has all entries of.
    pattern : Sparsity
    plan : Plan or None
        The way to the entries of this pattern, or of a smaller one that was before.
    """

    __slots__ = ()
    structures: frozenset[bytes]
    pattern: Sparsity
    plan: Plan | None

    def with_structure(self, structure: bytes, found: Sparsity) -> _Known:
        """The same with one more structure, whose pattern was found; entries that were there stay."""
        others = self.structures if len(self.structures) < MOST_KNOWN else frozenset()
        return _Known(others | {structure}, self.pattern.united(found), self.plan)


class Evaluation:
    """Values of a sparse derivative's entries, call after call.

    Parameters
    ----------
    second : bool
        Whether it is a Hessian.
    pattern : sparse array or array, optional
        The user's, which is not doubted unless `check` is set.
    mode : str
        How entries are found: "auto", or a method of `Info` other than "bidirectional".
    order : str
        Of colourings.
    check : bool
        Whether each result is compared with products of the derivative with random vectors.
    """

    def __init__(self, second: bool, pattern: Any = None, mode: str = "auto", order: str = "auto", check: bool = False) -> None:
        self._second, self._given, self._mode, self._order, self._check = second, pattern, mode, order, check
        self._known: _Known | None = None
        self._latest: Structure | None = None

    @property
    def plan(self) -> Plan:
        """What is known of the structure.

        Raises
        ------
        RuntimeError
            If the function has not been called.
        """
        known = self._known
        if known is None or known.plan is None:
            raise RuntimeError("the structure is not known before the first call; tapegrad.sparse.plan(f, x) makes one")
        return known.plan

    def matrix(self, derivative: Any, weights: Any = ONE, locate: Callable[[], str] | None = None) -> Any:
        """The derivative at the point where it was recorded, as a csr_array.

        Parameters
        ----------
        derivative : Derivative or Recording
        weights : ndarray
            Of the results of a compiled function, where it is the Hessian of their weighted sum.
        locate : callable, optional
            As for `pattern_of`.

        Raises
        ------
        PatternError
            If it is checked and an entry is missing.
        """
        made = matrix_of(*self.entries(derivative, weights, locate))
        if self._check:
            self._compare(made, derivative, weights)
        return made

    def entries(
        self, derivative: Any, weights: Any = ONE, locate: Callable[[], str] | None = None
    ) -> tuple[Sparsity, np.ndarray[Any, Any]]:
        """The same as a pattern and the values of its entries, which are not compared with anything."""
        plan = self.prepared(derivative, locate)
        return plan.pattern, self._values(plan, derivative, weights)

    def directions(self) -> tuple[Compression, Any] | None:
        """The plan, and the vectors whose products give all entries; None where there are none, many, or they will be compared."""
        plan = None if self._known is None or self._check else self._known.plan
        if (
            not isinstance(plan, Compression)
            or plan.info.method == "reverse"
            or not 0 < plan.info.colours <= MOST_DIRECTIONS[self._second]
        ):
            return None
        return plan, plan.directions

    def is_whole(self, plan: Compression, structures: dict[bool, bytes] | None) -> bool:
        """Whether a plan has all entries of a call of which this is known."""
        known = self._known
        if known is None or known.plan is not plan or structures is None:
            return False
        return self._given is not None or (
            plan.pattern.nnz == known.pattern.nnz and structures.get(self._second) in known.structures
        )

    def note(self, derivative: Any, structures: dict[bool, bytes] | None) -> None:
        """Keep what is known of a derivative's structure for calls that have the same one."""
        tape = derivative.linear_tape if structures is not None and isinstance(derivative, Derivative) else None
        if tape is not None and structures is not None and (tape.second or not self._second):
            structures[self._second] = fingerprint(tape)

    def _values(self, plan: Plan, derivative: Any, weights: Any) -> Any:
        """Values of the entries of a plan."""
        if isinstance(plan, OnePass):
            data = plan.entries_of(derivative, weights)
            if data is not None:
                return data
            coloured: Coloured = self._coloured(plan.pattern)
            if self._known is not None and self._known.plan is plan:
                self._known = self._known._replace(plan=coloured)
            plan = coloured
        if isinstance(plan, Bidirectional):
            return plan.entries_from(derivative.push, derivative.pull)
        if not self._second:
            return plan.entries(derivative.push if plan.info.method == "forward" else derivative.pull)
        return plan.entries(_curve_of(derivative, weights))

    def prepared(self, derivative: Any, locate: Callable[[], str] | None = None) -> Plan:
        """The plan for a derivative's structure."""
        known = self._known_for(derivative)
        if known is not None and isinstance(known.plan, OnePass) and known.plan.is_known(derivative):
            return known.plan
        known = self._with_pattern(known, derivative, locate)
        plan = known.plan
        if plan is None or plan.pattern.nnz != known.pattern.nnz:
            plan = self._compressed(known.pattern, derivative)
        if isinstance(plan, OnePass) and not plan.is_known(derivative):
            plan = plan.settled_for(derivative)
        if known is not self._known or plan is not known.plan:
            self._known = known._replace(plan=plan)
        return plan

    def learn(self, derivative: Any) -> None:
        """The pattern will have the entries of a derivative on another path."""
        if self._given is None:
            self._known = self._with_pattern(self._known_for(derivative), derivative, None)

    def _shape(self, derivative: Any) -> tuple[int, int]:
        return derivative.inputs if self._second else derivative.results, derivative.inputs

    def _known_for(self, derivative: Any) -> _Known | None:
        """What is known for a derivative of this shape."""
        known = self._known
        return known if known is not None and known.pattern.shape == self._shape(derivative) else None

    def _with_pattern(self, known: _Known | None, derivative: Any, locate: Callable[[], str] | None) -> _Known:
        """The same with the entries of this derivative's structure."""
        if self._given is not None:
            return known or _Known(frozenset(), checked_pattern(self._given, self._shape(derivative), self._second), None)
        tape = structured(derivative, self._second)
        structure = b"" if tape is None else self._structure(tape)
        if known is not None and structure in known.structures:
            return known
        found = pattern_of(derivative, self._second, locate=locate)
        return _Known(frozenset([structure]), found, None) if known is None else known.with_structure(structure, found)

    def _structure(self, tape: Structured) -> bytes:
        """The fingerprint of a tape, without hashing where the one before was made alike."""
        if not isinstance(tape, LinearTape) or len(tape.entries) > Structure.LONGEST:
            return fingerprint(tape)
        latest = self._latest
        if latest is not None and tape.fingerprint is None and latest.is_of(tape):
            tape.fingerprint = latest.fingerprint
        found = fingerprint(tape)
        if latest is None or latest.fingerprint != found:
            self._latest = Structure(tape)
        return found

    def _compressed(self, pattern: Sparsity, derivative: Any) -> Plan:
        """The quickest way to the entries, or the one that was asked for."""
        one = one_pass_for(pattern, derivative, self._second)
        if self._mode in ("edges", "rows"):
            if one is None or not one.settle(derivative):
                raise ValueError(
                    f"mode={self._mode!r} goes over the rows of {_OVER[self._mode]}, of which few depend on each other at once, "
                    "and this is none: leave mode= out"
                )
            return one
        if one is None or self._mode != "auto":
            return self._coloured(pattern)
        # Colours of a large pattern take longer than what they are for: 23 s for the 3e6 entries of a bundle adjustment.
        if self._second and one.is_quicker(derivative, fewest_colours(pattern)):
            return one
        coloured = self._coloured(pattern)
        return one if one.is_quicker(derivative, coloured.info.colours) else coloured

    def _coloured(self, pattern: Sparsity) -> Coloured:
        if not self._second:
            return of_jacobian(pattern, self._mode, self._order)
        return Substitution(pattern, self._order) if self._mode == "acyclic" else of_hessian(pattern, self._order)

    def _compare(self, made: Any, derivative: Any, weights: Any) -> None:
        """Raise if products with random vectors differ, in rows that are finite."""
        random = np.random.default_rng(0).standard_normal((derivative.inputs, 2))
        curve = _curve_of(derivative, weights) if self._second else None
        product: Callable[..., Any] = curve or derivative.push
        with np.errstate(all="ignore"):
            expected, found, sizes = product(random), made @ random, abs(made) @ abs(random)
            off = np.abs(expected - found) / (1.0 + sizes + np.abs(expected))
        wrong = off > TOLERANCE
        rows = np.flatnonzero(wrong.any(axis=1))  # what is computed in single precision is among them, and lacks no entry
        # A missing entry is mixed into others of compressed products, perhaps of other rows: the first that is missing is named.
        for row in rows.tolist():
            whole = _row_of(curve or derivative.pull, row, made.shape[0])
            inside = np.zeros(len(whole), bool)
            inside[made.indices[made.indptr[row] : made.indptr[row + 1]]] = True
            missed = np.flatnonzero((whole != 0) & ~inside)
            if len(missed):
                column = int(missed[0])
                raise PatternError(
                    f"the pattern has no entry ({row}, {column}), but the {'Hessian' if self._second else 'Jacobian'} has "
                    f"{whole[column]:.6g} there" + (f" (and {len(missed) - 1} more in that row)" if len(missed) > 1 else "")
                )
        if np.fmax.reduce(off, axis=None, initial=0.0) > FAR_OFF:
            raise PatternError(
                f"rows {rows[:5].tolist()} are not those of the derivative, though no entry is missing; please report it"
            )


def matrix_of(pattern: Sparsity, data: Any) -> Any:
    """A csr_array of the caller's own."""
    from scipy.sparse import csr_array

    made = csr_array((data, pooled_copy(pattern.indices), pooled_copy(pattern.indptr)), shape=pattern.shape)
    made.has_canonical_format = True
    return made


def _curve_of(derivative: Any, weights: Any) -> Callable[..., Any]:
    """What gives products with the Hessian, of a weighted sum of results if there are weights."""
    found: Callable[..., Any] = derivative.curve
    return found if weights is ONE else lambda directions: found(directions, weights)


def _row_of(product: Callable[..., Any], row: int, rows: int) -> np.ndarray[Any, Any]:
    """A row of a matrix, by a product with its transpose."""
    seed = np.zeros((rows, 1))
    seed[row] = 1.0
    found: np.ndarray[Any, Any] = product(seed)[:, 0]
    return found
