"""Random programs for Numba: values to the bit, derivatives of two orders as on dual numbers, arguments as they were."""

from __future__ import annotations

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import forked_processes
import fresh_processes
import numpy as np
import pytest
from dual_numbers import BINARY, UNARY, Dual, inputs, unary

SCRIPT = Path(__file__).with_name("fuzz_compiled.py")
OF_NUMBER_TYPES = Path(__file__).with_name("fuzz_number_types.py")
FIRST, PROGRAMS = 48, 2  # one that is compared to the bit, and one with its Hessian
UNOPTIMISED = {"NUMBA_OPT": "0", "NUMBA_LOOP_VECTORIZE": "0", "NUMBA_SLP_VECTORIZE": "0"}
PATIENCE = 600.0  # seconds that one program may take at most, cold sweeps included


def printed(script: Path, arguments: list[str], settings: dict[str, str], long: bool) -> str:
    """The last line that a script prints; a few functions are compiled by a quicker Numba."""
    if long:
        limit = float(arguments[-1]) + 2 * PATIENCE
        command = [sys.executable, str(script), *arguments]
        done = subprocess.run(command, capture_output=True, text=True, timeout=limit, check=False, env=settings)
        stdout, stderr, code = done.stdout, done.stderr, done.returncode
    else:
        begun = forked_processes.start(str(script), settings, *arguments, quicker=True)
        (stdout, stderr), code = begun.communicate(), begun.returncode
    last = (stdout.splitlines() or ["before the first one"])[-1]
    assert code == 0, f"seed {last}\n{stderr[-6000:]}\nto run one again: python {script} SEED"
    return last


def test_random_programs_have_the_derivatives_of_dual_numbers(
    long: bool, figure: Callable[..., None], pytestconfig: pytest.Config, tmp_path: Path
) -> None:
    seconds = float(pytestconfig.getoption("--fuzz-seconds")) if long else 3600.0
    first, count = (1, 10**9) if long else (FIRST, PROGRAMS)
    settings = fresh_processes.environment()
    if long:  # unoptimised code compiles faster, but must not stay in the cache
        settings |= UNOPTIMISED | {"NUMBA_CACHE_DIR": str(tmp_path)}
    programs, compared, refused, failures = map(
        int, printed(SCRIPT, [str(first), str(count), str(seconds)], settings, long).split()
    )
    figure("random compiled programs: failures", programs, failures, 0)
    figure("random compiled programs: refused, in a hundred", programs, 100 * refused / programs, 30)
    figure("random compiled programs: programs for a gradient that is compared", programs, programs / max(compared, 1), 2)


def test_random_functions_of_complex_numbers_and_float32_have_the_derivatives_of_differences(
    long: bool, figure: Callable[..., None], pytestconfig: pytest.Config, tmp_path: Path
) -> None:
    seconds = float(pytestconfig.getoption("--fuzz-seconds")) if long else 3600.0
    arguments = ["1", str(10**9 if long else 2), str(seconds)]
    settings = fresh_processes.environment() | UNOPTIMISED | {"NUMBA_CACHE_DIR": str(tmp_path)}
    functions, compared, refused, _, failures = map(int, printed(OF_NUMBER_TYPES, arguments, settings, long).split())
    figure("random functions of number types: failures", functions, failures, 0)
    figure("random functions of number types: refused, in a hundred", functions, 100 * refused / functions, 30)
    figure("random functions of number types: functions for one that is compared", functions, functions / max(compared, 1), 3)


@pytest.mark.parametrize("name", sorted(UNARY))
def test_functions_of_dual_numbers_have_their_derivatives(name: str) -> None:
    x, step = 0.37, 1e-4
    (z,) = (unary(name)(v) for v in inputs([x]))
    up, middle, down = (unary(name)(Dual(v)).value for v in (x + step, x, x - step))
    second = 0.0 if z.second is None else z.second[0, 0]
    np.testing.assert_allclose([z.first[0], second], [(up - down) / (2 * step), (up - 2 * middle + down) / step**2], atol=1e-5)


@pytest.mark.parametrize("name", sorted(BINARY))
def test_functions_of_two_dual_numbers_have_their_derivatives(name: str) -> None:
    function, x, y, step = BINARY[name], 1.37, 0.83, 1e-4

    def value(a: float, b: float) -> float:
        return function(Dual(x + a * step), Dual(y + b * step)).value

    z = function(*inputs([x, y]))
    first = [(value(1, 0) - value(-1, 0)) / (2 * step), (value(0, 1) - value(0, -1)) / (2 * step)]
    second = [
        (value(1, 0) - 2 * value(0, 0) + value(-1, 0)) / step**2,
        (value(0, 1) - 2 * value(0, 0) + value(0, -1)) / step**2,
        (value(1, 1) - value(1, -1) - value(-1, 1) + value(-1, -1)) / (4 * step**2),
    ]
    found = np.zeros((2, 2)) if z.second is None else z.second
    np.testing.assert_allclose(np.zeros(2) if z.first is None else z.first, first, atol=1e-5)
    np.testing.assert_allclose([found[0, 0], found[1, 1], found[0, 1]], second, atol=1e-5)


def test_a_dual_number_whose_slope_is_zero_keeps_its_second_derivative() -> None:
    (x,) = inputs([0.0])
    turning = unary("cos")(x)
    found = [unary("sin")(turning).second, BINARY["power"](2.5, turning).second]
    np.testing.assert_allclose(np.ravel(found), [-np.cos(1.0), -2.5 * np.log(2.5)], rtol=1e-14)
