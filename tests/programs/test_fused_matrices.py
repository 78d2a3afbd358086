"""Machine code of values, Jacobians and Hessians of programs: those of the function."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from itertools import product
from typing import Any

import numpy as np
import pytest
from many_cases import each
from quick_machine_code import machine_code_is_made_quickly  # noqa: F401 - a fixture
from random_expressions import points as points_of_expressions
from random_expressions import random_function
from random_programs import points, random_program
from rule_samples import PUBLIC

import tapegrad as tg
from tapegrad.drivers.containers import flatten

SPECIAL = [0.0, -0.0, 1.0, -1.0, 0.5, -3.5, 1e-300, 1e300, math.inf, -math.inf, math.nan, 25.0]
NO_CODE = {"where", "remainder", "lgamma", "digamma", "polygamma", "gelu", "fmod", "erfinv", "sinc"}
NOT_ON_NUMBERS = {"hypot", "cbrt", "logaddexp2"}
RULES = [rule for rule in PUBLIC if rule.name not in NO_CODE and len(rule.args) < 3]
GROUPS = [RULES[k : k + 16] for k in range(0, len(RULES), 16)]
X = np.linspace(-0.8, 0.9, 6)
A, B = np.random.default_rng(0).normal(size=(5, 6)), np.random.default_rng(1).normal(size=(6, 4))
PLACES = np.array([3, 1, 1, 0, 5])
TIMES = np.linspace(0.0, 3.0, 20)


def forward(f: Any, argnums: Any = 0) -> Any:
    return tg.jacobian(f, argnums, mode="forward")


def codes(program: Any) -> list[str]:
    return [trace["machine code"].split("; ")[-1] for trace in program.traces]


def compiled(driver: Any, function: Callable[..., Any], *arguments: Any) -> Any:
    """What a driver gives of a program once it has machine code for it."""
    program = tg.program(function)
    run = driver(program)
    run(*arguments)
    program.compile()
    run(*arguments)
    run(*arguments)
    assert [": machine code, made" in code for code in codes(program)] == [True], program.explain()
    return run


def parts(value: Any) -> list[Any]:
    found: list[Any] = []
    flatten(value, found)
    return found


def equal(found: Any, expected: Any) -> bool:
    return all(
        type(a) is type(b) and np.array_equal(a, b, equal_nan=True) for a, b in zip(parts(found), parts(expected), strict=True)
    )


def close(found: Any, expected: Any, rounded: float = 1e-13) -> bool:
    a, b = (np.concatenate([np.ravel(part) for part in parts(value)]) for value in (found, expected))
    known = np.isfinite(a) & np.isfinite(b)
    largest = np.abs(b[known]).max(initial=1e-3)
    return a.shape == b.shape and bool(
        np.array_equal(a[~known], b[~known], equal_nan=True) and np.all(np.abs(a - b)[known] <= rounded * largest)
    )


FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "slices": lambda x: x[1:] * np.sin(x[:-1]) - x[::-1][:-1],
    "transposed": lambda x: (x.reshape(2, 3).T * np.exp(x.reshape(3, 2))).reshape(-1),
    "broadcast": lambda x: x[:3, None] * x[None, 2:] + x[0],
    "sums": lambda x: np.stack([(x * x).sum(), x.mean() * x[1], np.sin(x[2])]),
    "sums along axes": lambda x: (x.reshape(2, 3) ** 2).sum(0) * x.reshape(3, 2).mean(1),
    "joined": lambda x: np.concatenate([x[:2] ** 2, x[1:5] * x[0], x[4:]]),
    "an index array": lambda x: (x * x)[PLACES] * x[1:],
    "a constant matrix": lambda x: np.tanh(A @ x),
    "a matrix in front": lambda x: (x**2) @ B,
    "two matrices": lambda x: x.reshape(2, 3) @ (x.reshape(3, 2) ** 2),
    "two vectors": lambda x: np.stack([x @ np.cos(x), x[:3] @ x[3:]]),
    "vectors and matrices": lambda x: np.concatenate([x[:2] @ x.reshape(2, 3), x.reshape(2, 3) @ x[3:]]),
    "a curve": lambda x: x[0] * np.exp(-x[1] * TIMES) * np.cos(x[2] * TIMES + x[3]) + x[4],
    "numbers": lambda x: np.stack([x[0] * x[1] / (2.0 + x[2]), np.hypot(x[3], x[4]), x[5] ** 3 - np.arctan2(x[0], x[1])]),
    "constants": lambda x: np.stack([x[0] * 0.0 + 1.0, 2.0 * x[1], -x[2]]),
    "detached": lambda x: tg.stop_gradient(x) * x,
}


PRODUCTS = ("a constant matrix", "a matrix in front", "two matrices", "vectors and matrices")  # small ones are written out


def written(x: Any) -> Any:
    y = np.zeros_like(x)
    y[1:] = x[1:] * x[:-1]
    y[0] = x[0] ** 2
    y[::2] *= x[::2]
    return y


FUNCTIONS["writes in place"] = written


def shifted() -> Iterator[np.ndarray]:
    for k in range(4):
        yield X + 0.1 * k * np.cos(np.arange(6.0) + k)


@pytest.mark.parametrize("name", list(FUNCTIONS))
def test_values_are_the_functions_own(name: str) -> None:
    run, own = compiled(lambda f: f, FUNCTIONS[name], X), FUNCTIONS[name]
    for x in shifted():
        found, expected = run(x), own(x)
        assert found.flags.c_contiguous == expected.flags.c_contiguous
        assert close(found, expected, 1e-15) if "sums" in name or name in PRODUCTS else equal(found, expected)


def test_a_value_has_the_type_that_the_function_returns() -> None:
    def f(x: Any) -> Any:
        return {"number": x[0] * 2.0, "sum": x.sum(), "parts": (x.reshape(2, 3).T, x[1:] * 1.0)}

    run = compiled(lambda f: f, f, X)
    for x in shifted():
        found, expected = run(x), f(x)
        assert close(found, expected, 1e-15)
        assert list(map(type, parts(found))) == list(map(type, parts(expected)))
        assert [np.shape(part) for part in parts(found)] == [np.shape(part) for part in parts(expected)]


def test_data_that_a_function_writes_and_returns_have_code() -> None:
    def f(x: Any, data: Any) -> Any:
        own = data * 1.0
        own[::2] = data[1]
        return {"data": own, "values": x * own}

    run, own = compiled(tg.value_and_jacobian, f, X, A[0]), tg.value_and_jacobian(f, mode="forward")
    for x in shifted():
        assert equal(run(x, x * A[0]), own(x, x * A[0]))


def test_values_alone_are_compared_with_the_function() -> None:
    program = tg.program(lambda x: x * 2.0, check=1)
    program(X)
    program.compile()
    for point in shifted():
        assert np.array_equal(program(point), point * 2.0)


@pytest.mark.parametrize("name", list(FUNCTIONS))
def test_jacobians_are_those_of_forward_mode(name: str) -> None:
    run, own = compiled(tg.value_and_jacobian, FUNCTIONS[name], X), tg.value_and_jacobian(FUNCTIONS[name], mode="forward")
    is_product = "mat" in name or "vectors" in name
    for x in shifted():
        found, expected = run(x), own(x)
        assert close(found, expected, 1e-15) if is_product or "sums" in name else equal(found, expected)


@pytest.mark.parametrize("name", list(FUNCTIONS))
def test_products_with_the_jacobian_are_those_of_the_function(name: str) -> None:
    directions = iter(np.random.default_rng(4).normal(size=(7, 6)))
    own = FUNCTIONS[name]
    run = compiled(lambda f: lambda x: (v := next(directions), tg.jvp(f, (x,), (v,))), own, X)
    for x in shifted():
        v, found = run(x)
        assert close(found, tg.jvp(own, (x,), (v,)), 1e-13)


def test_products_with_the_jacobian_by_several_arguments() -> None:
    def f(x: Any, a: Any) -> Any:
        return {"scaled": a * np.sin(x), "sum": (x * x).sum() / a}

    program = tg.program(f)
    for k, x in enumerate(shifted()):
        v = np.cos(X + k)
        found, expected = (tg.jvp(g, (x, 1.5 + k), (v, -0.7)) for g in (program, f))
        assert close(found, expected, 1e-14)
        assert list(map(type, parts(found))) == list(map(type, parts(expected)))
        program.compile()
    assert "jvp: machine code" in program.traces[0]["machine code"]
    with pytest.raises(ValueError, match="shape"):
        tg.jvp(program, (X, 1.0), (X[1:], 1.0))


@pytest.mark.parametrize("name", list(FUNCTIONS))
def test_hessians_are_those_of_the_function(name: str) -> None:
    def loss(x: Any) -> Any:
        y = FUNCTIONS[name](x)
        return (y * y).sum() + np.sin(y.reshape(-1)[0])

    run, own = compiled(tg.hessian, loss, X), tg.hessian(loss)
    for x in shifted():
        found, expected = run(x), own(x)
        assert close(found, expected)
        assert np.array_equal(found, found.T)


@pytest.mark.parametrize("name", list(FUNCTIONS))
def test_products_with_the_hessian_are_those_of_the_function(name: str) -> None:
    def loss(x: Any) -> Any:
        y = FUNCTIONS[name](x)
        return (y * y).sum() + np.sin(y.reshape(-1)[0])

    directions = iter(np.random.default_rng(3).normal(size=(7, 6)))
    run = compiled(lambda f: lambda x: (v := next(directions), tg.hvp(f, x, v)), loss, X)
    for x in shifted():
        v, found = run(x)
        assert close(found, tg.hvp(loss, x, v))


def test_products_with_the_hessian_by_many_numbers() -> None:
    def loss(x: Any) -> Any:
        return (100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2).sum()

    x, v = np.random.default_rng(4).normal(size=(2, 2000))
    run = compiled(lambda f: lambda x, v: tg.hvp(f, x, v), loss, x, v)
    first = run(x, v)
    run(x, -v)
    assert close(first, tg.hvp(loss, x, v))


def test_products_with_the_hessian_are_checked_by_the_value_at_their_own_point() -> None:
    def loss(x: Any) -> Any:
        return (x[1:] * np.sin(x[:-1])).sum()

    program = tg.program(loss, check=1)
    for _ in range(2):
        tg.hvp(program, X, X)
    program.compile()
    for scale in (1.0, 0.5, 0.25):
        assert close(tg.hvp(program, scale * X, X), tg.hvp(loss, scale * X, X))


@pytest.mark.parametrize("v", [[1.0] * 6, np.arange(6), np.ones(6, np.float32), np.ones(5), np.ones((2, 3)), "six"])
def test_other_directions_are_taken_or_refused_as_by_the_function(v: Any) -> None:
    def loss(x: Any) -> Any:
        return (x**4).sum() * x[0]

    run = compiled(lambda f: lambda x, v: tg.hvp(f, x, v), loss, X, X)
    found, expected = (outcome(f, (v,)) for f in (lambda v: run(X, v), lambda v: tg.hvp(loss, X, v)))
    assert found is expected if isinstance(expected, type) else close(found, expected)


@pytest.mark.filterwarnings("ignore")
@each("group", range(len(GROUPS)))
@each("on_numbers", [False, True])
def test_rules_have_their_first_and_second_partials(group: int, on_numbers: bool) -> None:
    rules = [rule for rule in GROUPS[group] if not (on_numbers and rule.name in NOT_ON_NUMBERS)]

    def values(p: Any) -> Any:
        if on_numbers:
            return np.stack([getattr(tg, r.name)(*(p[k, j] for j in range(len(r.args)))) for k, r in enumerate(rules)])
        return np.concatenate([getattr(tg, r.name)(*(p[k, j : j + 1] for j in range(len(r.args)))) for k, r in enumerate(rules)])

    def loss(p: Any) -> Any:
        return (values(p) * 1.75).sum()

    start = np.full((len(rules), 2), 0.4)
    for driver, function in ((forward, values), (tg.hessian, loss)):
        run, own = compiled(driver, function, start), driver(function)
        for pair in product(SPECIAL, repeat=2):
            at = np.tile(pair, (len(rules), 1))
            found, expected = run(at), own(at)
            wrong = ~((found == expected) | ((found != found) & (expected != expected)))
            assert not wrong.any(), (pair, {rules[k].name for k in np.unique(np.argwhere(wrong)[:, -2])})


@pytest.mark.filterwarnings("ignore")
@each("which", ["value", "jacobian", "hessian"])
@each("kind", ["expressions", "programs"])
def test_random_functions_have_the_functions_derivatives(which: str, kind: str, request: pytest.FixtureRequest) -> None:
    count = 2_000 if request.config.getoption("--long") else 7
    make, at = (random_function, points_of_expressions) if kind == "expressions" else (random_program, points)
    wrong, made = [], []
    for seed in range(count):
        scalar, text = make(-seed - 1)

        def vector(x: Any, y: Any, s: Any, f: Any = scalar) -> Any:
            return f(x, y, s) * x + y

        function = scalar if which == "hessian" else vector
        program = tg.program(function)
        run, own = (DERIVED[which](f) for f in (program, function))
        with np.errstate(all="ignore"):
            for arguments in at(seed)[:3]:
                outcome(run, arguments)
            program.compile()
            for arguments in (*at(seed)[:3], *at(seed)[:3]):
                found, expected = outcome(run, arguments), outcome(own, arguments)
                if isinstance(expected, type):
                    agrees = found is expected
                else:
                    agrees = not isinstance(found, type) and close(found, expected, 1e-11 if which == "hessian" else 1e-12)
                if not agrees:
                    wrong.append(f"{text} at {arguments}")
                    break
        made += codes(program)
    assert not wrong, "\n".join(wrong[:3])
    assert sum(": machine code, made" in code for code in made) > 0.5 * len(made)


DERIVED: dict[str, Callable[[Any], Any]] = {
    "value": lambda f: f,
    "jacobian": lambda f: forward(f, (0, 1, 2)),
    "hessian": lambda f: tg.hessian(f, (0, 1, 2)),
}


def outcome(run: Callable[..., Any], arguments: Any) -> Any:
    try:
        return run(*(a.copy() if isinstance(a, np.ndarray) else a for a in arguments))
    except Exception as error:
        return type(error)


def test_containers_have_blocks_of_their_own() -> None:
    def f(p: Any, s: float) -> Any:
        return {"a": p["m"] * s, "b": [p["v"].sum() * s, p["m"][0] @ p["v"]]}

    point = {"m": np.arange(6.0).reshape(2, 3), "v": np.array([0.5, -1.0, 2.0])}

    def driver(g: Any) -> Any:
        return tg.value_and_jacobian(g, (0, 1), mode="forward")

    run, own = compiled(driver, f, point, 1.5), driver(f)
    other = {"m": point["m"] - 2.0, "v": point["v"] * 3.0}
    assert close(run(other, -0.5), own(other, -0.5), 1e-15)
    assert [np.shape(part) for part in parts(run(other, -0.5))] == [np.shape(part) for part in parts(own(other, -0.5))]


def test_matrices_are_the_callers_own() -> None:
    run = compiled(tg.jacobian, lambda x: x * x, np.arange(8.0))
    first = run(np.ones(8))
    run(np.full(8, 3.0))
    assert np.array_equal(first, 2.0 * np.eye(8))


def test_one_direction_is_one_column() -> None:
    run = compiled(forward, lambda s: np.sin(s * TIMES), 0.3)
    assert np.array_equal(run(0.7), forward(lambda s: np.sin(s * TIMES))(0.7))


def test_another_branch_is_another_path() -> None:
    def f(x: Any) -> Any:
        return x * x if x[0] > 0.0 else -x

    program = tg.program(f)
    run = tg.jacobian(program)
    for point in (X, -X):
        run(point)
    program.compile()
    for point in (X, -X, X, -X, X):
        assert np.array_equal(run(point), tg.jacobian(f)(point))
    assert all(": machine code, made" in code for code in codes(program))


def test_reverse_mode_is_not_taken_for_forward_mode() -> None:
    program = tg.program(lambda x: np.tanh(A @ x))
    tg.jacobian(program)(X)
    program.compile()
    expected = tg.jacobian(program.function, mode="reverse")
    run = tg.jacobian(program, mode="reverse")
    for point in shifted():
        assert np.array_equal(run(point), expected(point))


def test_zeros_that_hide_infinite_factors_of_products_stay_zeros() -> None:
    def loss(x: Any) -> Any:
        v = x[:4] * x[4]
        return (1.0 / (v.reshape(2, 2) @ x[:2] - 1.0)).sum()

    run, own = compiled(tg.hessian, loss, np.array([0.5, 0.2, 0.1, 0.3, 2.0])), tg.hessian(loss)
    at = np.array([1.0, 0.0, 1.0, 0.0, 1.0])
    with np.errstate(all="ignore"):
        assert np.array_equal(run(at), own(at), equal_nan=True)


def test_code_is_not_given_up_for_a_first_point_that_is_not_finite() -> None:
    program = tg.program(lambda x: np.sqrt(A @ x))
    run = tg.jacobian(program)
    with np.errstate(invalid="ignore"):
        run(X)
        program.compile()
        run(X)
    run(np.linalg.pinv(A) @ np.arange(1.0, 6.0))
    assert ": machine code, made" in codes(program)[0]


def test_least_squares_takes_the_matrix_of_machine_code() -> None:
    def residual(p: Any) -> Any:
        return p[0] * np.exp(-p[1] * TIMES) + p[2] - 2.0 * np.exp(-0.7 * TIMES)

    start = np.array([1.0, 1.0, 0.1])
    program = tg.program(residual)
    tg.jacobian(program)(start)
    program.compile()
    tg.jacobian(program)(start)
    found, own = (tg.optimize.least_squares(f, start) for f in (program, residual))
    np.testing.assert_allclose(found.x, own.x, rtol=1e-12, atol=1e-12)
    assert found.nfev == own.nfev
