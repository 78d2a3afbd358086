"""Functions as people compile them, with arguments to differentiate them at; the test modules collect them from tables."""

from __future__ import annotations

import copy
import functools
import warnings
from collections.abc import Callable
from typing import Any, NamedTuple

import numba
import numpy as np
from numba.core.errors import NumbaExperimentalFeatureWarning, NumbaPendingDeprecationWarning

import tapegrad as tg


class Later:
    """An argument that is made when it is first asked for, since something is compiled for it."""

    def __init__(self, make: Callable[[], Any]) -> None:
        self.made = functools.cache(make)


class Case(NamedTuple):
    """A compiled function and its arguments; the derivative is taken with respect to the first."""

    function: Any
    given: tuple[Any, ...]

    @property
    def args(self) -> tuple[Any, ...]:
        return tuple(value.made() if isinstance(value, Later) else value for value in self.given)

    def __repr__(self) -> str:
        return str(self.function.py_func.__name__)


class Table(list[Case]):
    """Cases in the order of the text."""

    def case(self, *args: Any) -> Callable[[Any], Any]:
        """Compile a function as it stands and add it."""

        def add(function: Any) -> Any:
            dispatcher = function if hasattr(function, "py_func") else numba.njit(function)
            self.append(Case(dispatcher, args))
            return dispatcher

        return add


class Outcome(NamedTuple):
    """What a differentiated call gave, and its arguments afterwards."""

    value: float
    gradient: Any
    args: tuple[Any, ...]


@functools.cache
def _outcomes() -> dict[int, Outcome]:
    return {}


def copied(args: tuple[Any, ...]) -> tuple[Any, ...]:
    """Arguments that a call may overwrite; instances of compiled classes, which cannot be copied, are the same."""
    memo: dict[int, Any] = {}

    def keep(value: Any) -> None:
        if isinstance(value, tuple):
            for item in value:
                keep(item)
        elif hasattr(value, "_numba_type_"):
            memo[id(value)] = value

    keep(args)
    return copy.deepcopy(args, memo)


def outcome(case: Case) -> Outcome:
    """Value and gradient, computed once for all tests of a case: compiling is what takes the time."""
    key = id(case.function)
    if key not in _outcomes():
        args = copied(case.args)
        value, gradient = tg.value_and_grad(case.function)(*args)
        _outcomes()[key] = Outcome(value, gradient, args)
    return _outcomes()[key]


def value(case: Case, *first: Any) -> float:
    """What the undifferentiated function returns; it may overwrite its arguments."""
    args = copied(case.args)
    with (
        warnings.catch_warnings()
    ):  # lists as arguments: Numba announces that they will go; pointers to functions: that they are new
        warnings.simplefilter("ignore", NumbaPendingDeprecationWarning)
        warnings.simplefilter("ignore", NumbaExperimentalFeatureWarning)
        return float(case.function(*first, *args[len(first) :]))


def central_differences(case: Case, step: float = 1e-6) -> Any:
    """The gradient with respect to the first argument, from values alone."""
    point = case.args[0]
    if isinstance(point, float):
        return (value(case, point + step) - value(case, point - step)) / (2 * step)
    out = np.zeros(point.shape)
    for place in np.ndindex(point.shape):
        up, down = point.copy(order="K"), point.copy(order="K")
        up[place] += step
        down[place] -= step
        out[place] = (value(case, up) - value(case, down)) / (2 * step)
    return out
