"""Memory of compiled recordings, threads, and the other forms of derivatives."""

from __future__ import annotations

import functools
import gc
import math
import threading
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numba
import numpy as np
import pytest
from numba.experimental import jitclass
from unoptimised_numba import numba_is_quicker  # noqa: F401 - a fixture

import tapegrad as tg
from tapegrad.nopython.tape.column_memory import FIRST, give_back, take
from tapegrad.nopython.tape.columns import PAIRS, ROWS
from tapegrad.nopython.tape.row_writing import with_row
from tapegrad.nopython.twins.recording_twin import twin
from tapegrad.nopython.types.variable import variable

X = np.array([1.3, 0.7, 1.1])


@numba.njit(nogil=True)
def chain(x, n):
    y = x
    for _ in range(n):
        y = math.sin(y) * x + y
    return y


@numba.njit
def hundred_links(x):
    return chain(x, 100)


@numba.njit
def two(x, a):
    return np.array([x[0] * x[1] * a, x[2] + x[0]])


def chain_by_hand(x: float, n: int) -> float:
    y, dy = x, 1.0
    for _ in range(n):
        y, dy = math.sin(y) * x + y, math.cos(y) * dy * x + math.sin(y) + dy
    return dy


def test_tape_grows_while_it_is_recorded() -> None:
    n = 3 * FIRST
    assert tg.grad(chain)(0.4, n) == pytest.approx(chain_by_hand(0.4, n), rel=1e-9)


def test_memory_is_used_again() -> None:
    gradient = tg.grad(chain)
    gradient(0.4, 1000)
    held = tg.tape_memory()
    for _ in range(5):
        gradient(0.4, 1000)
    assert tg.tape_memory() == held > 0


def test_memory_is_given_back() -> None:
    gc.collect()  # of tapes that other tests left in cycles
    tg.free_tape_memory()
    held = tg.tape_memory()
    tg.grad(chain)(0.4, 1000)
    assert tg.tape_memory() > held
    tg.free_tape_memory()
    assert tg.tape_memory() == held


def test_memory_of_an_operation_whose_graph_has_died_is_given_back() -> None:
    gc.collect()
    tg.free_tape_memory()
    held = tg.tape_memory()
    x = tg.tensor(X, requires_grad=True)
    y = tg.njit_op(two)(x, 2.0) * 1.0
    later = x * 2.0  # keeps dead rows before it from being dropped at once
    assert tg.tape_memory() > held
    del y
    tg.free_tape_memory()
    assert tg.tape_memory() == held
    del later


def test_a_pair_takes_twelve_bytes() -> None:
    tg.free_tape_memory()
    held = tg.tape_memory()
    n = 200_000
    tg.grad(chain)(0.4, n)
    rows = n  # one for each statement; two leaves each
    assert tg.tape_memory() - held < (2 * 12 + 8) * rows * 2.5  # room to grow, and the adjoints


def test_threads_do_not_disturb_each_other() -> None:
    gradient = tg.grad(chain)
    points = [0.1 + 0.05 * k for k in range(8)]
    gradient(0.3, 10)
    with ThreadPoolExecutor(4) as pool:
        found = list(pool.map(lambda x: gradient(x, 20_000), points))
    assert found == [gradient(x, 20_000) for x in points]


def test_a_call_inside_another_threads_call() -> None:
    value, pullback = tg.vjp(hundred_links, 0.4)
    result: list[Any] = []
    thread = threading.Thread(target=lambda: result.append(tg.grad(chain)(0.7, 50)))
    thread.start()
    thread.join()
    assert pullback(1.0)[0] == pytest.approx(chain_by_hand(0.4, 100), rel=1e-12)
    assert result[0] == pytest.approx(chain_by_hand(0.7, 50), rel=1e-12)
    assert value == chain(0.4, 100)


def test_a_helper_is_compiled_once_for_two_functions() -> None:
    from tapegrad.nopython.twins.recording_twin import twin

    @numba.njit
    def helper(u):
        return u * u

    @numba.njit
    def first(x):
        return helper(x) + 1.0

    @numba.njit
    def second(x):
        return helper(x) * 2.0

    assert (tg.grad(first)(3.0), tg.grad(second)(3.0)) == (6.0, 12.0)
    assert len(twin(helper).overloads) <= 1  # none where both derivatives were kept on disk


