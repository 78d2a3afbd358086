"""`solve_ivp` and `odeint`: SciPy's, whose solutions know their derivatives by initial state, parameters and times."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tapegrad.autograd.function import Function
from tapegrad.drivers.leaves import called, is_compiled
from tapegrad.errors import DerivativeOrderError
from tapegrad.integrate.right_hand_sides import RightHandSide
from tapegrad.integrate.sensitivities import IMPLICIT, Problem, adjoints, forward_sensitivities
from tapegrad.numpy_arrays.array import Array as ArrayOfOurs
from tapegrad.numpy_arrays.array import as_arrays
from tapegrad.numpy_protocol.operands import holds_tensors, stacked
from tapegrad.optimize.dependence import constants, depends_on_tracked, flat, recorded
from tapegrad.tensors.modes import is_recording_on
from tapegrad.tensors.tensor import Tensor, array_of, is_recording, make, wrap
from tapegrad.tensors.untracked_values import at_depth

__all__ = ["odeint", "solve_ivp"]

Array = np.ndarray[Any, Any]
SENSITIVITIES = ("auto", "forward", "adjoint")
# What the times are that a solution is differentiated by: the last one, each, or each with the initial one among them.
LAST, EACH, WITH_START = "last", "each", "with start"
FEW = 16  # sensitivities that are solved for together in less time than adjoints take


def solve_ivp(
    fun: Callable[..., Any],
    t_span: Sequence[Any],
    y0: Any,
    method: Any = "RK45",
    t_eval: Any = None,
    dense_output: bool = False,
    events: Any = None,
    vectorized: bool = False,
    args: Sequence[Any] = (),
    *,
    sensitivity: str = "auto",
    sparse: bool = False,
    **options: Any,
) -> Any:
    """Solve an initial value problem by `scipy.integrate.solve_ivp`.

    Parameters
    ----------
    fun : callable
        ``fun(t, y, *args)`` gives the derivative of the state. Python's or compiled, as for `tapegrad.value_and_grad`.
    t_span : sequence of two floats
        Initial and last time.
    y0 : array of shape (n,), or sequence of floats
        Initial state.
    method : str or class
        SciPy's. "Radau", "BDF" and "LSODA" get the exact Jacobian of `fun`, unless ``jac=`` is given or `fun` cannot be
        differentiated.
    t_eval : array, optional
        Times at which the solution is asked for.
    dense_output, events, vectorized
        SciPy's; not where something is differentiated by.
    args : sequence
        Parameters: arrays, numbers, and containers of these.
    sensitivity : {"auto", "forward", "adjoint"}
        How derivatives are computed: by the sensitivity equations, of which each state has one for each state and parameter, or
        by the adjoint equations, one for each state and parameter. By default the first for up to 16 states and parameters.
    sparse : bool
        Whether "Radau" and "BDF" get the Jacobian as a sparse array.
    **options
        SciPy's: ``rtol``, ``atol``, ``max_step``, ``first_step``, ``min_step``, ``jac``.

    Returns
    -------
    OdeResult
        SciPy's. ``y``, of shape (n, times), is an array with derivatives by `y0`, parameters in `args`, the initial time, and
        the times in `t_eval` (without it the last time), where these are being differentiated by.

    Raises
    ------
    TypeError, ValueError
        If the function gives another number of derivatives than there are states, or an argument is not of floats.
    RuntimeError
        If something is being differentiated and the solver fails.
    NotImplementedError
        If something is being differentiated, and there are events or a dense output, or `fun` depends on tracked tensors that
        are no arguments. Second derivatives are refused by the pass that would need them.

    Notes
    -----
    Values are SciPy's. Derivatives are those of the exact solution, up to the tolerances of the solver: they are solutions of
    differential equations themselves, and not derivatives of the solver's steps [1]_. Backwards, each piece between two times is
    solved again, so memory does not grow with the number of steps.

    References
    ----------
    .. [1] E. Hairer, S. P. Norsett, G. Wanner, "Solving Ordinary Differential Equations I", 2nd edition, Springer, 1993,
       section I.14.

    Examples
    --------
    The derivative of ``exp(-k t)`` at 1 by the rate:

    >>> def last(k):
    ...     solution = tg.integrate.solve_ivp(lambda t, y, k: -k * y, (0.0, 1.0), [1.0], args=(k,), rtol=1e-10, atol=1e-12)
    ...     return solution.y[0, -1]
    >>> round(tg.grad(last)(0.5), 6), round(-np.exp(-0.5), 6)
    (-0.606531, np.float64(-0.606531))
    """
    fun = called(fun)
    if sensitivity not in SENSITIVITIES:
        raise ValueError(f"sensitivity must be one of {', '.join(map(repr, SENSITIVITIES))}, but got {sensitivity!r}")
    begin, end = t_span
    start, stop = _number(begin, "t_span"), _number(end, "t_span")
    first = _vector(y0, "y0")
    times = None if t_eval is None else _vector(t_eval, "t_eval")
    state = np.array(array_of(first), np.float64)
    side = RightHandSide(fun, tuple(args), state.size, "solve_ivp")
    if sparse and method not in ("Radau", "BDF"):
        raise ValueError(f"solve_ivp: sparse=True is for the methods Radau and BDF, and not for {method!r}")
    begun, ended = float(array_of(start)), float(array_of(stop))
    _refuse_surroundings(fun, begun, state, args, "solve_ivp")
    known = {} if method not in IMPLICIT or "jac" in options else _jacobian(side, begun, state, sparse)
    if callable(options.get("jac")):
        options["jac"] = side.with_arguments(options["jac"])
    if events is not None:
        events = [side.with_arguments(event) for event in (events if isinstance(events, (list, tuple)) else [events])]
    at_times = None if times is None else np.array(array_of(times), np.float64)
    from scipy.integrate import solve_ivp as solve

    result = at_depth(
        0,
        lambda: solve(side, (begun, ended), state, method, at_times, dense_output, events, vectorized, **{**known, **options}),
    )
    asked = [t for t in (first, start, stop if times is None else times, *side.parameters) if t._row]
    if not asked or not is_recording():
        return result
    if events is not None or dense_output or vectorized:
        raise NotImplementedError("solve_ivp: events, dense_output and vectorized have no derivatives; leave them out here")
    if not result.success:
        raise RuntimeError(f"solve_ivp: the solver failed, so there is no derivative: {result.message}")
    kept = {name: value for name, value in options.items() if name in ("rtol", "atol", "max_step", "first_step", "min_step")}
    problem = Problem(side, begun, state, np.array(result.t), np.array(result.y), method, kept)
    result.y = _solution(
        problem, sensitivity, result.y, first, start, stop if times is None else times, LAST if times is None else EACH
    )
    return result


def odeint(
    func: Callable[..., Any],
    y0: Any,
    t: Any,
    args: Sequence[Any] = (),
    *,
    tfirst: bool = False,
    sensitivity: str = "auto",
    **options: Any,
) -> Any:
    """Solve an initial value problem by `scipy.integrate.odeint`.

    Parameters
    ----------
    func : callable
        ``func(y, t, *args)``, or ``func(t, y, *args)`` with `tfirst`, gives the derivative of the state.
    y0 : array of shape (n,), or sequence of floats
        Initial state.
    t : array of shape (m,)
        Times at which the solution is asked for; the first one is that of the initial state.
    args : sequence
        Parameters: arrays, numbers, and containers of these.
    tfirst : bool
        In which order `func` takes state and time.
    sensitivity : {"auto", "forward", "adjoint"}
        As for `solve_ivp`.
    **options
        SciPy's: ``rtol``, ``atol``, ``hmax``, ``full_output`` and others.

    Returns
    -------
    array of shape (m, n), or with ``full_output=True`` a pair of it and a dict
        With derivatives by `y0`, parameters in `args` and the times, where these are being differentiated by.

    Raises
    ------
    TypeError, ValueError, RuntimeError, NotImplementedError
        As `solve_ivp`.

    Notes
    -----
    Values are SciPy's; derivatives are solved for by LSODA with the same tolerances, as `solve_ivp` does.

    Examples
    --------
    >>> times = np.linspace(0.0, 1.0, 3)
    >>> tg.jacobian(lambda y0: tg.integrate.odeint(lambda y, t: -y, y0, times)[:, 0])(np.array([1.0])).round(6)
    array([[1.      ],
           [0.606531],
           [0.367879]])
    """
    func = called(func)
    if sensitivity not in SENSITIVITIES:
        raise ValueError(f"sensitivity must be one of {', '.join(map(repr, SENSITIVITIES))}, but got {sensitivity!r}")
    first, times = _vector(y0, "y0"), _vector(t, "t")
    state, at_times = np.array(array_of(first), np.float64), np.array(array_of(times), np.float64)
    side = RightHandSide(func, tuple(args), state.size, "odeint", not tfirst)
    _refuse_surroundings(func, float(at_times[0]), state, args, "odeint", not tfirst)
    from scipy.integrate import odeint as solve

    found = at_depth(0, lambda: solve(side, state, at_times, tfirst=True, **options))
    values = found[0] if isinstance(found, tuple) else found
    asked = [x for x in (first, times, *side.parameters) if x._row]
    if not asked or not is_recording():
        return found
    tolerances = {name: options.get(name) if options.get(name) is not None else 1.49012e-8 for name in ("rtol", "atol")}
    problem = Problem(side, float(at_times[0]), state, at_times, values.T.copy(), "LSODA", tolerances)
    solution = _solution(problem, sensitivity, values.T, first, make(0.0, 0), times, WITH_START).T
    return (solution, *found[1:]) if isinstance(found, tuple) else solution


def _refuse_surroundings(
    f: Callable[..., Any], time: float, state: Array, args: Sequence[Any], name: str, state_first: bool = False
) -> None:
    """Look whether the function depends on tracked tensors that are no arguments.

    Raises
    ------
    NotImplementedError
        If it does.
    """
    if is_compiled(f) or not is_recording():
        return

    def of_state(z: Tensor) -> list[Tensor]:
        given = (z * 1.0, time) if state_first else (time, z * 1.0)
        place = slice(1) if state_first else slice(1, 2)
        return [flat(recorded(f, *given, *constants(tuple(args)), variables=place), name)]

    try:
        around = depends_on_tracked(of_state, state, name)
    except TypeError:  # it is not written for what is recorded, so that it cannot depend on that
        return
    if around:
        raise NotImplementedError(
            f"{name}: the function depends on something that is being differentiated by and is no argument of it; pass it in args="
        )


def _jacobian(side: RightHandSide, time: float, state: Array, sparse: bool) -> dict[str, Any]:
    """The exact Jacobian for implicit methods, if the function can be differentiated."""
    try:
        at_depth(0, lambda: side.jacobian(time, state))
    except (TypeError, NotImplementedError, RuntimeError):
        return {}
    return {"jac": side.sparse_jacobian() if sparse else side.jacobian}


def _number(value: Any, place: str) -> Tensor:
    if isinstance(value, Tensor):
        if np.size(value._data) != 1:
            raise ValueError(f"{place} must have two numbers, but one of them has shape {np.shape(value._data)}")
        return value
    return make(float(value), 0)


def _vector(value: Any, place: str) -> Tensor:
    """An array of floats as a tensor of one dimension; lists may have tensors in them."""
    if isinstance(value, (list, tuple)) and holds_tensors(value):
        value = stacked(value)
    if not isinstance(value, Tensor):
        array = np.asarray(value)
        if array.dtype.kind not in "fiu":
            raise TypeError(f"{place} must be of floats, but it is of {array.dtype.name}")
        value = wrap(array.astype(np.float64))
    if not np.isfinite(array_of(value)).all():
        raise ValueError(f"{place} has elements that are not finite")
    if np.ndim(value._data) > 1:
        raise ValueError(f"{place} must have one dimension, but it has shape {np.shape(value._data)}")
    return value


def _solution(problem: Problem, sensitivity: str, states: Array, first: Tensor, start: Tensor, times: Tensor, meaning: str) -> Any:
    """The states as the row of a solution."""
    parameters = problem.side.parameters
    if sensitivity == "auto":
        sensitivity = "forward" if len(problem.first) + problem.side.count <= FEW else "adjoint"
    made = _Solution.apply(problem, sensitivity == "forward", meaning, states, first, start, times, *parameters)
    if any(isinstance(t, ArrayOfOurs) for t in (first, start, times, *parameters)):
        as_arrays(made)
    return made


class _Solution(Function):
    """The row of a solution, of shape (states, times)."""

    @staticmethod
    def forward(ctx: Any, problem: Problem, forwards: bool, meaning: str, states: Array, *tracked: Tensor) -> Tensor:
        """Hand out what was computed."""
        ctx.problem, ctx.forwards, ctx.meaning, ctx.sensitivities = problem, forwards, meaning, None
        ctx.shapes = [(np.shape(t._data), array_of(t).dtype) for t in tracked]
        return make(np.array(states), 0)

    @staticmethod
    def backward(ctx: Any, g: Tensor) -> Any:
        """Solve the sensitivity equations, or the adjoint ones.

        Raises
        ------
        DerivativeOrderError
            If the result is to be differentiated.
        """
        if is_recording_on():
            raise DerivativeOrderError(
                "solutions of differential equations have first derivatives by reverse mode only: take grad, vjp or jacobian of "
                "them, and for second derivatives solve the equations of the sensitivities as equations of your own"
            )
        found = at_depth(0, lambda: _gradients(ctx, np.asarray(array_of(g), np.float64)))
        shaped = [wrap(np.asarray(part, dtype).reshape(shape)) for part, (shape, dtype) in zip(found, ctx.shapes, strict=True)]
        return None, None, None, None, *shaped


def _gradients(ctx: Any, g: Array) -> list[Any]:
    problem: Problem = ctx.problem
    size = len(problem.first)
    if ctx.forwards:
        if ctx.sensitivities is None:
            ctx.sensitivities = forward_sensitivities(problem)
        whole = np.einsum("nk,knp->p", g, ctx.sensitivities)
        state, parameters = whole[:size], whole[size:]
    else:
        state, parameters = adjoints(problem, g)
    slopes = np.array([problem.side(t, y) @ bar for t, y, bar in zip(problem.times, problem.states.T, g.T, strict=True)])
    by_start = -(problem.side(problem.start, problem.first) @ state)
    if ctx.meaning == WITH_START:
        slopes[0] += by_start
    found: list[Any] = [state, by_start, slopes[-1] if ctx.meaning == LAST else slopes]
    done = 0
    for shape, _ in ctx.shapes[3:]:
        count = int(np.prod(shape))
        found.append(parameters[done : done + count])
        done += count
    return found
