"""Patterns of Jacobians and Hessians as sparse arrays of truth values."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tapegrad.sparse.dense_rows import described_row
from tapegrad.sparse.evaluation import pattern_of
from tapegrad.sparse.recorded_calls import recorded

__all__ = ["hessian_structure", "jacobian_structure"]


def jacobian_structure(f: Callable[..., Any], *args: Any, argnums: Any = 0, format: str = "csr") -> Any:
    """Pattern of the Jacobian of a function: which elements of its result depend on which elements of its argument.

    Parameters
    ----------
    f : callable
        Python's or compiled, as for `tapegrad.jacobian`; called once.
    *args
        Its arguments.
    argnums : int or sequence of int
        Which of them to differentiate by.
    format : str
        Of the result, as SciPy names it.

    Returns
    -------
    sparse array of bool, shape (elements of the result, elements of the argument)
        Elements count in C order, those of containers one after the other, as those of several arguments do.

    Raises
    ------
    TypeError
        If an input or an output is not of floats.

    Warns
    -----
    RuntimeWarning
        If something in it is an operation whose structure is not known, and counts as dense.

    Notes
    -----
    One call and one sweep over what it recorded, with a set of indices for each element [1]_. A product that is zero at this point
    is an entry as any other. What was chosen by values (a branch, an index) is what it is at this point.

    References
    ----------
    .. [1] A. Griewank, A. Walther, "Evaluating Derivatives", 2nd edition, SIAM 2008, section 7.1.

    Examples
    --------
    >>> tg.sparse.jacobian_structure(lambda x: x[1:] * x[:-1], np.zeros(4)).toarray().astype(int)
    array([[1, 1, 0, 0],
           [0, 1, 1, 0],
           [0, 0, 1, 1]])
    """
    return _structure(f, args, argnums, "sparse.jacobian_structure", False).asformat(format)


def hessian_structure(f: Callable[..., Any], *args: Any, argnums: Any = 0, format: str = "csr") -> Any:
    """Pattern of the Hessian of a scalar function: which pairs of elements of its argument meet in something nonlinear.

    Parameters
    ----------
    f : callable
        Returns a scalar; Python's or compiled, called once.
    *args, argnums, format
        As for `jacobian_structure`.

    Returns
    -------
    sparse array of bool, shape (elements of the argument, elements of the argument)
        Symmetric.

    Raises
    ------
    TypeError
        If an input is not of floats, or the output not a scalar.
    MemoryError
        If the pattern of a function of many variables is dense.

    Warns
    -----
    RuntimeWarning
        As for `jacobian_structure`.

    Notes
    -----
    The pairs of index sets that meet in rows with a second partial [1]_.

    References
    ----------
    .. [1] A. Walther, "Computing sparse Hessians with automatic differentiation", ACM Transactions on Mathematical Software
       34(1), 2008.

    Examples
    --------
    >>> tg.sparse.hessian_structure(lambda x: (x[1:] * x[:-1]).sum() + x[0] ** 3, np.zeros(3)).toarray().astype(int)
    array([[1, 1, 0],
           [1, 0, 1],
           [0, 1, 0]])
    """
    return _structure(f, args, argnums, "sparse.hessian_structure", True).asformat(format)


def _structure(f: Callable[..., Any], args: Any, argnums: Any, name: str, second: bool) -> Any:
    def record() -> Any:
        return recorded(f, args, {}, argnums, False, name, second)[2]

    return pattern_of(record(), second, locate=lambda: described_row(record, second)).to_scipy()
