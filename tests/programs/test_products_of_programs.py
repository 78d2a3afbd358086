"""`tg.vjp` and `tg.linearize` of programs: products by machine code, also long after the call that they belong to."""

from __future__ import annotations

import threading
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from many_cases import each
from quick_machine_code import machine_code_is_made_quickly  # noqa: F401 - a fixture

import tapegrad as tg

A = np.random.default_rng(0).normal(size=(5, 6))


def _writes(x: Any) -> Any:
    y = np.zeros_like(x)
    y[1:] = x[1:] * x[:-1]
    y[0] = x[0] ** 2
    y[::2] *= x[::2]
    return y


FUNCTIONS: dict[str, Callable[[Any], Any]] = {
    "elementwise": lambda x: np.sin(x) * x,
    "a matrix": lambda x: np.tanh(A @ x),
    "a number": lambda x: (x * x).sum(),
    "several results": lambda x: (x[1:] * x[:-1], x.sum()),
    "names": lambda x: {"a": x[::-1] * 3.0, "b": x[0] * x[1]},
    "branches": lambda x: x * 2.0 if x[0] > 0.0 else np.exp(x),
    "writes in place": _writes,
    "a constant beside": lambda x: (x[:3] * 0.0 + 1.0, x * x),
    "sorting": lambda x: np.sort(x) * x,
}


def leaves(value: Any) -> list[np.ndarray]:
    if isinstance(value, dict):
        return [leaf for name in sorted(value) for leaf in leaves(value[name])]
    return [leaf for part in value for leaf in leaves(part)] if isinstance(value, tuple) else [np.asarray(value)]


def random_like(value: Any, rng: np.random.Generator) -> Any:
    if isinstance(value, dict):
        return {name: random_like(part, rng) for name, part in value.items()}
    if isinstance(value, tuple):
        return tuple(random_like(part, rng) for part in value)
    return rng.normal(size=value.shape) if np.ndim(value) else float(rng.normal())


def assert_same(found: Any, expected: Any) -> None:
    assert type(found) is type(expected)
    for a, b in zip(leaves(found), leaves(expected), strict=True):
        assert (a.shape, a.dtype) == (b.shape, b.dtype)
        np.testing.assert_allclose(a, b, rtol=1e-14, atol=1e-14)


@each("name", FUNCTIONS)
@each("driver", [tg.vjp, tg.linearize], ids=["vjp", "linearize"])
def test_products_are_those_of_calls(name: str, driver: Any) -> None:
    function, rng = FUNCTIONS[name], np.random.default_rng(1)
    program = tg.program(function)
    for k in range(6):
        x = rng.normal(size=6)
        (value, product), (own_value, own) = driver(program, x), driver(function, x)
        assert_same(value, own_value)
        driver(program, rng.normal(size=6))  # other values, perhaps on another path
        for _ in range(2):
            given = random_like(own_value, rng) if driver is tg.vjp else rng.normal(size=6)
            assert_same(product(given), own(given))
        if k in (1, 2):
            program.compile()
    kind = "vjp" if driver is tg.vjp else "jvp"
    assert name == "sorting" or f"{kind}: machine code" in program.traces[0]["machine code"], program.explain()


def ready(function: Callable[..., Any], *arguments: Any) -> Any:
    program = tg.program(function)
    tg.vjp(program, *arguments)
    program.compile()
    for _ in range(3):
        tg.vjp(program, *arguments)
    assert "vjp: machine code" in program.traces[0]["machine code"], program.explain()
    return program


def test_arguments_of_several_kinds() -> None:
    def function(x: Any, scale: Any) -> Any:
        return np.exp(x) * scale

    x, g = np.array([1.0, 2.0]), np.array([3.0, -1.0])
    program = ready(function, x, 0.5)
    found, expected = tg.vjp(program, x, 2.0)[1](g), tg.vjp(function, x, 2.0)[1](g)
    assert_same(found, expected)


def test_arguments_may_be_written_into_between_call_and_product() -> None:
    program, x = ready(lambda x: x * x, np.arange(3.0)), np.arange(3.0)
    _, product = tg.vjp(program, x)
    x[:] = 100.0
    assert product(np.ones(3))[0].tolist() == [0.0, 2.0, 4.0]


def test_large_arrays_from_outside_are_as_they_were() -> None:
    data = np.random.default_rng(0).normal(size=(100, 60))

    def function(x: Any) -> Any:
        return np.sin(data @ x)

    x, g = np.linspace(0.0, 1.0, 60), np.ones(100)
    program = ready(function, x)
    (_, product), (_, own) = tg.vjp(program, x), tg.vjp(function, x)
    expected = own(g)[0].copy()
    data[:] = 1.0
    np.testing.assert_allclose(product(g)[0], expected, rtol=1e-12, atol=1e-12)
    np.testing.assert_allclose(tg.vjp(program, x)[1](g)[0], tg.vjp(function, x)[1](g)[0], rtol=1e-12, atol=1e-12)


def test_products_are_differentiated() -> None:
    program = ready(lambda x: np.sin(x) * x, np.arange(3.0))
    x = np.linspace(0.5, 1.0, 3)
    _, product = tg.vjp(program, x)
    slopes = tg.jacobian(lambda g: product(g)[0])(np.ones(3))
    np.testing.assert_allclose(slopes, np.diag(np.cos(x) * x + np.sin(x)), rtol=1e-14)


def test_what_the_function_sees_has_changed_where_rows_are_needed_again() -> None:
    weights = np.array([1.0, 2.0, 3.0])

    def function(x: Any) -> Any:
        return x * x * weights

    program = ready(function, np.ones(3))
    _, product = tg.vjp(program, np.ones(3))
    weights[0] = 10.0
    assert product(np.ones(3))[0].tolist() == [2.0, 4.0, 6.0]
    (trace,) = program._recorded()
    trace.is_running = True  # by somebody else, who has the rows
    with pytest.raises(RuntimeError, match="another value now"):
        tg.jacobian(lambda g: product(g)[0])(np.ones(3))
    trace.is_running = False
    np.testing.assert_array_equal(tg.jacobian(lambda g: product(g)[0])(np.ones(3)), np.diag([2.0, 4.0, 6.0]))


def test_several_threads_take_products() -> None:
    def function(x: Any) -> Any:
        return np.sin(x) * x

    program, wrong = ready(function, np.ones(500)), []

    def work(seed: int) -> None:
        rng = np.random.default_rng(seed)
        for _ in range(20):
            x, g = rng.normal(size=500), rng.normal(size=500)
            if not np.allclose(tg.vjp(program, x)[1](g)[0], g * (np.sin(x) + x * np.cos(x)), rtol=1e-12, atol=1e-14):
                wrong.append(seed)

    threads = [threading.Thread(target=work, args=(seed,)) for seed in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not wrong


def test_a_product_while_somebody_else_runs_the_path() -> None:
    program, x = ready(lambda x: np.sin(x) * x, np.ones(5)), np.linspace(0.0, 1.0, 5)
    _, product = tg.vjp(program, x)
    expected = product(np.ones(5))[0]
    (trace,) = program._recorded()
    trace.is_running = True
    assert product(np.ones(5))[0].tolist() == expected.tolist()
    trace.is_running = False


def test_cotangents_of_other_shapes_are_refused() -> None:
    _, product = tg.vjp(ready(lambda x: x * x, np.ones(3)), np.ones(3))
    with pytest.raises(ValueError, match="must have the shape"):
        product(np.ones(4))
