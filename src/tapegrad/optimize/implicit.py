"""Solutions that know their derivative: the implicit function theorem instead of a recording of all iterations.

Where ``R(z, p) = 0`` defines ``z`` by the parameters ``p``, it is ``dz/dp = -(dR/dz)^-1 dR/dp`` [1]_ [2]_. A solution is
one row on the tape, whose arguments are the parameters: what the residual depends on besides ``z``, however it came by it.

References
----------
.. [1] B. Christianson, "Reverse accumulation and attractive fixed points", Optimization Methods and Software 3, 1994.
.. [2] M. Blondel et al., "Efficient and modular implicit differentiation", NeurIPS 2022.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tapegrad.autograd.boundaries import Mark, pull, tensors_at
from tapegrad.autograd.function import Function
from tapegrad.autograd.rows import arguments_of
from tapegrad.casting import cast
from tapegrad.drivers.calling import is_compiled, recorder_of, refuse_written
from tapegrad.drivers.containers import flatten, restore
from tapegrad.drivers.derivatives import Derivative
from tapegrad.drivers.jacobians import jacobian_matrix
from tapegrad.errors import LinAlgError
from tapegrad.escapes import at_depth, depth, watched
from tapegrad.grad_mode import is_recording_on, with_recording
from tapegrad.joining import cat, stack
from tapegrad.linalg.solving import solve
from tapegrad.tape import TAPE
from tapegrad.tensor import Tensor, array_of, is_recording, make, wrap

__all__ = ["constants", "depends_on_tracked", "flat", "frozen", "implicit_solution", "none_tracked", "recorded"]

FARTHEST = 1e-2  # the longest Newton step from a point that passes for a solution, relative to its size
CHANGED = 1e-7  # the same where it ought to be nothing but rounding
FLOAT64 = np.dtype(np.float64)
Residual = Callable[[Tensor], Tensor]


def constants(arguments: Sequence[Any]) -> tuple[Any, ...]:
    """Arguments for the iterations, of which nobody takes a derivative: tracked tensors without their rows."""
    return _changed(arguments, lambda leaf: leaf.detach() if isinstance(leaf, Tensor) and leaf._row else leaf)


def frozen(arguments: Sequence[Any]) -> tuple[Any, ...]:
    """Arguments that stay as they are: arrays and untracked tensors are copied."""

    def copied(leaf: Any) -> Any:
        if isinstance(leaf, Tensor):
            return leaf if leaf._row or type(leaf._data) is float else make(leaf._data.copy(), 0)
        return leaf.copy() if isinstance(leaf, np.ndarray) else leaf

    return _changed(arguments, copied)


def _changed(arguments: Sequence[Any], change: Callable[[Any], Any]) -> tuple[Any, ...]:
    leaves: list[Any] = []
    structure = flatten(tuple(arguments), leaves, [], "")
    return tuple(restore(structure, map(change, leaves)))


def recorded(f: Callable[..., Any], *arguments: Any) -> Any:
    """The result of a function of the user's, recorded."""
    return recorder_of(f)(*arguments)


def flat(value: Any, name: str) -> Tensor:
    """All numbers of a function's result as one vector in float64.

    Raises
    ------
    TypeError
        If there is something else in it.
    """
    leaves: list[Any] = []
    flatten(value, leaves, [], "")
    parts = []
    for leaf in leaves:
        if not isinstance(leaf, (Tensor, np.ndarray, np.generic, float, int)):
            raise TypeError(f"{name} requires real-valued outputs (arrays or floats), but got {type(leaf).__name__}")
        t = leaf if isinstance(leaf, Tensor) else wrap(np.asarray(leaf, np.float64))
        parts.append(cast(t, FLOAT64).reshape(-1))
    if not parts:
        return wrap(np.empty(0))
    return parts[0] if len(parts) == 1 else cat(parts)


