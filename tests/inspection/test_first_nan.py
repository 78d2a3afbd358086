"""`explain_nan` names the operation that gave the first nan or infinity, and changes nothing."""

from __future__ import annotations

from typing import Any

import numba
import numpy as np
import pytest

import tapegrad as tg
from tapegrad.tape.tape import TAPE


def shifted_logarithm(x: Any) -> Any:
    shifted = np.exp(x) - 3.0
    logarithm = np.log(shifted)
    return logarithm.sum()


def test_first_value_is_named_with_its_line_and_operands() -> None:
    report = tg.explain_nan(shifted_logarithm, np.array([2.0, 0.0]))
    assert report
    assert (report.kind, report.operation, report.index) == ("value", "Log", (1,))
    assert report.line is not None and report.line.text == "logarithm = np.log(shifted)"
    np.testing.assert_array_equal(report.operands[0], np.exp([2.0, 0.0]) - 3.0)
    assert [text.split("  ")[-1].split(" =")[0] for text in report.upstream] == ["Sub", "Exp", "an argument, or another leaf"]
    assert report.reaches_result and not report.reaches_gradient
    assert "operand 0: -2 at [1] of [4.38906, -2]" in str(report)


def test_derivative_is_named_where_all_values_are_finite() -> None:
    report = tg.explain_nan(lambda x: np.sqrt(x).sum(), np.array([1.0, 0.0]))
    assert (report.kind, report.operation, report.operand, report.index) == ("adjoint", "Sqrt", 0, (1,))
    assert report.reaches_gradient and not report.reaches_result
    assert str(report).startswith("The derivative of Sqrt sent inf to its operand 0 at [1]; all values are finite.")


def test_operands_are_shown_in_their_order() -> None:
    report = tg.explain_nan(lambda x: np.arctan2(np.ones(2), np.sqrt(x)).sum(), np.array([1.0, 0.0]))
    assert (report.kind, report.operation, report.operand) == ("adjoint", "Sqrt", 0)
    report = tg.explain_nan(lambda x: np.hypot(1.0, x[0]) + np.power(x[1], x[0]), np.array([-0.5, 0.0]))
    assert (report.kind, report.operation, report.operands) == ("value", "Pow", [0.0, -0.5])


def test_contributions_whose_sum_overflows_are_found() -> None:
    report = tg.explain_nan(lambda x: np.sin(x) * 1e308 + np.sin(x) * 1.5e308, 0.0)
    assert report.reaches_gradient
    assert (report.kind, report.operation, report.operand) == ("adjoint", "leaf", None)


def test_argument_comes_first() -> None:
    report = tg.explain_nan(lambda p: (p["a"] * p["b"]).sum(), {"a": np.ones(2), "b": np.array([1.0, np.nan])})
    assert (report.kind, report.index) == ("argument", (1,))
    assert "b" in report.operation


def test_masked_branch_is_shown_and_said_not_to_matter() -> None:
    report = tg.explain_nan(lambda x: np.where(x > 0.0, np.log(x), 0.0 * x).sum(), np.array([1.0, -1.0]))
    assert report.operation == "Log"
    assert not report.reaches_result and not report.reaches_gradient


def test_finite_function_has_nothing_to_explain() -> None:
    report = tg.explain_nan(lambda x: (x * x).sum(), np.ones(3))
    assert not report
    assert str(report) == "No nan and no infinity: neither in a value nor in an adjoint."


def test_what_the_function_raises_after_a_nan_is_part_of_the_report() -> None:
    def refuses(x: Any) -> Any:
        y = np.log(x)
        if not np.isfinite(y):
            raise ValueError("no finite value")
        return y

    report = tg.explain_nan(refuses, -1.0)
    assert report.operation == "Log" and isinstance(report.error, ValueError)
    assert "The function then raised ValueError: no finite value" in str(report)
    with pytest.raises(ZeroDivisionError):
        tg.explain_nan(lambda x: x * (1 // 0), 1.0)


def test_compiled_function_is_one_operation() -> None:
    @numba.njit
    def logarithm(x):  # type: ignore[no-untyped-def]
        return np.log(x[0]) + x[1]

    report = tg.explain_nan(logarithm, np.array([-1.0, 1.0]))
    assert (report.kind, report.operation) == ("value", "Compiled")


def test_vectors_and_second_arguments() -> None:
    report = tg.explain_nan(lambda a, x: a / x, 1.0, np.array([1.0, 0.0]), argnums=1)
    assert (report.kind, report.operation, report.index) == ("value", "Div", (1,))


def test_programs_are_called_as_functions() -> None:
    f = tg.program(shifted_logarithm)
    tg.value_and_grad(f)(np.array([2.0, 3.0]))
    assert tg.explain_nan(f, np.array([2.0, 0.0])).operation == "Log"


def test_nothing_is_left_behind() -> None:
    x = tg.tensor([1.0, 2.0], requires_grad=True)
    entries = {name: getattr(TAPE, name) for name in ("scalar_row", "array1", "array2", "host_row")}
    tg.explain_nan(lambda v: (v * x).sum(), np.ones(2))
    assert x.grad is None
    assert TAPE.observers == 0
    assert {name: getattr(TAPE, name) for name in entries} == entries
    assert (x * x).sum().grad_fn is not None
