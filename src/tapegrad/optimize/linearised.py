"""Linear equations at a solution: scaled, factorised, and the lengths that count as large for its unknowns.

Whoever writes an objective in other units, or multiplies it by a constant, asks for the same derivative. So nothing here compares
a number with 1: the matrix is scaled to rows and columns of one size, and lengths are those of the numbers that the solver met.
"""

from __future__ import annotations

import numpy as np

from tapegrad.errors import LinAlgError

__all__ = ["Linearised", "SingularError", "UnsolvedError", "lengths", "require_finite"]

SINGULAR = 1e-13  # reciprocal of the condition number below which a scaled matrix counts as singular: what rounding leaves of zero
SHARE = 1e-4  # lengths of unknowns are at least this part of the largest, in units in which the matrix is scaled


class SingularError(LinAlgError):
    """Equations at a solution do not determine it; with a message where that is for another reason than a singular matrix."""


def require_finite(*arrays: np.ndarray) -> None:
    """Raise if equations or their derivatives are not finite.

    Raises
    ------
    SingularError
        If one is not.
    """
    if not all(np.isfinite(array).all() for array in arrays):
        raise SingularError("the Jacobian of the equations at the solution is not finite")


class UnsolvedError(SingularError):
    """A method that takes products alone did not come to a solution."""


class Linearised:
    """A factorised Jacobian of some equations by as many unknowns.

    Parameters
    ----------
    jacobian : ndarray, shape (k, k)

    Raises
    ------
    SingularError
        If it is, up to rounding, whatever its units are.
    """

    def __init__(self, jacobian: np.ndarray) -> None:
        from scipy.linalg import lapack

        self.size = len(jacobian)
        self.rows, self.columns = np.ones(self.size), np.ones(self.size)
        if not self.size:
            return
        scaled = np.abs(jacobian)
        for _ in range(8):  # Ruiz's iteration, which keeps symmetry
            by_row, by_column = scaled.max(axis=1), scaled.max(axis=0)
            if not by_row.all() or not by_column.all():
                raise SingularError
            # Powers of two: they round nothing.
            r, c = (np.exp2(-np.round(0.5 * np.log2(size))) for size in (by_row, by_column))
            scaled = scaled * r[:, None] * c
            self.rows, self.columns = self.rows * r, self.columns * c
        factors, pivots, info = lapack.dgetrf(jacobian * self.rows[:, None] * self.columns)
        rcond, _ = lapack.dgecon(factors, scaled.sum(axis=0).max())
        if info > 0 or not rcond > SINGULAR:
            raise SingularError
        self._factors = factors, pivots

    def solve(self, vectors: np.ndarray, transposed: bool = False) -> np.ndarray:
        """Solve with the matrix, or its transpose, for a vector or the columns of a matrix."""
        from scipy.linalg import lapack

        if not self.size:
            return vectors
        before, behind = (self.columns, self.rows) if transposed else (self.rows, self.columns)
        solved, _ = lapack.dgetrs(*self._factors, (vectors.T * before).T, trans=int(transposed))
        result: np.ndarray = (solved.T * behind).T
        return result


def lengths(x: np.ndarray, start: np.ndarray, weights: np.ndarray) -> np.ndarray:
    """What is a long way for each variable.

    Parameters
    ----------
    x, start : ndarray, shape (n,)
        Where a solver ended and started, whose sizes count.
    weights : ndarray, shape (n,)
        Such that ``weights * x`` are comparable: a variable that is zero takes the length of the others.
    """
    sizes = np.maximum(np.abs(x), np.abs(start))
    known = np.isfinite(weights) & (weights > 0.0)
    common = (sizes[known] * weights[known]).max(initial=0.0)
    if common > 0.0:
        sizes[known] = np.maximum(sizes[known], SHARE * common / weights[known])
    return np.where(sizes > 0.0, sizes, sizes.max(initial=0.0) or 1.0)
