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
from linked_numba import numbas_functions_are_linked  # noqa: F401 - a fixture
from unoptimised_numba import code_is_not_optimised  # noqa: F401 - a fixture

import tapegrad as tg
from tapegrad.errors import CompileError
from tapegrad.nopython.numba_interface.error_reports import Failures

X = np.array([1.3, 0.7, 1.1])


def complex_work_array(x):
    w = np.zeros(3, np.complex64)
    w[0] = x[0]  # here
    return w[0].real * 2.0


def memory_layout(x):
    return x[0] * x.itemsize  # here


def reinterpreted_memory(x):
    bits = x.view(np.int64)  # here
    return x[0] + bits[0]


def memory_by_strides(x):
    return np.lib.stride_tricks.as_strided(x, (2, 2), (8, 8)).sum()  # here


def spelling(x):
    return x[0] * len(str(x[0]))  # here


def spelling_in_a_text(x):
    return x[0] * len(f"{x[0]}")  # here


def representation(x):
    return x[0] * len(repr(x[0]))  # here


def hash_of_a_variable(x):
    return x[0] * (hash(x[0]) % 7)  # here


def attribute_that_is_asked_for(x):
    return x[0] if hasattr(x[1], "is_integer") else x[2]  # here


def function_without_a_rule(x):
    return np.spacing(x[0])  # here


def integer_array_of_variables(x):
    w = np.zeros(3, np.int64)
    w[0] = x[0]  # here
    return w[0] * x[1]


@numba.njit("float64(int64)")
def of_integers(a):
    return a * a


def call_of_a_signature_of_integers(x):
    return of_integers(x[0])  # here


@numba.njit("int64(float64)")
def to_integer(a):
    return a * 3


def call_of_an_integer_signature(x):
    return to_integer(x[0]) * x[0]  # here


def object_mode(x):
    with numba.objmode(y="float64"):  # here
        y = float(x[0])
    return y * x[1]


def key_of_a_dictionary(x):
    table = {x[0]: 1.0}
    return table[x[0]] * x[1]  # here


def set_of_variables(x):
    found = set()
    for value in x:
        found.add(value)  # here
    return len(found) * x[0]


def set_literal(x):
    return len({x[0], x[1]}) * x[0]  # here


def print_of_a_list(x):
    print([x[0], x[1]])  # here
    return x[0]


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


def elsewhere(x):
    raise NotImplementedError


@numba.extending.overload(elsewhere)
def _elsewhere(x):
    return lambda x: np.spacing(x)


def overload_of_a_package(x):
    return elsewhere(x[0])  # here


@numba.experimental.jitclass([("total", numba.float64), ("items", numba.float64[:])])
class Account:
    def __init__(self):
        self.total = 0.0
        self.items = np.zeros(3)


def attribute_of_a_class(x):
    account = Account()
    account.total = x[0]  # here
    return account.total


def array_of_a_class(x):
    account = Account()
    account.items[0] = x[0]  # here
    return account.items[0]


@numba.experimental.jitclass([("rate", numba.float64[:])])
class Rates:
    def __init__(self, rate):
        self.rate = rate

    def replaced(self, rate):
        self.rate = rate
        return rate[0]


def class_made_of_a_work_array(x):
    rates = Rates(np.ones(2))  # here
    return rates.rate[0] * x[0]


def class_made_of_variables(x):
    return Rates(x).rate[0]  # here


RECORD = np.dtype([("a", np.float64)])


def field_of_a_record(x):
    records = np.zeros(2, RECORD)
    records[0]["a"] = x[0]  # here
    return records[0]["a"]


REFUSED = [
    (field_of_a_record, "field of a record"),
    (complex_work_array, "complex64"),
    (memory_layout, "memory layout"),
    (reinterpreted_memory, "memory layout"),
    (memory_by_strides, "memory layout"),
    (spelling, "str of a variable"),
    (spelling_in_a_text, "str of a variable"),
    (representation, "repr of a variable"),
    (hash_of_a_variable, "hash of a variable"),
    (attribute_that_is_asked_for, "attribute is_integer"),
    (function_without_a_rule, "spacing"),
    (integer_array_of_variables, "int64"),
    (call_of_a_signature_of_integers, "int64"),
    (call_of_an_integer_signature, "int64"),
    (object_mode, "object mode"),
    (key_of_a_dictionary, "keys of dictionaries"),
    (set_of_variables, "items of sets"),
    (set_literal, "items of sets"),
    (print_of_a_list, "print of"),
    (overload_of_a_package, "elsewhere is not recorded"),
    (overload_of_a_package, "spacing is not recorded"),
    (attribute_of_a_class, "attribute total"),
    (array_of_a_class, "holds no variables"),
    (class_made_of_a_work_array, "compiled class Rates"),
    (class_made_of_variables, "compiled class Rates"),
]


def line_marked_here(f: Callable[..., Any]) -> int:
    lines, first = inspect.getsourcelines(f)
    return first + next(k for k, line in enumerate(lines) if "# here" in line)


@pytest.mark.parametrize(("f", "construct"), REFUSED, ids=lambda p: getattr(p, "__name__", p))
def test_message_names_construct_and_line(f: Callable[..., Any], construct: str) -> None:
    with pytest.raises(CompileError) as caught:
        tg.grad(numba.njit(f))(X)
    assert construct in str(caught.value)
    assert f"line {line_marked_here(f)}" in str(caught.value)


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

WITHOUT_DERIVATIVE = [
    ("np.linalg.eig", "np.linalg.eig(a)[0].sum()", "write np.linalg.eigh"),
    ("np.linalg.eigvals", "np.linalg.eigvals(a).sum()", "write np.linalg.eigvalsh"),
    ("np.roots", "np.roots(a[0]).sum()", "Newton"),
]


@pytest.mark.parametrize(("name", "text", "instead"), WITHOUT_DERIVATIVE, ids=[name for name, _, _ in WITHOUT_DERIVATIVE])
def test_linear_algebra_without_a_derivative_says_what_to_write(name: str, text: str, instead: str) -> None:
    space: dict[str, Any] = {"np": np}
    exec(f"def f(a):\n    return {text}", space)
    with pytest.raises(CompileError) as caught:
        tg.grad(numba.njit(space["f"]))(A)
    message = str(caught.value)
    assert f"{name} of variables has no derivative" in message
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
