"""Compiled functions, unmodified: gradients against differences and the complex step, values to the bit, arguments untouched."""

from __future__ import annotations

import compiled_arrays
import compiled_callables
import compiled_control
import compiled_language
import compiled_views
import numpy as np
import pytest
from compiled_case import Case, central_differences, copied, outcome, value
from complex_step import complex_step
from linked_numba import numbas_functions_are_linked  # noqa: F401 - a fixture
from unoptimised_numba import code_is_not_optimised  # noqa: F401 - a fixture

TABLES = (compiled_control, compiled_arrays, compiled_views, compiled_language, compiled_callables)
CASES = [case for module in TABLES for case in module.TABLE]
every_case = pytest.mark.parametrize("case", CASES, ids=repr)

# Quotients, orders, declared types and typed containers of floats take no complex numbers at all.
OF_FLOATS = frozenset(map(repr, [*compiled_language.TABLE, *compiled_callables.TABLE]))

# In another order, by the number of threads.
REORDERED = frozenset(["reductions_in_parallel"])

# Complex numbers are something else there: conjugates, an order of their own, no error, memory in another order, no `item`.
ONLY_REAL = frozenset([
    "arithmetic", "conversion_of_a_transpose", "conversions", "dtypes", "errors_of_calls_that_are_caught", "functions",
    "items", "larger_of_a_number_and_of_none", "overlapping_sum", "view_by_name_of_its_real_part",
])  # fmt: skip


@every_case
def test_gradient_is_that_of_central_differences(case: Case) -> None:
    np.testing.assert_allclose(outcome(case).gradient, central_differences(case), rtol=1e-6, atol=1e-6)


@pytest.mark.parametrize("case", [case for case in CASES if repr(case) not in ONLY_REAL | OF_FLOATS], ids=repr)
def test_gradient_is_that_of_the_complex_step(case: Case) -> None:
    expected = complex_step(case.function, copied(case.args))
    np.testing.assert_allclose(outcome(case).gradient, expected, rtol=1e-11, atol=1e-12 * np.max(np.abs(expected), initial=1.0))


@every_case
def test_value_has_the_bits_of_the_undifferentiated_call(case: Case) -> None:
    if repr(case) in REORDERED:
        assert np.isclose(outcome(case).value, value(case), rtol=1e-14)
    else:
        assert outcome(case).value == value(case)


# What draws random numbers moves its generator on.
UNMOVED = [case for case in CASES if not any(isinstance(arg, np.random.Generator) for arg in case.given)]


@pytest.mark.parametrize("case", UNMOVED, ids=repr)
def test_arguments_of_the_caller_are_not_written_into(case: Case) -> None:
    for before, after in zip(case.args, outcome(case).args, strict=True):
        np.testing.assert_array_equal(after, before)
