"""Random numbers by their parameters, and the gamma function, by what they are made of."""

from __future__ import annotations

import math
import random
from typing import Any

import numpy as np
from numba.core import types

from tapegrad.nopython.numba_interface.linking import overload, part
from tapegrad.nopython.tape.row_writing import primal, row, with_row
from tapegrad.nopython.twins.recording_twin import twin
from tapegrad.nopython.types.variable import REAL, Variable, has_variables

__all__ = ["BY_PARAMETERS", "DISTRIBUTIONS"]

NUMBERS = (Variable, *REAL)


@part
def scaled(loc, scale, standard):
    """A normal number of this mean and deviation."""
    return loc + scale * standard


@part
def between(low, high, share):
    """A number at this share of the way."""
    return low + (high - low) * share


def _by_parameters(function: Any, made: Any, first: str, second: str) -> Any:
    """A random number that depends on its parameters as `made` of them and of a standard one does; its bits are Numba's."""
    names = f"tape, {first}, {second}"
    space: dict[str, Any] = {"function": function}
    exec(f"def call({names}):\n    raise NotImplementedError", space)
    exec(f"def of_constants({names}):\n    return function({first}, {second})", space)
    exec(f"def of_variables({names}):\n    return recording(tape, {first}, {second}, function(0.0, 1.0))", space)

    def define(a: Any, b: Any) -> Any:
        if not has_variables(types.Tuple((a, b))):
            return space["of_constants"]
        space["recording"] = twin(made)
        return space["of_variables"] if isinstance(a, NUMBERS) and isinstance(b, NUMBERS) else None

    exec(f"def defined({names}):\n    return define({first}, {second})", space | {"define": define}, space)
    overload(space["call"])(space["defined"])
    return space["call"]


def gamma(tape, x):
    raise NotImplementedError


@part
def magnitude(x):
    """Of the gamma function."""
    return math.exp(math.lgamma(x))


@overload(gamma)
def _gamma(tape, x):
    if not has_variables(x):
        return lambda tape, x: math.gamma(x)
    recording, negative = twin(magnitude), twin(part(lambda x: -math.exp(math.lgamma(x))))

    def impl(tape, x):
        value = math.gamma(primal(x))
        return with_row(value, row(recording(tape, x) if value > 0.0 else negative(tape, x)))

    return impl


# Calls with two parameters and nothing else; the others are for constants.
BY_PARAMETERS: dict[Any, Any] = {
    np.random.normal: _by_parameters(np.random.normal, scaled, "loc", "scale"),
    np.random.uniform: _by_parameters(np.random.uniform, between, "low", "high"),
    random.gauss: _by_parameters(random.gauss, scaled, "mu", "sigma"),
    random.normalvariate: _by_parameters(random.normalvariate, scaled, "mu", "sigma"),
    random.uniform: _by_parameters(random.uniform, between, "a", "b"),
}
DISTRIBUTIONS: dict[Any, Any] = {math.gamma: gamma} | BY_PARAMETERS
