"""Machine code of programs: the value and the gradient of the steps that it was made of."""

from __future__ import annotations

import math
import subprocess
import sys
import threading
from itertools import product
from typing import Any

import numpy as np
import pytest
from machine_code import compiled
from many_cases import each
from random_expressions import moved, points, random_function
from rule_samples import PUBLIC

import tapegrad as tg
from tapegrad.programs.fused import background
from tapegrad.programs.fused.machine_code import text_of

SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, -3.5, 1e-300, 1e300, math.inf, -math.inf, math.nan, 25.0]
NOT_ON_NUMBERS = {"hypot", "cbrt", "logaddexp2"}
NO_CODE = {"where", "remainder", "lgamma", "digamma", "polygamma", "gelu", "fmod", "erfinv", "sinc"}
RULES = [rule for rule in PUBLIC if rule.name not in NO_CODE]


def close(found: Any, expected: Any, other: Any = None) -> bool:
    """Whether results agree but for roundings, which may be as large as what small changes of the arguments do."""
    found, expected = np.asarray(found), np.asarray(expected)
    finite = np.isfinite(found) & np.isfinite(expected)
    largest = max(1e-3, np.abs(expected[finite]).max(initial=0.0))
    moves = 0.0 if other is None else np.nanmax(np.abs(np.where(finite, other - expected, 0.0)), initial=0.0)
    equal = (found == expected) | ((found != found) & (expected != expected))
    near = np.abs(found - expected) <= 1e-12 * largest + 100.0 * moves
    return found.shape == expected.shape and bool(np.all(np.where(finite, near, equal)))


@pytest.mark.filterwarnings("ignore")
def test_random_functions_have_the_functions_values_and_gradients(request: pytest.FixtureRequest) -> None:
    count = 5_000 if request.config.getoption("--long") else 80
    wrong, traces = [], []
    for seed in range(count):
        function, text = random_function(seed)
        program = tg.program(function)
        own, run = tg.value_and_grad(function, (0, 1, 2)), tg.value_and_grad(program, (0, 1, 2))
        with np.errstate(all="ignore"):
            for arguments in points(seed):
                run(*arguments)
            program.compile()
            for arguments in points(seed) * 2:
                (value, found), (own_value, expected) = run(*arguments), own(*arguments)
                _, other = own(*moved(arguments, 2.0**-50))
                if not close(value, own_value) or not all(map(close, found, expected, other)):
                    wrong.append(f"{text}\n{arguments}\n{found}\n{expected}")
        traces += [trace["machine code"] for trace in program.traces]
    assert not wrong, "\n".join(wrong[:3])
    assert sum(text.startswith("machine code") for text in traces) > 0.9 * len(traces)


def test_nothing_goes_back_to_an_array_of_which_no_element_is_used() -> None:
    def function(x: Any) -> Any:
        return (np.concatenate([x * 2.0, (x @ x)[:0]]) * 3.0).sum()

    x = np.array([[1.0, np.nan], [2.0, np.inf]])
    _, run = compiled(function, np.ones((2, 2)))
    assert run(x)[1].tolist() == [[6.0, 6.0], [6.0, 6.0]]


@pytest.mark.filterwarnings("ignore")
@each("rule", RULES, ids=lambda rule: rule.name)
def test_rules_on_arrays_have_the_bits_of_eager_ones(rule: Any) -> None:
    columns = [np.array(column) for column in zip(*product(SPECIAL, repeat=len(rule.args)), strict=True)]
    weights = np.linspace(-2.0, 2.0, columns[0].size)
    function, by = getattr(tg, rule.name), tuple(range(len(rule.args)))

    def loss(*arrays: Any) -> Any:
        return (function(*arrays) * weights).sum()

    _, run = compiled(loss, *(np.linspace(0.2, 0.8, weights.size) for _ in by), argnums=by)
    found, expected = run(*columns)[1], tg.value_and_grad(loss, by)(*columns)[1]
    for a, b in zip(found, expected, strict=True):
        known = ~np.isnan(b)
        assert np.array_equal(a[known].view(np.int64), b[known].view(np.int64))
        assert np.isnan(a[~known]).all()


@pytest.mark.filterwarnings("ignore")
@each("rule", [rule for rule in RULES if rule.name not in NOT_ON_NUMBERS], ids=lambda rule: rule.name)
def test_rules_on_numbers_have_the_bits_of_eager_ones(rule: Any) -> None:
    function, by = getattr(tg, rule.name), tuple(range(len(rule.args)))

    def loss(*numbers: Any) -> Any:
        return function(*numbers) * 1.75

    _, run = compiled(loss, *(0.4 for _ in by), argnums=by)
    own = tg.value_and_grad(loss, by)
    for numbers in product(SPECIAL, repeat=len(by)):
        (value, found), (own_value, expected) = run(*numbers), own(*numbers)
        bits = [struct_bits(x) for x in (value, *found)], [struct_bits(x) for x in (own_value, *expected)]
        assert bits[0] == bits[1], numbers


