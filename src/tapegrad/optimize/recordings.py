"""Functions as SciPy calls them: value, gradient, Hessian and its products at a point, from one recording of that point."""

from __future__ import annotations

import functools
from abc import ABC, abstractmethod
from collections.abc import Callable
from typing import Any, Generic, Self, TypeVar

import numpy as np

from tapegrad.deferred import look_up
from tapegrad.drivers.calling import call, finished_call
from tapegrad.drivers.derivatives import (
    Derivative,
    Outputs,
    copied,
    derivative_of,
    detached,
    hessian_matrix,
    joined,
    projected,
    symmetric,
)
from tapegrad.drivers.gradients import gradients, scalar_output
from tapegrad.drivers.leaves import Call, is_compiled
from tapegrad.optimize.histories import largest
from tapegrad.optimize.packing import AnyVector, Packing, as_arguments, in_floats, refuse_nan
from tapegrad.optimize.program_hessians import ProgramHessians
from tapegrad.tensors.grad_mode import with_recording
from tapegrad.tensors.tensor import Tensor, array_of
from tapegrad.tensors.untracked_values import writes

__all__ = ["ScipyFunction", "VectorFunction", "scipy_fun"]

T = TypeVar("T")


class Recordings(ABC, Generic[T]):
    """What a function recorded at the two latest points: methods go back to the one before when they refuse a step."""

    def __init__(self) -> None:
        self._kept: list[tuple[bytes, T]] = []
        self._shown: list[bytes] = []  # two at most, which are compared sooner than hashed
        self.evaluations = 0

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *exception: object) -> None:
        """Drop what was recorded: some of SciPy's solvers are cycles of functions, which hold ours until they are collected."""
        self._forget()

    @abstractmethod
    def _record(self, x: np.ndarray) -> T:
        """Run the function at a point."""

    def _at(self, x: Any) -> T:
        """What was recorded at a point."""
        return self._found(x, np.asarray(x, np.float64).tobytes())  # SciPy writes into its arrays; these are bytes of this moment

    def _found(self, x: Any, key: bytes) -> T:
        kept = self._kept
        if kept and kept[-1][0] == key:
            kept.reverse()
        if kept and kept[0][0] == key:
            return kept[0][1]
        return self._again(x, key)

    def _value_at(self, x: Any) -> T:
        """The same for its value, which is handed out once.

        Whoever asks for a value again wants the function to be run: what it reads besides its variable may have changed.
        """
        key = np.asarray(x, np.float64).tobytes()
        if key in self._shown:
            made = self._again(x, key)
        else:
            made = self._found(x, key)
        self._shown.append(key)
        return made

    def _again(self, x: Any, key: bytes) -> T:
        self._kept = [pair for pair in self._kept[:1] if pair[0] != key]
        still = [pair[0] for pair in self._kept]
        self._shown = [shown for shown in self._shown if shown in still]
        made = self._record(np.asarray(x, np.float64))
        self._kept.insert(0, (key, made))
        self.evaluations += 1
        return made

    def known(self, x: Any) -> T | None:
        """What was recorded at a point, if it is still there."""
        key = np.asarray(x, np.float64).tobytes()
        return next((made for kept, made in self._kept if kept == key), None)

    def _forget(self) -> None:
        """Drop all of it."""
        self._kept = []
        self._shown.clear()


class _Point:
    """A scalar function at one point."""

    __slots__ = ("derivative", "gradient", "made", "output", "value")
    made: Call | None
    output: Tensor | None
    derivative: Any

    def __init__(self, value: float, gradient: np.ndarray) -> None:
        self.value, self.gradient = value, gradient
        self.made = self.output = self.derivative = None


def _vector(found: list[Any]) -> np.ndarray:
    return joined(array_of(g) if isinstance(g, Tensor) else g for g in found)


def _value_and_gradient(f: Callable[..., Any], *args: Any) -> tuple[float, np.ndarray]:
    """Value and gradient by the first argument, by a reverse sweep; a program is run again."""
    replay = getattr(f, "__replay__", None)
    replayed = None if replay is None else replay(args, {}, 0, False, _swept)
    found: tuple[float, np.ndarray] = _swept(call(f, args, {}, 0, False, "minimize")) if replayed is None else replayed[1]
    return found


