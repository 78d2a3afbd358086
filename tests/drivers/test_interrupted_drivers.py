"""Exceptions between two steps of drivers, compiled functions and solvers: later calls know nothing of them."""

import importlib
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
import numpy as np
import pytest
from interrupts import Stop, interrupt

import tapegrad as tg
from tapegrad.tensors import untracked_values

PACKAGE = str(Path(tg.__file__).parent)
MEMORY = importlib.import_module("tapegrad.nopython.tape.column_memory")
X = np.array([0.5, 2.0])


@numba.njit
def long_sum(x, n):
    s = 0.0
    for _ in range(n):
        s += x[0] * x[1] * x[1]
    return s


@numba.njit
def sum_that_goes_on(x):
    """A sum as far as there is memory; without it, what needs less is recorded, for which there is room."""
    s = x[0] * 2.0
    for _ in range(20_000):
        try:
            s = s + x[0] * x[1] * x[2]
        except Exception:
            s = s * 1.0
    return s


def test_columns_that_are_given_back_in_an_interrupted_call_serve_one_call(monkeypatch: pytest.MonkeyPatch) -> None:
    derivatives = importlib.import_module("tapegrad.nopython.derivatives")

    def late(columns: Any) -> None:
        MEMORY.give_back(columns)
        raise Stop

    record = importlib.import_module("tapegrad.nopython.recorder").recorder(long_sum, 0)
    tg.free_tape_memory()
    recording = derivatives.Recording(record, record.arguments((X, 3), {}))
    monkeypatch.setattr(derivatives, "give_back", late)
    with pytest.raises(Stop):
        recording.close()
    del recording
    assert MEMORY.take() is not MEMORY.take()


def test_an_interrupted_call_leaves_no_tape() -> None:
    tg.free_tape_memory()
    held = tg.tape_memory()
    gradient = tg.value_and_grad(long_sum)
    gradient(X, 3)
    k = 1
    while interrupt(lambda: gradient(X, 3), k, PACKAGE):
        k += 1
    tg.free_tape_memory()
    assert k > 10
    assert tg.tape_memory() == held


class Scarce:
    """NumPy that refuses one array, and gives memory with the worst that can be left in it."""

    def __init__(self, allowed: int) -> None:
        self.allowed = allowed

    def __getattr__(self, name: str) -> Any:
        return getattr(np, name)

    def empty(self, *arguments: Any) -> Any:
        self.allowed -= 1
        if self.allowed == -1:
            raise MemoryError
        made = np.empty(*arguments)
        made.fill(np.nan if made.dtype == np.float64 else -1)
        return made


POINT = np.array([0.5, 2.0, 3.0])
DERIVATIVES: dict[str, Callable[[], Any]] = {
    "gradient": lambda: tg.grad(sum_that_goes_on)(POINT),
    "hessian": lambda: tg.hessian(sum_that_goes_on)(POINT),
    "direction": lambda: tg.hvp(sum_that_goes_on, POINT, np.ones(3)),
}
CURVATURE = np.array([[0.0, 3.0, 2.0], [3.0, 0.0, 0.5], [2.0, 0.5, 0.0]])
OF_A_TERM = {"gradient": np.array([6.0, 1.5, 1.0]), "hessian": CURVATURE, "direction": CURVATURE.sum(axis=0)}


