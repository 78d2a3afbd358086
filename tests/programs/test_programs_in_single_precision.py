"""Programs of float32, and of both types together: the bits of eager values and gradients, by steps and by machine code."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
import pytest
from machine_code import compiled
from many_cases import each
from quick_machine_code import machine_code_is_made_quickly  # noqa: F401 - a fixture
from random_expressions import moved, points, random_function
from random_programs import points as program_points
from random_programs import random_program
from rule_samples import PUBLIC

import tapegrad as tg

SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, -3.5, 1e-42, 3e38, math.inf, -math.inf, math.nan, 25.0]
# The first is no operation of floats; of the others there is no code for derivatives.
NO_CODE = {"where", "remainder", "lgamma", "digamma", "polygamma", "gelu", "fmod", "erfinv", "sinc"}
RULES = [rule for rule in PUBLIC if rule.name not in NO_CODE]
ROUNDED = 3e-6  # of the largest element: sums are added up in another order


def single(*shape: int, seed: int = 0) -> np.ndarray:
    return np.random.default_rng(seed).uniform(0.2, 0.8, shape).astype(np.float32)


def bits(x: Any) -> Any:
    x = np.asarray(x)
    return x.dtype, x.shape, np.where(np.isnan(x), np.nan, x).astype(x.dtype).tobytes()


def close(found: Any, expected: Any, rounded: float = 0.0) -> bool:
    found, expected = np.asarray(found), np.asarray(expected)
    known = np.isfinite(expected)
    if found.shape != expected.shape or found.dtype != expected.dtype or not np.array_equal(found[~known], expected[~known], True):
        return False
    largest = max(1.0, np.abs(expected[known]).max(initial=0.0))
    return np.abs(found[known] - expected[known]).max(initial=0.0) <= ROUNDED * largest + (rounded if rounded == rounded else 0.0)


@pytest.mark.filterwarnings("ignore")
@each("rule", RULES, ids=lambda rule: rule.name)
def test_rules_on_arrays_have_the_bits_of_eager_ones(rule: Any) -> None:
    columns = [np.array(column, np.float32) for column in zip(*product(SPECIAL, repeat=len(rule.args)), strict=True)]
    function, by = getattr(tg, rule.name), tuple(range(len(rule.args) + 1))
    weights = np.linspace(-2.0, 2.0, columns[0].size, dtype=np.float32)

    def loss(weights: Any, *arrays: Any) -> Any:  # whose gradient by the weights is the value
        return (function(*arrays) * weights).sum()

    _, run = compiled(loss, weights, *(single(weights.size) for _ in columns), argnums=by)
    found, expected = run(weights, *columns)[1], tg.value_and_grad(loss, by)(weights, *columns)[1]
    assert list(map(bits, found)) == list(map(bits, expected))


@pytest.mark.filterwarnings("ignore")
@each("rule", [rule for rule in RULES if rule.name not in ("pow", "cbrt")], ids=lambda rule: rule.name)
def test_rules_on_numbers_have_the_bits_of_eager_ones(rule: Any) -> None:
    function, by = getattr(tg, rule.name), tuple(range(len(rule.args)))

    def loss(*arrays: Any) -> Any:
        return function(*(a.sum() for a in arrays)) * 1.75

    (_, run), own = compiled(loss, *(single(1) for _ in by), argnums=by), tg.value_and_grad(loss, by)
    for numbers in product(SPECIAL, repeat=len(by)):
        arrays = [np.array([number], np.float32) for number in numbers]
        (value, found), (own_value, expected) = run(*arrays), own(*arrays)
        assert list(map(bits, (value, *found))) == list(map(bits, (own_value, *expected))), numbers


@pytest.mark.filterwarnings("ignore")
@each("exponent", [0.0, 0.5, 1.0, 1.5, 2.0, 3.0, 4.0, -0.5, -1.0, -2.0])
def test_powers_have_the_bits_of_eager_ones(exponent: float) -> None:
    x, weights = np.array(SPECIAL * 3, np.float32), np.linspace(-2.0, 2.0, 36, dtype=np.float32)

    def loss(x: Any, weights: Any) -> Any:
        return (x**exponent * weights).sum()

    _, run = compiled(loss, single(36), weights, argnums=(0, 1))
    found, expected = run(x, weights)[1], tg.value_and_grad(loss, (0, 1))(x, weights)[1]
    assert list(map(bits, found)) == list(map(bits, expected))


FUNCTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "numbers in them": lambda x, y: (x * 0.1 + 0.7 * y / 3.0).sum(),
    "loops of both types": lambda x, y: (np.sin(x) * np.exp(y)).sum(),
    "a mean taken off": lambda x, y: ((x - x.mean()) * y).sum(),
    "sums along axes": lambda x, y: ((x - x.mean(axis=0)) * y.sum(axis=1, keepdims=True)).sum(),
    "a product of matrices": lambda x, y: ((x @ y.T) * 0.3).sum(),
    "of a matrix and a vector": lambda x, y: (x @ y[0]).sum() + (y[:, 0] @ x).sum(),
    "of vectors": lambda x, y: (x[0] @ y[1]) * 2.0,
    "numbers of them": lambda x, y: (x * y).sum() * 0.5 + np.exp(x.mean()) - x[0, 0] * y[1, 1],
    "slices": lambda x, y: ((x[1:] - x[:-1]) ** 2).sum() + x[:, ::-1].sum() * y[0, 0],
    "a concatenation": lambda x, y: (np.concatenate([x, y]) ** 2).sum(),
    "a choice": lambda x, y: np.where(x > 0.3, x, y * 0.1).sum() + np.maximum(x, 0.5).sum(),
    "powers": lambda x, y: (x**2.5).sum() + (x**y).sum() + (x**3).sum(),
    "steps of Python": lambda x, y: (np.sort(x) * y).sum() + np.cumsum(x).sum(),
    "exponential sums": lambda x, y: tg.logsumexp(tg.as_tensor(x), 1).sum() + (tg.softmax(tg.as_tensor(y), 0) * x).sum(),
    "index arrays": lambda x, y: (x[[0, 2]] * y[[1, 1]]).sum(),
    "float64 in between": lambda x, y: (x.astype(np.float64) * y).sum() + np.exp(y.astype(np.float64)).astype(np.float32).sum(),
    "a product in float64": lambda x, y: (x.astype(np.float64) @ y.T.astype(np.float64)).sum(),
    "writes in place": lambda x, y: _writes(x, y),
}


def _writes(x: Any, y: Any) -> Any:
    z = np.zeros_like(x)
    z[1:] = x[1:] * 2.0
    z[0] = y[0]
    z *= y
    return (z * z).sum()


@each("name", FUNCTIONS)
@each("fuse", [False, True], ids=["steps", "code"])
def test_functions_have_the_values_and_gradients_of_calls(name: str, fuse: bool) -> None:
    function, by = FUNCTIONS[name], (0, 1)
    own, program = tg.value_and_grad(function, by), tg.program(function, fuse=fuse)
    run = tg.value_and_grad(program, by)
    for k in range(4):
        arguments = single(3, 4, seed=k), single(3, 4, seed=k + 10)
        if k == 1 and fuse:
            program.compile()
        (value, found), (own_value, expected) = run(*arguments), own(*arguments)
        same = close if fuse else lambda a, b: bits(a) == bits(b)
        assert same(value, own_value)
        assert all(map(same, found, expected))
    assert program.traces
    assert not fuse or program.traces[0]["machine code"].startswith("machine code"), program.explain()


@each("kind", ["array", "number"])
def test_arguments_of_both_types(kind: str) -> None:
    def function(x: Any, other: Any) -> Any:
        return (np.exp(x * other) + x / 3.0).sum() * 0.5

    other: Any = np.random.default_rng(3).uniform(size=(3, 4)) if kind == "array" else 0.3
    _, run = compiled(function, single(3, 4), other, argnums=(0, 1))
    x = single(3, 4, seed=1)
    (value, found), (own_value, expected) = run(x, other), tg.value_and_grad(function, (0, 1))(x, other)
    assert value == pytest.approx(own_value, rel=1e-14)
    assert bits(found[0]) == bits(expected[0])
    np.testing.assert_allclose(found[1], expected[1], rtol=1e-14)


@pytest.mark.filterwarnings("ignore")
def test_random_functions_have_the_values_and_gradients_of_calls(request: pytest.FixtureRequest) -> None:
    count = 3000 if request.config.getoption("--long") else 40
    wrong, traces, by = [], [], (0, 1, 2)
    for seed in range(count):
        function, text = random_function(seed)
        program, own = tg.program(function), tg.value_and_grad(function, by)
        run = tg.value_and_grad(program, by)
        types = [(np.float32, np.float32), (np.float32, np.float64), (np.float64, np.float32)][seed % 3]
        with np.errstate(all="ignore"):
            given = [(x.astype(types[0]), y.astype(types[1]), s) for x, y, s in points(seed)[:4]]
            for arguments in given:
                steps, expected = run(*arguments), own(*arguments)
                if list(map(bits, (steps[0], *steps[1]))) != list(map(bits, (expected[0], *expected[1]))):
                    wrong.append(f"{text}\n{arguments}\n{steps}\n{expected}")
            program.compile()
            for arguments in given * 2:
                code, expected, other = run(*arguments), own(*arguments), own(*moved(arguments, 2.0**-22))
                for a, b, c in zip((code[0], *code[1]), (expected[0], *expected[1]), (other[0], *other[1]), strict=True):
                    if not close(a, b, 10.0 * np.abs(np.asarray(c) - b).max()):
                        wrong.append(f"{text}\n{arguments}\n{code}\n{expected}")
        traces += [trace["machine code"] for trace in program.traces]
    assert not wrong, "\n".join(wrong[:3])
    assert sum(text.startswith("machine code") for text in traces) > 0.8 * len(traces)


@pytest.mark.filterwarnings("ignore")
def test_random_programs_with_writes_and_branches_have_the_bits_of_calls(request: pytest.FixtureRequest) -> None:
    wrong, by = [], (0, 1, 2)
    for seed in range(2000 if request.config.getoption("--long") else 40):
        function, text = random_program(seed)
        types = [(np.float32, np.float32), (np.float32, np.float64), (np.float64, np.float32)][seed % 3]
        run, own = tg.value_and_grad(tg.program(function, fuse=False), by), tg.value_and_grad(function, by)
        for x, y, s in (*program_points(seed), *program_points(seed)[:2]):
            found, expected = (_outcome(f, x.astype(types[0]), y.astype(types[1]), s) for f in (run, own))
            if found != expected:
                wrong.append(f"{text}\n{x}\n{y}\n{s}")
    assert not wrong, "\n".join(wrong[:3])


def _outcome(run: Any, *arguments: Any) -> Any:
    try:
        with np.errstate(all="ignore"):
            value, gradients = run(*arguments)
    except Exception as error:
        return type(error)
    return list(map(bits, (value, *gradients)))


def test_many_points_are_taken_one_after_the_other() -> None:
    function, points = (lambda x: (np.exp(x) * x).sum()), single(50, 3)
    both = tg.value_and_grad(tg.program(function))
    values, gradients = both.map(points)
    for x, value, gradient in zip(points, values, gradients, strict=True):
        expected = tg.value_and_grad(function)(x)
        assert (value, bits(gradient)) == (expected[0], bits(expected[1]))


@each("fuse", [False, True], ids=["steps", "code"])
def test_another_branch_is_another_path(fuse: bool) -> None:
    def function(x: Any) -> Any:
        if x.sum() > 0.3:  # in float32, 0.1 + 0.2 is more than 0.3 is
            return (x * x).sum()
        return (x * 3.0).sum()

    program = tg.program(function, fuse=fuse)
    run, own = tg.value_and_grad(program), tg.value_and_grad(function)
    arguments = [np.array(pair, np.float32) for pair in ([0.1, 0.2], [0.2, 0.2], [0.1, 0.1], [0.3, 0.0], [0.3, 1e-9])]
    for _ in range(3):
        for x in arguments:
            assert bits(run(x)[1]) == bits(own(x)[1])
        program.compile()
    assert len(program.traces) == 2


RESULTS: dict[str, Callable[[Any], Any]] = {
    "number": lambda x: (x[0] * x).max(),
    "array": lambda x: x * 2.0,
    "tuple": lambda x: (x[0] * 3.0, x[1:]),
}


@each("name", RESULTS)
def test_values_have_the_types_of_the_functions_own(name: str) -> None:
    function = RESULTS[name]
    program, x = tg.program(function), single(5)
    for k in range(5):
        found, expected = program(x), function(x)
        assert type(found) is type(expected)
        for a, b in zip(*([one] if name != "tuple" else one for one in (found, expected)), strict=True):
            assert type(a) is type(b)
            assert bits(a) == bits(b)
        if k == 2:
            program.compile()


def test_earlier_results_stay_what_they_were() -> None:
    _, run = compiled(lambda x: (x * x).sum(), single(5000))
    first, second = run(single(5000, seed=1)), run(single(5000, seed=2))
    expected = tg.value_and_grad(lambda x: (x * x).sum())(single(5000, seed=1))
    assert bits(first[1]) == bits(expected[1])
    assert first[0] == pytest.approx(expected[0], rel=1e-6)
    assert second[0] != first[0]


def test_threads_run_one_program() -> None:
    def function(x: Any) -> Any:
        return (np.tanh(x) * x).sum()

    (_, run), own, wrong = compiled(function, single(300)), tg.value_and_grad(function), []

    def work(seed: int) -> None:
        for k in range(50):
            x = single(300, seed=100 * seed + k)
            if bits(run(x)[1]) != bits(own(x)[1]):
                wrong.append(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_other_drivers_have_the_bits_of_eager_ones() -> None:
    def function(x: Any) -> Any:
        return (np.exp(x) * x).sum()

    def elements(x: Any) -> Any:
        return np.sin(x) * x[0] + np.float32(0.1)

    program, other, x, v = tg.program(function), tg.program(elements), single(4), single(4, seed=1)
    for _ in range(4):
        assert bits(tg.hvp(program, x, v)) == bits(tg.hvp(function, x, v))
        assert bits(tg.hessian(program)(x)) == bits(tg.hessian(function)(x))
        assert bits(tg.jvp(program, (x,), (v,))[1]) == bits(tg.jvp(function, (x,), (v,))[1])
        assert list(map(bits, tg.jvp(other, (x,), (v,)))) == list(map(bits, tg.jvp(elements, (x,), (v,))))
        assert bits(tg.jacobian(other)(x)) == bits(tg.jacobian(elements, mode="forward")(x))
        program.compile(), other.compile()
    assert all(f"{name}: machine code, made" in program.explain() for name in ("hvp", "hessian", "value_jvp"))
    assert all(f"{name}: machine code, made" in other.explain() for name in ("jacobian", "value_jvp"))


def without_sums(seed: int) -> tuple[Callable[..., Any], Callable[..., Any]] | None:
    """A random function without sums on the way, and the array whose sum it gives."""
    function, text = random_function(seed, products=False)
    *lines, last = text.split("\n")
    if any(word in line for line in lines for word in ("sum", "mean")):
        return None
    space: dict[str, Any] = {"np": np}
    exec("\n".join([*lines, last.replace(".sum()", "").replace(".mean()", "")]), space)
    return function, space["f"]


@pytest.mark.filterwarnings("ignore")
@each("dtype", [np.float32, np.float64])
@each("seed", range(12))
def test_derivatives_of_random_functions_have_the_bits_of_eager_ones(seed: int, dtype: Any) -> None:
    made = without_sums(seed)
    if made is None:
        return
    function, elements = made
    program, of_elements = tg.program(lambda x, y: function(x, y, 0.7)), tg.program(lambda x, y: elements(x, y, 0.7))
    rng = np.random.default_rng(seed)
    given = [(rng.standard_normal((3, 4)).astype(np.float32), rng.standard_normal(4).astype(dtype)) for _ in range(3)]
    v = rng.standard_normal((3, 4)).astype(np.float32), rng.standard_normal(4).astype(dtype)
    drivers: list[tuple[Any, Any, Callable[[Any], Callable[..., Any]]]] = [
        (program, program.function, tg.hessian),
        (of_elements, of_elements.function, lambda f: tg.jacobian(f, mode="auto" if f is of_elements else "forward")),
        (of_elements, of_elements.function, lambda f: lambda x, y: np.concatenate([a.reshape(-1) for a in tg.jvp(f, (x, y), v)])),
    ]
    for program, own, driver in drivers:
        run, called = driver(program), driver(own)
        for _ in range(3):
            run(*given[0])
            program.compile()
        if driver is tg.hessian and dtype is np.float64:  # rounded otherwise where a value goes on in another type
            assert all(close(run(*point), called(*point)) for point in given)
            continue
        assert "machine code, made" in program.explain()
        assert all(bits(run(*point) + 0.0) == bits(called(*point) + 0.0) for point in given)  # but for signs of zeros
