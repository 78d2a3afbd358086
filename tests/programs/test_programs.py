"""Programs as people write them for Numba, differentiated as they stand."""

from __future__ import annotations

import copy
import functools
from typing import Any

import adaptive_step
import bouncing_ball
import bundle_adjustment
import conjugate_gradients
import cubic_spline
import gaussian_mixture
import heat_equation
import hidden_markov
import kalman_filter
import lennard_jones
import lstm
import n_body
import numpy as np
import option_pricing
import pytest
import ray_sphere
import soft_dtw
from linked_numba import numbas_functions_are_linked  # noqa: F401 - a fixture
from program import Program
from unoptimised_numba import code_is_not_optimised  # noqa: F401 - a fixture

import tapegrad as tg

MODULES = [
    adaptive_step,
    bouncing_ball,
    bundle_adjustment,
    conjugate_gradients,
    cubic_spline,
    gaussian_mixture,
    heat_equation,
    hidden_markov,
    kalman_filter,
    lennard_jones,
    lstm,
    n_body,
    option_pricing,
    ray_sphere,
    soft_dtw,
]
PROGRAMS = [module.PROGRAM for module in MODULES]
every_program = pytest.mark.parametrize("program", PROGRAMS, ids=lambda p: p.name)


@functools.cache
def _outcomes() -> dict[str, tuple[float, Any]]:
    return {}


def outcome(program: Program) -> tuple[float, Any]:
    """Value and gradients, once for all tests of a program: compiling is what takes the time."""
    if program.name not in _outcomes():
        both = tg.value_and_grad(program.function, program.argnums)
        _outcomes()[program.name] = both(*copy.deepcopy(program.args))
    return _outcomes()[program.name]


@every_program
def test_value_has_the_bits_of_the_undifferentiated_call(program: Program) -> None:
    assert outcome(program)[0] == program.value()


@every_program
def test_gradient_is_that_of_the_complex_step(program: Program) -> None:
    for got, expected in zip(outcome(program)[1], program.gradients_by_complex_step(), strict=True):
        assert np.any(expected != 0.0)
        np.testing.assert_allclose(got, expected, rtol=1e-9, atol=1e-10 * np.max(np.abs(expected)))


@every_program
def test_twin_computes_the_same_function(program: Program) -> None:
    args = [np.array(a, complex) if k in program.argnums else copy.deepcopy(a) for k, a in enumerate(program.args)]
    np.testing.assert_allclose(program.twin(*args).real, program.value(), rtol=1e-9)
