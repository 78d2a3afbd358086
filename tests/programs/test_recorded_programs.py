"""`tg.program`: a function is called once for each of its paths, and its values and gradients are the function's own ever after."""

from __future__ import annotations

import abc
import copy
import cProfile
import dataclasses
import functools
import math
import pickle
import random
import sys
import threading
import types
import warnings
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any, NamedTuple

import numba
import numpy as np
import pytest
from many_cases import each
from scipy import special
from scipy.interpolate import CubicSpline

import tapegrad as tg
from tapegrad.programs.provenance import CONVERTING, HANDING_ON

X = np.array([0.7, -1.3, 2.1, 0.4])
POINTS = [X, X[::-1].copy(), 2.0 * X, -X]


def counted(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that prints when it is called: a number that it counts up would be something that it sees."""

    def counting(*args: Any, **kwargs: Any) -> Any:
        print("called")
        return function(*args, **kwargs)

    return counting


def calls(capsys: Any) -> int:
    """How often; the recording of a path calls once more, to compare."""
    text: str = capsys.readouterr().out
    return text.count("called") // 2


def rosenbrock(x: Any) -> Any:
    return (100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2).sum()


def loop(x: Any) -> Any:
    s = x[0]
    for k in range(1, len(x)):
        s = np.sin(s) * x[k] + s / (1.0 + x[k] * x[k])
    return s


def pieces(x: Any) -> Any:
    y = np.concatenate([x[::2], [1.0], np.exp(x[1:3])])
    return np.mean(y * y) + np.stack([x[0], x[1] * 2.0]) @ x[:2]


def products(x: Any) -> Any:
    a = np.outer(x, x) + np.eye(len(x))
    return x @ (a @ x) + (a @ a).sum()


def masked(x: Any) -> Any:
    return np.where(x > 0.5, np.log(np.abs(x)), x * x).sum()


def linear(x: Any) -> Any:
    return (3.0 * x).sum() + 1.0


def transformed(x: Any) -> Any:
    z = np.fft.fft(x)
    return (np.abs(z) ** 3).sum() + np.fft.irfft(np.fft.rfft(x), 4) @ x + (z.real * np.conj(z).imag) @ x


FUNCTIONS = [rosenbrock, loop, pieces, products, masked, linear, transformed]


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_gradients_are_those_of_the_function(function: Callable[[Any], Any]) -> None:
    own, run = tg.value_and_grad(function), tg.value_and_grad(tg.program(function))
    for x in [*POINTS, X]:
        value, gradient = own(x)
        again, found = run(x)
        np.testing.assert_allclose(again, value, rtol=2e-15)
        np.testing.assert_allclose(found, gradient, rtol=4e-15)


@pytest.mark.parametrize("function", FUNCTIONS, ids=lambda f: f.__name__)
def test_the_function_is_called_once(function: Callable[[Any], Any], capsys: Any) -> None:
    run = tg.value_and_grad(tg.program(counted(function)))
    for x in POINTS:
        run(x)
    assert calls(capsys) == 1


def test_values_of_numbers_keep_their_bits() -> None:
    run = tg.program(loop)
    assert [run(x) for x in POINTS] == [float(loop(x)) for x in POINTS]


def test_gradients_of_numbers_keep_their_bits() -> None:
    own, run = tg.grad(loop), tg.grad(tg.program(loop))
    for x in POINTS:
        assert own(x).tobytes() == run(x).tobytes()


def test_other_shapes_are_other_paths() -> None:
    f = tg.program(rosenbrock)
    for x in (X, X[:3], X):
        assert f(x) == rosenbrock(x)
    assert len(f.traces) == 2


def test_numbers_among_the_arguments_are_inputs(capsys: Any) -> None:
    f = counted(lambda x, scale, *, shift: (scale * x + shift).sum())
    run = tg.value_and_grad(tg.program(f), argnums=(0, 1))
    run(X, 2.0, shift=1.0)
    value, (by_x, by_scale) = run(X, 3.0, shift=0.5)
    assert calls(capsys) == 1
    np.testing.assert_allclose(value, (3.0 * X + 0.5).sum(), rtol=1e-15)
    np.testing.assert_allclose(by_x, 3.0 * np.ones(4))
    np.testing.assert_allclose(by_scale, X.sum(), rtol=1e-15)


def test_integers_decide_the_path() -> None:
    f = tg.program(lambda x, n: (x**n).sum())
    assert [f(X, n) for n in (1, 2, 3, 2)] == [float((X**n).sum()) for n in (1, 2, 3, 2)]
    assert len(f.traces) == 3


def test_arrays_that_are_not_differentiated_are_read_anew(capsys: Any) -> None:
    run = tg.value_and_grad(tg.program(counted(lambda x, w: (x * w).sum())))
    for w in (np.arange(4.0), np.ones(4)):
        np.testing.assert_allclose(run(X, w)[1], w)
    assert calls(capsys) == 1


def test_containers_are_taken_apart() -> None:
    def f(p: Any) -> Any:
        return (p["a"] * p["b"][0]).sum()

    own, run = tg.value_and_grad(f), tg.value_and_grad(tg.program(f))
    for scale in (1.0, 2.0):
        p = {"a": scale * X, "b": [3.0 * scale]}
        assert own(p)[0] == run(p)[0]
        np.testing.assert_allclose(run(p)[1]["b"][0], own(p)[1]["b"][0])


FOLLOWED: dict[str, Any] = {
    "covariances": lambda x: np.cov(np.outer(x, x)).sum(),
    "correlations": lambda x: np.corrcoef(np.outer(x, x) + np.diag(x)).sum(),
    "covariances of tensors": lambda x: tg.cov(tg.outer(tg.as_tensor(x), tg.as_tensor(x))).sum(),
    "powers": lambda x: np.vander(x, 4).sum(),
    "powers of tensors": lambda x: tg.vander(tg.as_tensor(x)).sum(),
    "functions of SciPy beside numbers": lambda x: (special.betainc(1.5, 2.0, x * x / 20.0) * special.xlog1py(x, 0.3)).sum(),
    "condition numbers": lambda x: tg.linalg.cond(tg.as_tensor(np.outer(x, x) + np.diag(x)), "nuc"),
    "elements one after the other": lambda x: sum(v * v for v in np.outer(x, x).T.flat),
}


@each("name", FOLLOWED)
def test_operations_are_recorded_and_not_called(name: str) -> None:
    p = tg.program(FOLLOWED[name])
    for x in (X, 2.0 * X):
        assert tg.value_and_grad(p)(x)[0] == tg.value_and_grad(FOLLOWED[name])(x)[0]
    assert len(p.traces) == 1, p.explain()


def test_branches_are_paths() -> None:
    def f(x: Any) -> Any:
        return x[0] * x[1] if x[0] > x[1] else x[2] ** 3

    p = tg.program(f)
    own, run = tg.value_and_grad(f), tg.value_and_grad(p)
    for x in [*POINTS, *POINTS]:
        assert own(x)[0] == run(x)[0]
        np.testing.assert_array_equal(own(x)[1], run(x)[1])
    assert len(p.traces) == 2, p.explain()


def test_a_loop_runs_as_often_as_values_ask_for(capsys: Any) -> None:
    def root(a: Any) -> Any:
        y = a
        while abs(y * y - a) > 1e-12:
            y = 0.5 * (y + a / y)
        return y

    run = tg.value_and_grad(tg.program(counted(root)))
    for a in (2.0, 900.0, 0.5, 2.5, 880.0, 0.45):
        value, slope = run(a)
        assert value == root(a)
        np.testing.assert_allclose(slope, 0.5 / math.sqrt(a), rtol=1e-9)
    assert calls(capsys) < 6


def test_what_sorting_decides_is_not_taken_for_constant() -> None:
    def f(x: Any) -> Any:
        order = np.argsort(x)
        return (x[order] * np.arange(4.0)).sum()

    own, run = tg.value_and_grad(f), tg.value_and_grad(tg.program(f))
    for x in POINTS:
        np.testing.assert_allclose(run(x)[1], own(x)[1])


def test_numbers_that_leave_are_not_taken_for_constant() -> None:
    def f(x: Any) -> Any:
        return x * float(tg.stop_gradient(x[0])) if x.ndim == 0 else (x * float(tg.stop_gradient(x[0]))).sum()

    own, run = tg.value_and_grad(f), tg.value_and_grad(tg.program(f))
    for x in POINTS:
        assert own(x)[0] == run(x)[0]
        np.testing.assert_array_equal(own(x)[1], run(x)[1])


def test_numbers_in_a_closure_are_looked_at() -> None:
    scale = 2.0

    def f(x: Any) -> Any:
        return scale * x.sum()

    p = tg.program(f)
    first = p(X)
    scale = 3.0
    assert (first, p(X)) == (float(2.0 * X.sum()), float(3.0 * X.sum()))


def test_arrays_in_a_closure_are_read_anew() -> None:
    w = np.arange(4.0)
    run = tg.value_and_grad(tg.program(lambda x: (x * w).sum()))
    run(X)
    w[:] = 7.0
    np.testing.assert_array_equal(run(X)[1], np.full(4, 7.0))


def test_another_array_in_a_closure_is_another_path() -> None:
    w = np.arange(4.0)
    p = tg.program(lambda x: (x * w).sum())
    p(X)
    w = np.ones(4)
    np.testing.assert_allclose(p(X), X.sum())


def test_what_numpy_made_of_an_array_in_a_closure_is_made_again() -> None:
    w = np.arange(4.0)
    p = tg.program(lambda x: (x * np.exp(w)).sum())
    p(X)
    w[:] = 0.0
    np.testing.assert_allclose(p(X), X.sum())


def test_attributes_of_an_object_are_looked_at() -> None:
    class Model:
        power = 2.0

        def loss(self, x: Any) -> Any:
            return (self.scale * np.abs(x)).sum() * self.power

        def __init__(self) -> None:
            self.scale = 1.0

    model = Model()
    p = tg.program(model.loss)
    first = p(X)
    model.scale = 5.0
    np.testing.assert_allclose(p(X), 5.0 * first)


def test_functions_that_are_called_are_looked_into() -> None:
    factor = 1.0

    def inner(x: Any) -> Any:
        return factor * x

    p = tg.program(lambda x: inner(x).sum())
    first = p(X)
    factor = 4.0
    np.testing.assert_allclose(p(X), 4.0 * first)


def test_random_numbers_that_other_threads_draw_are_not_the_functions() -> None:
    asked, drawn, ended = threading.Event(), threading.Event(), threading.Event()

    def draw() -> None:
        while asked.wait() and not ended.is_set():
            asked.clear()
            random.random()
            drawn.set()

    def square(x: Any) -> Any:
        if not ended.is_set():
            asked.set()
            drawn.wait()
            drawn.clear()
        return (x * x).sum()

    program, thread = tg.program(square), threading.Thread(target=draw)
    thread.start()
    try:
        for run in (program, lambda x: tg.value_and_grad(program)(x)[0]):
            assert run(np.array([1.0, 2.0])) == 5.0
    finally:
        ended.set()
        asked.set()
        thread.join()
    np.testing.assert_array_equal(tg.grad(program)(np.array([1.0, 3.0])), [2.0, 6.0])


def test_random_numbers_are_refused() -> None:
    with pytest.raises(tg.ProgramError, match="random"):
        tg.program(lambda x: (x * random.random()).sum())(X)


def test_writes_into_arrays_from_outside_are_refused() -> None:
    seen = np.zeros(1)

    def f(x: Any) -> Any:
        seen[0] += 1.0
        return x.sum()

    with pytest.raises(tg.ProgramError, match="seen"):
        tg.program(f)(X)


def test_errors_are_the_functions_own() -> None:
    def f(x: Any) -> Any:
        if x[0] < 0:
            raise ValueError(f"negative: {len(x)}")
        return np.sqrt(x[0])

    p = tg.program(f)
    assert p(X) == np.sqrt(0.7)
    for _ in range(2):
        with pytest.raises(ValueError, match="negative: 4"):
            p(-X)


def test_what_writes_in_place_is_called_each_time() -> None:
    def f(x: Any) -> Any:
        y = x * 2.0
        y[0] = x[1] ** 2
        return (y * y).sum()

    own, p = tg.value_and_grad(f), tg.program(f)
    run = tg.value_and_grad(p)
    for x in POINTS:
        np.testing.assert_allclose(run(x)[1], own(x)[1])
    assert "writes" in p.explain()


def test_too_many_paths_are_told_once() -> None:
    p = tg.program(lambda x: x.sum() * int(tg.stop_gradient(x[0]) * 1000.0), max_traces=3)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        for k in range(8):
            x = X + 0.1 * k
            np.testing.assert_allclose(p(x), x.sum() * int(x[0] * 1000.0))
    assert len([w for w in told if "paths" in str(w.message)]) == 1


def test_arrays_that_are_new_each_time_are_told_once() -> None:
    w = np.zeros(4)
    p = tg.program(lambda x: (x * w).sum(), max_traces=3)
    with warnings.catch_warnings(record=True) as told:
        warnings.simplefilter("always")
        for k in range(8):
            w = np.full(4, float(k))
            np.testing.assert_allclose(p(X), k * X.sum(), atol=1e-15)
    assert (len(p.traces), len([one for one in told if "besides its arguments" in str(one.message)])) == (3, 1)


def test_a_check_finds_what_programs_cannot_see(request: pytest.FixtureRequest) -> None:
    interval = sys.getswitchinterval()
    p = tg.program(lambda x: x.sum() * sys.getswitchinterval(), check=1)
    p(X)
    p(X)
    sys.setswitchinterval(2.0 * interval)
    request.addfinalizer(lambda: sys.setswitchinterval(interval))
    with pytest.raises(tg.ProgramError, match="does|sees|see"):
        p(X)


W = np.ones(4)
SETTINGS = types.SimpleNamespace(scale=1.0)


class Scaled:
    """A callable with what it needs in slots, in its class and in the globals of its code."""

    __slots__ = ("own",)
    shared = 1.0

    def __init__(self) -> None:
        self.own = 1.0

    def __call__(self, x: Any) -> Any:
        return self.own * self.shared * SETTINGS.scale * x.sum()


SEEN: list[tuple[Any, Callable[[Any], Any]]] = [
    ("numbers of an array", lambda x: x.sum() * float(W[0])),
    ("a branch on an array", lambda x: x.sum() if W[0] > 2 else x[0]),
    ("a mask of an array", lambda x: (x[W > 2] * 2.0).sum() + x[0]),
    ("places in an array", lambda x: x[W.astype(int)].sum()),
    ("what NumPy makes of an array on the second path", lambda x: x.sum() if x[0] > 0 else (x * np.exp(W)).sum()),
    ("a partial function", functools.partial(lambda w, x: (w * x).sum() * float(w[0]), W)),
]


@pytest.mark.parametrize(("what", "f"), SEEN, ids=[what for what, _ in SEEN])
def test_contents_of_arrays_are_looked_at(what: str, f: Callable[[Any], Any]) -> None:
    p = tg.program(f)
    try:
        for value in (1.0, 3.0):
            W[:] = value
            for x in (X, -X):
                np.testing.assert_allclose(p(x), f(x))
    finally:
        W[:] = 1.0


def test_slots_classes_and_globals_of_callables_are_looked_at() -> None:
    f = Scaled()
    p = tg.program(f)
    first = p(X)
    f.own = 2.0
    second = p(X)
    Scaled.shared = 3.0
    third = p(X)
    SETTINGS.scale = 5.0
    try:
        np.testing.assert_allclose([second, third, p(X)], first * np.array([2.0, 6.0, 30.0]))
    finally:
        Scaled.shared, SETTINGS.scale = 1.0, 1.0


@dataclasses.dataclass
class Options:
    """What a function is given besides numbers."""

    power: float = 2.0


def test_objects_among_the_arguments_are_looked_into() -> None:
    options = Options()
    p = tg.program(lambda x, options: (np.abs(x) ** options.power).sum())
    first = p(X, options)
    options.power = 1.0
    np.testing.assert_allclose([first, p(X, options)], [(X**2).sum(), np.abs(X).sum()])


def test_signs_of_zeros_are_looked_at() -> None:
    z = 0.0
    p = tg.program(lambda x: np.arctan2(z, -np.abs(x)).sum())
    first = p(X)
    z = -0.0
    assert (first > 0, p(X) < 0) == (True, True)


def test_functions_that_take_only_what_drivers_give_are_run_again() -> None:
    p = tg.program(lambda x: type(x).__mul__(x, x).sum() if isinstance(x, tg.Tensor) else x.missing, check=1)
    for x in POINTS:
        np.testing.assert_array_equal(tg.grad(p)(x), 2.0 * x)
    assert len(p.traces) == 1
    with pytest.raises(AttributeError, match="missing"):
        p(X)


def test_tensors_are_returned_as_tensors() -> None:
    p = tg.program(lambda x: tg.sin(tg.as_tensor(x)))
    for x in POINTS:
        assert isinstance(p(x), tg.Tensor)
        np.testing.assert_array_equal(p(x).numpy(), np.sin(x))


@dataclasses.dataclass
class Settings:
    scale: float = 2.0


class Pair(NamedTuple):
    scale: float = 2.0


class Shape(abc.ABC):
    @abc.abstractmethod
    def area(self) -> float: ...


class Square(Shape):
    scale = 2.0

    def area(self) -> float:
        return self.scale


@pytest.mark.parametrize(
    "settings", [Settings(), Pair(), Square(), types.SimpleNamespace(scale=2.0)], ids=lambda s: type(s).__name__
)
def test_classes_as_people_write_them_are_looked_into(settings: Any) -> None:
    p = tg.program(lambda x: (settings.scale * x).sum())
    q = tg.program(lambda x, settings: (settings.scale * x).sum())
    for x in POINTS:
        np.testing.assert_array_equal(tg.grad(p)(x), np.full(4, 2.0))
        np.testing.assert_array_equal(tg.grad(q)(x, settings), np.full(4, 2.0))
    assert len(p.traces) == len(q.traces) == 1


def test_attributes_of_such_classes_are_compared() -> None:
    settings = Settings()
    p = tg.program(lambda x: (settings.scale * x).sum())
    np.testing.assert_array_equal(tg.grad(p)(X), np.full(4, 2.0))
    settings.scale = 3.0
    np.testing.assert_array_equal(tg.grad(p)(X), np.full(4, 3.0))


def test_objects_of_installed_packages_are_looked_into() -> None:
    spline = CubicSpline([0.0, 1.0, 2.0, 3.0], [0.0, 1.0, 4.0, 9.0])
    p = tg.program(lambda x: (x * spline(0.5)).sum())
    for factor in (1.0, 3.0):
        spline.c *= factor
        np.testing.assert_array_equal(tg.grad(p)(X), np.full(4, spline(0.5)))


def test_classes_with_memory_of_their_own_are_not_looked_into() -> None:
    generator = np.random.default_rng(0)
    p = tg.program(lambda x: x.sum() if generator else x)
    p(X)
    assert "cannot look into" in p.explain()


def test_functions_may_ask_what_an_argument_is() -> None:
    p = tg.program(lambda x, scale: x.sum() * (2.0 if isinstance(scale, float) else 5.0))
    np.testing.assert_allclose([p(X, 2.0), p(X, 3.0)], [2.0 * X.sum()] * 2)


@pytest.mark.parametrize(
    "f",
    [
        lambda x: (np.concatenate([x.T, x.T * 2.0]) ** 2 * np.arange(12.0).reshape(6, 2)).sum(),
        lambda x: (np.stack([x.T, x.T**2], -1) * np.arange(12.0).reshape(3, 2, 2)).sum(),
        lambda x: (np.trim_zeros(x.ravel()) * 2.0).sum(),
        lambda x: np.nanmax(np.where(x == 3.0, np.nan, x)),
    ],
    ids=["concatenate", "stack", "trim_zeros", "nanmax"],
)
def test_orders_of_elements_and_zeros_are_looked_at(f: Callable[[Any], Any]) -> None:
    p = tg.program(f)
    for x in (np.arange(6.0).reshape(2, 3) + 0.5, np.arange(6.0)[::-1].reshape(2, 3), np.array([[1.0, 0.0, 2.0], [0.0, 3.0, 0.0]])):
        np.testing.assert_allclose(tg.value_and_grad(p)(x)[1], tg.grad(f)(x))


@pytest.mark.parametrize(
    "number",
    [
        np.cov,
        lambda x: x[1:2].squeeze(),
        lambda x: x[1, ...],
        lambda x: (x[None] @ x[:, None]).squeeze(),
        np.logaddexp.reduce,
        lambda x: tg.softmax(x, 0)[1],
    ],
)
def test_numbers_that_are_arrays_are_numbers_of_their_rows(number: Callable[[Any], Any]) -> None:
    def f(x: Any) -> Any:
        c = number(x)
        return c * c / (c + 5.0)

    run = tg.grad(tg.program(f))
    for x in (X, 2.0 * X):
        np.testing.assert_allclose(run(x), tg.grad(f)(x), rtol=1e-13)


def test_factories_of_arguments_are_not_taken_for_constant() -> None:
    p = tg.program(lambda x, w: (tg.tensor(w) * x).sum())
    for w in (np.ones(4), np.arange(4.0)):
        np.testing.assert_allclose(tg.grad(p)(X, w), w)


def test_orders_of_arguments_are_looked_at() -> None:
    p = tg.program(lambda x, w: (x * w.ravel("K")).sum())
    for order in ("C", "F"):
        w = np.asarray(np.arange(4.0).reshape(2, 2), order=order)
        np.testing.assert_allclose(p(X, w), (X * w.ravel("K")).sum())


def test_text_of_values_is_not_taken_for_constant() -> None:
    p = tg.program(lambda x, scale: x.sum() * float(str(scale)))
    np.testing.assert_allclose([p(X, 2.0), p(X, 3.0)], [2.0 * X.sum(), 3.0 * X.sum()])


def test_arrays_that_are_written_after_use_are_kept_as_they_were() -> None:
    def f(x: Any) -> Any:
        limits = np.full(4, 0.5)
        mask = x > limits
        limits[:] = -10.0
        return np.where(mask, x, x * x).sum()

    p = tg.program(f)
    for x in POINTS:
        np.testing.assert_allclose(p(x), f(x))


def test_generators_of_random_numbers_draw_each_time() -> None:
    p = tg.program(lambda x: (x * np.random.default_rng().random()).sum())
    assert len({p(X) for _ in range(4)}) == 4


def test_threads_are_not_followed() -> None:
    def f(x: Any) -> Any:
        with ThreadPoolExecutor(1) as pool:
            positive = pool.submit(lambda: bool(x[0] > 0)).result()
        return x.sum() if positive else x[1]

    p = tg.program(f)
    for x in POINTS:
        np.testing.assert_allclose(p(x), f(x))


def test_exceptions_do_not_use_up_the_paths() -> None:
    p = tg.program(lambda x: float(x[0]) * 2.0)
    assert [p(X) for _ in range(70)] == [1.4] * 70


def test_profilers_go_on() -> None:
    profiler = cProfile.Profile()
    profiler.enable()
    tg.program(rosenbrock)(X)
    rosenbrock(X)
    profiler.disable()
    calls = {entry.code: entry.callcount for entry in profiler.getstats()}
    assert calls[rosenbrock.__code__] > 1


def test_lists_among_the_arguments_are_the_callers() -> None:
    log: list[int] = []

    def f(x: Any, log: list[int]) -> Any:
        log.append(1)
        return x.sum()

    p = tg.program(f)
    p(X, log)
    before = len(log)
    p(X, log)
    assert len(log) > before


def test_methods_are_programs_of_their_objects() -> None:
    class Model:
        def __init__(self, scale: float) -> None:
            self.scale = scale

        @tg.program
        def loss(self, x: Any) -> Any:
            return self.scale * (x * x).sum()

    for model in (Model(1.0), Model(2.0)):
        np.testing.assert_allclose(model.loss(X), model.scale * (X * X).sum())
        np.testing.assert_allclose(tg.grad(model.loss)(X), 2.0 * model.scale * X)


def test_programs_can_be_copied() -> None:
    p = tg.program(rosenbrock)
    p(X)
    assert pickle.loads(pickle.dumps(copy.deepcopy(p)))(X) == p(X)


@tg.program
def decorated(x: Any) -> Any:
    return (x * x).sum()


def test_decorated_functions_are_found_by_their_names() -> None:
    assert pickle.loads(pickle.dumps(decorated)) is decorated


def test_integers_that_count_are_not_recorded_for_ever() -> None:
    p = tg.program(lambda x, n: x.sum() * n, max_traces=2)
    for n in range(30):
        np.testing.assert_allclose(p(X, n), X.sum() * n)
    assert len(p.traces) < 12


def test_drivers_that_do_not_run_programs_call_the_function() -> None:
    p = tg.program(rosenbrock)
    p(X)
    np.testing.assert_allclose(tg.hessian(p)(X), tg.hessian(rosenbrock)(X))
    np.testing.assert_allclose(tg.jacobian(lambda x: p(x) * x)(X), tg.jacobian(lambda x: rosenbrock(x) * x)(X))


def test_a_function_may_call_its_own_program() -> None:
    def f(x: Any, depth: int) -> Any:
        return x.sum() if depth == 0 else p(x * 0.5, depth - 1) + x[0]

    p = tg.program(f)
    for x in POINTS:
        np.testing.assert_allclose(p(x, 3), f(x, 3))


def test_programs_may_call_programs() -> None:
    inner = tg.program(lambda z, k=2.0: (z**3 * k).sum())

    def f(x: Any) -> Any:
        return inner(x) * x[0] + inner(2.0 * x, 3.0)

    p = tg.program(f)
    for x in POINTS:
        np.testing.assert_array_equal(tg.grad(p)(x), tg.grad(f)(x))
    assert len(p.traces) == 1


def test_methods_that_are_called_keep_their_object() -> None:
    class Model:
        scale = 2.0

        @tg.program
        def loss(self, x: Any) -> Any:
            return self.scale * (x * x).sum() * len(f"{x}")

    model = Model()
    np.testing.assert_allclose(tg.hessian(model.loss)(X), 4.0 * len(f"{X}") * np.eye(4))
    np.testing.assert_allclose(tg.grad(model.loss)(X), 4.0 * len(f"{X}") * X)
    np.testing.assert_allclose(model.loss.map(np.stack([X, X])), [model.loss(X)] * 2)


def test_objects_of_methods_that_are_programs_are_looked_into() -> None:
    class Model:
        scale = 2.0

        @tg.program
        def loss(self, x: Any) -> Any:
            return self.scale * (x * x).sum()

    model = Model()
    method = model.loss
    p = tg.program(lambda x: method(x) + x[0])
    for model.scale in (2.0, 3.0):
        np.testing.assert_allclose(tg.grad(p)(X), 2.0 * model.scale * X + [1.0, 0.0, 0.0, 0.0])


def test_functions_that_operations_call_are_the_users() -> None:
    p = tg.program(lambda x: np.apply_along_axis(lambda row: row * 2.0, 0, x).sum())
    for x in POINTS:
        np.testing.assert_array_equal(tg.grad(p)(x), np.full(4, 2.0))
    assert len(p.traces) == 1


def test_gradients_are_arrays_of_their_own() -> None:
    run = tg.grad(tg.program(rosenbrock))
    first = run(X)
    kept = first.copy()
    run(2.0 * X)
    np.testing.assert_array_equal(first, kept)


@pytest.mark.parametrize(
    "f",
    [
        lambda x: x.sum(),
        lambda x: 3.0 * x[0],
        lambda x: x * 2.0,
        lambda x: (x[1:], {"a": x.mean()}),
        lambda x: np.sum(x, keepdims=True),
    ],
)
def test_values_have_the_types_of_the_function(f: Callable[[Any], Any]) -> None:
    p = tg.program(f)
    p(X)
    assert repr(p(2.0 * X)) == repr(f(2.0 * X))


def test_values_of_numbers_are_numbers() -> None:
    p = tg.program(lambda x: x * x)
    assert [type(p(2.0)), type(p(3.0)), type(p(np.float64(3.0)))] == [float, float, np.float64]


def test_a_path_that_is_in_use_is_left_alone() -> None:
    p = tg.program(rosenbrock)
    p(X)
    (paths,) = (paths for known in p._paths.values() for paths in known)
    paths.first.is_running = True
    try:
        assert p(2.0 * X) == rosenbrock(2.0 * X)
        np.testing.assert_array_equal(tg.grad(p)(2.0 * X), tg.grad(rosenbrock)(2.0 * X))
    finally:
        paths.first.is_running = False
    np.testing.assert_array_equal(paths.first.value(), rosenbrock(X))


def test_optimisers_take_programs(capsys: Any) -> None:
    result = tg.optimize.minimize(tg.program(counted(rosenbrock)), np.zeros(4), method="BFGS")
    np.testing.assert_allclose(result.x, np.ones(4), rtol=1e-4)
    assert calls(capsys) < 4


def test_optimisers_make_programs(capsys: Any) -> None:
    result = tg.optimize.minimize(counted(rosenbrock), np.zeros(4), method="BFGS", program=True)
    np.testing.assert_allclose(result.x, np.ones(4), rtol=1e-4)
    assert calls(capsys) < 4


def test_programs_of_compiled_functions_keep_their_own_recording() -> None:
    p = tg.program(numba.njit(lambda x: (x * x).sum()))
    np.testing.assert_array_equal(tg.grad(p)(X), 2.0 * X)
    np.testing.assert_array_equal(tg.hessian(p)(X), 2.0 * np.eye(4))
    np.testing.assert_allclose(tg.optimize.minimize(p, X).x, np.zeros(4), atol=1e-6)
    assert "ways of their own" in p.explain()


def test_programs_of_modules_are_called_with_tensors() -> None:
    layer = tg.nn.Linear(4, 1).double()
    p = tg.program(layer)
    np.testing.assert_allclose(tg.jacobian(p)(X), layer.weight.detach().numpy())
    assert "ways of their own" in p.explain()


def test_explain_names_steps_and_lines() -> None:
    p = tg.program(lambda x: np.exp(x).sum())
    p(X)
    text = p.explain()
    assert "exp" in text
    assert "test_recorded_programs.py, line" in text


def test_files_that_hand_operands_on_are_there() -> None:
    assert not [path for path in (*HANDING_ON, *CONVERTING) if not Path(path).exists()]


def test_last_digits_are_those_of_the_function() -> None:
    def f(x: Any) -> Any:
        return (special.expm1(x) * special.erf(x) + special.logit(0.3 + 0.01 * x[0])).sum()

    p = tg.program(f)
    for x in POINTS:
        np.testing.assert_array_equal(tg.value_and_grad(p)(x)[0], f(x))
        np.testing.assert_array_equal(tg.grad(p)(x), tg.grad(f)(x))


def test_updates_of_arrays_without_dimensions_are_followed() -> None:
    def total(x: Any) -> Any:
        s = np.zeros_like(x[0])
        for v in x:
            s += v * v
        return s * x[1]

    p = tg.program(total)
    for x in POINTS:
        value, gradient = tg.value_and_grad(p)(x)
        assert value == total(x)
        np.testing.assert_allclose(gradient, tg.grad(lambda x: (x * x).sum() * x[1])(x), rtol=1e-14)
    assert len(p.traces) == 1
