"""Every operation that has a case as a program, at three points: values and gradients are the function's own, or it is called."""

from __future__ import annotations

import importlib
import math
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
from many_cases import each
from operation_case import Case, as_tuple
from quick_machine_code import machine_code_is_made_quickly  # noqa: F401 - a fixture
from rule_cases import as_case
from rule_samples import PUBLIC, columns

import tapegrad as tg

TABLES = [importlib.import_module(path.stem).CASES for path in sorted(Path(__file__).parents[1].glob("cases_*.py"))]
CASES: list[Case] = [*(as_case(tg, rule, columns(rule)) for rule in PUBLIC), *(case for table in TABLES for case in table)]
# Those that draw random numbers, and methods that arrays have with other arguments.
LEFT_OUT = ("dropout", "gumbel", "repeat", "view", "sort-descending")
CASES = [case for case in CASES if case.order and not any(word in str(case) for word in LEFT_OUT)]
FLOATS = (np.float32, np.float64)
COMPILED = frozenset(map(str, CASES[::4]))


def loss_of(case: Case) -> Callable[..., Any]:
    def loss(*arrays: Any) -> Any:
        total = 0.0
        for t in as_tuple(case.call(*map(tg.as_tensor, arrays))):
            if isinstance(t, tg.Tensor) and t.dtype in FLOATS:
                total = total + np.sum(t * np.cos(np.arange(math.prod(t.shape))).reshape(tuple(t.shape)).astype(t.dtype))
        return total

    return loss


def points(arrays: tuple[np.ndarray, ...]) -> list[tuple[np.ndarray, ...]]:
    """The case's own, one close by, and one whose floats are in another order."""

    def other(a: np.ndarray, change: Callable[[np.ndarray], np.ndarray]) -> np.ndarray:
        return change(a).astype(a.dtype) if a.dtype in FLOATS else a.copy()

    return [
        arrays,
        tuple(other(a, lambda a: a * 0.96875) for a in arrays),
        tuple(other(a, lambda a: np.ascontiguousarray(a.reshape(-1)[::-1].reshape(a.shape))) for a in arrays),
    ]


def outcome(run: Callable[..., Any], arrays: tuple[np.ndarray, ...]) -> Any:
    try:
        with np.errstate(all="ignore"):
            return run(*arrays)
    except (ValueError, RuntimeError) as error:
        return type(error)


@each("case", CASES, ids=str)
def test_operations_are_the_functions_own(case: Case) -> None:
    loss = loss_of(case)
    argnums = [k for k, a in enumerate(case.arrays) if a.dtype == np.float64]
    own, run = tg.value_and_grad(loss, argnums), tg.value_and_grad(tg.program(loss), argnums)
    for arrays in points(case.arrays):
        expected, found = outcome(own, arrays), outcome(run, arrays)
        if isinstance(expected, type) or isinstance(found, type):
            assert expected is found
            continue
        np.testing.assert_allclose(found[0], expected[0], rtol=1e-14, atol=1e-14)
        for g, e in zip(found[1], expected[1], strict=True):
            np.testing.assert_allclose(g, e, rtol=1e-13, atol=1e-14 * max(1.0, np.abs(e).max(initial=0.0)))


@each("case", CASES, ids=str)
def test_operations_on_float32_are_the_functions_own(case: Case) -> None:
    loss = loss_of(case)
    argnums = [k for k, a in enumerate(case.arrays) if a.dtype == np.float64]
    own, program = tg.value_and_grad(loss, argnums), tg.program(loss)
    run = tg.value_and_grad(program, argnums)
    for turn in range(1 + (str(case) in COMPILED)):  # by steps, and of every fourth one by machine code where there is some
        if turn:
            with np.errstate(all="ignore"):
                program.compile()
        for arrays in points(tuple(a.astype(np.float32) if a.dtype == np.float64 else a for a in case.arrays)):
            expected, found = outcome(own, arrays), outcome(run, arrays)
            if isinstance(expected, type) or isinstance(found, type):
                assert expected is found
                continue
            largest = max(1.0, *(np.abs(e).max(initial=0.0) for e in expected[1]))
            np.testing.assert_allclose(found[0], expected[0], rtol=1e-5, atol=1e-5)
            for g, e in zip(found[1], expected[1], strict=True):
                assert g.dtype == e.dtype
                if turn:
                    np.testing.assert_allclose(g, e, rtol=1e-4, atol=1e-5 * largest)
                else:
                    np.testing.assert_array_equal(g, e)


def test_more_than_half_of_the_operations_are_run_again() -> None:
    again = 0
    for case in CASES:
        p = tg.program(loss_of(case))
        outcome(tg.grad(p, [k for k, a in enumerate(case.arrays) if a.dtype == np.float64]), case.arrays)
        again += bool(p.traces)
    assert again > 0.5 * len(CASES)
