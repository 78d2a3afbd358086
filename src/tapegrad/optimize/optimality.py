"""Conditions that a minimum satisfies: equations for the free variables and for the multipliers of active constraints."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np

from tapegrad.autograd.backward import grad as tensor_grad
from tapegrad.escapes import at_depth
from tapegrad.joining import cat
from tapegrad.optimize.constraints import Constraint
from tapegrad.optimize.implicit import flat, implicit_solution, recorded
from tapegrad.optimize.packing import Packing
from tapegrad.optimize.recordings import ScipyFunction, VectorFunction
from tapegrad.tensor import Tensor, wrap

__all__ = ["bounds_as_arrays", "implicit_minimum", "refuse_tracked_limits"]

NEAR = (
    1e-2  # farther from its limit than this, relative to the size of that, a constraint is not active; interior methods stay away
)
AT = 1e-10  # nearer than this it is, whatever its multiplier
Function = Callable[[Any], Any]


class _Limits(NamedTuple):
    """What bounds variables or values of constraint functions from below and above."""

    lower: np.ndarray
    upper: np.ndarray


def refuse_tracked_limits(name: str, bounds: Any, constraints: Any) -> None:
    """Raise for limits that are to be differentiated by, since SciPy would take their values and lose that.

    Raises
    ------
    NotImplementedError
        If one is a tracked tensor.
    """
    listed = constraints if isinstance(constraints, (list, tuple)) and not isinstance(constraints, Constraint) else [constraints]
    limits = [bounds, *((one.lower, one.upper) for one in listed if isinstance(one, Constraint))]
    if any(_has_tracked(limit) for limit in limits):
        raise NotImplementedError(
            f"{name}: bounds that are tracked tensors are not differentiated. Write them as constraints of functions, as in "
            "tg.optimize.inequality(lambda x: x - lower), or pass lower.detach() for a constant."
        )


def _has_tracked(value: Any) -> bool:
    if isinstance(value, Tensor):
        return value._row != 0
    if isinstance(value, (list, tuple)):
        return any(map(_has_tracked, value))
    return hasattr(value, "lb") and (_has_tracked(value.lb) or _has_tracked(value.ub))


def bounds_as_arrays(bounds: Any, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Bounds of variables, infinite where there are none."""
    if bounds is None:
        return np.full(size, -np.inf), np.full(size, np.inf)
    if hasattr(bounds, "lb"):
        lower, upper = bounds.lb, bounds.ub
    else:
        pairs = [(-np.inf if a is None else a, np.inf if b is None else b) for a, b in bounds]
        lower, upper = [a for a, _ in pairs], [b for _, b in pairs]
    return np.broadcast_to(np.asarray(lower, float), size), np.broadcast_to(np.asarray(upper, float), size)


