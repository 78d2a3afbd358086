"""Exceptions at every step of drivers, compiled functions, solvers and checkpoints: what comes after is as if nothing had been.

What is injected: an interrupt at the k-th place where Python may deliver one, in the package and in the user's functions that it
calls; a refusal of the k-th request for memory, and of all from there on; exceptions of the user's own functions at each of their
calls; and destructors that run drivers themselves, and raise, in the middle of a call. Derivatives are those of closed forms.
"""

import gc
import itertools
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import driver_cases
import numba
import numpy as np
import pytest
from driver_cases import CASES, GRADIENT, HESSIAN, ROWS, Case, X, long_sum
from interrupts import interrupt

import tapegrad as tg
from tapegrad.tensors import untracked_values

try:
    import _testcapi
except ImportError:  # not every build of Python has it
    _testcapi = None

pytestmark = pytest.mark.filterwarnings("ignore:Using backward")

PACKAGE = str(Path(tg.__file__).parent)
TAPE = tg.tape.default_tape()


def assert_is(found: Any, truth: Any) -> None:
    if isinstance(truth, tuple):
        for one, expected in zip(found, truth, strict=True):
            assert_is(one, expected)
        return
    assert type(found) is (float if isinstance(truth, float) else np.ndarray)
    np.testing.assert_allclose(found, truth, rtol=1e-5, atol=1e-8)


def clear() -> None:
    gc.collect()
    TAPE.collect()
    tg.free_tape_memory()


class Held:
    """An object under test, and the state around it that every call leaves as it was."""

    def __init__(self, case: Callable[[], Case]) -> None:
        clear()
        case()[0]()  # compiles
        self.run, self.truth = case()
        self.check()
        clear()
        self.memory, self.rows = tg.tape_memory(), TAPE.rows

    def check(self) -> None:
        """The same object, and a new one, give the truth."""
        assert untracked_values.depth() == 0
        assert tg.is_grad_enabled()
        assert not tg.is_inference_mode_enabled()
        assert TAPE.recording_off == 0
        assert_is(self.run(), self.truth)
        TAPE.count_pins()
        assert int(TAPE.header[tg.engine.layout.PINS]) == 0

    def check_memory(self) -> None:
        """No tape is left over.

        An interrupt between recording a row and storing its handle loses that row, and with it the tape of an operation.
        """
        clear()
        if TAPE.rows <= self.rows:
            assert tg.tape_memory() <= self.memory


@pytest.fixture(autouse=True)
def _swallow(monkeypatch: pytest.MonkeyPatch) -> None:
    """What hits a destructor, Python swallows; and nobody may keep it, since it holds what was running."""
    monkeypatch.setattr(sys, "unraisablehook", lambda _: None)


@pytest.mark.parametrize("name", CASES)
def test_interrupts_at_every_place(name: str, long: bool) -> None:
    held = Held(CASES[name])
    for k in itertools.count(1, 1 if long else 73):
        tg.free_tape_memory()  # so that tapes grow in every call
        if not interrupt(held.run, k, PACKAGE, driver_cases.__file__):
            break
        held.check()
    held.check_memory()
    assert k > 1


def refuse(run: Callable[[], Any], k: int) -> bool:
    """Run while Python refuses the k-th request for memory. (If it refuses all from there on, its handling of exceptions hangs.)"""
    _testcapi.set_nomemory(k, k + 1)
    try:
        run()
    except Exception:  # Python and NumPy do not always say which error it was
        return False
    finally:
        _testcapi.remove_mem_hooks()
    return True


# SciPy's own code does not survive refusals.
SOLVERS = {"root", "fixed_point", "minimum", "constrained_minimum", "least_squares", "fitted", "fitted_compiled"}


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    # Of other people's compiled code, too, each request is refused, so the short form keeps to one case with little of that.
    if "refused" in metafunc.fixturenames:
        names = [name for name in CASES if name not in SOLVERS] if metafunc.config.getoption("--long") else ["compiled_gradient"]
        metafunc.parametrize("refused", names if _testcapi else [])


def test_running_out_of_memory_at_any_request(refused: str, long: bool) -> None:
    held = Held(CASES[refused])
    for k in range(0, 3000, 1 if long else 97):
        tg.free_tape_memory()
        refuse(held.run, k)
        held.check()


class RefusedError(Exception):
    """What a function of the user's raises."""


class Calls:
    """Makes the k-th call of a function fail."""

    def __init__(self) -> None:
        self.left = 0

    def __call__(self, x: Any) -> Any:
        self.left -= 1
        if self.left == 0:
            raise RefusedError
        return x


calls = Calls()


def quadratic(x: Any, p: Any = 1.0) -> Any:
    x = calls(x)
    return ((x - p) ** 2).sum() + (x[0] - p) ** 4


def residual(x: Any, p: Any = 2.0) -> Any:
    return calls(x) * x - p


@numba.njit
def refusing(x):
    if 0.3 < x[0] < 1.4 or x[0] < -1.0:
        raise ValueError("refused")
    return x[0] ** 2 + (x[1] - 1.0) ** 2


@numba.njit
def refusing_late(x, n, last):
    s = 0.0
    for k in range(n):
        if k == last:
            raise ValueError("refused")
        s += x[0] * x[1] * x[1]
    return s


def reached(x: Any) -> None:
    calls(x)


def refused_minimum(method: str) -> Case:
    def run() -> Any:
        return tg.optimize.minimize(quadratic, [0.0, 0.0], method=method, tol=1e-10, callback=reached).x

    return run, np.ones(2)