def struct_bits(x: float) -> Any:
    return "nan" if x != x else x.hex()


def rosenbrock(x: Any) -> Any:
    return (100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2).sum()


@each("n", [2, 3, 9, 513, 5000, 20_000])
def test_lengths_that_are_no_multiples_of_blocks(n: int) -> None:
    x = np.random.default_rng(n).standard_normal(n)
    _, run = compiled(rosenbrock, x)
    value, gradient = run(x)
    own_value, expected = tg.value_and_grad(rosenbrock)(x)
    assert gradient.tobytes() == expected.tobytes()
    assert value == pytest.approx(own_value, rel=2e-15)


def test_powers_in_an_array_of_one_element_have_the_bits_of_arrays() -> None:
    x, y = np.array([1e300]), np.array([-1.0])
    _, run = compiled(lambda x, y: (x**y).sum(), x, y, argnums=(0, 1))
    assert run(x, y) == tg.value_and_grad(lambda x, y: (x**y).sum(), (0, 1))(x, y)


def test_sums_of_many_elements_keep_their_digits() -> None:
    x = np.random.default_rng(0).uniform(0.0, 1.0, 1_000_003)
    _, run = compiled(lambda x: x.sum(), x)
    assert run(x)[0] == pytest.approx(math.fsum(x), rel=2e-15)


@each("special", [math.inf, -math.inf, math.nan])
def test_sums_of_infinite_elements(special: float) -> None:
    x = np.ones(2000)
    _, run = compiled(lambda x: (x * 2.0).sum(), x)
    x[1234] = special
    assert run(x)[0] == pytest.approx(special, nan_ok=True)


@each("n", [5, 6000])
def test_results_are_arrays_of_their_own(n: int) -> None:
    x = np.linspace(0.0, 1.0, n)
    _, run = compiled(lambda x: (x * x).sum(), x)
    first, second = run(x)[1], run(x + 1.0)[1]
    assert np.array_equal(first, 2.0 * x)
    first[:] = 0.0
    assert np.array_equal(run(x + 1.0)[1], second)


@each("n", [5, 6000])
def test_arguments_in_other_orders(n: int) -> None:
    x = np.linspace(0.0, 1.0, 2 * n)[::2]
    program = tg.program(lambda x: (x * x * x).sum())
    run = tg.value_and_grad(program)
    for _ in range(3):
        assert np.array_equal(run(x)[1], 3.0 * (x * x))
        program.compile()
        assert np.array_equal(run(-x)[1], 3.0 * (x * x))


def test_another_branch_is_another_path() -> None:
    def f(x: Any) -> Any:
        return (x * x).sum() if x[0] > 0.0 else (x * 3.0).sum()

    _, run = compiled(f, np.array([1.0, 2.0]))
    for _ in range(3):
        assert run(np.array([-1.0, 2.0]))[1].tolist() == [3.0, 3.0]
        assert run(np.array([3.0, 2.0]))[1].tolist() == [6.0, 4.0]


def test_a_number_that_decides_must_be_the_same_bits() -> None:
    def f(x: Any) -> Any:
        return x[0] * math.copysign(1.0, tg.stop_gradient(x[1]))

    _, run = compiled(f, np.array([2.0, 0.0]))
    assert run(np.array([2.0, -0.0]))[1].tolist() == [-1.0, 0.0]
    assert run(np.array([2.0, 0.0]))[1].tolist() == [1.0, 0.0]


MATRIX = np.random.default_rng(1).standard_normal((5, 4))
PRODUCTS = {
    "matrix and matrix": (lambda x, y: np.tanh(x @ y).sum(), MATRIX, MATRIX[:4]),
    "matrix and vector": (lambda x, y: np.tanh(x @ y).sum(), MATRIX, MATRIX[0]),
    "vector and matrix": (lambda x, y: np.tanh(x @ y).sum(), MATRIX[:, 0], MATRIX),
    "vector and vector": (lambda x, y: np.tanh(x @ y) * x[0], MATRIX[0], MATRIX[1]),
    "transposed": (lambda x, y: np.tanh(x.T @ y).sum(), MATRIX, MATRIX + 1.0),
    "with itself": (lambda x, y: ((x @ x.T) ** 2).sum() + (y[:4] @ y[:4]).sum(), MATRIX, MATRIX),
    "backwards": (lambda x, y: np.tanh(x[::-1] @ y[:, ::-1]).sum(), MATRIX, MATRIX[:4]),
    "by a constant": (lambda x, y: (np.tanh(MATRIX @ x) @ MATRIX).sum() + y[0], MATRIX[0], MATRIX[1]),
    "of one element": (lambda x, y: ((x[:, None] * x[None, :]) @ y).sum() + x.sum(), MATRIX[0, :1], MATRIX[1, :1]),
    "one after the other": (lambda x, y: np.tanh(np.tanh(x @ y) @ x).sum(), MATRIX[:4], MATRIX[:4].T),
}


