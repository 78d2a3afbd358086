"""When a path gets machine code, and whether it is believed."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tapegrad.programs.steps import Step, Value

__all__ = ["FusedMatrix", "FusedPath", "close"]

PATIENCE = 0.05  # seconds of a path's own runs until it is compiled
A_CALL, A_STEP, AN_ELEMENT = 1e-5, 2e-7, 5e-9  # seconds, about
# Sums are added up in another order: of the largest element, and of the largest one of all values on the way to it.
CLOSE, ROUNDED = 1e-9, 1e-13
OF_SINGLES = 1e-4, 1e-5  # the same where values are of float32
MOST_TALL = 4  # inputs for each output up to which a Jacobian is computed forwards


class FusedPath:
    """The machine code of a path: not there yet, on trial, in use, or impossible; if `fast`, with last digits of its own.

    Attributes
    ----------
    code : MachineCode or None
        What computes value and gradient, once it has agreed with the steps.
    refused : str
        Why there is none, and there will be none.
    """

    __slots__ = ("_cost", "_fast", "_inputs", "_leaves", "_many", "_output", "_patience", "_steps", "_trial", "code", "refused")

    def __init__(
        self, steps: Sequence[Step], inputs: Sequence[Value], leaves: Sequence[Value], output: Value | None, fast: bool = False
    ) -> None:
        self._fast = fast
        self._steps, self._inputs, self._leaves, self._output = steps, inputs, leaves, output
        self.code: Any = None
        self._trial: Any = None
        self.refused = "" if output is not None else "its value is no number"
        elements = sum(place.array.size for step in steps if (place := step.results_in) is not None)
        self._many: dict[Any, Any] = {}
        self._cost = A_CALL + A_STEP * len(steps) + AN_ELEMENT * elements

        self._patience = PATIENCE / self._cost

    def many(self, points: int, shared: frozenset[int], with_gradients: bool) -> Any:
        """Machine code for many points; None if there is none or too few points to make it for."""
        key = shared, with_gradients
        if key in self._many:
            return self._many[key]
        if self.refused or self._output is None or points * self._cost < PATIENCE:
            return None
        from tapegrad.programs.fused.background import compiling
        from tapegrad.programs.fused.many_points import ManyPoints
        from tapegrad.programs.fused.rule_text import Unfused

        with compiling:
            try:
                leaves = self._leaves if with_gradients else ()
                found = ManyPoints(self._steps, self._inputs, leaves, self._output, shared, self._fast)
            except Unfused:
                found = None
        self._many[key] = found
        return found

    def forget(self, shared: frozenset[int], with_gradients: bool) -> None:
        """Not to use code for many points that gave something else than the steps."""
        self._many[shared, with_gradients] = None

    def ran(self) -> None:
        """Count a run of the steps; when there were enough, the code is made meanwhile."""
        self._patience -= 1
        if self._patience == math.inf:
            from tapegrad.programs.fused.background import give_way

            give_way()
        elif self._patience < 0 and not self.refused:
            self._patience = math.inf
            from tapegrad.programs.fused.background import compile_later

            compile_later(self.compile)

    def compile(self) -> None:
        """Make the code, which is on trial then."""
        from tapegrad.programs.fused.background import compiling

        with compiling:
            if not self.refused and self.code is None and self._trial is None:
                self._compile()

    def expressions(self) -> Any:
        """The expressions of value and gradient.

        Raises
        ------
        Unfused
            If there are none.
        """
        from tapegrad.programs.fused.adjoints import PathExpressions
        from tapegrad.programs.fused.rule_text import Unfused

        if self.refused or self._output is None:
            raise Unfused(self.refused)
        return PathExpressions(self._steps, self._inputs, self._leaves, [self._output], fast=self._fast)

    def shapes(self) -> list[tuple[int, ...]]:
        """Shapes of the gradients."""
        return [value.array.shape for value in self._leaves]

    def _code(self) -> Any:
        """The code.

        Raises
        ------
        Unfused
            If there is none.
        """
        from tapegrad.programs.fused.machine_code import MachineCode

        return MachineCode(self.expressions(), self.shapes())

    def _compile(self) -> None:
        from tapegrad.programs.fused.rule_text import Unfused

        try:
            self._trial = self._code()
        except Unfused as error:
            self.refused = str(error)
        except Exception as error:  # a path that is not compiled is no error
            self.refused = f"{type(error).__name__}: {error}"

    def try_out(self, values: Sequence[Any], expected: Callable[[], tuple[float, Sequence[Any]]]) -> None:
        """Compare code on trial with what the steps give at these inputs."""
        trial, self._trial = self._trial, None
        if trial is None:
            return
        value, gradient = expected()  # first: code may write where the rows have their values
        found = trial.gradient(values)
        own = self.tolerance(gradient)
        if (
            found is None
            or not close(found[0], value, own + (OF_SINGLES[0] if self.has_singles else CLOSE) * abs(value))
            or not all(close(a, b, own) for a, b in zip(found[1], gradient, strict=True))
        ):
            self.refused = "its machine code differed from its steps"
        else:
            self.code = trial

    def tolerance(self, gradient: Sequence[Any]) -> float:
        """By how much results may differ: sums are added up in another order."""
        places = [place for step in self._steps if (place := step.results_in) is not None]
        largest = max([_largest(place.array) for place in places], default=0.0)
        near, rounded = OF_SINGLES if self.has_singles else (CLOSE, ROUNDED)
        return rounded * largest + near * max([_largest(g) for g in gradient], default=0.0)

    @property
    def has_singles(self) -> bool:
        """Whether values on the way are of float32."""
        values = [*self._inputs, *(place for step in self._steps if (place := step.results_in) is not None)]
        return any(value.number < 0 and value.array.dtype == np.float32 for value in values)

    @property
    def waits(self) -> bool:
        """Whether there is code on trial."""
        return self._trial is not None

    def described(self) -> str:
        """What became of it, as text."""
        if self.code is not None:
            return f"machine code, made in {1e3 * self.code.seconds:.0f} ms"
        return f"no machine code: {self.refused}" if self.refused else "no machine code yet"


class FusedMatrix(FusedPath):
    """The machine code of a path's values alone, or of its Jacobian or Hessian.

    Parameters
    ----------
    steps, inputs, leaves, outputs
        Of the path.
    kind : str
        "value", "jacobian", "hessian", or "jvp", "value_jvp" or "hvp" with the number of directions; see `kinds.kind_of`.
    """

    __slots__ = ("_kind", "_outputs")

    def __init__(
        self,
        steps: Sequence[Step],
        inputs: Sequence[Value],
        leaves: Sequence[Value],
        outputs: Sequence[Value],
        kind: str,
        fast: bool = False,
    ) -> None:
        super().__init__(steps, inputs, leaves, None, fast)
        self._outputs, self._kind = outputs, kind
        count, rows = (sum(1 if value.number >= 0 else value.array.size for value in values) for values in (leaves, outputs))
        self.refused = ""
        if kind == "jacobian" and count > MOST_TALL * rows:
            self.refused = "it has fewer outputs than inputs"
        if kind in ("jacobian", "hessian"):
            self._patience = PATIENCE / (self._cost * (2 + count / 4))

    def _code(self) -> Any:
        from tapegrad.programs.fused import matrices

        return matrices.code_of(self._kind, self._steps, self._inputs, self._leaves, self._outputs, self._fast)

    def another(self) -> Any:
        """The same code with memory of its own."""
        from tapegrad.programs.fused.background import compiling

        with compiling:
            return self._code()

    def try_out(self, values: Sequence[Any], expected: Callable[[], tuple[float, Sequence[Any]]]) -> None:
        """The same; where the code leaves it to the steps, it is compared another time."""
        trial = self._trial
        super().try_out(values, expected)
        if self.refused and trial is not None and not trial.is_finite:
            self.refused, self._trial = "", trial


def _largest(array: Any) -> float:
    """The largest magnitude among the finite elements of an array."""
    array = np.asarray(array)
    if array.dtype.kind != "f":
        return 0.0
    return float(np.abs(array, where=np.isfinite(array), out=np.zeros(array.shape)).max(initial=0.0))


def close(a: Any, b: Any, tolerance: float) -> bool:
    """Whether numbers differ by no more than that, or not at all."""
    a, b = np.asarray(a), np.asarray(b)
    if a.shape != b.shape:
        return False
    with np.errstate(all="ignore"):
        return bool(np.all((np.abs(a - b) <= tolerance) | (a == b) | ((a != a) & (b != b))))
