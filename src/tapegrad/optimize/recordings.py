"""Functions as SciPy calls them: value, gradient, Hessian and its products at a point, from one recording of that point."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tapegrad.autograd.backward import grad as tensor_grad
from tapegrad.drivers.calling import Call, call
from tapegrad.drivers.derivatives import Derivative, Outputs
from tapegrad.drivers.gradients import gradients, scalar_output
from tapegrad.drivers.jacobians import jacobian_matrix
from tapegrad.optimize.packing import Packing, flat_gradient
from tapegrad.tensor import Tensor, array_of

__all__ = ["ScipyFunction", "VectorFunction", "scipy_fun"]


class ScipyFunction:
    """A scalar function of a flat vector with its derivatives.

    Calling it gives ``(value, gradient)``, for ``scipy.optimize.minimize(fun, x0, jac=True)``.

    Attributes
    ----------
    x0 : ndarray
        The starting point as a vector.
    evaluations : int
        How often the function was run.
    """

    def __init__(self, f: Callable[..., Any], packing: Packing, args: Sequence[Any] = (), keeps: bool = False) -> None:
        self._f, self._packing, self._args, self._keeps = f, packing, tuple(args), keeps
        self.x0 = packing.start
        self.evaluations = 0
        self._x: np.ndarray | None = None
        self._value = 0.0
        self._gradient = np.empty(0)
        self._made: Call | None = None
        self._output: Tensor | None = None
        self._derivative: Derivative | None = None

    def _move(self, x: np.ndarray) -> None:
        """Record the function at a point, unless that was the latest one."""
        if self._x is not None and np.array_equal(self._x, x, equal_nan=True):
            return
        self._x = None
        made = call(self._f, (self._packing.structured(x), *self._args), {}, 0, False, "minimize")
        output = scalar_output(made, "minimize")
        self.evaluations += 1
        self._value = float(output._data)
        if self._keeps and output._row:
            # The graph is walked again if products with the Hessian are wanted at this point, which not all points are.
            found: list[Any] = list(tensor_grad(output, made.leaves, retain_graph=True, materialize_grads=True))
            self._made, self._output = made, output
        else:
            found = gradients(made, output)
            self._made = self._output = None
        self._gradient = flat_gradient(made, found)
        self._derivative = None
        self._x = np.array(x, np.float64)

    def _second(self, x: np.ndarray) -> Derivative | None:
        """Second derivatives at a point; None if the function does not depend on its variable."""
        if not self._keeps:
            self._keeps, self._x = True, None
        self._move(x)
        if self._derivative is None and self._output is not None and self._made is not None:
            self._derivative = Derivative(self._made.leaves, [self._output], second=True)
        return self._derivative

    def __call__(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        """Value and gradient at a point."""
        self._move(x)
        return self._value, self._gradient.copy()

    def value(self, x: np.ndarray) -> float:
        """Value at a point."""
        self._move(x)
        return self._value

    def gradient(self, x: np.ndarray) -> np.ndarray:
        """Gradient at a point."""
        self._move(x)
        return self._gradient.copy()

    def hessp(self, x: np.ndarray, p: np.ndarray) -> np.ndarray:
        """Product of the Hessian at a point with a vector."""
        derivative = self._second(x)
        if derivative is None:
            return np.zeros(len(x))
        product: np.ndarray = derivative.curve(np.asarray(p, np.float64).reshape(-1, 1))[:, 0]
        return product

    def hess(self, x: np.ndarray) -> np.ndarray:
        """Hessian at a point."""
        derivative = self._second(x)
        if derivative is None:
            return np.zeros((len(x), len(x)))
        full = derivative.curve(np.eye(len(x)))
        return 0.5 * (full + full.T)

    def structured(self, x: np.ndarray) -> Any:
        """A vector in the structure of the starting point."""
        return self._packing.structured(x)


class VectorFunction:
    """A function of a flat vector that gives a vector, with its Jacobian from the same recording."""

    def __init__(self, f: Callable[..., Any], packing: Packing, args: Sequence[Any] = (), name: str = "jacobian") -> None:
        self._f, self._packing, self._args, self._name = f, packing, tuple(args), name
        self._x: np.ndarray | None = None
        self._made: Call | None = None
        self._outputs: Outputs | None = None
        self._jacobian: np.ndarray | None = None
        self.evaluations = 0

    def _at(self, x: np.ndarray) -> tuple[Call, Outputs]:
        if self._made is None or self._outputs is None or self._x is None or not np.array_equal(self._x, x, equal_nan=True):
            self._x = None
            self._made = call(self._f, (self._packing.structured(x), *self._args), {}, 0, False, self._name)
            self._outputs = Outputs(self._made, self._name)
            self._jacobian = None
            self.evaluations += 1
            self._x = np.array(x, np.float64)
        return self._made, self._outputs

    def value(self, x: np.ndarray) -> np.ndarray:
        """All outputs as one vector."""
        _, outputs = self._at(x)
        parts = [array_of(t).reshape(-1).astype(np.float64) for t in outputs.tensors]
        return np.concatenate(parts) if parts else np.empty(0)

    def jacobian(self, x: np.ndarray) -> np.ndarray:
        """Matrix of shape (outputs, inputs)."""
        made, outputs = self._at(x)
        if self._jacobian is None:
            self._jacobian = np.ascontiguousarray(jacobian_matrix(Derivative(made.leaves, outputs.tensors)))
        return self._jacobian.copy()

    def hessian(self, x: np.ndarray, weights: np.ndarray) -> np.ndarray:
        """Hessian of a weighted sum of the outputs."""

        def total(*args: Any) -> Any:
            made = self._f(*args)
            found: list[Any] = []
            from tapegrad.drivers.containers import flatten

            flatten(made, found, [], "")
            done, value = 0, 0.0
            for part in found:
                size = int(np.size(part._data)) if isinstance(part, Tensor) else int(np.size(part))
                block = np.asarray(weights[done : done + size]).reshape(np.shape(getattr(part, "_data", part)))
                value = value + (part * block).sum()
                done += size
            return value

        return ScipyFunction(total, self._packing, self._args).hess(x)


def scipy_fun(f: Callable[..., Any], x0: Any = None, args: Sequence[Any] = ()) -> ScipyFunction:
    """A function with its derivatives for people who call SciPy themselves.

    Parameters
    ----------
    f : callable
        Takes the variable and `args`, returns a scalar.
    x0 : array, float or container of these, optional
        A point that has the variable's structure. Without it the variable is an array of one dimension.
    args : tuple
        Further arguments, constants.

    Returns
    -------
    ScipyFunction
        Itself callable for ``jac=True``, with ``value``, ``gradient``, ``hess`` and ``hessp``, which share one recording for each
        point, ``x0`` as a vector, and ``structured(x)`` for the way back.

    Raises
    ------
    TypeError
        If `x0` is not of floats.

    Examples
    --------
    >>> from scipy.optimize import minimize
    >>> fun = tg.optimize.scipy_fun(lambda x: ((x - 1.0) ** 2).sum())
    >>> minimize(fun, np.zeros(2), jac=True, hessp=fun.hessp, method="trust-ncg").x
    array([1., 1.])
    """
    return ScipyFunction(f, Packing(np.empty(0) if x0 is None else x0, "scipy_fun") if x0 is not None else _Vector(), args)


class _Vector(Packing):
    """The packing of a variable that is a vector of any length."""

    def __init__(self) -> None:
        super().__init__(np.empty(0), "scipy_fun")

    def structured(self, vector: np.ndarray) -> Any:
        """The vector itself."""
        return np.array(vector, np.float64)
