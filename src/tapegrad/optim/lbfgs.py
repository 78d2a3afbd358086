"""L-BFGS: quasi-Newton steps from a few of the latest changes of the gradient."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tapegrad.arrays.floating_point_warnings import quiet
from tapegrad.optim.line_search import Trial, strong_wolfe
from tapegrad.optim.optimizer import Optimizer, Parameters, as_number, check_not_negative
from tapegrad.optim.updating import assign, gradient_of
from tapegrad.tensors.grad_mode import enable_grad
from tapegrad.tensors.tensor import Tensor, array_of, make

__all__ = ["LBFGS"]

Array = np.ndarray[Any, Any]
CURVATURE = 1e-10  # changes with less of it are not kept


class LBFGS(Optimizer):
    """L-BFGS: Newton's method with an inverse Hessian made of the latest changes of point and gradient.

    A call of `step` makes several iterations, and evaluates the loss for each.

    Parameters
    ----------
    params : iterable of Tensor
        Leaves to be optimised, in one group.
    lr : float or Tensor
        Length of a step in directions, or the first that the line search tries.
    max_iter : int
        Iterations in a call of `step`.
    max_eval : int, optional
        Evaluations in a call of `step`; a quarter more than `max_iter` if not given.
    tolerance_grad : float
        Largest element of the gradient at which the parameters are taken for optimal.
    tolerance_change : float
        Change of the loss or the parameters at which a call of `step` ends.
    history_size : int
        How many changes are kept.
    line_search_fn : "strong_wolfe" or None
        How a step length is found; None takes `lr`.

    Raises
    ------
    ValueError
        If the learning rate is out of its range, or there are several groups.

    Notes
    -----
    The direction comes from the two-loop recursion [1]_, [2]_, in ``4 * history_size`` operations an element.

    References
    ----------
    .. [1] J. Nocedal, "Updating quasi-Newton matrices with limited storage", Mathematics of Computation 35(151), 1980.
    .. [2] D. C. Liu, J. Nocedal, "On the limited memory BFGS method for large scale optimization", Mathematical Programming 45,
       1989.

    Examples
    --------
    >>> x = tg.tensor([-1.5, 2.0], requires_grad=True)
    >>> optimizer = tg.optim.LBFGS([x], max_iter=100, line_search_fn="strong_wolfe")
    >>> def closure():
    ...     optimizer.zero_grad()
    ...     loss = (1 - x[0]) ** 2 + 100 * (x[1] - x[0] ** 2) ** 2
    ...     loss.backward()
    ...     return loss
    >>> _ = optimizer.step(closure)
    >>> x
    tensor([1.0000, 1.0000], requires_grad=True)
    """

    def __init__(
        self,
        params: Parameters,
        lr: float | Tensor = 1,
        max_iter: int = 20,
        max_eval: int | None = None,
        tolerance_grad: float = 1e-7,
        tolerance_change: float = 1e-9,
        history_size: int = 100,
        line_search_fn: str | None = None,
    ) -> None:
        check_not_negative({"learning rate": lr})
        super().__init__(
            params,
            {
                "lr": lr, "max_iter": max_iter, "max_eval": max_iter * 5 // 4 if max_eval is None else max_eval,
                "tolerance_grad": tolerance_grad, "tolerance_change": tolerance_change, "history_size": history_size,
                "line_search_fn": line_search_fn,
            },
        )  # fmt: skip
        self._check_groups()

    def _check_groups(self) -> None:
        if len(self.param_groups) != 1:
            raise ValueError("LBFGS doesn't support per-parameter options (parameter groups)")

    def step(self, closure: Callable[[], Any] | None = None) -> Any:
        """Make up to ``max_iter`` iterations.

        Parameters
        ----------
        closure : callable
            Clears the gradients, computes the loss, calls ``backward`` and returns the loss.

        Returns
        -------
        object
            What the closure returned first.

        Raises
        ------
        TypeError
            Without a closure.
        RuntimeError
            If ``line_search_fn`` is not known.
        """
        if closure is None:
            raise TypeError(
                "LBFGS.step() needs a closure that clears the gradients, computes the loss, calls backward and returns it"
            )
        self._check_groups()
        group = self.param_groups[0]
        if group["line_search_fn"] not in (None, "strong_wolfe"):
            raise RuntimeError(f"only 'strong_wolfe' is supported as line_search_fn, but got {group['line_search_fn']!r}")
        params, lr, tolerance = group["params"], as_number(group["lr"]), group["tolerance_change"]
        state = self.state[params[0]]
        state.setdefault("func_evals", 0)
        state.setdefault("n_iter", 0)

        first = _evaluated(closure)
        state["func_evals"] += 1
        loss, gradient = _number(first), _flat_gradient(params)
        if _largest(gradient) <= group["tolerance_grad"]:
            return first
        evaluations, iterations = 1, 0
        while iterations < group["max_iter"]:
            iterations += 1
            state["n_iter"] += 1
            with quiet():
                direction = _direction(state, gradient, group["history_size"])
                length = float(min(1.0, 1.0 / np.abs(gradient).sum()) * lr) if state["n_iter"] == 1 else float(lr)
                slope = float(gradient @ direction)
            loss_before = loss
            state.update(
                prev_flat_grad=make(gradient, 0), prev_loss=loss_before, d=make(direction, 0), t=length
            )  # before the closure runs again, so that an interrupted step leaves state that fits together
            if slope > -tolerance:
                break
            if group["line_search_fn"] is not None:
                trial, count = strong_wolfe(
                    _along(closure, params, direction),
                    Trial(0.0, loss, gradient, slope),
                    length,
                    _largest(direction),
                    tolerance,
                    group["max_eval"] - evaluations,
                )
                loss, gradient, length = trial.loss, trial.gradient, trial.length
                _move(params, length, direction)
            else:
                _move(params, length, direction)
                count = 0
                if iterations < group["max_iter"]:  # in a stochastic setting the next call evaluates something else
                    loss, gradient, count = _number(_evaluated(closure)), _flat_gradient(params), 1
            state["t"] = length
            evaluations += count
            state["func_evals"] += count
            if iterations == group["max_iter"] or evaluations >= group["max_eval"]:
                break
            if _largest(gradient) <= group["tolerance_grad"]:
                break
            if _largest(direction * length) <= tolerance or abs(loss - loss_before) < tolerance:
                break
        return first


def _direction(state: dict[str, Any], gradient: Array, size: int) -> Array:
    """The quasi-Newton direction, after the latest change was added to the history."""
    if state["n_iter"] == 1:
        state.update(old_dirs=[], old_stps=[], ro=[], H_diag=1.0)
        return -gradient
    change = gradient - array_of(state["prev_flat_grad"])
    moved = array_of(state["d"]) * state["t"]
    curvature = change @ moved
    changes, moves, ro = state["old_dirs"], state["old_stps"], state["ro"]
    if curvature > CURVATURE:
        if len(changes) == size:
            del changes[0], moves[0], ro[0]
        changes.append(make(change, 0))
        moves.append(make(moved, 0))
        ro.append(float(1.0 / curvature))
        state["H_diag"] = float(curvature / (change @ change))
    pairs = [(array_of(s), array_of(y), r) for s, y, r in zip(moves, changes, ro, strict=True)]
    q, weights = -gradient, []
    for s, y, r in reversed(pairs):
        weight = float(s @ q) * r
        weights.append(weight)
        q -= weight * y
    q *= state["H_diag"]
    for (s, y, r), weight in zip(pairs, reversed(weights), strict=True):
        q += (weight - float(y @ q) * r) * s
    return q


def _evaluated(closure: Callable[[], Any]) -> Any:
    with enable_grad():
        return closure()


def _number(loss: Any) -> float:
    return float(as_number(loss))


def _along(closure: Callable[[], Any], params: list[Tensor], direction: Array) -> Callable[[float], Trial]:
    """The trial at a length; the parameters are back where they were afterwards."""
    start = [np.array(p._data) for p in params]

    def evaluate(length: float) -> Trial:
        try:
            _move(params, length, direction)
            loss = _number(_evaluated(closure))
            gradient = _flat_gradient(params)
        finally:
            for p, value in zip(params, start, strict=True):
                assign(p, value)
        return Trial(length, loss, gradient, float(gradient @ direction))

    return evaluate


def _flat_gradient(params: list[Tensor]) -> Array:
    """The gradients of all parameters in one vector; zeros where there is none."""
    parts = []
    for p in params:
        gradient = gradient_of(p)
        parts.append(np.zeros_like(array_of(p)).reshape(-1) if gradient is None else array_of(gradient).reshape(-1))
    return np.concatenate(parts)


def _move(params: list[Tensor], length: float, direction: Array) -> None:
    """Add a multiple of a vector to the parameters."""
    offset = 0
    for p in params:
        value = array_of(p)
        part = direction[offset : offset + value.size].reshape(value.shape)
        with quiet():
            moved = value + length * part
        assign(p, moved)
        offset += value.size


def _largest(vector: Array) -> float:
    """The largest element in modulus; NaN if there is one."""
    return float(np.abs(vector).max(initial=0.0))