def implicit_minimum(
    f: Function, packing: Packing, x: np.ndarray, bounds: Any, constraints: Sequence[Constraint], name: str, failure: str | None
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
        As for `implicit_solution`.
    """
    conditions = _Conditions(f, packing, x, _Limits(*bounds_as_arrays(bounds, len(x))), constraints)
    z = implicit_solution(conditions.residual, conditions.z, name, failure)
    return None if z is None else conditions.variable(z)


class _Conditions:
    """Equations of a minimum ``x`` with multipliers ``m``.

    ``df/dx - m dc/dx = 0`` for the variables that no bound holds, and ``c = limit`` for the active constraints and equalities.

    Attributes
    ----------
    z : ndarray
        The unknowns at the solution: free variables, then multipliers.
    """

    def __init__(self, f: Function, packing: Packing, x: np.ndarray, bounds: _Limits, constraints: Sequence[Constraint]) -> None:
        self.f, self.packing, self.x, self.constraints = f, packing, x, constraints
        gradient, found, normals = at_depth(0, self._measured)
        values = np.concatenate([np.empty(0), *found])
        sizes = [len(value) for value in found]
        limits = _Limits(
            *(
                np.concatenate(
                    [
                        np.empty(0),
                        *(np.broadcast_to(np.asarray(getattr(c, side), float), n) for c, n in zip(constraints, sizes, strict=True)),
                    ]
                )
                for side in ("lower", "upper")
            )
        )
        held, active = _active_set(x, bounds, values, limits, normals, gradient)
        self.free, self.held = np.flatnonzero(~held), np.flatnonzero(held)
        self.places = np.flatnonzero(active)
        nearest = np.where(np.abs(values - limits.lower) <= np.abs(limits.upper - values), limits.lower, limits.upper)
        self.limits = nearest[self.places]
        multipliers = np.empty(0)
        if len(self.places):
            multipliers = np.linalg.lstsq(normals[self.places][:, self.free].T, gradient[self.free], rcond=None)[0]
        self.z = np.concatenate([x[self.free], multipliers])

    def _measured(self) -> tuple[np.ndarray, list[np.ndarray], np.ndarray]:
        """Gradient, and values and normals of constraints, as plain numbers."""
        gradient = ScipyFunction(self.f, self.packing).gradient(self.x)
        vectors = [VectorFunction(one.function, self.packing, name="constraint") for one in self.constraints]
        values = [vector.value(self.x) for vector in vectors]
        normals = np.concatenate([np.empty((0, len(self.x))), *(vector.jacobian(self.x) for vector in vectors)])
        return gradient, values, normals

    def variable(self, z: Tensor) -> Tensor:
        """All variables, of which bounds hold some."""
        free = z[: len(self.free)]
        if not len(self.held):
            return free
        places = np.empty(len(self.x), np.int64)
        places[self.free], places[self.held] = np.arange(len(self.free)), len(self.free) + np.arange(len(self.held))
        return cat([free, wrap(self.x[self.held])])[wrap(places)]

    def residual(self, z: Tensor) -> Tensor:
        """What is zero at the solution."""
        x = self.variable(z * 1.0)
        structured = self.packing.tensors(x)
        value = flat(recorded(self.f, structured), "minimize").sum()
        if not len(self.places):
            return self._by_free(value, x)
        values = cat([flat(recorded(one.function, structured), "constraint") for one in self.constraints])[wrap(self.places)]
        gaps = values - wrap(self.limits)
        lagrangian = value - (z[len(self.free) :] * gaps).sum()
        return cat([self._by_free(lagrangian, x), gaps])

    def _by_free(self, value: Tensor, x: Tensor) -> Tensor:
        if not value._row:
            return wrap(np.zeros(len(self.free)))
        (g,) = tensor_grad(value, x, create_graph=True, materialize_grads=True)
        if g is None:
            raise AssertionError
        return g[wrap(self.free)] if len(self.held) else g


def _active_set(
    x: np.ndarray, bounds: _Limits, values: np.ndarray, limits: _Limits, normals: np.ndarray, gradient: np.ndarray
) -> tuple[np.ndarray, np.ndarray]:
    """Which variables a bound holds, and which constraints are active.

    One that a solver left a little off its limit is told from one that does nothing by its multiplier: of a gap and a multiplier,
    whose product is zero, the larger one is meant.
    """
    equal = limits.lower == limits.upper
    sides: list[tuple[np.ndarray, np.ndarray, np.ndarray]] = []  # signed normals, gaps, and whose they are
    size = len(x)
    for sign, limit in ((1.0, bounds.lower), (-1.0, bounds.upper)):
        gaps = _gap(sign * (x - limit), limit)
        near = np.flatnonzero(gaps <= NEAR)
        normal = np.zeros((len(near), size))
        normal[np.arange(len(near)), near] = sign
        sides.append((normal, gaps[near], near))
    for sign, limit in ((1.0, limits.lower), (-1.0, limits.upper)):
        gaps = _gap(sign * (values - limit), limit)
        near = np.flatnonzero((gaps <= NEAR) | equal)
        sides.append((sign * normals[near], gaps[near], size + near))
    owners = np.concatenate([numbers for _, _, numbers in sides])
    gaps = np.concatenate([gap for _, gap, _ in sides])
    multipliers = np.zeros(len(owners))
    if len(values) and len(owners):
        from scipy.optimize import nnls

        multipliers = nnls(np.concatenate([normal for normal, _, _ in sides]).T, gradient)[0]
    elif len(owners):
        multipliers = np.concatenate([sides[0][0], sides[1][0]]) @ gradient
    active = np.zeros(size + len(values), bool)
    active[owners[(multipliers > gaps) | (gaps <= AT)]] = True
    active[size:] |= equal
    return active[:size], active[size:]


def _gap(difference: np.ndarray, limit: np.ndarray) -> np.ndarray:
    """How far a value is from its limit, relative to the limit's size; infinite where there is no limit."""
    finite = np.isfinite(limit)
    return np.where(finite, np.abs(difference) / (1.0 + np.abs(np.where(finite, limit, 0.0))), np.inf)