def depends_on_tracked(functions: Callable[[Tensor], Sequence[Any]], z: np.ndarray) -> bool:
    """Whether what functions give depends on a tracked tensor, be it an argument or a variable around them."""
    if not is_recording():
        return False
    mark, leaf = Mark(), _leaf(z)
    results: list[Any] = []
    found, places = at_depth(0, watched, functions, (leaf,), {})
    refuse_written(places.written, "tg.optimize")
    flatten(list(found), results, [], "")
    tensors = [t for t in results if isinstance(t, Tensor) and t._row]
    # A result that was there before is a parameter itself.
    if any(not mark.is_newer(t) and t is not leaf for t in tensors):
        return True
    with TAPE.claim():
        return bool(mark.boundary(tensors, [leaf]))


def none_tracked(f: Callable[..., Any], arguments: Sequence[Any]) -> bool:
    """Whether it is known without a call that tracked tensors have no part in a result: compiled functions see only arguments."""
    leaves: list[Any] = []
    flatten(tuple(arguments), leaves, [], "")
    return is_compiled(f) and not any(isinstance(leaf, Tensor) and leaf._row for leaf in leaves)


def _leaf(z: np.ndarray) -> Tensor:
    leaf: Tensor = wrap(z.copy()).requires_grad_()
    return leaf


def implicit_solution(residual: Residual, z: np.ndarray, name: str, failure: str | None = None) -> Tensor | None:
    """A solution as a tensor with its derivative; None if the residual depends on no tracked tensor.

    Parameters
    ----------
    residual : callable
        Takes a tensor like `z` and returns one of as many numbers; it is zero at `z`.
    z : ndarray, shape (n,)
    name : str
        Of the solver, for messages.
    failure : str, optional
        Why the solver gave up: then whoever asks for the derivative gets an error with that, unless it has a solution all the same.
    """
    if not is_recording():
        return None
    equations = _Equations(residual, name, failure)
    mark, leaf = Mark(), _leaf(z)
    found, places = at_depth(0, watched, residual, (leaf,), {})
    refuse_written(places.written, name)
    value = found * 1.0  # a row of its own, if the residual is nothing but a parameter
    if value._data.shape != z.shape:
        raise ValueError(f"{name}: there must be as many equations as unknowns, but there are {value._data.size} for {z.size}")
    with TAPE.claim():
        parameters = tensors_at(mark.boundary([value], [leaf]))
    if not parameters:
        return None
    equations.leaf, equations.value = leaf, value
    solution: Tensor = SolutionFunction.apply(equations, z, *parameters)
    return solution


