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

import numba
import numpy as np
import pytest
from interrupts import interrupt

import tapegrad as tg
from tapegrad import escapes

try:
    import _testcapi
except ImportError:  # not every build of Python has it
    _testcapi = None

pytestmark = pytest.mark.filterwarnings("ignore:Using backward")

PACKAGE = str(Path(tg.__file__).parent)
TAPE = tg.tape.default_tape()

Case = tuple[Callable[[], Any], Any]  # what an object of the package gives each time it is asked, and the truth
X = np.array([0.5, 2.0])
ROWS = 6000  # more than a new tape has room for, in pairs and in triplets


@numba.njit
def long_sum(x, n):
    s = 0.0
    for _ in range(n):
        s += x[0] * x[1] * x[1]
    return s


@numba.njit
def long_sums(x, n):
    return np.array([long_sum(x, n), 3.0 * long_sum(x, n)])


@numba.njit
def whole_sum(x):
    return long_sum(x, ROWS)


@numba.njit
def all_sums(x):
    return long_sums(x, ROWS)


@numba.njit
def line(t, a, b):
    return a + b * t


@numba.njit
def quartic(x):
    return x[0] ** 4 * x[1] + x[1] ** 2


VALUE, GRADIENT = ROWS * 2.0, ROWS * np.array([4.0, 2.0])
HESSIAN = ROWS * np.array([[0.0, 4.0], [4.0, 1.0]])
QUARTIC_GRADIENT = np.array([4 * 0.5**3 * 2.0, 0.5**4 + 2 * 2.0])
QUARTIC_HESSIAN = np.array([[12 * 0.5**2 * 2.0, 4 * 0.5**3], [4 * 0.5**3, 2.0]])


def compiled_gradient() -> Case:
    gradient = tg.value_and_grad(long_sum)
    return lambda: gradient(X, ROWS), (VALUE, GRADIENT)


def compiled_pullback() -> Case:
    _, pull = tg.vjp(all_sums, X)
    return lambda: pull(np.array([1.0, 1.0]))[0], 4.0 * GRADIENT


def compiled_product() -> Case:
    _, push = tg.linearize(all_sums, X)
    return lambda: push(np.array([1.0, -1.0])), np.array([1.0, 3.0]) * (GRADIENT[0] - GRADIENT[1])


def compiled_jacobian() -> Case:
    matrix = tg.jacobian(long_sums)
    return lambda: matrix(X, ROWS), np.outer([1.0, 3.0], GRADIENT)


def compiled_hessian() -> Case:
    matrix = tg.hessian(long_sum)
    return lambda: matrix(X, ROWS), HESSIAN


def compiled_direction() -> Case:
    return lambda: tg.hvp(whole_sum, X, np.array([1.0, 2.0])), HESSIAN @ [1.0, 2.0]


def compiled_operation() -> Case:
    operation = tg.njit_op(quartic)

    def run() -> Any:
        x = tg.tensor(X, requires_grad=True)
        (operation(x) * 2.0).backward()
        return x.grad.numpy()

    return run, 2.0 * QUARTIC_GRADIENT


def compiled_operation_twice() -> Case:
    operation = tg.njit_op(quartic)

    def run() -> Any:
        x = tg.tensor(X, requires_grad=True)
        (g,) = tg.autograd.grad(operation(x), x, create_graph=True)
        (g * tg.tensor([1.0, 2.0])).sum().backward()
        return x.grad.numpy()

    return run, QUARTIC_HESSIAN @ [1.0, 2.0]


def compiled_scipy_function() -> Case:
    fun = tg.optimize.scipy_fun(quartic)

    def run() -> Any:
        return fun(X)[1], fun.hessp(X, np.array([1.0, 2.0])), fun.hess(X), fun.gradient(X)

    return run, (QUARTIC_GRADIENT, QUARTIC_HESSIAN @ [1.0, 2.0], QUARTIC_HESSIAN, QUARTIC_GRADIENT)


M = np.array([[1.0, 2.0], [3.0, -1.0], [0.5, 0.25]])


def of_tensors(x: Any) -> Any:
    return x[0] ** 4 * x[1] + x[1] ** 2


def of_matrices(x: Any) -> Any:
    return (tg.tensor(M) @ x) ** 2


MATRICES_JACOBIAN = 2.0 * (M @ X)[:, None] * M


def eager_gradient() -> Case:
    gradient = tg.value_and_grad(of_tensors)
    return lambda: gradient(X)[1], QUARTIC_GRADIENT


def eager_jacobians() -> Case:
    forward, reverse = tg.jacobian(of_matrices, mode="forward"), tg.jacobian(of_matrices, mode="reverse")
    return lambda: (forward(X), reverse(X)), (MATRICES_JACOBIAN, MATRICES_JACOBIAN)


def eager_products() -> Case:
    _, push = tg.linearize(of_matrices, X)
    _, pull = tg.vjp(of_matrices, X)
    v = np.array([1.0, -2.0])
    return lambda: (push(v), pull(np.ones(3))[0]), (MATRICES_JACOBIAN @ v, MATRICES_JACOBIAN.sum(axis=0))


def eager_hessian() -> Case:
    matrix = tg.hessian(of_tensors)
    return lambda: (matrix(X), tg.hvp(of_tensors, X, np.array([1.0, 2.0]))), (QUARTIC_HESSIAN, QUARTIC_HESSIAN @ [1.0, 2.0])


