"""Compiled functions that take seconds to compile: one of them in the short form, all in the long one."""

from __future__ import annotations

import numpy as np
import pytest
from compiled_case import Case, central_differences, outcome, value
from compiled_slowly import TABLE


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    metafunc.parametrize("case", TABLE if metafunc.config.getoption("--long") else TABLE[:1], ids=repr)


def test_gradient_is_that_of_central_differences(case: Case) -> None:
    np.testing.assert_allclose(outcome(case).gradient, central_differences(case), rtol=1e-6, atol=1e-6)


def test_value_has_the_bits_of_the_undifferentiated_call(case: Case) -> None:
    assert outcome(case).value == value(case)