class _Equations:
    """Equations, recorded once at their solution.

    A reverse pass takes one solution of linear equations and one pass over that recording. A pass that is itself recorded runs the
    residual again on the solution's own row, so that the result depends on it too.
    """

    __slots__ = ("_factors", "failure", "leaf", "level", "name", "residual", "value")
    leaf: Tensor
    value: Tensor

    def __init__(self, residual: Residual, name: str, failure: str | None) -> None:
        self.residual, self.name, self.failure, self.level = residual, name, failure, depth()
        self._factors: tuple[np.ndarray, np.ndarray] | None = None

    def solve(self, vector: np.ndarray, transposed: bool = True) -> np.ndarray:
        """Solve with the Jacobian of the residual, which is computed and factorised the first time.

        Raises
        ------
        LinAlgError
            If it is singular.
        RuntimeError
            If the solver failed, or its result is far from a solution.
        """
        from scipy.linalg import lapack

        if self._factors is None:
            factors = self._factorised()
            self._check_solution(factors)
            self._factors = factors
        solved, _ = lapack.dgetrs(*self._factors, vector, trans=int(transposed))
        result: np.ndarray = solved
        return result

    def _factorised(self) -> tuple[np.ndarray, np.ndarray]:
        from scipy.linalg import lapack

        if not self.value._row:
            raise self._singular()
        jacobian = with_recording(lambda: jacobian_matrix(Derivative([self.leaf], [self.value])))
        if not np.isfinite(jacobian).all():
            raise LinAlgError(
                f"{self.name}: the Jacobian of the equations at the solution is not finite, so there is no derivative"
            )
        factors, pivots, info = lapack.dgetrf(jacobian)
        rcond, _ = lapack.dgecon(factors, np.abs(jacobian).sum(axis=0).max())
        if info > 0 or rcond < np.finfo(float).eps:
            raise self._singular()
        return factors, pivots

    def _failed(self) -> RuntimeError:
        return RuntimeError(
            f"{self.name}: the solver did not converge ({self.failure}), so its result has no derivative by the implicit function "
            "theorem. Give it more iterations or a better starting point, or look at result.success before."
        )

    def _singular(self) -> RuntimeError:
        if self.failure is not None:
            return self._failed()
        return LinAlgError(
            f"{self.name}: the Jacobian of the equations (the Hessian of what is minimised) is singular at the solution, so the "
            "solution is no differentiable function of the parameters. A small quadratic term, or fewer unknowns, makes it unique."
        )

    def _check_solution(self, factors: tuple[np.ndarray, np.ndarray]) -> None:
        from scipy.linalg import lapack

        step, _ = lapack.dgetrs(*factors, array_of(self.value))
        size = 1.0 + np.abs(array_of(self.leaf)).max(initial=0.0)
        # Solvers also give up at a solution, when rounding keeps them from the tolerance that they were asked for.
        if self.failure is not None and not np.abs(step).max(initial=0.0) <= CHANGED * size:
            raise self._failed()
        if not np.abs(step).max(initial=0.0) <= FARTHEST * size:
            raise RuntimeError(
                f"{self.name}: the result does not solve its equations: Newton's method would go on by {np.abs(step).max():.2g}. "
                "Derivatives are as exact as the solution, so ask for a smaller tolerance."
            )

    def rows(self, z: Tensor, slots: Sequence[int]) -> Tensor:
        """The residual on the row of the solution, which must depend on the same parameters.

        Raises
        ------
        RuntimeError
            If it changed.
        """
        mark = Mark()
        value = at_depth(max(self.level, 1), self.residual, z) * 1.0
        change = array_of(value) - array_of(self.value)
        size = 1.0 + np.abs(array_of(z)).max(initial=0.0)
        same = np.abs(self.solve(change, transposed=False)).max(initial=0.0) <= CHANGED * size
        if not same or mark.boundary([value], [z]) != sorted(set(slots)):
            raise RuntimeError(
                f"{self.name}: the function gives other values than when the solution was computed, or depends on other tensors, "
                "so there is no second derivative. Variables around it that change in between are to be arguments."
            )
        return value


class SolutionFunction(Function):
    """The row of a solution."""

    @staticmethod
    def forward(ctx: Any, equations: _Equations, z: np.ndarray, *parameters: Tensor) -> Tensor:
        """Hand out what was computed."""
        ctx.equations = equations
        solution: Tensor = make(z.copy(), 0)
        ctx.save_for_backward(solution)
        return solution

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        """Solve for the adjoint of the residual, and pull that through it."""
        equations: _Equations = ctx.equations
        with TAPE.claim():
            slots = [argument.slot for argument in arguments_of(TAPE.slot(ctx._row))[: len(ctx.needs_input_grad) - 2]]
            adjoint = equations.solve(array_of(g))
            if not is_recording_on():
                return None, None, *pull([equations.value], [wrap(-adjoint)], slots)
            (z,) = ctx.saved_tensors
            return None, None, *_recorded_pull(equations, z, slots, g)


def _recorded_pull(equations: _Equations, z: Tensor, slots: Sequence[int], g: Tensor) -> list[Tensor | None]:
    """Gradients by the parameters, recorded."""
    value = equations.rows(z, slots)
    own = [TAPE.slot(z._row)]
    units = np.eye(array_of(g).size)
    jacobian = stack([_or_zeros(pull([value], [wrap(unit.copy())], own)[0], z) for unit in units])
    adjoints = -solve(jacobian.T, g)
    # The solution's own row is an end too: what comes there is what the solving has accounted for.
    return pull([value], [adjoints], [*slots, *own])[:-1]


def _or_zeros(g: Tensor | None, like: Tensor) -> Tensor:
    return wrap(np.zeros_like(array_of(like))) if g is None else g