@each(("name", "case"), list(PRODUCTS.items()), ids=str)
def test_products_of_matrices(name: str, case: Any) -> None:
    function, *arguments = case
    _, run = compiled(function, *arguments, argnums=(0, 1))
    others = [np.cos(a) for a in arguments]
    found, expected = run(*others), tg.value_and_grad(function, (0, 1))(*others)
    np.testing.assert_allclose(found[0], expected[0], rtol=1e-14)
    for a, b in zip(found[1], expected[1], strict=True):
        np.testing.assert_allclose(a, b, rtol=1e-13, atol=1e-15)


def rod(steps: int) -> Any:
    def f(x: Any) -> Any:
        temperature = np.ones(20)
        for _ in range(steps):
            flow = x * (temperature[1:] - temperature[:-1])
            temperature = temperature + np.concatenate([flow, [0.0]]) - np.concatenate([[0.0], flow])
        return (temperature * np.arange(20.0)).sum()

    return f


def text_of_program(function: Any, x: Any) -> str:
    program = tg.program(function)
    tg.value_and_grad(program)(x)
    (trace,) = program._recorded()
    return text_of(trace.fused.expressions()).text


@pytest.mark.filterwarnings("ignore")
@each(("m", "inner", "n"), [(2, 1, 2), (1, 2, 3), (2, 3, 2)])
def test_small_products_have_the_zeros_of_large_ones(m: int, inner: int, n: int) -> None:
    def function(x: Any, y: Any) -> Any:
        return (1.0 / (x @ y)).sum()

    _, run = compiled(function, np.ones((m, inner)), np.ones((inner, n)), argnums=(0, 1))
    for zero in (0.0, -0.0):
        assert run(np.full((m, inner), zero), np.ones((inner, n)))[0] == math.inf


def test_steps_of_a_loop_share_their_code() -> None:
    texts = [text_of_program(rod(steps), np.linspace(0.1, 0.3, 19)) for steps in (20, 40)]
    assert texts[1].count("\n") < 1.2 * texts[0].count("\n")


def waves(steps: int) -> Any:
    def f(x: Any) -> Any:
        y = x
        for k in range(steps):  # nothing but numbers are others in each step
            y = y * 0.3**k + np.sin(y * (0.1 * k)) * 0.01 * k + y.sum()
        return (y * y).sum()

    return f


def test_steps_that_differ_in_numbers_share_their_code() -> None:
    texts = [text_of_program(waves(steps), np.linspace(-1.0, 2.0, 40)) for steps in (20, 40)]
    assert texts[1].count("\n") < 1.5 * texts[0].count("\n")


def test_detached_values_pass_no_derivative_on() -> None:
    def f(x: Any) -> Any:
        y = x * x
        return (y * tg.as_tensor(y).detach()).sum()

    x = np.array([1.0, 2.0, 3.0])
    program = tg.program(f)
    run = tg.value_and_grad(program)
    run(x)
    program.compile()
    for _ in range(2):
        assert np.array_equal(run(x)[1], 2.0 * x**3)


def test_paths_that_run_often_get_machine_code_by_themselves() -> None:
    program = tg.program(lambda x: (np.exp(-x) * x).sum())
    run = tg.value_and_grad(program)
    x = np.linspace(0.0, 1.0, 20_000)
    expected = run(x)[1]
    for _ in range(20_000):
        run(x)
        if program.traces[0]["machine code"].startswith("machine code"):
            break
    assert program.traces[0]["machine code"].startswith("machine code")
    assert run(x)[1].tobytes() == expected.tobytes()


def test_callers_give_way_to_the_thread_that_compiles_for_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """Else one that never waits may keep it from the interpreter for seconds."""
    pauses: list[None] = []
    run, x = tg.value_and_grad(tg.program(lambda x: (np.exp(-x) * x).sum())), np.linspace(0.0, 1.0, 20_000)
    monkeypatch.setattr(background, "give_way", lambda: pauses.append(None))
    held, ended = threading.Event(), threading.Event()
    background.compile_later(held.wait)
    try:
        for _ in range(100_000):
            run(x)
            if pauses:
                break
    finally:
        held.set()
        background.compile_later(ended.set)
        assert ended.wait(60.0)
    assert pauses


