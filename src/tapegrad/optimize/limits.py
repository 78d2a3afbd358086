"""Limits of variables and of constraint functions: as arrays, and refused where they are tracked."""

from __future__ import annotations

from itertools import chain
from typing import Any

import numpy as np

from tapegrad.optimize.constraints import Constraint
from tapegrad.tensors.tensor import Tensor

__all__ = ["bounds_as_arrays", "refuse_tracked_limits"]

PAIRS = frozenset([list, tuple])
NUMBERS = frozenset([float, int, type(None), np.float64])  # most bounds are, and none of these is tracked


def refuse_tracked_limits(name: str, bounds: Any, constraints: Any = (), advice: str = "") -> None:
    """Raise for limits that are to be differentiated by, since SciPy would take their values and lose that.

    Raises
    ------
    NotImplementedError
        If one is a tracked tensor.
    """
    listed = constraints if isinstance(constraints, (list, tuple)) and not isinstance(constraints, Constraint) else [constraints]
    limits = [bounds, *((one.lower, one.upper) if isinstance(one, Constraint) else one for one in listed)]
    if any(_has_tracked(limit) for limit in limits):
        advice = advice or (
            "Write them as constraints of functions, as in tg.optimize.inequality(lambda x: x - lower), or pass lower.detach() for "
            "a constant."
        )
        raise NotImplementedError(f"{name}: bounds that are tracked tensors are not differentiated. {advice}")


def _has_tracked(value: Any) -> bool:
    if isinstance(value, Tensor):
        return value._row != 0
    if isinstance(value, (list, tuple)):
        kinds = set(map(type, value))
        if kinds <= PAIRS:  # of thousands of variables: one after the other they take as long as a derivative
            return bool(kinds) and _has_tracked(list(chain.from_iterable(value)))
        return not kinds <= NUMBERS and any(map(_has_tracked, value))
    if isinstance(value, np.ndarray) and value.dtype == object:
        return any(map(_has_tracked, value.flat))
    return hasattr(value, "lb") and (_has_tracked(value.lb) or _has_tracked(value.ub))


def bounds_as_arrays(bounds: Any, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Bounds of variables, infinite where there are none."""
    if bounds is None:
        return np.full(size, -np.inf), np.full(size, np.inf)
    if hasattr(bounds, "lb"):
        lower, upper = bounds.lb, bounds.ub
    else:
        pairs = [(-np.inf if a is None else a, np.inf if b is None else b) for a, b in bounds]
        lower, upper = [a for a, _ in pairs], [b for _, b in pairs]
    return np.broadcast_to(np.asarray(lower, float), size), np.broadcast_to(np.asarray(upper, float), size)
