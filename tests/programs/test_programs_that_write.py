"""Functions that write in place as programs: the function's own values and gradients, without calling it again."""

from __future__ import annotations

import sys
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from functions_that_write import FUNCTIONS
from quick_machine_code import machine_code_is_made_quickly  # noqa: F401 - a fixture

import tapegrad as tg

X = np.array([0.7, -1.3, 2.1, 0.4])
POINTS = [X, X[::-1].copy(), -X, 3.0 * X, X + 0.5, np.array([0.0, -0.0, 1.0, np.inf]), X]


def calls_of(function: Callable[..., Any], run: Callable[..., Any]) -> int:
    """How often a function is called while all points are gone through."""
    seen = []

    def note(frame: Any, event: str, argument: Any) -> None:
        if event == "call" and frame.f_code is function.__code__:
            seen.append(frame)

    sys.setprofile(note)
    try:
        for x in POINTS:
            run(x)
    finally:
        sys.setprofile(None)
    return len(seen)


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_writes_are_run_again(function: Callable[[Any], Any]) -> None:
    own, run = tg.value_and_grad(function), tg.value_and_grad(tg.program(function))
    for x in POINTS:
        expected, found = own(x.copy()), run(x.copy())
        np.testing.assert_array_equal(found[0], expected[0])
        np.testing.assert_array_equal(found[1], expected[1])
    assert calls_of(function, run) == 0


WITHOUT_CODE = {"index_arrays", "mask_on_both_sides"}


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize("function", [f for f in FUNCTIONS if f.__name__ not in WITHOUT_CODE], ids=lambda f: f.__name__)
def test_machine_code_of_writes_has_the_bits_of_eager_gradients(function: Callable[[Any], Any]) -> None:
    program = tg.program(function)
    own, run = tg.value_and_grad(function), tg.value_and_grad(program)
    run(X)
    program.compile()
    run(X)
    assert program.traces[0]["machine code"].startswith("machine code")
    for x in POINTS:
        expected, found = own(x.copy()), run(x.copy())
        np.testing.assert_allclose(found[0], expected[0], rtol=1e-14)
        np.testing.assert_array_equal(found[1], expected[1])
        zero = expected[1] == 0.0
        np.testing.assert_array_equal(np.signbit(found[1][zero]), np.signbit(expected[1][zero]))


def test_writes_past_the_graph_have_no_machine_code() -> None:
    def f(x: Any) -> Any:
        y = x * 2.0
        with tg.no_grad():
            y[0] = 5.0
        return (y * x).sum()

    def g(x: Any) -> Any:
        y = x * 2.0
        z = y.detach() if isinstance(y, tg.Tensor) else y
        z[1] = 5.0
        return (y * x).sum()

    for function in (f, g):
        program = tg.program(function)
        for k, x in enumerate([X, X[::-1].copy(), -X]):
            np.testing.assert_array_equal(tg.grad(program)(x), tg.grad(function)(x))
            if k == 0:
                program.compile()
        assert ["past the graph" in trace["machine code"] for trace in program.traces] == [True]


@pytest.mark.parametrize("dtype", [tg.bool, tg.int64])
@pytest.mark.parametrize("part", [slice(None), slice(1, 3)])
def test_writes_into_masks_and_integers_convert_in_each_run(dtype: Any, part: slice) -> None:
    def f(x: Any) -> Any:
        x = tg.as_tensor(x)
        m = tg.zeros(4, dtype=dtype)
        m[part] = x[part]
        return (m.to(tg.float64) * x * x).sum()

    program = tg.program(f)
    for x in [np.zeros(4), np.zeros(4), np.array([1.0, 0.0, 1.0, 0.0]), *POINTS[:5]]:
        np.testing.assert_array_equal(tg.grad(program)(x), tg.grad(f)(x))
        program.compile()


def test_what_its_derivative_needs_may_be_written_over() -> None:
    def f(x: Any) -> Any:
        y = np.stack([x, x])
        y[0] = y[1] ** 2
        y[1] = y[0]
        return (y * y).sum()

    p = tg.program(f)
    for x in POINTS[:5]:
        np.testing.assert_array_equal(tg.grad(p)(x), tg.grad(f)(x))
    assert "writes over" in p.explain()


def test_arrays_among_the_arguments_are_written_each_time() -> None:
    def f(x: Any, work: Any) -> Any:
        work[0] = 5.0
        return (x * work).sum()

    p = tg.program(f)
    for _ in range(3):
        work = np.zeros(4)
        np.testing.assert_array_equal(tg.grad(p)(X, work), [5.0, 0.0, 0.0, 0.0])
        assert work[0] == 5.0


def test_views_at_places_that_are_arguments_are_taken_anew() -> None:
    def f(x: Any, table: Any, k: Any) -> Any:
        return (x * table[k]).sum()

    p = tg.program(f)
    table = np.arange(12.0).reshape(3, 4)
    for k in (0, 2, 1, 0):
        np.testing.assert_array_equal(tg.grad(p)(X, table, np.array(k)), table[k])
        np.testing.assert_array_equal(tg.grad(p)(X, table, k), table[k])
        np.testing.assert_array_equal(tg.grad(p)(X[:2], table[:, :2], np.array([k])), table[k, :2])


@pytest.mark.parametrize(
    "line",
    [
        "np.add(x, 1.0, out=b)",
        "np.add(x, 1.0, b)",
        "np.add(x, 1.0, where=x > 0.0, out=b)",
        "np.maximum(x, -9.0, out=b)",
        "np.negative(x, out=b[::-1])",
        "np.cumsum(x, out=b)",
        "np.cumsum(x, None, None, b)",
        "x.clip(0.0, 1.0, out=b)",
        "np.modf(x, out=(c, b))",
        "np.greater(x, 0.0, out=d); b[d] = 3.0",
        "np.copyto(b, x)",
        "np.copyto(b, 5.0, where=x > 0.0)",
        "np.putmask(b, x > 0.0, 5.0)",
        "np.place(b, x > 0.0, 5.0)",
        "np.put(b, [0, 1], x[:2])",
        "np.add.at(b, [0, 0, 1], x[:3])",
        "b = np.add(x, 1.0, where=x > 0.0, out=np.zeros(4))",
        "b = np.zeros_like(x); np.add(x, 1.0, where=x > 0.0, out=b)",
    ],
)
def test_values_in_arrays_of_numpys_are_not_taken_for_constant(line: str) -> None:
    space: dict[str, Any] = {"np": np}
    arrays = "b, c, d = np.zeros(4), np.zeros(4), np.zeros(4, bool)"
    exec(compile(f"def f(q, x):\n    {arrays}; {line}\n    return (b * q).sum()\n", __file__, "exec"), space)
    p, f = tg.program(space["f"]), space["f"]
    q = np.array([0.5, 2.0, -1.0, 3.0])
    for x in (-np.abs(X), X, -X, 2.0 * X):  # nothing is written first, where a mask or a bound says so
        assert p(q, x) == f(q, x)
        np.testing.assert_array_equal(tg.grad(p)(q, x), tg.grad(f)(q, x))
