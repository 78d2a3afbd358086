"""Rows of the rule table as cases, on whichever library has a function of that name."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from operation_case import Case
from rule_samples import differentiable, is_number

from tapegrad.rules.table import Rule


def function_of(library: Any, rule: Rule) -> Callable[..., Any]:
    """The library's function for a row; without one, a function that says so."""
    for place in (library, library.nn.functional, getattr(library, "special", library)):
        if hasattr(place, rule.name):
            return getattr(place, rule.name)

    def absent(*operands: Any) -> Any:
        raise NotImplementedError(f"{library.__name__} has no {rule.name}")

    return absent


def as_case(library: Any, rule: Rule, points: Sequence[np.ndarray]) -> Case:
    """A row as a case: conditions and orders are bound."""
    function, places = function_of(library, rule), differentiable(rule)
    middles = [sum(bounds) / 2 for bounds in rule.domain]
    fixed = [
        int(rule.domain[k][0]) if is_number(rule, k) else None if k in places else library.tensor(point > middles[k])
        for k, point in enumerate(points)
    ]

    def call(*tracked: Any) -> Any:
        given = iter(tracked)
        return function(*(next(given) if k in places else value for k, value in enumerate(fixed)))

    return Case(rule.name, call, tuple(points[k] for k in places), call)
