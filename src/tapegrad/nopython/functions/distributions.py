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


def _by_parameters(function: Any, made: Any) -> Any:
    """A random number that depends on its parameters as `made` of them and of a standard one does; its bits are Numba's."""

    def call(tape, a, b):
        raise NotImplementedError

    @overload(call)
    def define(tape, a, b):
        if not has_variables(types.Tuple((a, b))):
            return lambda tape, a, b: function(a, b)
        if not (isinstance(a, NUMBERS) and isinstance(b, NUMBERS)):
            return None
        recording = twin(made)

        return lambda tape, a, b: recording(tape, a, b, function(0.0, 1.0))

    return call


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
    np.random.normal: _by_parameters(np.random.normal, scaled), np.random.uniform: _by_parameters(np.random.uniform, between),
    random.gauss: _by_parameters(random.gauss, scaled), random.normalvariate: _by_parameters(random.normalvariate, scaled),
    random.uniform: _by_parameters(random.uniform, between),
}  # fmt: skip
DISTRIBUTIONS: dict[Any, Any] = {math.gamma: gamma} | BY_PARAMETERS
