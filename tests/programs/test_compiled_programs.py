"""Whole programs, unmodified: their gradients against central differences, their values to the bit."""

from __future__ import annotations

import numpy as np
import pytest
from compiled_case import Case, central_differences, outcome, value
from compiled_programs import TABLE

every_program = pytest.mark.parametrize("program", TABLE, ids=repr)


@every_program
def test_gradient_of_a_program(program: Case) -> None:
    np.testing.assert_allclose(outcome(program).gradient, central_differences(program), rtol=1e-5, atol=1e-6)


@every_program
def test_value_of_a_program(program: Case) -> None:
    assert outcome(program).value == value(program)
