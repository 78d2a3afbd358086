"""Every class of values that Numba takes as an argument: the caller's data stays, and the result is that of the plain call."""

from __future__ import annotations

import ctypes
import math
import sys
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
import pytest
from compiled_arguments import WRITTEN, Colour, Number, OfList, X, write_list_inside
from linked_numba import numbas_functions_are_linked  # noqa: F401 - a fixture
from numba.core import types
from numba.core.typing import bufproto
from numba.core.typing.typeof import typeof_impl
from numba.typed import List
from unoptimised_numba import code_is_not_optimised  # noqa: F401 - a fixture

import tapegrad as tg


@numba.njit
def twice(x):
    return 2.0 * x


twice_in_c = numba.cfunc("float64(float64)")(lambda x: 2.0 * x)
pointer = ctypes.CDLL(None).toupper
pointer.argtypes, pointer.restype = (ctypes.c_int,), ctypes.c_int


@pytest.mark.filterwarnings("ignore::numba.core.errors.NumbaPendingDeprecationWarning", "ignore:the matrix subclass")
@pytest.mark.parametrize("name", WRITTEN)
def test_what_is_written_into_an_argument_is_not_seen_by_the_caller(name: str) -> None:
    make, f, state = WRITTEN[name]
    compiled, given = numba.njit(f), make()
    before = state(given)
    for _ in range(2):
        value, gradient = tg.value_and_grad(compiled)(X, given)
        assert state(given) == before
        assert value == compiled(X.copy(), make())
        np.testing.assert_allclose(gradient * X, [value, 0.0], rtol=1e-15)


def test_an_instance_that_cannot_be_put_back_is_refused() -> None:
    given = OfList()
    with pytest.raises(TypeError, match="items of an instance of OfList, list, is nothing that can be put back"):
        tg.grad(numba.njit(write_list_inside))(X, given)
    assert list(given.items) == [1.0]


@numba.njit
def beside(x, a):
    return x[0] * x[1]


UNWRITTEN: dict[str, Any] = {
    "truth value": True,
    "integer": 3,
    "number": 2.0,
    "complex number": 1j,
    "text": "a",
    "bytes": b"ab",
    "nothing": None,
    "ellipsis": ...,
    "slice": slice(0, 2, None),
    "float32": np.float32(1.0),
    "date": np.datetime64("2020-01-01"),
    "enumeration": Colour.RED,
    "enumeration of integers": Number.ONE,
    "class of numbers": np.float64,
    "dtype": np.dtype(np.float64),
    "type": types.float64,
    "type of text": types.unicode_type,
    "compiled function": twice,
    "function of C": twice_in_c,
    "pointer to a function": pointer,
    "generator": np.random.default_rng(0),
    "source of bits": np.random.PCG64(0),
}


@pytest.mark.parametrize("name", UNWRITTEN)
def test_what_cannot_be_written_into_is_passed_on(name: str) -> None:
    value, gradient = tg.value_and_grad(beside)(X, UNWRITTEN[name])
    assert (value, gradient.tolist()) == (1.3 * 0.7, [0.7, 1.3])


UNPACKED, INTERNAL, UNKNOWN = "Numba refuses to unpack it", "Numba's own", "refused, as is what is not known"

# By class, where a value of the class is in these tables, or why there is none.
COVERED: dict[str, str] = {
    "object": UNKNOWN,
    "CFuncPtr": "pointer to a function",
    "type": "class of numbers",
    "bool": "truth value",
    "float": "number",
    "complex": "complex number",
    "int": "integer",
    "generic": "float32",
    "str": "text",
    "code": UNPACKED,
    "NoneType": "nothing",
    "ellipsis": "ellipsis",
    "tuple": "tuple of arrays",
    "list": "list",
    "set": "set",
    "slice": "slice",
    "IntEnum": "enumeration of integers",
    "Enum": "enumeration",
    "EnumType": UNPACKED,
    "dtype": "dtype",
    "ndarray": "array",
    "NumberClass": "type",
    "Literal": INTERNAL,
    "TypeRef": "type of text",
    "Type": "type",
    "BitGenerator": "source of bits",
    "Generator": "generator",
    "Polynomial": UNPACKED,
    "IndexValue": UNPACKED,
    "_MemInfo": UNKNOWN,
    "Box": "instance",
    "WithContext": UNKNOWN,
    "CFunc": "function of C",
    "WrapperAddressProtocol": "function of C",
    "bytearray": "bytearray",
    "array": "array.array",
    "memoryview": "memoryview",
    "bytes": "bytes",
    "List": "typed list",
    "Dict": "typed dictionary",
    "Set": "typed set",
    "StructRefProxy": "structure",
    "OmittedArg": INTERNAL,
    "Dispatcher": "compiled function",
    "LiftedWith": INTERNAL,
    "ObjModeLiftedWith": INTERNAL,
}  # fmt: skip


def test_every_class_that_numba_takes_is_in_a_table() -> None:
    registered = {kind for kind, f in typeof_impl.registry.items() if f.__module__.startswith(("numba.", "tapegrad."))}
    typed = {
        kind
        for name, module in list(sys.modules.items())
        if name.startswith("numba.") and not name.startswith(("numba.cuda", "numba.tests"))
        for kind in vars(module).values()
        if isinstance(kind, type) and "_numba_type_" in vars(kind)
    }
    instances = {kind for kind in typed if kind.__module__.startswith("numba.") and kind.__name__ != "JitClassType"}
    names = {kind.__name__ for kind in registered | set(bufproto._type_map) | instances}
    assert names == set(COVERED)
    assert {*COVERED.values()} <= {*WRITTEN, *UNWRITTEN, UNPACKED, INTERNAL, UNKNOWN}


class Odd:
    _numba_type_ = types.int64


UNKNOWN_CLASSES = (Odd, lambda: (1, Odd()), lambda: [Odd()], lambda: numba.objmode, lambda: List([1.0])._opaque)


@pytest.mark.parametrize("given", UNKNOWN_CLASSES, ids=range(5))
def test_a_class_that_is_not_known_is_refused(given: Callable[[], Any]) -> None:
    with pytest.raises(TypeError, match=r"holds an? \w+, .*pass its numbers and arrays"):
        tg.grad(beside)(X, given())


def squares_after_a_write(x):
    x[0, 1] = 10.0
    return (x * x).sum()


def squares(x):
    return (x * x).sum()


def test_writing_into_a_read_only_point_is_refused_as_in_the_plain_call() -> None:
    x = np.ones((2, 2))
    x.flags.writeable = False
    with pytest.raises(tg.CompileError, match="readonly"):
        tg.grad(numba.njit(squares_after_a_write))(x)
    np.testing.assert_array_equal(tg.grad(numba.njit(squares))(x), 2.0 * x)


def test_a_generator_advances_as_in_the_plain_call() -> None:
    @numba.njit
    def noisy(x, rng):
        return x[0] * rng.random()

    ours, plain = np.random.default_rng(0), np.random.default_rng(0)
    gradients = [tg.grad(noisy)(X, ours)[0] for _ in range(2)]
    assert gradients == [noisy(np.ones(1), plain) for _ in range(2)]
    assert math.isclose(ours.random(), plain.random())
