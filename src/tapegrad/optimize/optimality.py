"""Conditions that a minimum satisfies: equations for the free variables and for the multipliers of active constraints."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tapegrad.autograd.entry_points import grad as tensor_grad
from tapegrad.deferred import look_up
from tapegrad.ops.joining import cat
from tapegrad.optimize.active_sets import ActiveSet, AmbiguousError, Limits, Model, first_guess, fitted_multipliers
from tapegrad.optimize.constraints import Constraint
from tapegrad.optimize.dependence import flat, recorded
from tapegrad.optimize.equations import Determined, Equations
from tapegrad.optimize.implicit import implicit_solution
from tapegrad.optimize.limits import bounds_as_arrays
from tapegrad.optimize.linear_systems import DenseSystems, Systems, systems_for
from tapegrad.optimize.linearised import Linearised, SingularError
from tapegrad.optimize.packing import Packing
from tapegrad.optimize.recordings import ScipyFunction, VectorFunction
from tapegrad.tensors.tensor import Tensor, wrap
from tapegrad.tensors.untracked_values import at_depth

__all__ = ["implicit_minimum"]

NEAR = 1e-3  # relative distances of bounds that are tried as active where the others determine nothing
Function = Callable[[Any], Any]


def implicit_minimum(
    f: Function,
    packing: Packing,
    x: np.ndarray,
    bounds: Any,
    constraints: Sequence[Constraint],
    name: str,
    failure: str | None,
    given: Sequence[Tensor],
    solver: Any = None,
) -> Tensor | None:
    """A minimum, all elements one after the other, as a tensor with its derivative; None if nothing is tracked.

    Parameters
    ----------
    f : callable
        Takes the structured variable.
    packing : Packing
    x : ndarray, shape (n,)
        The minimum that a solver found.
    bounds : object
        In one of SciPy's forms.
    constraints : sequence of Constraint
    name, failure : str
        As for `Equations`.
    given : sequence of Tensor
        As for `implicit_solution`.
    solver : object
        As for `systems_for`.
    """
    systems = systems_for(name, solver, len(x))
    kind = Conditions if isinstance(systems, DenseSystems) else look_up("optimize.large_optimality:LargeConditions")
    conditions = kind(f, packing, x, Limits(*bounds_as_arrays(bounds, len(x))), constraints, name, failure, systems)
    z = implicit_solution(conditions, given)
    return None if z is None else z[: len(x)]


class Conditions(Equations):
    """Equations of a minimum ``x`` with multipliers ``m``, of which those are taken that hold.

    ``df/dx - m dc/dx = 0`` for the variables that no bound holds, and ``c = limit`` for the active constraints and equalities.
    """

    is_sparse = False

    def __init__(
        self,
        f: Function,
        packing: Packing,
        x: np.ndarray,
        bounds: Limits,
        constraints: Sequence[Constraint],
        name: str,
        failure: str | None,
        systems: Systems | None = None,
    ) -> None:
        self.f, self.packing, self.constraints, self.variables = f, packing, constraints, bounds
        gradient, found, normals = at_depth(0, self._measured, x)
        sizes = [len(values) for values in found]
        self.limits = Limits(*(_joined([getattr(c, side) for c in constraints], sizes) for side in ("lower", "upper")))
        values = np.concatenate([np.empty(0), *found])
        self.active, multipliers = self._first_guess(x, gradient, values, normals)
        super().__init__(name, np.concatenate([x, multipliers]), packing.start, failure, bounds, systems)

    def _first_guess(self, x: np.ndarray, gradient: np.ndarray, values: np.ndarray, normals: Any) -> tuple[ActiveSet, np.ndarray]:
        """An active set to begin with, and multipliers of the constraints."""
        return first_guess(x, self.packing.start, gradient, self.variables, values, normals, self.limits)

    def _measured(self, x: np.ndarray) -> tuple[np.ndarray, list[np.ndarray], Any]:
        """Gradient, and values and normals of constraints, as plain numbers."""
        gradient = ScipyFunction(self.f, self.packing).gradient(x)
        vectors = [VectorFunction(one.function, self.packing, name="constraint", sparse=self.is_sparse) for one in self.constraints]
        values = [vector.value(x) for vector in vectors]
        return gradient, values, self._joined([vector.jacobian(x) for vector in vectors], len(x))

    @staticmethod
    def _joined(normals: Sequence[Any], n: int) -> Any:
        """Normals of all constraint functions."""
        return np.concatenate([np.empty((0, n)), *normals])

    def evaluate(self, z: np.ndarray) -> np.ndarray:
        """The residual at another point, by a gradient that is not recorded."""
        n = len(self.start)
        gradient, found, normals = at_depth(0, self._measured, z[:n])
        values = np.concatenate([np.empty(0), *found])
        return np.concatenate([gradient - z[n:] @ normals, values - self.limits.at(self.active.sides)])

    def residual(self, z: Tensor) -> tuple[Tensor, Sequence[Tensor]]:
        """What is zero at the solution, or not asked to be; and all that it was computed from."""
        x = z[: len(self.start)] * 1.0
        structured = self.packing.tensors(x)
        value = flat(recorded(self.f, structured), self.name).sum()
        if not self.constraints:
            return _by(value, x), [value]
        values = cat([flat(recorded(one.function, structured), "constraint") for one in self.constraints])
        gaps = values - wrap(self.limits.at(self.active.sides))
        return cat([_by(value - (z[len(self.start) :] * gaps).sum(), x), gaps]), [value, values]

    def determined(self, value: np.ndarray, jacobian: np.ndarray) -> Determined | None:
        """The equations of the active set; None where that is another one than was recorded."""
        n = len(self.start)
        assert self.bounds is not None
        x, gradient, normals = self.z[:n], value[:n], jacobian[n:, :n]
        at_bound = ((x <= self.bounds.lower) & (gradient == np.inf)) | ((x >= self.bounds.upper) & (gradient == -np.inf))
        fixed = at_bound | (self.bounds.lower == self.bounds.upper)
        values = value[n:] + self.limits.at(self.active.sides)
        self._model = Model(
            x, self.start, self.z[n:], gradient, jacobian[:n, :n], values, normals, self.bounds, self.limits, fixed
        )  # fmt: skip
        active, linear, step = self._settled(self._model)
        if (active.sides != self.active.sides).any():
            self.active = active
            self.z = np.concatenate([x, fitted_multipliers(active, gradient + normals.T @ self.z[n:], normals)])
            return None
        self.active, self._linear, self._step = active, linear, step
        return Determined(active.kept, np.flatnonzero((active.held != 0) & ~fixed), linear, step, self._model.lengths)

    def require_certainty(self) -> None:
        """See that no bound or constraint is about to hold, or to let go."""
        self._model.require_certainty(self.active, self._linear, self._step)

    def _settled(self, model: Model) -> tuple[ActiveSet, Linearised, np.ndarray]:
        held = self.active.held.copy()
        held[model.fixed] = np.where(model.x[model.fixed] <= model.bounds.lower[model.fixed], -1, 1)
        active = ActiveSet(held, self.active.sides)
        try:
            return model.settled(active)
        except (SingularError, AmbiguousError):
            # Where the objective is linear, or nearly so, bounds determine the solution, and those of interior methods are near.
            near = NEAR * model.lengths
            held = held.copy()
            held[(held == 0) & (model.x - model.bounds.lower <= near) & (model.gradient > 0.0)] = -1
            held[(held == 0) & (model.bounds.upper - model.x <= near) & (model.gradient < 0.0)] = 1
            if (held == active.held).all():
                raise
            return model.settled(ActiveSet(held, active.sides))


def _joined(limits: Sequence[Any], sizes: Sequence[int]) -> np.ndarray:
    """Limits of all values of functions, one after the other."""
    spread = [np.broadcast_to(np.asarray(limit, float), size) for limit, size in zip(limits, sizes, strict=True)]
    return np.concatenate([np.empty(0), *spread])


def _by(value: Tensor, x: Tensor) -> Tensor:
    """The gradient, recorded."""
    if not value._row:
        return wrap(np.zeros(x.shape))
    (g,) = tensor_grad(value, x, create_graph=True, materialize_grads=True)
    if g is None:
        raise AssertionError
    return g
