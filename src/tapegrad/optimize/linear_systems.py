"""Linear equations of many unknowns at a solution: by sparse factors, or by products with the Jacobian alone.

What `linearised` does for dense matrices is done here for those that nobody would write out.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol

import numpy as np

from tapegrad.arrays.memory_pool import memory_of_machine
from tapegrad.deferred import look_up
from tapegrad.drivers.derivatives import Derivative
from tapegrad.drivers.jacobians import jacobian_matrix
from tapegrad.optimize.linearised import SINGULAR, Linearised, SingularError, UnsolvedError
from tapegrad.optimize.sparse_factors import factorised

__all__ = ["DENSE", "DenseSystems", "Factorised", "ProductSystems", "SparseSystems", "Systems", "systems_for"]

DENSE = 1000  # unknowns up to which a dense matrix is written out unless something else is asked for
FULL = 0.25  # share of entries above which a sparse matrix is none
ITERATIONS = 20  # of Krylov methods between restarts, times as many restarts
TOLERANCE = 1e-12  # of their residuals, relative to the right side
ACCEPTED = 1e-8  # the same of what counts as solved: rounding may keep them from more
Vector = np.ndarray
Solve = Callable[[Any, Vector], Any]


class Factorised(Protocol):
    """Linear equations that can be solved."""

    def solve(self, vectors: Vector, transposed: bool = False) -> Vector:
        """Solve with the matrix, or its transpose, for a vector or the columns of a matrix."""


class Systems(Protocol):
    """How the linear equations at a solution are written down and solved."""

    def jacobian(self, derivative: Derivative | None, size: int) -> Any:
        """The Jacobian of a recording, None for zeros: an array, a sparse array, or an operator with products."""

    def linearised(self, jacobian: Any) -> Factorised:
        """What solves with it."""


class DenseSystems:
    """By dense LU factors."""

    def jacobian(self, derivative: Derivative | None, size: int) -> Vector:
        """An array."""
        return np.zeros((size, size)) if derivative is None else jacobian_matrix(derivative)

    def linearised(self, jacobian: Vector) -> Factorised:
        """Its factors."""
        return Linearised(jacobian)


class SparseSystems:
    """By sparse LU factors, SuperLU's; by dense ones where the matrix turns out to be full."""

    def __init__(self) -> None:
        self._evaluation: Any = None

    def jacobian(self, derivative: Derivative | None, size: int) -> Any:
        """A csr_array."""
        from scipy.sparse import csr_array

        if derivative is None:
            return csr_array((size, size))
        if self._evaluation is None:
            self._evaluation = look_up("sparse.evaluation:Evaluation")(False)
        return self._evaluation.matrix(derivative)

    def linearised(self, jacobian: Any) -> Factorised:
        """Its factors."""
        if jacobian.nnz >= FULL * jacobian.shape[0] * jacobian.shape[1]:  # also one of no size
            return Linearised(jacobian.toarray())
        return _SparseFactors(jacobian)


class _SparseFactors:
    """SuperLU's factors of a matrix scaled to rows and columns of one size."""

    def __init__(self, jacobian: Any) -> None:
        from scipy.sparse.linalg import LinearOperator, onenormest

        size = jacobian.shape[0]
        self._rows, self._columns = np.ones(size), np.ones(size)
        scaled = abs(jacobian)
        for _ in range(8):  # as `Linearised` does
            by_row, by_column = (scaled.max(axis=axis).toarray().reshape(-1) for axis in (1, 0))
            if not by_row.all() or not by_column.all():
                raise SingularError
            r, c = (np.exp2(-np.round(0.5 * np.log2(size))) for size in (by_row, by_column))
            scaled = _scaled(scaled, r, c)
            self._rows, self._columns = self._rows * r, self._columns * c
        try:
            self._factors = factorised(_scaled(jacobian, self._rows, self._columns))
        except RuntimeError as error:  # SuperLU's word for singular
            raise SingularError from error
        inverse = LinearOperator(
            jacobian.shape, matvec=self._factors.solve, rmatvec=lambda v: self._factors.solve(v, "T"), dtype=np.float64
        )
        norm = float(scaled.sum(axis=0).max())
        if not 1.0 / (norm * float(onenormest(inverse))) > SINGULAR:
            raise SingularError

    def solve(self, vectors: Vector, transposed: bool = False) -> Vector:
        """Solve with the matrix, or its transpose, for a vector or the columns of a matrix."""
        before, behind = (self._columns, self._rows) if transposed else (self._rows, self._columns)
        solved = self._factors.solve(np.ascontiguousarray((vectors.T * before).T), "T" if transposed else "N")
        result: Vector = (solved.T * behind).T
        return result


