"""Compiled functions, unmodified: gradients against central differences, values to the bit, arguments untouched."""

from __future__ import annotations

import cases_compiled_arrays
import cases_compiled_control
import cases_compiled_views
import numpy as np
import pytest
from compiled_case import Case, central_differences, outcome, value

CASES = [*cases_compiled_control.TABLE, *cases_compiled_arrays.TABLE, *cases_compiled_views.TABLE]
every_case = pytest.mark.parametrize("case", CASES, ids=repr)


@every_case
def test_gradient_is_that_of_central_differences(case: Case) -> None:
    np.testing.assert_allclose(outcome(case).gradient, central_differences(case), rtol=1e-6, atol=1e-6)


@every_case
def test_value_has_the_bits_of_the_undifferentiated_call(case: Case) -> None:
    assert outcome(case).value == value(case)


@every_case
def test_arguments_of_the_caller_are_not_written_into(case: Case) -> None:
    for before, after in zip(case.args, outcome(case).args, strict=True):
        np.testing.assert_array_equal(after, before)
