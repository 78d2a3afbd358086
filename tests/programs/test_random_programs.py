"""Random functions as programs: values and gradients are the function's own, bit for bit, at each of several points."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from random_programs import points, random_program

import tapegrad as tg

ROUNDED = 1e-11  # of the largest element: sums are added up in another order


def outcome(run: Any, arguments: tuple[Any, ...]) -> Any:
    try:
        with np.errstate(all="ignore"):
            value, gradients = run(*(a.copy() if isinstance(a, np.ndarray) else a for a in arguments))
    except Exception as error:
        return type(error)
    return [np.asarray(part).tobytes() for part in (value, *gradients)] + [np.shape(part) for part in gradients]


def as_numbers(found: Any) -> Any:
    return found if isinstance(found, type) else [np.frombuffer(part) if isinstance(part, bytes) else part for part in found]


def same(found: Any, expected: Any) -> bool:
    if isinstance(found, type) or isinstance(expected, type):
        return found is expected
    return all(np.array_equal(a, b, equal_nan=True) for a, b in zip(as_numbers(found), as_numbers(expected), strict=True))


@pytest.mark.filterwarnings("ignore")
def test_random_functions_are_the_functions_own(request: pytest.FixtureRequest) -> None:
    count = 10_000 if request.config.getoption("--long") else 150
    wrong = []
    again = 0
    for seed in range(count):
        function, text = random_program(seed)
        program = tg.program(function)
        own, run = tg.value_and_grad(function, (0, 1, 2)), tg.value_and_grad(program, (0, 1, 2))
        for arguments in (*points(seed), *points(seed)[:2]):
            if not same(outcome(run, arguments), outcome(own, arguments)):
                wrong.append(f"{text} at {arguments}")
                break
        again += bool(program.traces)
    assert not wrong, "\n".join(wrong[:3])
    assert again > 0.8 * count


def close(found: Any, expected: Any) -> bool:
    if isinstance(found, type) or isinstance(expected, type):
        return found is expected
    for a, b in zip(as_numbers(found), as_numbers(expected), strict=True):
        a, b = np.asarray(a), np.asarray(b)
        known = np.isfinite(b)
        largest = np.abs(b[known]).max(initial=1.0)
        if (
            not np.array_equal(a[~known], b[~known], equal_nan=True)
            or np.abs(a[known] - b[known]).max(initial=0.0) > ROUNDED * largest
        ):
            return False
    return True


@pytest.mark.filterwarnings("ignore")
def test_machine_code_of_random_functions_gives_the_functions_own(request: pytest.FixtureRequest) -> None:
    count = 10_000 if request.config.getoption("--long") else 50
    wrong = []
    compiled = traces = 0
    for seed in range(1, count + 1):
        function, text = random_program(-seed)
        program = tg.program(function)
        own, run = tg.value_and_grad(function, (0, 1, 2)), tg.value_and_grad(program, (0, 1, 2))
        for arguments in points(seed):
            outcome(run, arguments)
        program.compile()
        for arguments in (*points(seed), *points(seed)[:2]):
            if not close(outcome(run, arguments), outcome(own, arguments)):
                wrong.append(f"{text} at {arguments}")
                break
        codes = [trace["machine code"].startswith("machine code") for trace in program.traces]
        compiled, traces = compiled + sum(codes), traces + len(codes)
    assert not wrong, "\n".join(wrong[:3])
    assert compiled > 0.9 * traces