def _scaled(matrix: Any, rows: Vector, columns: Vector) -> Any:
    """A csr_array with its rows and columns multiplied."""
    made = matrix.copy()
    made.data *= np.repeat(rows, np.diff(made.indptr)) * columns[made.indices]
    return made


class ProductSystems:
    """By a method that takes nothing but products with the matrix and its transpose.

    Parameters
    ----------
    name : str
        Of the solver that the user called, for messages.
    method : str or callable
        ``"gmres"`` or ``"minres"``, or a function of an operator and a right side.
    """

    def __init__(self, name: str, method: str | Solve) -> None:
        self._name, self._method = name, method

    def jacobian(self, derivative: Derivative | None, size: int) -> Any:
        """SciPy's LinearOperator."""
        from scipy.sparse.linalg import LinearOperator

        def forward(v: Vector) -> Vector:
            found: Vector = np.zeros(size) if derivative is None else derivative.push(v.reshape(-1, 1))[:, 0]
            return found

        def reverse(v: Vector) -> Vector:
            found: Vector = np.zeros(size) if derivative is None else derivative.pull(v.reshape(-1, 1))[:, 0]
            return found

        return LinearOperator((size, size), matvec=forward, rmatvec=reverse, dtype=np.float64)

    def linearised(self, jacobian: Any) -> Factorised:
        """The method, with the operator."""
        return _Iterated(self._name, jacobian, self._method)


class _Iterated:
    """Equations that are solved anew for each right side."""

    def __init__(self, name: str, operator: Any, method: str | Solve) -> None:
        self._name, self._operator, self._method = name, operator, method

    def solve(self, vectors: Vector, transposed: bool = False) -> Vector:
        """Solve with the operator, or its transpose, for a vector or the columns of a matrix.

        Raises
        ------
        UnsolvedError
            If the method does not come to a solution.
        """
        if not vectors.size:
            return vectors
        operator = self._operator.T if transposed else self._operator
        columns = vectors.reshape(len(vectors), -1)
        solved = np.stack([self._solved(operator, column) for column in columns.T], axis=1)
        return solved.reshape(vectors.shape)

    def _solved(self, operator: Any, right: Vector) -> Vector:
        from scipy.sparse.linalg import gmres, minres

        size = float(np.linalg.norm(right))
        if not size:
            return np.zeros(len(right))
        if callable(self._method):
            found = self._method(operator, right)
        elif self._method == "gmres":
            found = gmres(operator, right, rtol=TOLERANCE, atol=0.0, restart=min(ITERATIONS * 5, len(right)), maxiter=ITERATIONS)
        else:
            found = minres(operator, right, rtol=TOLERANCE, maxiter=5 * len(right))
        x: Vector = np.asarray(found[0] if isinstance(found, tuple) else found, np.float64)
        if x.shape != right.shape:
            raise ValueError(f"{self._name}: solver= must give a vector of shape {right.shape}, but gave one of shape {x.shape}")
        off = float(np.linalg.norm(operator @ x - right))
        if not off <= ACCEPTED * size:
            name = self._method if isinstance(self._method, str) else "the given solver"
            raise UnsolvedError(
                f"{self._name}: {name} did not solve the linear equations at the solution: a residual of {off / size:.2g}, "
                "relative to the right side, is left. They may be singular, or want a preconditioner: give solver= a function of "
                "(operator, right), such as one that calls SciPy's gmres with M=, or solver='sparse'."
            )
        return x


def systems_for(name: str, solver: Any, size: int) -> Systems:
    """What the argument ``solver`` of a solver stands for.

    Raises
    ------
    ValueError
        If it is no name that is known, and no callable.
    MemoryError
        If the machine has not the memory of a dense matrix that was asked for.
    """
    if callable(solver) or solver in ("gmres", "minres"):
        return ProductSystems(name, solver)
    if solver not in (None, "dense", "sparse"):
        raise ValueError(
            f"{name}: solver is 'dense', 'sparse', 'gmres', 'minres' or a function of (operator, right), not {solver!r}"
        )
    if solver == "sparse" or (solver is None and size > DENSE):
        return SparseSystems()
    if 8 * size**2 > memory_of_machine():  # which would be found out after all but the last columns
        raise MemoryError(
            f"{name}: a dense matrix of {size} unknowns takes {8e-9 * size**2:.3g} GB, which this machine has not; leave solver= "
            "out, or give 'sparse', or 'gmres' or 'minres', which take products alone"
        )
    return DenseSystems()
