"""What compiled functions may not do with variables: the line that says so, what the message names, and what it says to write."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, NamedTuple

import numba
import numpy as np


class Refusal(NamedTuple):
    """A function with the line that is refused, and two parts of the message."""

    function: Callable[..., Any]
    construct: str
    instead: str

    def __repr__(self) -> str:
        return self.function.__name__

    def line(self) -> tuple[int, str]:
        """Number and text of the line that is marked."""
        lines, first = inspect.getsourcelines(self.function)
        place = next(k for k, line in enumerate(lines) if "# here" in line)
        return first + place, lines[place].partition("# here")[0].strip()


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

    def append(self, a):
        return a + self.total


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


@numba.njit
def accounts():
    return [Account(), Account()]


def method_of_an_instance_in_a_list(x):
    return accounts()[0].append(x[0])  # here


@numba.njit("float64(float64)")
def first(a):
    return a * a


@numba.njit("float64(float64)")
def second(a):
    return a + a


def functions_in_a_list(x):
    total = 0.0
    for function in [first, second]:
        total += function(x[0])  # here
    return total


RECORD = np.dtype([("a", np.float64)])


def field_of_a_record(x):
    records = np.zeros(2, RECORD)
    records[0]["a"] = x[0]  # here
    return records[0]["a"]


IN_AN_ARRAY = "use an array of floats that the function makes or takes as an argument"
VALUES = "use shapes and values only"
CONSTANTS = "leave it away, or give it constants only"
ARITHMETIC = "write it out with arithmetic, or give it constants only"
SIGNATURE = "give its decorator a signature with float64, or none"
A_LOCAL_VARIABLE = "keep it in a local variable, an array or a tuple"
RETURNED = "keep variables in local variables, arrays, tuples or lists, and return them"
KEYS = "use a list, or integer keys"
BEFORE = "make it before the call and pass it as an argument, or keep what it holds in local variables, tuples or lists"

TABLE = [
    Refusal(complex_work_array, "a variable is written into array(complex64, 1d, C)", IN_AN_ARRAY),
    Refusal(integer_array_of_variables, "a variable is written into array(int64, 1d, C)", IN_AN_ARRAY),
    Refusal(
        field_of_a_record, "a variable is written into a field of a record", "keep it in a local variable, an array or a tuple"
    ),
    Refusal(memory_layout, "the memory layout of an array", VALUES),
    Refusal(reinterpreted_memory, "the memory layout of an array", VALUES),
    Refusal(memory_by_strides, "the memory layout of an array", VALUES),
    Refusal(spelling, "str of a variable", CONSTANTS),
    Refusal(spelling_in_a_text, "str of a variable", CONSTANTS),
    Refusal(representation, "repr of a variable", CONSTANTS),
    Refusal(hash_of_a_variable, "hash of a variable", CONSTANTS),
    Refusal(print_of_a_list, "print of list", "print its items"),
    Refusal(attribute_that_is_asked_for, "the attribute is_integer of a number", "use the number itself"),
    Refusal(function_without_a_rule, "spacing is not recorded", ARITHMETIC),
    Refusal(overload_of_a_package, "elsewhere is not recorded", ARITHMETIC),
    Refusal(call_of_a_signature_of_integers, "compiled for int64 only", SIGNATURE),
    Refusal(call_of_an_integer_signature, "from float64 to int64", SIGNATURE),
    Refusal(
        object_mode,
        "object mode (numba.objmode) of a variable",
        "compute what it gives before the call, or put it into a compiled function that has a derivative by tg.register_derivative",
    ),
    Refusal(key_of_a_dictionary, "variables as keys of dictionaries or items of sets", KEYS),
    Refusal(set_of_variables, "variables as keys of dictionaries or items of sets", KEYS),
    Refusal(set_literal, "variables as keys of dictionaries or items of sets", KEYS),
    Refusal(
        attribute_of_a_class,
        "assignment to the attribute total",
        "keep variables in local variables, arrays, tuples or lists, and return them",
    ),
    Refusal(array_of_a_class, "a variable is written into array(float64, 1d, A), which holds no variables", IN_AN_ARRAY),
    Refusal(
        method_of_an_instance_in_a_list,
        "append of an instance of the compiled class Account is called with a variable",
        "pass the instance as an argument, or give the method another name",
    ),
    Refusal(functions_in_a_list, "of a function only the type is known", "write g = f1 if k > 0 else f2"),
    Refusal(class_made_of_a_work_array, "an instance of the compiled class Rates is made of variables", BEFORE),
    Refusal(class_made_of_variables, "an instance of the compiled class Rates is made of variables", BEFORE),
]

# Functions that have no derivative at all, or none that is compiled: the expression, what the message names, and what it says.
OF_MATRICES = [
    ("np.linalg.eig(a)[0].sum()", "np.linalg.eig of variables", "for a symmetric matrix write np.linalg.eigh"),
    (
        "np.linalg.eigvals(a).sum()",
        "np.linalg.eigvals of variables has no derivative",
        "for a symmetric matrix write np.linalg.eigvalsh",
    ),
    ("np.roots(a[0]).sum()", "np.roots of variables", "find a root by Newton's method in a loop"),
]
OF_COMPLEX_NUMBERS = [
    ("(1j ** x[0]).real", "real constant exponent", "write np.exp(y * np.log(x))"),
    ("complex(np.float32(x[0]), np.float32(1.0)).real", "complex(...) of float32", "write complex(np.float64(x), ...)"),
    ("(np.complex64(1j) * np.float32(x[0])).imag", "complex128 is recorded alone", "convert float32 and complex64 before"),
    (
        "np.linalg.norm(x * 1j)",
        "norm of complex numbers",
        "write it with arithmetic on numbers",
    ),
]
