"""Hessians of Lagrangians: of an objective and of constraints by their multipliers, each of them Python's or compiled."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tapegrad.drivers.leaves import is_compiled
from tapegrad.linear.linear_entries import ONE
from tapegrad.sparse.compression import Info
from tapegrad.sparse.dense_rows import described_row
from tapegrad.sparse.derivatives import SparseDerivative, hessian
from tapegrad.sparse.evaluation import Evaluation, matrix_of
from tapegrad.sparse.recorded_calls import recorded
from tapegrad.sparse.sparsity import Sparsity

__all__ = ["lagrangian_hessian"]

Vector = np.ndarray[Any, Any]


def lagrangian_hessian(f: Callable[..., Any], g: Callable[..., Any], **options: Any) -> SparseDerivative:
    """Function that gives the Hessian of a Lagrangian by its variables, for solvers with constraints.

    Parameters
    ----------
    f : callable
        The objective: takes x and returns a scalar. Python's or compiled.
    g : callable
        The constraints: takes x and returns an array or a float. Python's or compiled.
    **options
        Of `hessian`. Where one of the functions is compiled: `format`, `pattern`, `mode`, `order` and `check`.

    Returns
    -------
    SparseDerivative
        ``(x, multipliers)`` gives the Hessian of ``f(x) + sum(multipliers * g(x))`` by x, with the same entries
        whatever the multipliers are. Where one of the functions is compiled, both have a plan of their own: `colours` is a pair,
        and ``info.method`` names both ways, such as ``"star+edges"``, if they differ.

    Raises
    ------
    ValueError
        If an option is unknown; by the callable, if there is not a multiplier for each constraint.
    TypeError
        By the callable, if multipliers are complex.

    Examples
    --------
    >>> hessian = tg.sparse.lagrangian_hessian(lambda x: (x**3).sum(), lambda x: x[1:] * x[:-1])
    >>> hessian(np.array([1.0, 2.0, 3.0]), np.array([10.0, 0.0])).toarray()
    array([[ 6., 10.,  0.],
           [10., 12.,  0.],
           [ 0.,  0., 18.]])
    """
    if is_compiled(f) or is_compiled(g):
        return _LagrangianHessian(f, g, **options)

    def lagrangian(x: Any, multipliers: Any) -> Any:
        return f(x) + _weighed(g(x), multipliers)

    return hessian(lagrangian, **options)


def _weights(multipliers: Any, shape: tuple[int, ...]) -> Vector:
    if np.iscomplexobj(multipliers):
        raise TypeError(f"multipliers must be real, but got {np.asarray(multipliers).dtype}")
    weights = np.asarray(multipliers, np.float64)
    if shape != weights.shape:
        raise ValueError(f"there are constraints of shape {shape}, but multipliers of shape {weights.shape}")
    return weights


def _weighed(constraints: Any, multipliers: Any) -> Any:
    weights = _weights(multipliers, np.shape(constraints))
    weighed = constraints * (weights if weights.ndim else float(weights))
    return weighed.sum() if weights.ndim else weighed


class _LagrangianHessian(SparseDerivative):
    """The sum of two Hessians with a plan each, since compiled code is recorded on tapes of its own.

    The plan of `SparseDerivative` itself is the objective's.
    """

    def __init__(self, f: Callable[..., Any], g: Callable[..., Any], format: str = "csr", **options: Any) -> None:
        super().__init__(f, True, 0, False, False, format, **options)
        self._name = "sparse.lagrangian_hessian"
        self._is_weighted = is_compiled(g)
        self._constraints = g if self._is_weighted else lambda x, multipliers: _weighed(g(x), multipliers)
        self._of_constraints = Evaluation(True, **options)
        self._sum: _Sum | None = None

    @property
    def info(self) -> Info:
        """How the latest result was computed, with the colours of both."""
        one, other = self._evaluation.plan.info, self._of_constraints.plan.info
        method, order = (a if a == b else f"{a}+{b}" for a, b in ((one.method, other.method), (one.order, other.order)))
        return Info(method, one.colours + other.colours, order, self._summed().pattern.nnz, one.shape)

    @property
    def pattern(self) -> Any:
        """Where there are entries."""
        return self._summed().pattern.to_scipy()

    @property
    def colours(self) -> Any:
        """The number of the product that each column goes into, for the objective and for the constraints."""
        return self._evaluation.plan.colours.copy(), self._of_constraints.plan.colours.copy()

    def prepare(self, x: Any, multipliers: Any) -> SparseDerivative:
        """Find the structure at a point, without computing a derivative; itself."""
        super().prepare(x)
        derivative, _, locate = self._recorded_constraints(x, multipliers)
        self._of_constraints.prepared(derivative, locate)
        return self

    def __call__(self, x: Any, multipliers: Any) -> Any:
        """The derivative at a point."""
        made, outputs, objective = self._recorded((x,), {})
        constraints, weights, locate = self._recorded_constraints(x, multipliers)
        one = self._evaluation.matrix(objective, locate=self._locate((x,), {}))
        other = self._of_constraints.matrix(constraints, weights, locate)
        return self._arranged(self._summed().of(one.data, other.data), made, outputs)

    def _recorded_constraints(self, x: Any, multipliers: Any) -> tuple[Any, Vector, Callable[[], str]]:
        """The derivative of the constraints, the weights of their results, and what tells a row that made it dense."""
        if not self._is_weighted:

            def record() -> Any:
                return recorded(self._constraints, (x, multipliers), {}, 0, False, self._name, True)[2]

            return record(), ONE, lambda: described_row(record, True)
        _, outputs, derivative = recorded(self._constraints, (x,), {}, 0, False, self._name, True, weighted=True)
        if outputs.structure is not None:
            raise TypeError(f"{self._name}: constraints must return an array or a float, not a container of these")
        (values,) = outputs.tensors
        return derivative, _weights(multipliers, np.shape(values._data)).reshape(-1), lambda: ""

    def _summed(self) -> _Sum:
        patterns = self._evaluation.plan.pattern, self._of_constraints.plan.pattern
        known = self._sum
        if known is None or known.parts[0] is not patterns[0] or known.parts[1] is not patterns[1]:
            known = self._sum = _Sum(patterns)
        return known


class _Sum:
    """The pattern of a sum of two matrices, and where their entries stand in it.

    Attributes
    ----------
    parts : tuple of Sparsity
    pattern : Sparsity
    """

    def __init__(self, parts: tuple[Sparsity, Sparsity]) -> None:
        self.parts = parts
        self.pattern = parts[0].united(parts[1])
        keys = _keys(self.pattern)
        self._one, self._other = (np.searchsorted(keys, _keys(part)) for part in parts)

    def of(self, one: Vector, other: Vector) -> Any:
        """The sum of matrices whose entries are these."""
        data = np.zeros(self.pattern.nnz)
        data[self._one] = one
        data[self._other] += other
        return matrix_of(self.pattern, data)


def _keys(pattern: Sparsity) -> Vector:
    """Numbers that ascend with the entries."""
    found: Vector = pattern.rows().astype(np.int64) * pattern.shape[1] + pattern.indices
    return found
