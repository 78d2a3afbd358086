"""Fixed points of iterations, whose derivative is a fixed point as well."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from tapegrad.as_autograd.given_derivatives import defvjp
from tapegrad.as_autograd.primitives import primitive
from tapegrad.as_autograd.products import make_vjp
from tapegrad.as_autograd.vector_spaces import vspace

__all__ = ["fixed_point"]

Step = Callable[[Any], Callable[[Any], Any]]


@primitive
def fixed_point(f: Step, a: Any, x0: Any, distance: Callable[[Any, Any], float], tol: float) -> Any:
    """The point that ``f(a)`` leaves where it is, by iteration from `x0`.

    Parameters
    ----------
    f : callable
        Gives the iteration, a function of the point, for parameters.
    a : array, float, or container of these
        The parameters, by which the fixed point can be differentiated, to any order.
    x0 : array or float
        Where the iteration begins.
    distance : callable
        Of two points.
    tol : float
        The distance between two steps at which the iteration stops.

    Notes
    -----
    By the implicit function theorem the cotangent of the iteration's parameters is its vjp at the fixed point of
    ``u -> g + u @ df/dx`` [1]_.

    References
    ----------
    .. [1] B. Christianson, "Reverse accumulation and attractive fixed points", Optimization Methods and Software 3, 1994.
    """
    step = f(a)
    x, before = step(x0), x0
    while distance(x, before) > tol:
        x, before = step(x), x
    return x


def _adjoint(value: Any, f: Step, a: Any, x0: Any, distance: Any, tol: float) -> Callable[[Any], Any]:
    def step_of_adjoint(given: Any) -> Callable[[Any], Any]:
        a, x, g = given
        pull, _ = make_vjp(f(a), x)
        return lambda u: vspace(g).add(pull(u), g)

    def vjp(g: Any) -> Any:
        u = fixed_point(step_of_adjoint, (a, value, g), vspace(value).zeros(), distance, tol)
        return make_vjp(lambda a: f(a)(value), a)[0](u)

    return vjp


defvjp(fixed_point, None, _adjoint, None)