def without_recording() -> Case:
    gradient = tg.value_and_grad(of_tensors)

    def run() -> Any:
        with tg.no_grad():
            return gradient(X)[1]

    return run, QUARTIC_GRADIENT


def nested_drivers() -> Case:
    matrix = tg.jacobian(tg.grad(of_tensors))
    return lambda: matrix(X), QUARTIC_HESSIAN


def gauss_newton() -> Case:
    model = tg.gauss_newton(of_matrices, X)
    v = np.array([1.0, -2.0])
    normal = MATRICES_JACOBIAN.T @ MATRICES_JACOBIAN
    return lambda: (model.product(v), model.matrix()), (normal @ v, normal)


def scipy_function() -> Case:
    fun = tg.optimize.scipy_fun(of_tensors)

    def run() -> Any:
        return fun(X)[1], fun.hessp(X, np.array([1.0, 2.0])), fun.hess(X), fun.gradient(X)

    return run, (QUARTIC_GRADIENT, QUARTIC_HESSIAN @ [1.0, 2.0], QUARTIC_HESSIAN, QUARTIC_GRADIENT)


def held_root() -> Case:
    """The square root of a leaf, found once and differentiated again and again."""
    a = tg.tensor(4.0, requires_grad=True)
    x = tg.optimize.root(lambda x, a: x * x - a, 1.0, (a,), tol=1e-12).x

    def run() -> Any:
        (first,) = tg.autograd.grad(x, a, create_graph=True)
        (second,) = tg.autograd.grad(first, a, retain_graph=True)
        return first.item(), second.item()

    return run, (0.25, -1.0 / 32.0)


def root() -> Case:
    derivative = tg.grad(lambda a: tg.optimize.root(lambda x: x * x - a, 1.0, tol=1e-12).x)
    return lambda: derivative(4.0), 0.25


def fixed_point() -> Case:
    derivative = tg.grad(lambda a: tg.optimize.fixed_point(lambda x: 0.5 * (x + a / x), 1.0))
    return lambda: derivative(4.0), 0.25


def minimum() -> Case:
    def run() -> Any:
        p = tg.tensor(1.0, requires_grad=True)
        result = tg.optimize.minimize(
            lambda w: ((w - 1.0) ** 2).sum() + p * (w * w).sum(), [0.0, 0.0], method="trust-ncg", tol=1e-12
        )
        result.x.sum().backward()
        return result.x.detach().numpy(), p.grad.item()

    return run, (np.array([0.5, 0.5]), -0.5)


def constrained_minimum() -> Case:
    def run() -> Any:
        a = tg.tensor(1.0, requires_grad=True)
        result = tg.optimize.minimize(
            lambda x: (x * x).sum(), [0.3, 0.2], constraints=[tg.optimize.equality(lambda x: x.sum() - a)], tol=1e-12
        )
        result.x[0].backward()
        return a.grad.item()

    return run, 0.5


def least_squares() -> Case:
    derivative = tg.grad(lambda a: tg.optimize.least_squares(lambda x: x - a * np.ones(2), [0.0, 0.0], xtol=1e-12).x.sum())
    return lambda: derivative(3.0), 2.0


T = np.linspace(0.0, 1.0, 5)


def fitted() -> Case:
    return lambda: tg.optimize.curve_fit(lambda t, a, b: a + b * t, T, 2.0 + 3.0 * T, [1.0, 1.0])[0], np.array([2.0, 3.0])


def fitted_compiled() -> Case:
    return lambda: tg.optimize.curve_fit(line, T, 2.0 + 3.0 * T, [1.0, 1.0])[0], np.array([2.0, 3.0])


def checkpointed() -> Case:
    piece = tg.checkpoint(lambda x: tg.checkpoint(of_tensors)(x) * 2.0)

    def run() -> Any:
        x = tg.tensor(X, requires_grad=True)
        piece(x * 1.0).backward()
        return x.grad.numpy()

    return run, 2.0 * QUARTIC_GRADIENT


def checkpointed_twice() -> Case:
    piece = tg.checkpoint(of_tensors)

    def run() -> Any:
        x = tg.tensor(X, requires_grad=True)
        (g,) = tg.autograd.grad(piece(x), x, create_graph=True)
        g.sum().backward()
        return x.grad.numpy()

    return run, QUARTIC_HESSIAN.sum(axis=0)


CASES = {
    case.__name__: case
    for case in (
        compiled_gradient, compiled_pullback, compiled_product, compiled_jacobian, compiled_hessian, compiled_direction,
        compiled_operation, compiled_operation_twice, compiled_scipy_function, eager_gradient, eager_jacobians, eager_products,
        eager_hessian, without_recording, nested_drivers, gauss_newton, scipy_function, held_root, root, fixed_point, minimum,
        constrained_minimum, least_squares, fitted, fitted_compiled, checkpointed, checkpointed_twice,
    )
}  # fmt: skip


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
        assert escapes.depth() == 0
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
    for k in itertools.count(1, 1 if long else 37):
        tg.free_tape_memory()  # so that tapes grow in every call
        if not interrupt(held.run, k, PACKAGE, __file__):
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


@pytest.mark.parametrize("name", [name for name in CASES if _testcapi and name not in SOLVERS])
def test_running_out_of_memory_at_any_request(name: str, long: bool) -> None:
    held = Held(CASES[name])
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
            interrupt(held.run, k, PACKAGE, __file__)
            assert_is(held.run(), held.truth)
    finally:
        stopped.set()
        for thread in threads:
            thread.join()
    assert not errors
    held.check()
