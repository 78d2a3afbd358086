"""Solutions of ordinary differential equations, whose derivative is the solution of the adjoint equation."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import scipy.integrate

from tapegrad.as_autograd.flattening import flatten
from tapegrad.as_autograd.given_derivatives import defvjp_argnums
from tapegrad.as_autograd.primitives import primitive
from tapegrad.as_autograd.products import make_vjp

__all__ = ["odeint"]

# By the initial state, the times, and the parameters, which are the tuple that follows them.
odeint = primitive(scipy.integrate.odeint)


def _adjoint(argnums: Sequence[int], states: Any, args: Sequence[Any], kwargs: dict[str, Any]) -> Callable[[Any], Any]:
    """Cotangents by the adjoint equation, backwards in time from one output to the one before [1]_.

    References
    ----------
    .. [1] L. S. Pontryagin et al., "The mathematical theory of optimal processes", 1962.
    """
    func, _, times = args[:3]
    parameters = args[3] if len(args) > 3 else kwargs.get("args", ())
    if kwargs.get("tfirst"):
        raise NotImplementedError("odeint: tfirst=True is not differentiated; give the function its state first")
    options = {name: value for name, value in kwargs.items() if name != "args"}
    flat, unflatten = flatten(parameters)
    size = np.shape(states)[1]

    def slope(y: Any, t: Any, flat: Any) -> Any:
        return func(y, t, *unflatten(flat))

    def backwards(joined: Any, s: Any, flat: Any) -> Any:
        # Time runs backwards, s = -t, so signs are turned: state, adjoint, integral of the parameters' cotangent.
        y, adjoint = joined[:size], joined[size : 2 * size]
        vjp, value = make_vjp(lambda given: slope(given[0], -s, given[1]), (y, flat))
        y_bar, flat_bar = vjp(adjoint)
        return np.concatenate([-value, y_bar, flat_bar])

    def vjp(g: Any) -> list[Any]:
        adjoint, flat_bar = g[-1], np.zeros(len(flat))
        times_bar = []
        for k in range(len(times) - 1, 0, -1):
            times_bar.append(np.dot(slope(states[k], times[k], flat), g[k]))
            span = np.stack([-times[k], -times[k - 1]])
            solved = odeint(backwards, np.concatenate([states[k], adjoint, flat_bar]), span, (flat,), **options)[1]
            adjoint, flat_bar = solved[size : 2 * size] + g[k - 1], solved[2 * size :]
        before = adjoint - g[0]
        times_bar.append(-np.dot(slope(states[0], times[0], flat), before))
        parts = {1: adjoint, 2: np.stack(times_bar[::-1]), 3: None if 3 not in argnums else unflatten(flat_bar)}
        return [parts[argnum] for argnum in argnums]

    return vjp


defvjp_argnums(odeint, _adjoint)
