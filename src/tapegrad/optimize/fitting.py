"""Least squares: SciPy's `least_squares` and `curve_fit` with exact Jacobians."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from typing import Any

import numpy as np

from tapegrad.deferred import look_up
from tapegrad.drivers.calling import call
from tapegrad.drivers.leaves import Call, called, is_compiled
from tapegrad.optimize.dependence import constants, depends_on_tracked, flat, frozen, recorded, tracked_in
from tapegrad.optimize.histories import Progress, largest, noted_jacobian
from tapegrad.optimize.limits import refuse_tracked_limits
from tapegrad.optimize.packing import AnyVector, Packing, as_arguments
from tapegrad.optimize.recordings import VectorFunction
from tapegrad.optimize.scipy_solvers import solvers
from tapegrad.tensors.tensor import Tensor, is_recording
from tapegrad.tensors.untracked_values import at_depth

__all__ = ["curve_fit", "least_squares"]

INSTEAD_OF_BOUNDS = (
    "Give half the sum of squares to tg.optimize.minimize with constraints of functions, as in "
    "tg.optimize.inequality(lambda x: x - lower), or pass lower.detach() for a constant."
)


def least_squares(
    residual: Callable[..., Any],
    x0: Any,
    args: Any = (),
    kwargs: dict[str, Any] | None = None,
    sparse: bool = False,
    progress: bool = False,
    callback: Callable[[Any], Any] | None = None,
    **options: Any,
) -> Any:
    """Minimise a sum of squares with `scipy.optimize.least_squares` and the exact Jacobian.

    Parameters
    ----------
    residual : callable
        Takes the variable and `args`, returns an array, a float, or a container of these. Python's or compiled, as for
        `value_and_grad`.
    x0 : array, float or container of these
        The starting point; a list or tuple of floats means an array.
    args : tuple
        Further arguments; what is no tuple is one argument.
    kwargs : dict, optional
        Further arguments by keyword.
    sparse : bool
        Whether the Jacobian is given as a sparse array (`tapegrad.sparse.jacobian`), and systems are solved by
        ``tr_solver="lsmr"``. Of SciPy's methods ``"trf"`` and ``"dogbox"`` take it.
    progress : bool
        Show a progress bar, as for `minimize`.
    callback : callable, optional
        Called with the structured variable at each point where a Jacobian is computed, after the first.
    **options
        SciPy's: ``bounds``, ``method``, ``loss``, tolerances, and others.

    Returns
    -------
    scipy.optimize.OptimizeResult
        SciPy's, with ``x`` in the structure of `x0`, and ``flat``, the vector that SciPy worked on. Besides, ``history`` has half
        of the sum of squares and the gradient's norm at each of these points, and ``plot()`` draws them.

    Raises
    ------
    ModuleNotFoundError
        If `progress` is asked for without tqdm.
    TypeError
        If `x0` or the residual is not of floats.
    CompileError
        If a compiled residual uses what cannot be recorded.
    NotImplementedError
        If the solution depends on tracked tensors, and there is another loss than the linear one, or bounds are tracked.

    Notes
    -----
    Value and Jacobian of a point come from one recording, as in `value_and_jacobian`.

    Where the residual depends on tracked tensors, ``x``, ``flat``, ``fun`` and ``cost`` hold tensors, as for `minimize`.

    Examples
    --------
    >>> def residual(x):
    ...     return np.stack([10.0 * (x[1] - x[0] ** 2), 1.0 - x[0]])
    >>> tg.optimize.least_squares(residual, [-1.2, 1.0]).x.round(6)
    array([1., 1.])
    """
    optimize = solvers()

    residual = called(residual)
    packing = Packing(x0, "least_squares")
    bounds = options.get("bounds")
    refuse_tracked_limits("least_squares", bounds, advice=INSTEAD_OF_BOUNDS)
    pairs = None if bounds is None else bounds if hasattr(bounds, "lb") else optimize.Bounds(*bounds)
    function = functools.partial(residual, **kwargs) if kwargs else residual
    vector = VectorFunction(function, packing, constants(as_arguments(args)), "least_squares", sparse=sparse)
    if sparse:
        options.setdefault("tr_solver", "lsmr")
    steps = Progress(progress, None if callback is None else lambda x: callback(packing.structured(x)))
    with vector, noted_jacobian(steps, vector) as jacobian:
        result = at_depth(0, functools.partial(optimize.least_squares, vector.value, packing.start, jac=jacobian, **options))
    result = look_up("optimize.results:with_history")(result, steps.history)
    result.flat = result.x
    parameters = frozen(as_arguments(args))

    def residuals(x: Any) -> Tensor:
        return flat(recorded(function, x, *parameters), "least_squares")

    def half_of_squares(x: Any) -> Tensor:
        r = residuals(x)
        return 0.5 * (r * r).sum()

    given = tracked_in((parameters, kwargs))
    dependent = depends_on_tracked(lambda z: [residuals(packing.tensors(z))], result.flat, "least_squares")
    if not (dependent or (given and is_recording())):
        if not packing.is_vector:
            result.x = packing.structured(result.x)
        return result
    if options.get("loss", "linear") != "linear":
        raise NotImplementedError(
            f"least_squares: the solution depends on tracked tensors, and is differentiated only with loss='linear', not "
            f"{options['loss']!r}. Give the sum of losses to tg.optimize.minimize, or run under tg.no_grad()."
        )
    from tapegrad.optimize.optimality import implicit_minimum  # with linear algebra, which most fits need not

    failure = None if result.success else str(result.message)
    x = implicit_minimum(half_of_squares, packing, result.flat, pairs, (), "least_squares", failure, given)
    if x is not None:
        result.x, result.flat = packing.tensors(x), x
        result.fun = residuals(result.x)
        result.cost = half_of_squares(result.x)
    return result


def curve_fit(
    model: Callable[..., Any],
    xdata: Any,
    ydata: Any,
    p0: Any = None,
    progress: bool = False,
    callback: Callable[[Any], Any] | None = None,
    **options: Any,
) -> Any:
    """Fit the parameters of a model to data with `scipy.optimize.curve_fit` and the exact Jacobian.

    Parameters
    ----------
    model : callable
        ``model(xdata, *parameters)`` gives an array of the shape of `ydata`. It gets `xdata` as SciPy does: lists, tuples and
        arrays as an array of float64. Python's or compiled, as for `value_and_grad`.
    xdata, ydata : array_like
        The data.
    p0 : sequence of float, optional
        Where the parameters start; without it where SciPy would start.
    progress : bool
        Show a progress bar, as for `minimize`.
    callback : callable, optional
        Called with the parameters at each point where a Jacobian is computed, after the first.
    **options
        SciPy's: ``sigma``, ``absolute_sigma``, ``bounds``, ``method``, and others.

    Returns
    -------
    tuple
        Parameters of shape (k,) and their covariance of shape (k, k), and what SciPy adds to these.

    Raises
    ------
    ModuleNotFoundError
        If `progress` is asked for without tqdm.
    TypeError
        If the parameters or the model's values are not of floats.
    CompileError
        If a compiled model uses what cannot be recorded.
    NotImplementedError
        If the fit depends on tracked tensors: the covariance has no derivative here. `least_squares` gives that of the parameters.

    Examples
    --------
    >>> t = np.linspace(0.0, 2.0, 20)
    >>> parameters, covariance = tg.optimize.curve_fit(lambda t, a, k: a * np.exp(-k * t), t, 3.0 * np.exp(-0.7 * t), [1.0, 1.0])
    >>> parameters.round(6)
    array([3. , 0.7])
    """
    optimize = solvers()

    refuse_tracked_limits("curve_fit", options.get("bounds"), advice=INSTEAD_OF_BOUNDS)
    packing = AnyVector("curve_fit") if p0 is None else Packing(np.atleast_1d(p0), "curve_fit", "p0")
    if is_recording() and tracked_in((xdata, ydata, options.get("sigma"))):
        raise _not_differentiable()
    data = xdata

    def of_parameters(p: Any) -> Any:
        return recorded(model, data, *p, variables=slice(1, None))

    vector = VectorFunction(of_parameters, packing, name="curve_fit")
    if is_compiled(model):
        vector = _CompiledModel(model, packing, lambda: data)

    def values(x: Any, *p: float) -> np.ndarray:
        nonlocal data
        data = x  # what SciPy made of it: converted, and without what belongs to missing values
        return vector.value(np.array(p, np.float64))

    target = np.reshape(ydata, -1)

    def jacobian(_: Any, *p: float) -> np.ndarray:
        point = np.array(p, np.float64)
        matrix, fitted = vector.jacobian(point), vector.known_value(point)
        if fitted is not None and fitted.shape == target.shape:
            residual = fitted - target
            steps.note(0.5 * float(residual @ residual), largest(matrix.T @ residual), vector.evaluations, point)
        return matrix

    start = None if p0 is None else packing.start
    if p0 is None:
        values.__signature__ = inspect.signature(model)  # type: ignore[attr-defined]  # SciPy counts the parameters
    solve = functools.partial(optimize.curve_fit, values, xdata, target, p0=start, jac=jacobian, **options)
    with vector, Progress(progress, callback) as steps:
        found = at_depth(0, solve)
    if depends_on_tracked(lambda z: [of_parameters(z)], np.asarray(found[0], np.float64), "curve_fit"):
        raise _not_differentiable()
    return found


def _not_differentiable() -> NotImplementedError:
    return NotImplementedError(
        "curve_fit: the fit depends on tracked tensors, and is not differentiable by them. Use tg.optimize.least_squares with "
        "the residual, or run under tg.no_grad()."
    )


class _CompiledModel(VectorFunction):
    """A compiled model, which takes the parameters one by one after the data."""

    def __init__(self, model: Callable[..., Any], packing: Packing, data: Callable[[], Any]) -> None:
        super().__init__(model, packing, name="curve_fit")
        self._data = data

    def _call(self, variable: Any, second: bool = False) -> Call:
        numbers = range(1, len(variable) + 1)
        return call(self._f, (self._data(), *map(float, variable)), {}, numbers, False, self._name, second)