def test_no_machine_code_where_none_is_wanted() -> None:
    program = tg.program(lambda x: (x * x).sum(), fuse=False)
    run = tg.value_and_grad(program)
    for _ in range(30_000):
        run(np.ones(2))
    assert program.traces[0]["machine code"] == "no machine code yet"


def test_calls_without_steps_of_python_see_what_changes() -> None:
    weights, factor = np.array([1.0, 2.0, 3.0]), 2.0

    def loss(x: Any, power: float = 2.0) -> Any:
        y = x * weights * factor
        return (y**power).sum() if x[0] > 0.0 else y.sum()

    x = np.array([0.5, -1.0, 2.0])
    program, run = compiled(loss, x)

    def agrees(*args: Any, **kwargs: Any) -> bool:
        found, expected = run(*args, **kwargs), tg.value_and_grad(loss)(*args, **kwargs)
        return close(found[0], expected[0]) and bool(np.array_equal(found[1], expected[1]))

    assert agrees(x)
    assert agrees(-x)  # another path
    assert agrees(x, power=3.0)
    assert agrees(x, 3.0)
    assert agrees(x[::-1])
    assert agrees(x[:1] + np.ones(3))
    weights[1] = 5.0
    assert agrees(x)
    factor = 3.0
    assert agrees(x)
    assert agrees(x)
    outer = tg.grad(lambda z: program(z) * z[0])
    np.testing.assert_array_equal(outer(x), tg.grad(lambda z: loss(z) * z[0])(x))
    program.check = 1
    assert agrees(x)


def test_gradients_of_calls_without_steps_of_python_are_the_callers_own() -> None:
    _, run = compiled(lambda x: (x * x).sum(), np.ones(4))
    first = run(np.ones(4))[1]
    run(np.full(4, 3.0))
    assert first.tolist() == [2.0] * 4
    assert type(run(np.ones(4))[0]) is float


def test_what_there_is_no_code_for_runs_as_before() -> None:
    x = np.random.default_rng(0).standard_normal((3, 3))
    program = tg.program(lambda x: np.linalg.eigvalsh(x + x.T).sum() * x[0, 0])
    run = tg.value_and_grad(program)
    expected = run(x)[1]
    program.compile()
    assert np.array_equal(run(x)[1], expected)
    assert "no machine code: no code for" in program.explain()


def test_a_number_that_is_compared_for_all_elements_has_code() -> None:
    def f(x: Any) -> Any:
        return (np.trapezoid(x, x) * x).sum()

    x = np.linspace(0.1, 1.0, 5)
    _, run = compiled(f, x)
    assert run(x * x)[1].tolist() == tg.grad(f)(x * x).tolist()


def test_gradients_by_what_is_not_used_have_its_dtype() -> None:
    program = tg.program(lambda x, y: (x * x).sum())
    run, x, y = tg.value_and_grad(program, (0, 1)), np.ones(3), np.ones(2, np.float32)
    run(x, y)
    program.compile()
    assert [[part.dtype.name for part in run(x, y)[1]] for _ in range(2)] == [["float64", "float32"]] * 2


SCRIPT = """
import numpy as np, tapegrad as tg
programs = [tg.program(lambda x, k=k: (np.exp(-x * k) * x).sum()) for k in range(8)]
x = np.linspace(0.0, 1.0, 100_000)
for p in programs:
    for _ in range(200):
        tg.value_and_grad(p)(x)
print("done")
"""


def test_a_script_may_end_while_code_is_made() -> None:
    ran = subprocess.run([sys.executable, "-c", SCRIPT], capture_output=True, text=True, check=False)
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "done\n", "")


FORKED = """
import os, numpy as np, tapegrad as tg
p = tg.program(lambda x: (np.exp(-x) * x).sum())
x = np.linspace(0.0, 1.0, 100_000)
run = tg.value_and_grad(p)
for _ in range(150):
    run(x)
if os.fork() == 0:
    p.compile()
    run(x); run(x)
    os._exit(0 if p.traces[0]["machine code"].startswith("machine code") else 3)
print(os.waitstatus_to_exitcode(os.wait()[1]))
"""


def test_forked_processes_make_their_own() -> None:
    ran = subprocess.run(
        [sys.executable, "-W", "ignore::DeprecationWarning", "-c", FORKED], capture_output=True, text=True, check=False, timeout=300
    )
    assert (ran.returncode, ran.stdout, ran.stderr) == (0, "0\n", "")
