"""An objective and constraints that are recorded on the same leaves: one linear tape has all of their derivatives at a point.

A solver with constraints asks for a gradient, a Jacobian and the Hessian of a weighted sum at each point. With a recording for each
function these are a linear tape for each of the three and for the objective's Hessian, and as many walks through what makes them.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tapegrad.drivers.calling import call
from tapegrad.drivers.derivatives import Derivative, Outputs, copied, joined, sizes_of
from tapegrad.drivers.gradients import scalar_output
from tapegrad.drivers.leaves import Call, Callee
from tapegrad.errors import OverwrittenError
from tapegrad.optimize.constraints import Constraint
from tapegrad.optimize.histories import largest
from tapegrad.optimize.packing import Packing, in_floats, refuse_nan
from tapegrad.sparse.evaluation import Evaluation
from tapegrad.tensors.grad_mode import with_recording
from tapegrad.tensors.tensor import Tensor, array_of
from tapegrad.tensors.untracked_values import writes

__all__ = ["NotTogether", "Together"]

Vector = np.ndarray
ONE = np.ones((1, 1))


class NotTogether(Exception):  # noqa: N818  # no error: the functions are recorded apart
    """Functions that one linear tape cannot have the derivatives of."""


class _Point:
    """The functions at one point: the objective first, then each constraint.

    Attributes
    ----------
    given : ndarray
        The point, as it was given.
    key : bytes
        Its numbers.
    variable : object
        The same in the structure of the variable.
    calls, outputs : list
        What each function recorded, and the tensors that it gave; None where it was not run yet.
    rows : list
        Handles of the rows of these tensors, by function.
    shown : list of bool
        Whether a function's value was handed out.
    derivative : Derivative or None
        Of all outputs.
    sum : Derivative or None
        Of their weighted sum, from the same linear tape.
    gradient : ndarray or None
    """

    __slots__ = ("calls", "derivative", "given", "gradient", "key", "outputs", "rows", "shown", "sum", "variable")

    def __init__(self, given: Vector, key: bytes, variable: Any, count: int) -> None:
        self.given, self.key, self.variable = given, key, variable
        self.calls: list[Call | None] = [None] * count
        self.outputs: list[list[Tensor]] = [[]] * count
        self.rows: list[list[int]] = [[]] * count
        self.shown = [False] * count
        self.derivative: Derivative | None = None
        self.sum: Derivative | None = None
        self.gradient: Vector | None = None


class Together:
    """An objective and constraints of a vector, with the derivatives that solvers with constraints ask for.

    A value is handed out once for each recording: whoever asks for it again wants the function to be run, for what it reads besides
    its variable may have changed.

    Parameters
    ----------
    f : callable
    packing : Packing
    args : tuple
        Of the objective.
    constraints : sequence of Constraint
    second : bool
        Whether Hessians are wanted.

    Attributes
    ----------
    evaluations : int
        How often the objective was run.
    first : tuple or None
        Its value and the largest element of its gradient at the first point.

    Raises
    ------
    NotTogether
        By `begin`, if some of the functions are compiled, programs, or for tensors and others not; by all methods, if a function
        writes into its variable or over what another one needs, or a row of what was recorded is one that the compiled sweeps
        cannot take.
    """

    def __init__(
        self, f: Callable[..., Any], packing: Packing, args: tuple[Any, ...], constraints: Sequence[Constraint], second: bool
    ) -> None:
        self._callees = [Callee(function) for function in (f, *(one.function for one in constraints))]
        self._packing, self._args, self._second = packing, args, second
        self._point: _Point | None = None
        self._first, self._weighted = Evaluation(False), Evaluation(True)
        self.evaluations = 0
        self.first: tuple[float, float] | None = None

    def __enter__(self) -> Together:
        return self

    def __exit__(self, *exception: object) -> None:
        self._point = None

    def begin(self, x: Vector) -> list[int]:
        """Run all functions at the first point; how many numbers each constraint function gives."""
        if any(c.compiled or c.replay is not None or c.kind is not self._callees[0].kind for c in self._callees):
            raise NotTogether
        self.first = self.at(x)[0], largest(self.gradient(x))
        return [sum(sizes_of(tensors)) for tensors in self._at(x).outputs[1:]]

    def at(self, x: Vector) -> tuple[float, Vector]:
        """The objective and its gradient at a point where they may be known."""
        self._run(point := self._at(x), 0)
        return _value(point), self.gradient(x)

    @property
    def latest_value(self) -> float:
        """The objective at the latest point."""
        assert self._point is not None  # some function was run
        return _value(self._point)

    def objective(self, x: Vector) -> float:
        """Value of the objective."""
        return _value(self._point_for_value(x, 0))

    def gradient(self, x: Vector) -> Vector:
        """Gradient of the objective."""
        point = self._at(x)
        if point.gradient is None:
            point.gradient = self._derivative(point).part(0, 1).pull(ONE)[:, 0]
        return point.gradient.copy()

    def constraints(self, x: Vector) -> list[Vector]:
        """Values of each constraint function."""
        return [self._values(self._point_for_value(x, k), k) for k in range(1, len(self._callees))]

    def jacobian_patterns(self, x: Vector) -> list[Any]:
        """Patterns of blocks of rows of the constraints' Jacobian: there is one, if there are constraints."""
        if len(self._callees) == 1:
            return []
        return [self._first.prepared(self._of_constraints(self._at(x))).pattern]

    def jacobian_entries(self, x: Vector) -> list[tuple[Any, Vector]]:
        """These, and values of their entries."""
        return [self._first.entries(self._of_constraints(self._at(x)))] if len(self._callees) > 1 else []

    def hessian_patterns(self, x: Vector, multipliers: Sequence[Vector]) -> list[Any]:
        """Patterns of matrices whose sum is the Lagrangian's Hessian: there is one."""
        return [self._weighted.prepared(self._of_sum(self._at(x), 1.0, multipliers)).pattern]

    def hessian_entries(self, x: Vector, factor: float, multipliers: Sequence[Vector]) -> list[tuple[Any, Vector]]:
        """These for ``factor * f + multipliers @ c``, and values of their entries."""
        pattern, values = self._weighted.entries(self._of_sum(point := self._at(x), factor, multipliers))
        return [(pattern, values if point.sum is not None else factor * values)]

    def _at(self, x: Vector) -> _Point:
        """What is known at a point, which is the latest one or a new one: whoever goes back has the values of the one before."""
        known = self._point
        if known is not None and known.given is x and not x.flags.writeable:
            return known
        key = np.asarray(x, np.float64).tobytes()
        return known if known is not None and known.key == key else self._anew(x, key)

    def _anew(self, x: Vector, key: bytes) -> _Point:
        self._point = None  # its memory is the next one's
        self._point = point = _Point(x, key, self._packing.point(np.asarray(x, np.float64)), len(self._callees))
        return point

    def _point_for_value(self, x: Vector, k: int) -> _Point:
        """The point, where the value of a function is not handed out yet."""
        point = self._at(x)
        if point.shown[k]:
            point = self._anew(x, point.key)
        point.shown[k] = True
        self._run(point, k)
        return point

    def _run(self, point: _Point, k: int) -> None:
        """Record a function at a point, unless that was done; after those before it, for the same structure each time."""
        if point.calls[k] is not None:
            return
        if k:
            self._run(point, k - 1)
        written, name, beside = writes(), "constraint" if k else "minimize", point.calls[0]
        is_first = not (k or self.evaluations)
        made = call(self._callees[k], (point.variable, *(() if k else self._args)), {}, 0, False, name, beside=beside)
        self.evaluations += not k
        has_written = writes() != written
        if any(leaf._row <= 0 for leaf in made.leaves) or (
            has_written and joined(array_of(leaf) for leaf in made.leaves).tobytes() != point.key
        ):
            raise NotTogether  # it did something to its variable that is not recorded, and the next function would see it
        made.output = in_floats(made.output) if k else made.output
        tensors = Outputs(made, name).tensors if k else [scalar_output(made, name)]
        point.outputs[k] = given = with_recording(copied, tensors) if has_written else tensors
        point.rows[k] = [t._row for t in given]
        if is_first:
            refuse_nan(_value(point))
        point.calls[k] = made

    def _values(self, point: _Point, k: int) -> Vector:
        return joined(map(array_of, point.outputs[k]))

    def _derivative(self, point: _Point) -> Derivative:
        """The derivative of all functions at a point."""
        if point.derivative is None:
            self._run(point, len(self._callees) - 1)
            (made, *_) = point.calls
            assert made is not None  # it was run
            _check_rows(point)
            try:
                derivative = Derivative(made.leaves, [t for tensors in point.outputs for t in tensors], self._second)
            except OverwrittenError:  # by one of the functions, what another one needs
                raise NotTogether from None
            if not derivative.compiled or made.inside:
                raise NotTogether
            point.derivative, point.sum = derivative, None
        return point.derivative

    def _of_constraints(self, point: _Point) -> Derivative:
        derivative = self._derivative(point)
        return derivative.part(1, len(derivative.outputs))

    def _of_sum(self, point: _Point, factor: float, multipliers: Sequence[Vector]) -> Derivative:
        """The derivative of the weighted sum of all functions; of the objective where there is nothing else."""
        derivative = self._derivative(point)
        if len(derivative.outputs) == 1:
            return derivative
        if point.sum is not None and point.sum.linear_tape.is_weighed:  # with other multipliers
            point.derivative = point.sum = None
            del derivative  # whose memory the next one has
            derivative = self._derivative(point)
        point.sum = derivative.weighted(np.concatenate([[factor], *multipliers]))
        return point.sum


def _check_rows(point: _Point) -> None:
    """Raise if what a function gave is not what it was then, for its derivative would be another one."""
    for k, (tensors, rows) in enumerate(zip(point.outputs, point.rows, strict=True)):
        if any(t._row != row for t, row in zip(tensors, rows, strict=True) if row >= 0):  # leaves get theirs later
            whose = f"constraint {k - 1}" if k else "the objective"
            raise RuntimeError(
                f"minimize: the result of {whose} was changed in place by another function, so its derivative is another one. "
                "Return a copy."
            )


def _value(point: _Point) -> float:
    return float(point.outputs[0][0]._data)