def test_several_arguments() -> None:
    gradients = tg.grad(numba.njit(lambda x, n, y: x * y**n), argnums=(0, 2))(2.0, 3, 1.5)
    assert gradients == pytest.approx((1.5**3, 2.0 * 3 * 1.5**2))


def test_arguments_in_another_order() -> None:
    assert tg.grad(numba.njit(lambda x, y: x * x * y), argnums=(1, 0))(2.0, 3.0) == (4.0, 12.0)


def test_argument_counted_from_the_end() -> None:
    assert tg.grad(numba.njit(lambda x, y: x * y), argnums=-1)(2.0, 3.0) == 2.0


def test_keywords_and_defaults() -> None:
    @numba.njit
    def f(x, a=3.0, b=5.0):
        return x * a + b * x * x

    assert tg.grad(f)(2.0, b=1.0) == 3.0 + 4.0


def test_value_that_does_not_depend() -> None:
    assert tg.value_and_grad(numba.njit(lambda x: 3.0))(2.0) == (3.0, 0.0)


def test_jacobian() -> None:
    np.testing.assert_allclose(tg.jacobian(two)(X, 2.0), [[1.4, 2.6, 0.0], [1.0, 0.0, 1.0]])


def test_jacobian_of_two_arguments() -> None:
    by_x, by_a = tg.jacobian(two, argnums=(0, 1))(X, 2.0)
    assert by_x.shape == (2, 3)
    np.testing.assert_allclose(by_a, [1.3 * 0.7, 0.0])


def test_pullback_is_the_transposed_jacobian() -> None:
    value, pullback = tg.vjp(two, X, 2.0)
    np.testing.assert_array_equal(value, two(X, 2.0))
    for weights in ([1.0, 0.0], [0.5, -2.0]):
        np.testing.assert_allclose(pullback(np.array(weights))[0], np.array(weights) @ tg.jacobian(two)(X, 2.0))


def test_cotangent_of_another_shape_is_refused() -> None:
    with pytest.raises(ValueError, match=r"\(3,\)"):
        tg.vjp(two, X, 2.0)[1](np.ones(3))


def test_two_results_of_one_row() -> None:
    jacobian = tg.jacobian(numba.njit(lambda x: np.array([x, x + 1.0, 2.0])))(0.5)
    assert jacobian.tolist() == [1.0, 1.0, 0.0]


def test_operation_in_an_eager_graph() -> None:
    operation = tg.njit_op(two)
    x = tg.tensor(X, requires_grad=True)
    a = tg.tensor(2.0, requires_grad=True)
    (operation(x * 2.0, a) * tg.tensor([1.0, 3.0])).sum().backward()
    np.testing.assert_allclose(x.grad, [2 * 2.0 * 1.4 + 6.0, 2 * 2.0 * 2.6, 6.0])
    np.testing.assert_allclose(a.grad, 4 * 1.3 * 0.7)


def test_operation_is_differentiated_twice() -> None:
    operation = tg.njit_op(two)
    x, a = tg.tensor(X, requires_grad=True), tg.tensor(2.0, requires_grad=True)
    by_x, by_a = tg.autograd.grad((operation(x, a) * x[:2]).sum(), (x, a), create_graph=True)
    # f = a x0^2 x1 + (x2 + x0) x1
    np.testing.assert_allclose(by_a.item(), X[0] ** 2 * X[1])
    by_x_twice, by_x_and_a = tg.autograd.grad(by_x[0] + 3.0 * by_x[2], (x, a))
    np.testing.assert_allclose(by_x_twice, [2 * 2.0 * X[1], 2 * 2.0 * X[0] + 1.0 + 3.0, 0.0])
    np.testing.assert_allclose(by_x_and_a.item(), 2 * X[0] * X[1])


@numba.njit
def noisy(x):
    return np.random.random() * x[0] * x[1]  # noqa: NPY002 - compiled functions have no other


@jitclass([("scale", numba.float64)])
class Scale:
    def __init__(self, scale):
        self.scale = scale


