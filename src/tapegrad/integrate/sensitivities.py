"""Derivatives of solutions at given times: by the sensitivity equations forwards, or by the adjoint equation backwards.

With ``y' = f(t, y, p)``, sensitivities ``S = dy/d(y0, p)`` solve ``S' = f_y S + f_p`` [1]_; adjoints of the state solve
``l' = -f_y^T l``, with a jump where the solution is asked for, and those of the parameters add up ``f_p^T l`` [2]_. Backwards, each
piece between two of these times is solved again for its dense output, so that memory is that of one piece.

References
----------
.. [1] E. Hairer, S. P. Norsett, G. Wanner, "Solving Ordinary Differential Equations I", 2nd edition, Springer, 1993, section I.14.
.. [2] Y. Cao, S. Li, L. Petzold, R. Serban, "Adjoint sensitivity analysis for differential-algebraic equations", SIAM Journal on
   Scientific Computing 24, 2003.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tapegrad.integrate.right_hand_sides import RightHandSide

__all__ = ["Problem", "adjoints", "forward_sensitivities"]

Array = np.ndarray[Any, Any]
Solve = Callable[..., Any]  # SciPy's `solve_ivp` with method and tolerances
IMPLICIT = ("Radau", "BDF", "LSODA")


class Problem:
    """What was solved.

    Attributes
    ----------
    side : RightHandSide
    start, times : float, ndarray
        The initial time, and those at which the solution is asked for, in the order in which they come.
    states : ndarray, shape (size, times)
        The solution there.
    first : ndarray, shape (size,)
        The initial state.
    method, options
        Of `scipy.integrate.solve_ivp`.
    """

    def __init__(
        self, side: RightHandSide, start: float, first: Array, times: Array, states: Array, method: Any, options: dict[str, Any]
    ) -> None:
        self.side, self.start, self.first, self.times, self.states = side, start, first, times, states
        self.method, self.options = method, options

    def solved(self, f: Callable[..., Any], start: float, stop: float, y: Array, **more: Any) -> Any:
        """A solution between two times.

        Raises
        ------
        RuntimeError
            If the solver fails.
        """
        from scipy.integrate import solve_ivp

        found = solve_ivp(f, (start, stop), y, self.method, **self.options, **more)
        if not found.success:
            raise RuntimeError(f"the derivative of a solution cannot be computed: between {start:g} and {stop:g}, {found.message}")
        return found

    def jacobian(self) -> dict[str, Any]:
        """What implicit methods are given."""
        return {"jac": self.side.jacobian} if self.method in IMPLICIT else {}


def forward_sensitivities(problem: Problem) -> Array:
    """Derivatives of all states by the initial state and the parameters, of shape (times, size, size + parameters)."""
    side, size = problem.side, len(problem.first)
    count = side.count
    inputs = size + count
    tangents = np.zeros((inputs, inputs))
    tangents[size:, size:] = np.eye(count)

    def augmented(t: float, both: Array) -> Array:
        value, derivative = side.linearised(t, both[:size])
        tangents[:size] = both[size:].reshape(size, inputs)
        return np.concatenate([value, derivative.push(tangents).reshape(-1)])

    start = np.concatenate([problem.first, np.eye(size, inputs).reshape(-1)])
    found = np.empty((len(problem.times), size, inputs))
    at_start = problem.times == problem.start
    found[at_start] = np.eye(size, inputs)
    later = problem.times[~at_start]
    if len(later):
        solution = problem.solved(augmented, problem.start, later[-1], start, t_eval=later)
        found[~at_start] = solution.y[size:].T.reshape(len(later), size, inputs)
    return found


def adjoints(problem: Problem, g: Array) -> tuple[Array, Array]:
    """Adjoints of the initial state and of the parameters, from those of the states, which have shape (size, times)."""
    side, size = problem.side, len(problem.first)
    state, parameters = np.zeros(size), np.zeros(side.count)
    for k in range(len(problem.times) - 1, -1, -1):
        state = state + g[:, k]
        before = problem.start if k == 0 else problem.times[k - 1]
        if before != problem.times[k]:
            first = problem.first if k == 0 else problem.states[:, k - 1]
            state, parameters = _piece(problem, before, problem.times[k], first, state, parameters)
    return state, parameters


def _piece(problem: Problem, before: float, after: float, first: Array, state: Array, parameters: Array) -> tuple[Array, Array]:
    """Adjoints at the beginning of a piece from those at its end."""
    side, size = problem.side, len(first)
    dense = problem.solved(side, before, after, first, dense_output=True, **problem.jacobian()).sol

    def backwards(t: float, both: Array) -> Array:
        _, derivative = side.linearised(t, dense(t))
        return -np.asarray(derivative.pull(both[:size, None])[:, 0])

    def jacobian(t: float, _: Array) -> Array:
        found = np.zeros((size + side.count, size + side.count))
        _, derivative = side.linearised(t, dense(t))
        found[:, :size] = -derivative.pull(np.eye(size))
        return found

    known = {"jac": jacobian} if problem.method in IMPLICIT else {}
    both = problem.solved(backwards, after, before, np.concatenate([state, parameters]), **known).y[:, -1]
    return both[:size], both[size:]
