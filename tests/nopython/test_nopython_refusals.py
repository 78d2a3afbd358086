"""What cannot be recorded is refused when it is compiled, and the message names the construct and the line."""

from __future__ import annotations

import copyreg
import gc
import inspect
import weakref
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
import pytest
from compiled_refusals import OF_MATRICES, TABLE, Refusal, complex_work_array
from linked_numba import numbas_functions_are_linked  # noqa: F401 - a fixture
from unoptimised_numba import code_is_not_optimised  # noqa: F401 - a fixture

import tapegrad as tg
from tapegrad.errors import CompileError
from tapegrad.nopython.numba_interface.error_reports import Failures

X = np.array([1.3, 0.7, 1.1])


@numba.njit
def through_a_helper(x):
    return np.spacing(x)  # here


def call_of_a_helper(x):
    return through_a_helper(x[0])


@numba.njit(locals={"r": numba.complex128})  # here
def complex_in_the_decorator(x):
    r = x[0] * x[1]
    return r.real * 2.0


def call_of_complex_in_a_decorator(x):
    return complex_in_the_decorator(x)


def line_marked_here(f: Callable[..., Any]) -> int:
    lines, first = inspect.getsourcelines(f)
    return first + next(k for k, line in enumerate(lines) if "# here" in line)


@pytest.mark.filterwarnings("ignore:First-class function type feature is experimental")
@pytest.mark.parametrize("refusal", TABLE, ids=repr)
def test_message_names_construct_and_line_and_says_what_to_write(refusal: Refusal) -> None:
    with pytest.raises(CompileError) as caught:
        tg.grad(numba.njit(refusal.function))(X)
    message = str(caught.value)
    assert refusal.construct in message
    assert refusal.instead in message
    assert f"line {refusal.line()[0]}" in message


@pytest.mark.parametrize(
    ("f", "cause", "construct"),
    [
        (call_of_a_helper, through_a_helper.py_func, "spacing"),
        (complex_in_the_decorator, complex_in_the_decorator.py_func, "complex128"),
        (call_of_complex_in_a_decorator, complex_in_the_decorator.py_func, "complex128"),
    ],
    ids=["helper", "decorator", "decorator of a helper"],
)
def test_message_names_the_innermost_line(f: Callable[..., Any], cause: Callable[..., Any], construct: str) -> None:
    with pytest.raises(CompileError) as caught:
        tg.grad(f if hasattr(f, "py_func") else numba.njit(f))(X)
    assert construct in str(caught.value)
    assert f"line {line_marked_here(cause)}" in str(caught.value)


def test_print_shows_the_number_of_a_variable(capfd: pytest.CaptureFixture[str]) -> None:
    @numba.njit
    def f(x):
        print("x is", x[0] * 2, x)
        return x[0]

    f(X)
    expected = capfd.readouterr().out
    tg.grad(f)(X)
    assert capfd.readouterr().out == expected


def test_the_tape_is_usable_after_a_refusal() -> None:
    with pytest.raises(CompileError):
        tg.grad(numba.njit(complex_work_array))(X)
    assert tg.grad(numba.njit(lambda x: x[0] * x[1]))(X).tolist() == [0.7, 1.3, 0.0]


def test_integer_result_is_refused() -> None:
    with pytest.raises(CompileError, match="returns int64"):
        tg.grad(numba.njit(lambda x: int(x)))(2.0)


def test_array_result_has_no_gradient() -> None:
    with pytest.raises(TypeError, match="scalar-output"):
        tg.grad(numba.njit(lambda x: x * 2.0))(X)


@pytest.mark.parametrize("point", [2, 1j, np.ones(3, int), [1.0, 2.0], "x"], ids=repr)
def test_point_that_is_no_float_is_refused(point: Any) -> None:
    with pytest.raises(TypeError, match="argument 0 is"):
        tg.grad(numba.njit(lambda x: x))(point)


def test_argument_that_is_not_there_is_refused() -> None:
    with pytest.raises(ValueError, match="positional argument 1"):
        tg.grad(numba.njit(lambda x: x), argnums=1)(2.0)