def refused_derivative() -> Case:
    derivative = tg.jacobian(lambda p: tg.optimize.minimize(quadratic, [0.0, 0.0], (p,), tol=1e-10).x)
    return lambda: derivative(1.0), np.ones(2)


def refused_second_derivative() -> Case:
    derivative = tg.grad(tg.grad(lambda p: tg.optimize.root(residual, 1.0, (p,), tol=1e-12).x))
    return lambda: derivative(4.0), -1.0 / 32.0


def refused_checkpoint() -> Case:
    gradient = tg.grad(tg.checkpoint(lambda x: quadratic(tg.checkpoint(calls)(x))))
    return lambda: gradient(np.zeros(2)), np.array([-6.0, -2.0])


def refused_function() -> Case:
    fun = tg.optimize.scipy_fun(quadratic)

    def run() -> Any:
        x, y, v = np.zeros(2), np.ones(2), np.array([1.0, 0.0])
        return fun(x)[1], fun.hessp(y, v), fun.value(x), fun.hessp(x, v)

    return run, (np.array([-6.0, -2.0]), np.array([2.0, 0.0]), 3.0, np.array([14.0, 0.0]))


REFUSED = {
    "l-bfgs-b": lambda: refused_minimum("l-bfgs-b"),
    "trust-ncg": lambda: refused_minimum("trust-ncg"),
    "slsqp": lambda: refused_minimum("slsqp"),
    "derivative": refused_derivative,
    "second derivative": refused_second_derivative,
    "checkpoint": refused_checkpoint,
    "function": refused_function,
}


@pytest.mark.parametrize("name", REFUSED)
def test_functions_that_raise_at_any_call(name: str) -> None:
    held = Held(REFUSED[name])
    for k in range(1, 30):
        calls.left = k
        try:
            held.run()
        except RefusedError:
            assert calls.left == 0
        else:
            assert k > 2
            break
        finally:
            calls.left = 0
        held.check()


@pytest.mark.parametrize("driver", [tg.grad, tg.hessian, tg.jacobian], ids=["gradient", "hessian", "jacobian"])
def test_compiled_functions_that_raise_late(driver: Callable[..., Any], long: bool) -> None:
    derivative = driver(refusing_late)
    held = Held(lambda: (lambda: driver(long_sum)(X, ROWS), HESSIAN if driver is tg.hessian else GRADIENT))
    truth = derivative(X, ROWS, -1)
    np.testing.assert_allclose(truth, held.truth, rtol=1e-9)
    for last in range(0, ROWS, 97 if long else 1499):
        tg.free_tape_memory()
        with pytest.raises(ValueError, match="refused"):
            derivative(X, ROWS, last)
        held.check()
        np.testing.assert_array_equal(derivative(X, ROWS, -1), truth)
    held.check_memory()


def test_a_compiled_function_that_raises_within_a_solver() -> None:
    held = Held(lambda: (lambda: tg.optimize.minimize(refusing, [0.2, 0.5], method="trust-ncg", tol=1e-10).x, np.array([0.0, 1.0])))
    for method in ("l-bfgs-b", "trust-ncg", "slsqp", "bfgs"):
        with pytest.raises(ValueError, match="refused"):
            tg.optimize.minimize(refusing, [1.5, 0.5], method=method)
        held.check()
    held.check_memory()


class Busy:
    """Garbage whose destructor runs drivers of all kinds, and raises."""

    count = 0

    def __init__(self) -> None:
        self.itself = self

    def __del__(self) -> None:
        if Busy.count:
            Busy.count -= 1
            BUSY[Busy.count % len(BUSY)]()
            raise RefusedError


BUSY: list[Callable[[], Any]] = []


@pytest.fixture
def collections() -> Iterator[Callable[..., None]]:
    """Collections every so many objects, each of which runs drivers."""
    threshold = gc.get_threshold()
    # None of them sets NumPy's state of errors: CPython's context variables may not be set by what a collection runs, if it came
    # while one was being set.
    BUSY[:] = [CASES[name]()[0] for name in ("compiled_gradient", "compiled_direction", "eager_gradient", "eager_hessian")]

    def refill(phase: str, _: Any) -> None:
        if phase == "stop" and Busy.count:
            Busy()

    gc.callbacks.append(refill)
    yield lambda every: gc.set_threshold(every, 1, 1)
    gc.set_threshold(*threshold)
    gc.callbacks.remove(refill)
    Busy.count = 0


@pytest.mark.parametrize("name", CASES)
def test_destructors_that_run_drivers_and_raise(name: str, collections: Callable[..., None], long: bool) -> None:
    held = Held(CASES[name])
    for every in range(5, 60, 1 if long else 23):
        Busy.count = 20
        Busy()
        collections(every)
        assert_is(held.run(), held.truth)
        Busy.count = 0
        gc.set_threshold(0)
        held.check()
    held.check_memory()


@pytest.mark.parametrize("name", CASES)
def test_interrupts_in_other_threads(name: str, long: bool) -> None:
    """What an interrupt leaves behind in one thread is nothing to another one, which works at the same time."""
    held = Held(CASES[name])
    errors: list[BaseException] = []
    stopped = threading.Event()

    def work() -> None:
        try:
            run, truth = CASES[name]()
            while not stopped.is_set():
                assert_is(run(), truth)
        except BaseException as error:
            errors.append(error)

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    try:
        for k in range(1, 1000, 13 if long else 211):
            interrupt(held.run, k, PACKAGE, driver_cases.__file__)
            assert_is(held.run(), held.truth)
    finally:
        stopped.set()
        for thread in threads:
            thread.join()
    assert not errors
    held.check()
