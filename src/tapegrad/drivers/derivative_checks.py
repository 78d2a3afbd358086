"""Derivatives against differences: a public check for functions that are to be optimised."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tapegrad.drivers.calling import call
from tapegrad.drivers.derivatives import Derivative, Outputs, Vector, derivative_of, gradients_of, joined, projected
from tapegrad.drivers.leaves import Call
from tapegrad.tensors.grad_mode import no_grad
from tapegrad.tensors.tensor import array_of, wrap

__all__ = ["check_grads"]


def check_grads(
    f: Callable[..., Any],
    args: Sequence[Any],
    order: int = 2,
    *,
    rtol: float | None = None,
    atol: float | None = None,
    step: float | None = None,
) -> None:
    """Check the derivatives of a function against central differences, along a random direction.

    Parameters
    ----------
    f : callable
        Returns an array, a float, or a container of these. Python's or compiled, as for `value_and_grad`.
    args : tuple or list
        Its positional arguments, all of which are differentiated by.
    order : int
        1 checks products of the Jacobian from both sides; 2 also those of the Hessian of a random projection of the output.
    rtol, atol : float, optional
        Tolerances, by default 1e-6 in float64 and 2e-2 in float32.
    step : float, optional
        Of the differences, relative to the size of the point.

    Raises
    ------
    AssertionError
        If two values that should be the same differ; it names them and the order.
    TypeError
        If an argument or the output is not of floats.
    CompileError
        If a compiled `f` uses what cannot be recorded.
    ValueError
        If `order` is neither 1 nor 2.

    Notes
    -----
    What a user may call is checked by each way there is: the sweep, the recorded pass (`create_graph`), products from the left and
    from the right, and their second order. A random direction is compared and not every element, so it takes three runs of `f` for
    order 1 and six for order 2, whatever the sizes are; the direction is the same each time.

    Examples
    --------
    >>> tg.check_grads(lambda x, y: np.sin(x * y), (np.array([0.5, 1.0]), 2.0))
    >>> tg.check_grads(lambda x: abs(x) * x.detach(), (1.0,))
    Traceback (most recent call last):
    AssertionError: order 1, product with the Jacobian: ...
    """
    if order not in (1, 2):
        raise ValueError(f"check_grads: order must be 1 or 2, but got {order!r}")
    if not isinstance(args, (tuple, list)):
        raise TypeError(f"check_grads: args must be a tuple or list of the function's arguments, not {type(args).__name__}")
    rng = np.random.default_rng(0)
    made, outputs = _at(f, args)
    derivative = derivative_of(made, outputs.tensors, constant=True)
    single = any(array_of(t).dtype == np.float32 for t in (*made.leaves, *outputs.tensors))
    default = (2e-2, 2e-2, 1e-2) if single else (1e-6, 1e-6, 6e-6)
    rtol, atol, step = (own if given is None else given for own, given in zip(default, (rtol, atol, step), strict=True))
    direction, weights = rng.standard_normal(derivative.inputs), rng.uniform(0.5, 1.5, derivative.results)

    def same(got: Any, expected: Any, what: str) -> None:
        scale = float(np.max(np.abs(expected), initial=0.0))
        wrong = ~(np.abs(np.subtract(got, expected)) <= atol + rtol * scale) & ~(np.isnan(got) & np.isnan(expected))
        if np.any(wrong):
            place = int(np.flatnonzero(wrong)[0])
            raise AssertionError(
                f"{what}: element {place} is {np.ravel(got)[place]!r}, but central differences give {np.ravel(expected)[place]!r} "
                f"(rtol={rtol}, atol={atol}, step={step})"
            )

    differences = _differences(lambda point: _values(f, args, made, point), made, direction, step)
    pushed = derivative.push(direction[:, None])[:, 0]
    same(pushed, differences, "order 1, product with the Jacobian")
    along = weights @ differences
    same(derivative.pull(weights[:, None])[:, 0] @ direction, along, "order 1, product with the transposed Jacobian")
    if made.recording is None:
        same(_gradient(made, outputs, weights) @ direction, along, "order 1, recorded pass")
    if order == 1:
        return
    differences = _differences(lambda point: _gradient_at(f, args, made, point, weights), made, direction, step)
    made, outputs = _at(f, args, second=True)
    if made.recording is not None:
        same(made.recording.curve(direction[:, None], weights)[:, 0], differences, "order 2, product with the Hessian")
        both = np.stack([direction, 2.0 * direction], axis=1)
        same(made.recording.curve(both, weights)[:, 1] / 2.0, differences, "order 2, several directions at once")
        return
    total = projected(outputs, weights)
    if not total._row:
        same(np.zeros_like(differences), differences, "order 2")
        return
    curved = Derivative(made.leaves, [total], second=True).curve(direction[:, None])[:, 0]
    same(curved, differences, "order 2, product with the Hessian")
    same(Derivative(made.leaves, [total]).curve(direction[:, None])[:, 0], differences, "order 2, recorded pass")


def _at(f: Callable[..., Any], args: Sequence[Any], second: bool = False) -> tuple[Call, Outputs]:
    made = call(f, args, {}, range(len(args)), False, "check_grads", second)
    return made, Outputs(made, "check_grads")


def _moved(made: Call, point: Vector) -> Any:
    """The arguments with other values, which are the elements of a vector."""
    from tapegrad.drivers.jacobian_products import split

    parts = split(point, made.leaves)
    return made.finished([np.asarray(part, array_of(leaf).dtype) for part, leaf in zip(parts, made.leaves, strict=True)])


def _values(f: Callable[..., Any], args: Sequence[Any], made: Call, point: Vector) -> Vector:
    with no_grad():
        _, outputs = _at(f, _moved(made, point))
    return joined(map(array_of, outputs.tensors))


def _differences(values: Callable[[Vector], Vector], made: Call, direction: Vector, step: float) -> Vector:
    centre = joined(map(array_of, made.leaves))
    h = step * max(1.0, float(np.max(np.abs(centre), initial=0.0)))
    return (values(centre + h * direction) - values(centre - h * direction)) / (2.0 * h)


def _gradient(made: Call, outputs: Outputs, weights: Vector) -> Vector:
    total = projected(outputs, weights)
    return joined(map(array_of, gradients_of([total], made.leaves, [wrap(np.ones(()))], create_graph=True)))


def _gradient_at(f: Callable[..., Any], args: Sequence[Any], made: Call, point: Vector, weights: Vector) -> Vector:
    made, outputs = _at(f, _moved(made, point))
    return derivative_of(made, outputs.tensors, constant=True).pull(weights[:, None])[:, 0]