def test_what_is_no_function_is_refused() -> None:
    with pytest.raises(TypeError, match="expected a function"):
        tg.njit_op(3.0)(tg.tensor(1.0, requires_grad=True))  # type: ignore[arg-type]


def test_exception_of_the_function_reaches_the_caller() -> None:
    @numba.njit
    def f(x):
        if x > 1.0:
            raise ValueError("too large")
        return x * x

    with pytest.raises(ValueError, match="too large"):
        tg.grad(f)(2.0)
    assert tg.grad(f)(0.5) == 1.0


def test_diagonal_of_unequal_dimensions_is_refused_as_in_the_plain_call() -> None:
    @numba.njit
    def f(x):
        np.fill_diagonal(x.reshape(1, 2, 2), x[0])
        return x.sum()

    with pytest.raises(ValueError, match="equal length"):
        tg.grad(f)(np.ones(4))


@pytest.mark.parametrize(("model", "raises"), [("numpy", False), ("python", True)])
def test_division_by_zero_beside_an_array_is_that_of_the_decorator(model: str, raises: bool) -> None:
    def f(x, y):
        return (x * (1.0 / y)).sum()

    gradient = tg.grad(numba.njit(error_model=model)(f))
    if raises:
        with pytest.raises(ZeroDivisionError):
            gradient(X, 0.0)
    else:
        assert np.isinf(gradient(X, 0.0)).all()


def test_division_by_zero_raises_as_in_numba() -> None:
    with pytest.raises(ZeroDivisionError):
        tg.grad(numba.njit(lambda x: 1.0 / (x - 2.0)))(2.0)


def test_what_was_refused_does_not_keep_the_caller_alive() -> None:
    class Owner:
        pass

    def call() -> weakref.ref[Owner]:
        owner = Owner()
        with pytest.raises(CompileError):
            tg.grad(numba.njit(lambda x: np.spacing(x) * 1.0))(2.0)
        return weakref.ref(owner)

    owner = call()
    gc.collect()
    assert owner() is None


def test_errors_are_kept_without_frames_where_copies_have_them(monkeypatch: pytest.MonkeyPatch) -> None:
    class RefusedError(Exception):
        pass

    def restored(traceback: Any, context: Any) -> RefusedError:
        made = RefusedError().with_traceback(traceback)
        made.__context__ = context
        return made

    monkeypatch.setitem(copyreg.dispatch_table, RefusedError, lambda e: (restored, (e.__traceback__, e.__context__)))
    kept = Failures()
    try:
        try:
            raise KeyError
        except KeyError:
            raise RefusedError from None
    except RefusedError as error:
        kept["f"] = error
    assert kept["f"].__traceback__ is None
    assert kept["f"].__context__ is None


A = np.array([[2.0, 1.0], [1.0, 3.0]])


@pytest.mark.parametrize(("text", "construct", "instead"), OF_MATRICES, ids=[text for text, _, _ in OF_MATRICES])
def test_linear_algebra_without_a_derivative_says_what_to_write(text: str, construct: str, instead: str) -> None:
    space: dict[str, Any] = {"np": np}
    exec(f"def f(a):\n    return {text}", space)
    with pytest.raises(CompileError) as caught:
        tg.grad(numba.njit(space["f"]))(A)
    message = str(caught.value)
    assert construct in message
    assert instead in message
    assert "memory layout" not in message


@numba.njit
def squares(x):
    return x * x


@pytest.mark.parametrize("driver", [tg.jacobian, tg.elementwise_grad, lambda f: tg.grad(lambda x: f(x).sum())])
def test_compiled_function_called_with_a_tensor_says_what_to_write(driver: Any) -> None:
    with pytest.raises(CompileError, match=r"tg\.njit_op\(f\)\(x\)"):
        driver(lambda x: squares(x) * 2.0)(X)
    assert driver(lambda x: tg.njit_op(squares)(x) * 2.0)(X).ravel()[0] == 4.0 * X[0]


def test_what_numba_refuses_itself_is_said_to_be_so() -> None:
    @numba.njit
    def refused_by_numba(x):
        return x["text"]

    with pytest.raises(CompileError, match="Numba does not compile the function for these arguments"):
        tg.grad(refused_by_numba)(X)
