"""Limits of variables and of constraint functions: as arrays, and refused where they are tracked."""

from __future__ import annotations

from collections.abc import Mapping, Set
from itertools import chain
from typing import Any

import numpy as np

from tapegrad.optimize.constraints import Constraint
from tapegrad.tensors.tensor import Tensor

__all__ = ["bounds_as_arrays", "check_order", "checked_bounds", "refuse_tracked_limits"]

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
    """Bounds of variables that a solver took, infinite where there are none; one pair may stand for all, as SciPy has it."""
    if bounds is None:
        return np.full(size, -np.inf), np.full(size, np.inf)
    if hasattr(bounds, "lb"):
        lower, upper = bounds.lb, bounds.ub
    else:
        lower, upper = _sides(bounds)
    return np.broadcast_to(np.asarray(lower, float), size), np.broadcast_to(np.asarray(upper, float), size)


def _sides(pairs: Any) -> tuple[Any, Any]:
    """Lower and upper bounds in pairs of numbers or None."""
    if (table := _table(pairs)) is not None:
        return table[:, 0].copy(), table[:, 1].copy()
    found = [(-np.inf if a is None else a, np.inf if b is None else b) for a, b in pairs]
    return [a for a, _ in found], [b for _, b in found]


def _table(pairs: Any) -> np.ndarray | None:
    """Pairs as an array, if they are numbers one and all: in a quarter of the time of looking at one after the other."""
    if isinstance(pairs, np.ndarray):
        return pairs.astype(np.float64) if pairs.ndim == 2 and pairs.shape[1] == 2 and pairs.dtype.kind in "fiu" else None
    if not isinstance(pairs, (list, tuple)) or not set(map(type, pairs)) <= PAIRS or set(map(len, pairs)) != {2}:
        return None
    try:
        found = np.fromiter(chain.from_iterable(pairs), np.float64, 2 * len(pairs)).reshape(-1, 2)
    except (TypeError, ValueError, OverflowError):  # what is no number
        return None
    return None if np.isnan(found).any() else found  # which None is for NumPy


def checked_bounds(bounds: Any, size: int) -> tuple[np.ndarray, np.ndarray]:
    """Bounds of variables for solvers that look at none of this themselves, infinite where there are none.

    Parameters
    ----------
    bounds : sequence of pairs, scipy.optimize.Bounds or None
    size : int
        Number of variables.

    Raises
    ------
    TypeError
        If something is no pair of numbers.
    ValueError
        If there are not as many pairs as variables, or nothing lies between two bounds: they are nan, in the wrong order, or
        infinite on the wrong side.
    """
    if bounds is not None and not hasattr(bounds, "lb"):
        table = _table(bounds)
        bounds = bounds if table is None else table
        _check_pairs(bounds, size)
    try:
        lower, upper = bounds_as_arrays(bounds, size)
    except ValueError:
        if not hasattr(bounds, "lb"):
            raise
        shapes = f"{np.shape(bounds.lb)} and {np.shape(bounds.ub)}"
        raise ValueError(
            f"minimize: bounds are arrays of the shapes {shapes} for {size} variables. Give one of shape ({size},) each, in the "
            "order of the variable's vector, or a number for all of them."
        ) from None
    check_order(lower, upper, "minimize: bounds")
    return lower, upper


def _check_pairs(bounds: Any, size: int) -> None:
    advice = f"Give a pair (low, high) for each of the {size} elements of the variable, with None where there is no bound"
    if not hasattr(bounds, "__len__") or isinstance(bounds, (str, bytes)):
        raise TypeError(f"minimize: bounds are {bounds!r}. {advice}.")
    for k, pair in enumerate(bounds) if _table(bounds) is None else ():
        if isinstance(pair, (str, bytes, Set, Mapping)) or not hasattr(pair, "__len__"):
            raise TypeError(f"minimize: bounds[{k}] is {pair!r}, which is no pair. {advice}.")
        if len(pair) != 2:
            raise ValueError(f"minimize: bounds[{k}] has {len(pair)} numbers. {advice}.")
        for one in pair:
            if isinstance(one, (complex, np.complexfloating)):
                raise TypeError(f"minimize: bounds[{k}] is {pair!r}, and complex numbers have no order. {advice}.")
            try:
                one is None or float(one)
            except (TypeError, ValueError, OverflowError) as error:
                kind = TypeError if isinstance(error, TypeError) else ValueError
                raise kind(f"minimize: bounds[{k}] is {pair!r}: {error}. {advice}.") from None
    if len(bounds) != size:
        raise ValueError(
            f"minimize: bounds are {len(bounds)} pair{'s' * (len(bounds) != 1)} for {size} variables. {advice}; "
            "scipy.optimize.Bounds(low, high) with two numbers has the same for all."
        )


def check_order(lower: np.ndarray, upper: np.ndarray, name: str) -> None:
    """Raise for limits that no number keeps to.

    Raises
    ------
    ValueError
        If a pair is nan, in the wrong order, or infinite on the wrong side.
    """
    wrong = ~(lower <= upper) | (lower == np.inf) | (upper == -np.inf)
    if not wrong.any():
        return
    k = int(np.argmax(wrong))
    low, high = float(lower[k]), float(upper[k])
    if low != low or high != high:
        why = "nan is no limit; without one it is None or an infinity"
    elif low > high:
        why = "An upper bound is less than the corresponding lower bound"  # SciPy's words
    else:
        why = "no number is between them; without limits they are (-inf, inf)"
    more = int(wrong.sum()) - 1
    others = f" (and {more} more)" if more else ""
    raise ValueError(f"{name}[{k}] are ({low:g}, {high:g}){others}: {why}.")