@pytest.mark.parametrize("name", DERIVATIVES)
def test_a_function_goes_on_when_its_tape_could_not_grow(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = []
    for allowed in range(12):
        tg.free_tape_memory()
        MEMORY.give_back(MEMORY.take())
        with monkeypatch.context() as patched:
            patched.setattr(MEMORY, "np", Scarce(allowed))
            try:
                found = DERIVATIVES[name]()
            except MemoryError:  # before the function ran, or after it
                continue
        terms = round(found.flat[-2] / OF_A_TERM[name].flat[-2])
        numbers.append(terms)
        first = np.array([2.0, 0.0, 0.0]) if name == "gradient" else 0.0
        np.testing.assert_allclose(found, terms * OF_A_TERM[name] + first, rtol=1e-9)
    assert 19_999 in numbers
    assert set(numbers) <= {19_999, 20_000}


def test_an_interrupt_of_growth_arrives_as_itself(monkeypatch: pytest.MonkeyPatch) -> None:
    gradient = tg.grad(long_sum)
    gradient(X, 3)

    def resize(*_: Any) -> None:
        raise Stop

    with monkeypatch.context() as patched:
        tg.free_tape_memory()
        MEMORY.give_back(MEMORY.take())
        patched.setattr(MEMORY.Columns, "resize", resize)
        with pytest.raises(Stop):
            gradient(X, 20_000)
    np.testing.assert_allclose(gradient(X, 20_000), [80_000.0, 40_000.0], rtol=1e-9)


def cubes(x: Any) -> Any:
    return 2.0 * (x**3).sum() + x[0] * x[1]


CUBES_PRODUCT = np.array([12.0 * 0.5 + 1.0, 12.0 * 2.0 + 1.0])  # of the Hessian at X with a vector of ones


@pytest.mark.parametrize("error", [Stop, MemoryError])
def test_second_partials_are_weighted_once(error: type[BaseException], monkeypatch: pytest.MonkeyPatch) -> None:
    module = importlib.import_module("tapegrad.linear.linear_tape")
    function = tg.optimize.scipy_fun(cubes)
    entry = module.entry_of

    def interrupted(name: str) -> Any:
        def weigh(*arguments: Any) -> None:
            if error is not MemoryError:
                entry(name)(*arguments)
            raise error

        return weigh if name == "weigh" else entry(name)

    with monkeypatch.context() as patched:
        patched.setattr(module, "entry_of", interrupted)
        with pytest.raises(error):
            function.hessp(X, np.ones(2))
    np.testing.assert_allclose(function.hessp(X, np.ones(2)), CUBES_PRODUCT, rtol=1e-12)


def test_points_are_recorded_again_when_second_derivatives_are_asked_for_after_an_interrupt() -> None:
    k, more = 1, True
    while more and k < 40:
        function = tg.optimize.scipy_fun(cubes)
        function.value(X)
        more = interrupt(lambda function=function: function.hessp(X, np.ones(2)), k, PACKAGE)
        np.testing.assert_allclose(function.hessp(X, np.ones(2)), CUBES_PRODUCT, rtol=1e-12)
        k += 1


def test_results_are_plain_after_an_interrupt_at_any_place() -> None:
    gradient, depth = tg.grad(cubes), untracked_values.depth()
    k = 1
    while interrupt(lambda: gradient(X), k, PACKAGE):
        assert untracked_values.depth() == depth
        k += 1
    assert k > 30
    assert type(gradient(X)) is np.ndarray


def test_a_driver_that_is_interrupted_leaves_the_modes() -> None:
    def both() -> Any:
        with tg.inference_mode():
            return tg.grad(cubes)(X)

    k = 1
    while interrupt(both, k, PACKAGE):
        assert tg.is_grad_enabled()
        assert not tg.is_inference_mode_enabled()
        k += 1
    assert k > 50


@pytest.mark.parametrize("decorate", [tg.no_grad, tg.inference_mode])
def test_a_decorated_function_that_is_interrupted_leaves_the_modes(decorate: Any) -> None:
    function = decorate()(lambda: 1.0)
    k = 1
    while interrupt(function, k, PACKAGE):
        assert tg.is_grad_enabled()
        assert not tg.is_inference_mode_enabled()
        k += 1
    assert k > 3


def test_a_solver_that_failed_has_no_derivative_the_second_time_either() -> None:
    a = tg.tensor(4.0, requires_grad=True)
    result = tg.optimize.root(lambda x, a: x * x - a, 1.0, (a,), options={"maxfev": 3})
    for _ in range(2):
        with pytest.raises(RuntimeError, match="did not converge"):
            result.x.backward(retain_graph=True)
    assert a.grad is None