@numba.njit
def scaled(x, by):
    return np.array([1.0, by.scale * x[0] * x[1]])


def test_a_second_recording_that_gives_another_value_is_refused() -> None:
    x = tg.tensor(X, requires_grad=True)
    y = tg.njit_op(noisy)(x)
    with pytest.raises(RuntimeError, match="noisy gave another value"):
        tg.autograd.grad(y, x, create_graph=True)


def test_a_second_recording_with_a_changed_instance_is_refused() -> None:
    x, by = tg.tensor(X, requires_grad=True), Scale(2.0)
    y = tg.njit_op(scaled)(x, by).sum()
    by.scale = 3.0
    with pytest.raises(RuntimeError, match="scaled gave another value"):
        tg.autograd.grad(y, x, create_graph=True)
    np.testing.assert_allclose(tg.autograd.grad(y, x)[0], [2.0 * X[1], 2.0 * X[0], 0.0])


def test_a_second_recording_may_give_nan_again() -> None:
    x = tg.tensor(np.array([np.nan, 2.0]), requires_grad=True)
    (gradient,) = tg.autograd.grad(tg.njit_op(scaled)(x, Scale(2.0)).sum(), x, create_graph=True)
    np.testing.assert_array_equal(gradient.detach(), [4.0, np.nan])


def test_integer_tensors_without_dimensions_are_numbers() -> None:
    @numba.njit
    def repeated(x, n):
        y = 1.0
        for _ in range(n):
            y *= x
        return y

    x = tg.tensor(2.0, requires_grad=True)
    tg.njit_op(repeated)(x, tg.tensor(3)).backward()
    assert x.grad.item() == 12.0


def test_operation_is_not_differentiated_three_times() -> None:
    x = tg.tensor(X, requires_grad=True)
    (first,) = tg.autograd.grad(tg.njit_op(two)(x, 2.0).sum(), x, create_graph=True)
    with pytest.raises(RuntimeError, match="twice only"):
        tg.autograd.grad(first.sum(), x, create_graph=True)


def test_arguments_that_share_memory() -> None:
    @numba.njit
    def f(x, y):
        return (x * y * y).sum()

    np.testing.assert_allclose(tg.grad(f)(X, X), X * X)


def test_arguments_that_share_memory_and_are_overwritten_are_refused() -> None:
    @numba.njit
    def f(x, y):
        x[0] = 5.0
        return (x * y).sum()

    point = X.copy()
    with pytest.raises(ValueError, match="share memory"):
        tg.grad(f)(point[:2], point[1:])
    np.testing.assert_array_equal(point, X)


def test_what_else_is_wrong_where_arguments_share_memory_is_told() -> None:
    @numba.njit
    def f(x, y):
        return np.spacing(x[0]) * y[0]

    with pytest.raises(tg.CompileError, match="spacing"):
        tg.grad(f)(X, X)


def test_reading_beyond_the_end_leaves_the_tape_usable() -> None:
    @numba.njit
    def f(x, k):
        return x[0] * x[1] + 0.0 * min(max(x[k], 0.0), 1.0)

    gradient = tg.grad(f)
    for k in range(3, 60):
        gradient(X, k)
    assert gradient(X, 2)[:2].tolist() == [0.7, 1.3]


def test_absolute_zero_in_a_statement() -> None:
    # The partial of the root is infinite at 0, and that of the product is 0: the branch takes no part.
    assert tg.grad(numba.njit(lambda x: 0.0 * math.sqrt(x) + x))(0.0) == 1.0


@pytest.mark.parametrize("read", ["by_a_statement", "by_a_sum"])
def test_a_row_number_that_is_garbage_begins_no_row(read: str) -> None:
    def by_a_statement(a):  # type: ignore[no-untyped-def]
        return a[0] * a[1]

    def by_a_sum(a):  # type: ignore[no-untyped-def]
        return a.sum()

    function = twin(numba.njit({"by_a_statement": by_a_statement, "by_a_sum": by_a_sum}[read]), 0)

    @numba.njit
    def drive(tape):  # type: ignore[no-untyped-def]
        a = np.empty(2, variable)
        a[0], a[1] = with_row(1.5, np.int32(1)), with_row(2.5, np.int32(-7))
        function(tape, a)

    columns = take()
    try:
        drive(columns.address)
        assert np.count_nonzero(columns.rows[: columns.header[PAIRS]] < 0) == columns.header[ROWS] == 1
    finally:
        give_back(columns)


