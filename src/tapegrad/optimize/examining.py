"""Equations recorded at their solution, and whether the implicit function theorem holds there.

Nobody knows the tolerance that a solver kept to, nor whether the function has a kink; so Newton's method goes on from the result to
where the equations hold, and their neighbourhood is looked at. What is wrong is raised when somebody asks for a derivative.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tapegrad.arrays.floating_point_warnings import quiet
from tapegrad.autograd.subgraph import Mark
from tapegrad.drivers.derivatives import Derivative
from tapegrad.errors import CompileError, LinAlgError
from tapegrad.optimize.active_sets import AmbiguousError
from tapegrad.optimize.dependence import leaf_of, refuse_escapes
from tapegrad.optimize.equations import Determined, Equations
from tapegrad.optimize.linearised import SingularError, UnsolvedError, lengths
from tapegrad.optimize.neighbourhoods import Neighbourhood, Unsmooth
from tapegrad.tensors.grad_mode import with_recording
from tapegrad.tensors.tensor import Tensor, array_of
from tapegrad.tensors.untracked_values import at_depth, depth, watched

__all__ = ["Recording"]

FARTHEST = 1e-2  # the longest Newton step from a point that passes for a solution, relative to its size
GAVE_UP = 1e-5  # the same where the solver says that it did not converge: rounding may keep it from the tolerance it was asked for
CHANGED = 1e-7  # the same where it ought to be nothing but rounding
NEGLIGIBLE = 1e-10  # the same where derivatives do not change
CONTRACTED = 0.25  # how long a Newton step may be, relative to the one before
STEPS = 8


class Recording:
    """Equations, recorded once at their solution.

    A reverse pass takes one solution of linear equations and one pass over that recording. A pass that is itself recorded runs the
    residual again on the solution's own row, so that the result depends on it too.
    """

    __slots__ = ("_found", "_refusal", "equations", "inner", "leaf", "level", "seen", "value")
    leaf: Tensor
    value: Tensor
    seen: list[Tensor]  # what the solution depends on, and what was compared on the way
    inner: list[bool]  # which of the parameters the residual depends on

    def __init__(self, equations: Equations) -> None:
        self.equations, self.level = equations, max(depth(), 1)
        self._found: Determined | None = None
        self._refusal: tuple[type[Exception], tuple[Any, ...]] | None = None

    def record(self) -> Mark:
        """Run the residual."""
        mark, leaf = Mark(), leaf_of(self.equations.z)
        (found, others), places = at_depth(0, watched, self.equations.residual, (leaf,), {}, True)
        refuse_escapes(places, mark, leaf, self.equations.name)
        # A row of its own, if the residual is nothing but a parameter.
        self.leaf, self.value = leaf, found * 1.0
        self.seen = [self.value, *others, *(places.decided or ())]
        return mark

    def slots(self, mark: Mark) -> set[int]:
        """The boundary of the residual, for the time of a claim."""
        return set(mark.boundary([self.value], [self.leaf]))

    def examine_at_once(self) -> None:
        """Examine the solution while variables around its functions are what they were; what is wrong is raised when asked for."""
        try:
            self._found = with_recording(self._examined, False)
        except (RuntimeError, CompileError) as error:
            self._refusal = type(error), error.args  # not itself: it holds the frames that it went through

    def determined(self) -> Determined:
        """What the solution is determined by, which is found and examined the first time.

        Raises
        ------
        LinAlgError
            If the Jacobian is singular.
        RuntimeError
            If the solver failed, its result is far from a solution, or the solution is no differentiable function of parameters.
        """
        if self._refusal is not None:
            kind, arguments = self._refusal
            raise kind(*arguments)
        if self._found is None:
            self._found = with_recording(self._examined, True)
        return self._found

    def _examined(self, late: bool) -> Determined:
        equations = self.equations
        try:
            found, jacobian = self._arrived(late)
            equations.require_certainty()
        except SingularError as error:
            raise self._singular(error) from None
        except AmbiguousError as error:
            if equations.failure is not None:
                raise self._failed() from None
            raise AmbiguousError(f"{equations.name}: {error}.") from None
        try:
            self._neighbourhood(found.lengths).require_smoothness(
                found.linear, found.kept, array_of(self.value), jacobian, found.held, found.step
            )
        except Unsmooth as unsmooth:
            raise self._kink() if unsmooth.kink else self._unsmooth() from None
        return found

    def _arrived(self, late: bool) -> tuple[Determined, Any]:
        """Equations and their Jacobian where Newton's method ends, if that is near the point that the solver found.

        Derivatives at the point itself would be as exact as the solver, and tolerances that people do not choose are loose.
        """
        equations, before = self.equations, np.inf
        value = array_of(self.value)
        again = self._value_at(equations.z) if late else value
        for number in range(STEPS):
            found, jacobian = self._linearised()
            hood = self._neighbourhood(found.lengths)
            if number == 0:
                self._require_same(found, value, again, equations.z)
                self._require_near(found, hood)
            size = hood.norm(found.step)
            if size <= NEGLIGIBLE:
                return found, jacobian
            if not size <= CONTRACTED * before:
                if not size <= CHANGED:
                    raise self._not_reached(found, hood)
                return found, jacobian  # no nearer for rounding
            before = size
            equations.z = equations.z + found.step
            self.record()
        raise self._not_reached(found, hood)

    def _require_near(self, found: Determined, hood: Neighbourhood) -> None:
        """See that the solver's result is a solution, up to tolerances of solvers."""
        z, variables = self.equations.z, len(found.lengths)
        way = float(np.abs(found.step[:variables]).max(initial=0.0))
        size = hood.norm(found.step)
        if not self.equations.start.any():  # numbers are about one, if nothing tells otherwise
            size = min(size, way / (1.0 + np.abs(z[:variables]).max(initial=0.0)))
        if self.equations.failure is not None and not size <= GAVE_UP:
            raise self._kink() if hood.jumps(z, z + found.step) else self._failed()
        if not size <= FARTHEST:
            raise self._not_reached(found, hood)

    def _not_reached(self, found: Determined, hood: Neighbourhood) -> RuntimeError:
        z = self.equations.z
        if hood.jumps(z, z + found.step):
            return self._kink()
        return RuntimeError(
            f"{self.equations.name}: the result does not solve its equations: Newton's method would go on by "
            f"{np.abs(found.step[: len(found.lengths)]).max():.2g}, and may not end near. Ask for a smaller tolerance."
        )

    def _linearised(self) -> tuple[Determined, Any]:
        for _ in range(STEPS):
            jacobian = self._jacobian()
            found = self.equations.determined(array_of(self.value), jacobian)
            if found is not None:
                return found, jacobian
            self.record()
        raise AmbiguousError("which constraints are active at the result is not clear")

    def _jacobian(self) -> Any:
        derivative = Derivative([self.leaf], [self.value]) if self.value._row else None
        return self.equations.systems.jacobian(derivative, len(self.equations.z))

    def _neighbourhood(self, long: np.ndarray) -> Neighbourhood:
        z, bounds = self.equations.z, self.equations.bounds
        lower, upper = bounds or (np.full(len(long), -np.inf), np.full(len(long), np.inf))
        return Neighbourhood(self._value_at, z, long, lower, upper)

    def _value_at(self, z: np.ndarray) -> np.ndarray | None:
        """The residual at another point; None where the function cannot be evaluated there."""
        try:
            with quiet():
                return at_depth(self.level, self.equations.evaluate, z)
        except (ValueError, ArithmeticError):
            return None

    def _failed(self) -> RuntimeError:
        return RuntimeError(
            f"{self.equations.name}: the solver did not converge ({self.equations.failure}), so its result has no derivative by "
            "the implicit function theorem. Give it more iterations or a better starting point, or look at result.success before."
        )

    def _singular(self, error: SingularError) -> RuntimeError:
        equations = self.equations
        x = equations.z[: len(equations.start)]
        is_unsolved = isinstance(error, UnsolvedError)
        if (is_unsolved or not error.args) and self._neighbourhood(lengths(x, equations.start, np.ones(len(x)))).jumps_around():
            return self._kink()
        if equations.failure is not None:
            return self._failed()
        if is_unsolved:
            return LinAlgError(str(error))
        if error.args:
            return LinAlgError(f"{equations.name}: {error}, so there is no derivative")
        return LinAlgError(
            f"{equations.name}: the Jacobian of the equations (the Hessian of what is minimised) is singular at the solution, so "
            "the solution is no differentiable function of the parameters. A small quadratic term, or fewer unknowns, makes it "
            "unique."
        )

    def _kink(self) -> RuntimeError:
        return RuntimeError(
            f"{self.equations.name}: the result sits at a kink, where the derivative jumps, as that of abs, maximum, relu and "
            "where does: there the gradient says nothing about how the solution moves. Describe the kink by what is smooth: "
            "minimise t with tg.optimize.inequality(lambda v: v[1] - g(v[0])) instead of maximum(g(x), ...), solve for the point "
            "where it is with tg.optimize.root, or round it off, as in np.sqrt(x * x + 1e-6) for abs(x)."
        )

    def _unsmooth(self) -> RuntimeError:
        return RuntimeError(
            f"{self.equations.name}: near the result the equations are not what their derivative there says: they are nearly "
            "singular, change within less than a millionth of the size of the variables, or are hidden by rounding. Scale "
            "the variables and the function, or make the problem better conditioned."
        )

    def rows(self, z: Tensor, slots: Sequence[int]) -> Tensor:
        """The residual on the row of the solution, which must depend on the same parameters.

        Raises
        ------
        RuntimeError
            If it changed.
        """
        mark = Mark()
        found, _ = at_depth(self.level, self.equations.residual, z)
        value = found * 1.0
        self._require_same(self.determined(), array_of(self.value), array_of(value), array_of(z))
        if mark.boundary([value], [z]) != sorted({slot for slot, inner in zip(slots, self.inner, strict=True) if inner}):
            raise self._changed()
        return value

    def _require_same(self, found: Determined, before: np.ndarray, now: np.ndarray | None, z: np.ndarray) -> None:
        if now is not None:
            away = found.linear.solve(now[found.kept] - before[found.kept])
            variables = found.kept < len(found.lengths)
            if np.abs(away[variables]).max(initial=0.0) <= CHANGED * (1.0 + np.abs(z[found.kept][variables]).max(initial=0.0)):
                return
        raise self._changed()

    def _changed(self) -> RuntimeError:
        return RuntimeError(
            f"{self.equations.name}: the function gives other values than when the solution was computed, or depends on other "
            "tensors, so there is no second derivative. Variables around it that change in between are to be arguments."
        )