def _swept(made: Call) -> tuple[float, np.ndarray]:
    output = scalar_output(made, "minimize")
    return float(output._data), _vector(gradients(made, output))


class ScipyFunction(Recordings[_Point]):
    """A scalar function of a flat vector with its derivatives.

    Calling it gives ``(value, gradient)``, for ``scipy.optimize.minimize(fun, x0, jac=True)``. `gradient`, `hess` and `hessp` use
    what was recorded at the point; a second call at the same point runs the function again. `scipy_fun` makes it.

    Attributes
    ----------
    x0 : ndarray, shape (n,)
        The starting point as a vector.
    evaluations : int
        How often the function was run.

    Examples
    --------
    >>> fun = tg.optimize.scipy_fun(lambda p: p["a"] ** 2 * p["b"], {"a": 1.0, "b": 2.0})
    >>> fun(fun.x0), fun.hessp(fun.x0, np.array([1.0, 0.0])), fun.evaluations
    ((2.0, array([4., 1.])), array([4., 2.]), 2)
    """

    def __init__(self, f: Callable[..., Any], packing: Packing, args: Any = (), keeps: bool = False, strict: bool = False) -> None:
        super().__init__()
        self._f, self._packing, self._args, self._keeps = f, packing, as_arguments(args), keeps
        self._code = ProgramHessians(f)
        self._strict = strict  # whether nan is refused at the first point
        self.first: tuple[float, float] | None = None  # value and largest element of the gradient at the first point
        self.x0 = packing.start
        self._value_and_gradient: Callable[..., Any] = functools.partial(_value_and_gradient, f)
        if is_compiled(f):
            from tapegrad.drivers.compiled import compiled_gradient

            self._value_and_gradient = compiled_gradient(f, 0, self._value_and_gradient)

    @functools.cached_property
    def _sparse(self) -> Any:
        return look_up("sparse.evaluation:Evaluation")(True)

    @property
    def latest_value(self) -> float:
        """Value at the latest point."""
        return self._kept[0][1].value

    def _record(self, x: np.ndarray) -> _Point:
        if self._keeps:
            point = self._retained(x)
        else:
            value, gradient = self._value_and_gradient(self._packing.point(x), *self._args)
            point = _Point(self._checked(value), np.asarray(gradient).reshape(-1))
        if self.first is None:
            self.first = point.value, largest(point.gradient)
        return point

    def _checked(self, value: float) -> float:
        if self._strict:
            refuse_nan(value)
            self._strict = False
        return value

    def _retained(self, x: np.ndarray) -> _Point:
        """A point whose recording is kept."""
        arguments = (self._packing.point(x), *self._args)
        point: _Point = finished_call(self._f, arguments, {}, 0, False, "minimize", self._point_of, second=True)
        return point

    def _point_of(self, made: Call) -> Any:
        output = scalar_output(made, "minimize")
        value = self._checked(float(output._data))
        # What was recorded is walked again if products with the Hessian are wanted at this point, which not all points are.
        point = _Point(value, _vector(gradients(made, output, keeps=True)))
        if made.kept:  # by a program, whose rows will have other values
            kept = detached(made, "minimize", second=True)
            if kept is None:
                return NotImplemented
            point.derivative = kept[2]
        else:
            point.made, point.output = made, output
        return point

    def _second(self, x: np.ndarray) -> Any:
        if not self._keeps:
            self._forget()  # first: points without a recording must not be taken for others
            self._keeps = True
        point = self._at(x)
        if point.derivative is None:
            assert point.made is not None
            assert point.output is not None
            point.derivative = derivative_of(point.made, [point.output], second=True, constant=True)
        return point.derivative

    def _by_code(self, x: np.ndarray, *needs: Any) -> np.ndarray | None:
        """What machine code gives of the second derivatives; nothing else has to be kept of points then."""
        found = self._code.matrix((self._packing.point(np.asarray(x, np.float64)), *self._args), *needs)
        if found is not None:
            self._keeps = False
        return found

    def __call__(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        """Value and gradient, of shape (n,), at a point of shape (n,)."""
        point = self._value_at(x)
        return point.value, point.gradient.copy()

    def value(self, x: np.ndarray) -> float:
        """Value at a point."""
        return self._value_at(x).value

    def gradient(self, x: np.ndarray) -> np.ndarray:
        """Gradient at a point, of its shape (n,)."""
        return self._at(x).gradient.copy()

    def hessp(self, x: np.ndarray, p: np.ndarray) -> np.ndarray:
        """Product of the Hessian at a point with a vector, all of shape (n,): a forward and a reverse sweep."""
        p = np.asarray(p, np.float64)
        if (found := self._by_code(x, "hvp", p)) is not None:
            return found[0]
        product: np.ndarray = self._second(x).curve(p.reshape(-1, 1))[:, 0]
        return product

    def hess(self, x: np.ndarray) -> np.ndarray:
        """Hessian at a point, of shape (n, n)."""
        if (found := self._by_code(x, "hessian")) is not None:
            return symmetric(found)
        return hessian_matrix(self._second(x))

    def sparse_hess(self, x: np.ndarray) -> Any:
        """The same as SciPy's sparse array, of a structure that is found once."""
        return self._sparse.matrix(self._second(x))

    def hessian_entries(self, x: np.ndarray) -> Any:
        """The same as a pair, of a pattern and the values of its entries."""
        return self._sparse.entries(self._second(x))

    def hessian_pattern(self, x: np.ndarray) -> Any:
        """Its pattern alone."""
        return self._sparse.prepared(self._second(x)).pattern

    def structured(self, x: np.ndarray) -> Any:
        """A vector in the structure of the starting point."""
        return self._packing.structured(x)


class VectorFunction(Recordings[tuple[Call, Outputs, Any, list[Any]]]):
    """A function of a flat vector that gives a vector, with its Jacobian from the same recording.

    With `keeps` the recording outlives the Jacobian, and `hessian` is of the same one. With `sparse` both are SciPy's
    sparse arrays.
    """

    def __init__(
        self,
        f: Callable[..., Any],
        packing: Packing,
        args: Any = (),
        name: str = "jacobian",
        keeps: bool = False,
        sparse: bool = False,
    ) -> None:
        super().__init__()
        self._f, self._packing, self._args, self._name, self._keeps = f, packing, as_arguments(args), name, keeps
        evaluation: Any = look_up("sparse.evaluation:Evaluation") if sparse else lambda second: None
        self._first, self._weighted = evaluation(False), evaluation(True)

    def _call(self, variable: Any, second: bool = False) -> Call:
        return call(self._f, (variable, *self._args), {}, 0, False, self._name, second)

    def _record(self, x: np.ndarray) -> tuple[Call, Outputs, Any, list[Any]]:
        found: Any
        variable = self._packing.point(x)
        if self._keeps or not hasattr(self._f, "__replay__"):
            written = writes()
            found = self._recorded(self._call(variable))
            if writes() != written and found[0].recording is None:
                found[1].tensors = with_recording(copied, found[1].tensors)
            return found
        needs = "jacobian" if self._first is None else "rows"
        found = finished_call(self._f, (variable, *self._args), {}, 0, False, self._name, self._recorded, needs=needs)
        return found

    def _recorded(self, made: Call) -> Any:
        made.output = in_floats(made.output)
        if not made.kept or made.matrix is not None:
            outputs = Outputs(made, self._name)
            return (made, outputs, None, []) if made.matrix is None else (outputs.detached_from(made), outputs, None, [made.matrix])
        kept = detached(made, self._name)  # by a program, whose rows will have other values
        return NotImplemented if kept is None else (*kept, [])

    def value(self, x: np.ndarray) -> np.ndarray:
        """All outputs as one vector."""
        _, outputs, _, _ = self._value_at(x)
        return joined(map(array_of, outputs.tensors))

    def known_value(self, x: np.ndarray) -> np.ndarray | None:
        """The same if the function was run there lately."""
        found = self.known(x)
        return None if found is None else joined(map(array_of, found[1].tensors))

    def jacobian(self, x: np.ndarray) -> Any:
        """Matrix of shape (outputs, inputs)."""
        made, outputs, derivative, matrices = self._at(x)
        if not matrices:
            matrices.append(self._matrix(made, outputs.tensors, derivative))
        return matrices[0].copy()

    def _matrix(self, made: Call, tensors: list[Tensor], derivative: Any) -> Any:
        if self._first is not None:
            return self._first.matrix(derivative_of(made, tensors, constant=True) if derivative is None else derivative)
        once = derivative is None and not self._keeps and made.recording is None
        if once and len(tensors) == 1 and not np.ndim(tensors[0]._data):
            return _vector(gradients(made, tensors[0])).reshape(1, -1)  # a linear tape would be swept once only
        from tapegrad.drivers.jacobians import jacobian_matrix

        if derivative is None:
            derivative = derivative_of(made, tensors, constant=True)
        return np.ascontiguousarray(jacobian_matrix(derivative))

    def jacobian_entries(self, x: np.ndarray) -> Any:
        """The same, where it is sparse, as a pair of a pattern and the values of its entries."""
        return self._first.entries(self._derivative(x))

    def jacobian_pattern(self, x: np.ndarray) -> Any:
        """Its pattern alone."""
        return self._first.prepared(self._derivative(x)).pattern

    def _derivative(self, x: np.ndarray) -> Any:
        made, outputs, derivative, _ = self._at(x)
        return derivative_of(made, outputs.tensors, constant=True) if derivative is None else derivative

    def hessian(self, x: np.ndarray, weights: np.ndarray) -> Any:
        """Hessian of a weighted sum of the outputs; only where recordings are kept."""
        derivative = self._second(x, weights)
        return hessian_matrix(*derivative) if self._weighted is None else self._weighted.matrix(*derivative)

    def hessian_entries(self, x: np.ndarray, weights: np.ndarray) -> Any:
        """The same, where it is sparse, as such a pair."""
        return self._weighted.entries(*self._second(x, weights))

    def hessian_pattern(self, x: np.ndarray, weights: np.ndarray) -> Any:
        """Its pattern alone."""
        return self._weighted.prepared(self._second(x, weights)[0]).pattern

    def _second(self, x: np.ndarray, weights: np.ndarray) -> tuple[Any, ...]:
        """The derivative of the outputs' weighted sum, or that of the outputs and the weights."""
        if is_compiled(self._f):
            return self._call(self._packing.point(x), second=True).recording, np.asarray(weights, np.float64)
        made, outputs, _, _ = self._at(x)
        return (Derivative(made.leaves, [projected(outputs, np.asarray(weights))], second=True),)


def scipy_fun(f: Callable[..., Any], x0: Any = None, args: Any = ()) -> ScipyFunction:
    """A function with its derivatives for people who call SciPy themselves.

    Parameters
    ----------
    f : callable
        Takes the variable and `args`, returns a scalar. Python's or compiled, as for `value_and_grad`.
    x0 : array, float or container of these, optional
        A point that has the variable's structure. Without it the variable is an array of one dimension.
    args : tuple
        Further arguments, constants.

    Returns
    -------
    ScipyFunction
        Itself callable for ``jac=True``, with ``value``, ``gradient``, ``hess`` and ``hessp``, ``x0`` as a vector, and
        ``structured(x)`` for the way back. They share one recording for each point, until the value there is asked for again.

    Raises
    ------
    TypeError
        If `x0` is not of floats; when called, if the function's result is no scalar or lost its derivative.
    CompileError
        When called: if a compiled `f` uses what cannot be recorded.
    ValueError
        When called: if the vector has not as many elements as `x0`.

    Examples
    --------
    >>> from scipy.optimize import minimize
    >>> fun = tg.optimize.scipy_fun(lambda x: ((x - 1.0) ** 2).sum())
    >>> minimize(fun, np.zeros(2), jac=True, hessp=fun.hessp, method="trust-ncg").x
    array([1., 1.])
    """
    return ScipyFunction(f, AnyVector("scipy_fun") if x0 is None else Packing(x0, "scipy_fun"), args)
