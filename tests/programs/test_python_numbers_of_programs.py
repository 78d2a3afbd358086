"""Numbers of Python's beside float32 in programs: NumPy gives them its dtype, where a number of float64 decides that."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from many_cases import each
from quick_machine_code import machine_code_is_made_quickly  # noqa: F401 - a fixture

import tapegrad as tg

X = np.array([0.6458732, 0.3888507, 0.1], np.float32)
C = np.array([0.1, 0.2, 0.7], np.float32)


def bits(x: Any) -> Any:
    x = np.asarray(x)
    return x.dtype, x.shape, x.tobytes()


def _in_place(x: Any, n: Any) -> Any:
    y = x * 1
    y[1:] *= n
    return (y * x).sum()


def _branch(x: Any, n: Any) -> Any:
    return (x * x).sum() if x[2] > n else x.sum() * 3  # the element is as much in float32, and more in float64


FUNCTIONS: dict[str, Callable[[Any, Any], Any]] = {
    "an array": lambda x, n: (x * n).sum(),
    "an element": lambda x, n: x[0] / n,
    "a sum": lambda x, n: x.sum() * n,
    "computed of it": lambda x, n: x.sum() * (1.0 - n * n),
    "a function of it": lambda x, n: (x * np.exp(n)).sum(),
    "a comparison": lambda x, n: np.where(x > n, x, 3 * x).sum(),
    "a branch": _branch,
    "a choice": lambda x, n: np.where(x > 0.5, x, n).sum(),
    "in place": _in_place,
    "a bound": lambda x, n: np.clip(x, n, 2.0).sum(),
    "in a dict": lambda x, n: x.sum() * {"a": n}["a"],
    "a constant": lambda x, n: (C * n * x.astype(np.float64)).sum(),
}


@each("name", FUNCTIONS)
@each("first", [0.5, 0.1])  # what is recorded at the first one has no digits that would be rounded
def test_values_and_gradients_are_those_of_calls(name: str, first: float) -> None:
    function = FUNCTIONS[name]
    program = tg.program(function, fuse=False)
    run, own = tg.value_and_grad(program), tg.value_and_grad(function)
    for n in (first, 0.1, 0.3):
        for _ in range(2):
            (value, found), (own_value, expected) = run(X, n), own(X, n)
            assert (bits(value), bits(found)) == (bits(own_value), bits(expected))
            assert bits(program(X, n)) == bits(function(X, n))


@each("number", [np.float64(0.3), np.array(0.3, np.float32)], ids=["float64", "array of float32"])
def test_numbers_with_a_dtype_are_inputs(number: Any) -> None:
    def function(x: Any, n: Any) -> Any:
        return (x * n).sum()

    program = tg.program(function)
    run, own = tg.value_and_grad(program), tg.value_and_grad(function)
    for n in (number, number * number):
        n = n if isinstance(number, np.float64) else np.asarray(n)
        assert list(map(bits, run(X, n))) == list(map(bits, own(X, n)))
    assert len(program.traces) == 1


def test_numbers_of_python_that_meet_none_of_float32_are_inputs() -> None:
    def function(x: Any, n: Any) -> Any:
        y = np.zeros_like(x)
        y[0] = n  # which has the dtype of the array in any case
        return (x * y).sum()

    program = tg.program(function, fuse=False)
    run, own = tg.value_and_grad(program), tg.value_and_grad(function)
    for n in (0.5, 0.1, 0.7):
        assert list(map(bits, run(X, n))) == list(map(bits, own(X, n)))
    assert len(program.traces) == 1


def test_the_reason_is_told() -> None:
    program = tg.program(lambda x, n: (x * n).sum())
    program(X, 0.5)
    assert "a number of Python's meets float32" in program.explain()


def test_numbers_that_are_differentiated_by_are_of_float64() -> None:
    def function(x: Any, n: Any) -> Any:
        return (x * n).sum()

    program = tg.program(function, fuse=False)
    run, own = tg.value_and_grad(program, (0, 1)), tg.value_and_grad(function, (0, 1))
    for n in (0.5, 0.1):
        (value, found), (own_value, expected) = run(X, n), own(X, n)
        assert list(map(bits, (value, *found))) == list(map(bits, (own_value, *expected)))
    assert program.traces


@each("name", FUNCTIONS)
def test_there_are_paths_of_each_number(name: str) -> None:
    function = FUNCTIONS[name]
    program = tg.program(function)
    run, own, hessian = tg.value_and_grad(program), tg.value_and_grad(function), tg.hessian(program)
    for n in (0.1, 0.3, 0.1, -0.2):
        for _ in range(3):
            (value, found), (own_value, expected) = run(X, n), own(X, n)
            assert bits(found) == bits(expected)
            np.testing.assert_allclose(value, own_value, rtol=1e-6)  # sums of machine code have more digits
            np.testing.assert_allclose(program(X, n), function(X, n), rtol=1e-6)
            np.testing.assert_allclose(hessian(X, n), tg.hessian(function)(X, n), rtol=1e-5, atol=1e-6)
        program.compile()
    assert len(program.traces) >= 3
    assert any("machine code, made" in trace["machine code"] for trace in program.traces)


def test_numbers_that_keep_changing_are_given_to_calls() -> None:
    called = 0

    def function(x: Any, n: Any) -> Any:
        return (x * n).sum()

    program = tg.program(function)
    for k in range(30):
        n = 0.1 + 0.01 * k
        assert bits(tg.grad(program)(X, n)) == bits(tg.grad(function)(X, n))
        assert bits(program(X, n)) == bits(function(X, n))
        called = len(program.traces)
    assert called <= 8
    assert bits(tg.grad(program)(X.astype(float), 0.3)) == bits(tg.grad(function)(X.astype(float), 0.3))


def test_numbers_by_name_and_in_containers_belong_to_the_path() -> None:
    def function(x: Any, given: Any, *, n: Any = 1.0) -> Any:
        return (x * given[0] + x * x * given[1]["a"]).sum() * n

    program = tg.program(function)
    for a, b, n in ((0.1, 0.2, 0.3), (0.1, 0.2, 0.4), (0.3, 0.2, 0.4), (0.1, np.float64(0.2), 0.3), (0.1, 0.2, 0.3)):
        for _ in range(2):
            given = [a, {"a": b}]
            assert bits(tg.grad(program)(X, given, n=n)) == bits(tg.grad(function)(X, given, n=n))
    assert len(program.traces) >= 3


def test_points_with_numbers_of_their_own_are_those_of_calls() -> None:
    def function(x: Any, n: Any) -> Any:
        return (x * n).sum()

    program = tg.program(function)
    points = np.stack([X, 2 * X, 3 * X])
    for _ in range(3):
        found = tg.grad(program).map(points, 0.3)
        assert bits(found) == bits(np.stack([tg.grad(function)(x, 0.3) for x in points]))
        program.compile()


@each("name", FUNCTIONS)
@each("argnums", [None, 1, (0, 1)])
def test_values_are_those_of_calls_where_drivers_take_the_number_for_one_of_float64(name: str, argnums: Any) -> None:
    def function(n: Any, x: Any) -> Any:
        return FUNCTIONS[name](x, n)

    program = tg.program(function)
    for n in (0.5, 0.5, 0.1, 0.3):
        if argnums is not None:
            tg.grad(program, argnums)(n, X)  # whose path values may take, too
        assert bits(program(n, X)) == bits(function(n, X))
        program.compile()