def test_tape_grows_after_the_collector_found_a_pullback_in_a_cycle() -> None:
    cube = numba.njit(lambda x: (x**3).sum())
    cycle: list[Any] = [tg.vjp(cube, np.ones(3))[1]]
    cycle.append(cycle)
    del cycle
    gc.collect()
    assert tg.grad(cube)(np.full(100_000, 2.0)).tolist() == [12.0] * 100_000


class Late:
    """Calls a pullback when it dies, after another recording, and keeps it."""

    def __init__(self, pull: Any, other: Any, found: list[Any]) -> None:
        self.pull, self.other, self.found, self.cycle = pull, other, found, self

    def __del__(self) -> None:
        self.other(X)
        self.found += [self.pull(np.array([1.0, 0.0, 0.0]))[0].tolist(), self.pull]


@pytest.mark.parametrize("first", [False, True], ids=["pullback first", "destructor first"])
def test_destructors_may_use_a_pullback_that_the_collector_found_with_them(first: bool) -> None:
    cubes, other = numba.njit(lambda x: x**3), tg.grad(numba.njit(lambda x: (5.0 * x).prod()))
    found: list[Any] = []
    late = Late(None, other, found) if first else None
    pull = tg.vjp(cubes, np.ones(3))[1]
    if late is None:
        late = Late(pull, other, found)
    late.pull = pull
    del late, pull
    gc.collect()
    assert found[0] == [3.0, 0.0, 0.0]
    other(X)
    assert found[1](np.array([0.0, 2.0, 0.0]))[0].tolist() == [0.0, 6.0, 0.0]  # it outlived the collection


STATEMENTS = (
    "a, b = a * b + 0.5, a - b",
    "c = math.sin(a) + b - 0.3 * c",
    "a = (a + b * c) / (1.0 + c * c)",
    "d = constant * 2.0",
    "b = math.exp(-d * b * b) * x[i % 3]",
    "c = c - d",
    "a = math.atan2(a, b + 2.0) + x[0] * x[1] * x[2] * a",
)


def test_a_body_of_many_statements_records_the_rows_of_its_parts() -> None:
    # In such a body rows are written by calls, in a short one in place. The tape grows meanwhile.
    short = "\n".join(["def short(x, i, a, b, c, constant):", *(f"    {line}" for line in STATEMENTS), "    return a, b, c"])
    steps = [f"        {line}" for _ in range(6) for line in STATEMENTS]
    of_one = [
        "def of_one(x, constant):",
        "    a, b, c = x[0], x[1], x[2]",
        "    for i in range(200):",
        *steps,
        "    return a + b * c",
    ]
    parts = ["        a, b, c = short(x, i, a, b, c, constant)"] * 6
    space = {"math": math}
    exec(short, space)
    space["short"] = numba.njit(space["short"])
    exec("\n".join(of_one), space)
    exec("\n".join(["def of_parts(x, constant):", *of_one[1:3], *parts, of_one[-1]]), space)
    found = []
    for name in ("of_one", "of_parts"):
        f = functools.partial(numba.njit(space[name]), constant=0.4)
        x = np.array([0.7, -0.2, 0.4])
        found.append([*tg.value_and_grad(f)(x), tg.hessian(f)(x), tg.hvp(f, x, np.array([0.3, 1.0, -2.0]))])
    for one, part in zip(*found, strict=True):
        np.testing.assert_array_equal(one, part)


@numba.njit
def doubled_in_place(x, by):
    x *= by
    return np.sum(x)


def test_a_function_that_writes_into_its_argument_works_inside_of_a_driver() -> None:
    x = X.copy()
    assert tg.grad(functools.partial(doubled_in_place, by=2.0))(x).tolist() == [2.0, 2.0, 2.0]
    assert x.tolist() == X.tolist()
