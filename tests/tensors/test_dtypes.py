"""Element types, the default one, and promotion."""

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.arrays.dtypes import as_dtype, type_name


@pytest.mark.parametrize("name", ["float16", "float32", "float64", "int8", "int16", "int32", "int64", "uint8", "bool"])
def test_dtypes_are_numpys_own(name):
    assert getattr(tg, name) == np.dtype(name)


@pytest.mark.parametrize(
    ("alias", "dtype"),
    [
        ("half", np.float16),
        ("float", np.float32),
        ("double", np.float64),
        ("short", np.int16),
        ("int", np.int32),
        ("long", np.int64),
    ],
)
def test_pytorchs_aliases(alias, dtype):
    assert getattr(tg, alias) == dtype


def test_default_dtype_is_float64():
    assert tg.get_default_dtype() == tg.float64


@pytest.mark.usefixtures("default_float32")
def test_default_dtype_decides_python_floats():
    assert tg.tensor(1.5).dtype == tg.float32


@pytest.mark.usefixtures("default_float32")
def test_default_dtype_decides_factories():
    assert tg.zeros(2).dtype == tg.float32


@pytest.mark.usefixtures("default_float32")
def test_default_dtype_leaves_arrays_alone():
    assert tg.tensor(np.ones(2)).dtype == tg.float64


@pytest.mark.parametrize("dtype", [tg.int64, tg.float16, tg.bool])
def test_default_dtype_must_be_a_float_of_32_or_64_bits(dtype):
    with pytest.raises(TypeError, match="only floating-point types are supported as the default type"):
        tg.set_default_dtype(dtype)


def test_a_refused_default_dtype_changes_nothing():
    with pytest.raises(TypeError):
        tg.set_default_dtype("float32")
    assert tg.get_default_dtype() == tg.float64


@pytest.mark.parametrize(("given", "dtype"), [(float, "float64"), (int, "int64"), (bool, "bool"), (np.float32, "float32")])
def test_types_name_dtypes(given, dtype):
    assert as_dtype(given) == np.dtype(dtype)


def test_foreign_byte_order_is_read_as_native():
    assert as_dtype(np.dtype(">f8")).isnative


@pytest.mark.parametrize("given", ["float32", 3, None, [np.float32]])
def test_what_names_no_dtype_is_refused(given):
    with pytest.raises(TypeError, match="dtype must be a NumPy dtype"):
        as_dtype(given)


@pytest.mark.parametrize("given", [np.complex128, np.uint32, np.longdouble, np.dtype(object), np.dtype("U3")])
def test_unsupported_dtypes_are_refused(given):
    with pytest.raises(TypeError, match=r"is not supported; the supported types are: .*float64"):
        as_dtype(given)


def test_type_names_are_pytorchs():
    assert [type_name(dtype) for dtype in (tg.float32, tg.float64, tg.int64, tg.bool)] == [
        "Float",
        "Double",
        "Long",
        "Bool",
    ]


@pytest.mark.parametrize(
    ("a", "b", "promoted"),
    [
        (tg.bool, tg.uint8, tg.uint8),
        (tg.uint8, tg.int8, tg.int16),
        (tg.int32, tg.int64, tg.int64),
        (tg.int64, tg.float16, tg.float16),
        (tg.int64, tg.float32, tg.float32),
        (tg.float16, tg.float32, tg.float32),
        (tg.float32, tg.float64, tg.float64),
    ],
)
def test_promotion_of_types_is_symmetric(a, b, promoted):
    assert tg.promote_types(a, b) == tg.promote_types(b, a) == promoted


VECTOR, SCALAR = (2,), ()


@pytest.mark.parametrize(
    ("operands", "dtype"),
    [
        # A tensor with dimensions outranks a 0-d one, and that a number, within a kind ...
        ([("float32", VECTOR), ("float64", SCALAR)], tg.float32),
        ([("float32", VECTOR), 2.5], tg.float32),
        ([("float32", SCALAR), 2.5], tg.float32),
        ([("int8", VECTOR), ("int64", SCALAR)], tg.int8),
        ([("int8", VECTOR), 1000], tg.int8),
        # ... and not across kinds.
        ([("int64", VECTOR), ("float32", SCALAR)], tg.float32),
        ([("int64", VECTOR), 2.5], tg.float64),
        ([("bool", VECTOR), 2], tg.int64),
        ([("bool", VECTOR), True], tg.bool),
        # Equals promote.
        ([("float32", VECTOR), ("float64", VECTOR)], tg.float64),
        ([("float32", SCALAR), ("float64", SCALAR)], tg.float64),
        ([1, 2.5], tg.float64),
        ([True, 1], tg.int64),
    ],
)
def test_result_type(operands, dtype):
    given = [tg.zeros(op[1], dtype=getattr(tg, op[0])) if isinstance(op, tuple) else op for op in operands]
    assert tg.result_type(*given) == tg.result_type(*reversed(given)) == dtype


@pytest.mark.usefixtures("default_float32")
def test_result_type_of_integers_and_a_python_float_is_the_default():
    assert tg.result_type(tg.ones(2, dtype=tg.int64), 2.5) == tg.float32


def test_result_type_refuses_text():
    with pytest.raises(TypeError, match="not str"):
        tg.result_type(tg.ones(2), "a")


@pytest.mark.parametrize(
    ("source", "target", "allowed"),
    [
        (tg.float64, tg.float32, True),
        (tg.int64, tg.uint8, True),
        (tg.int64, tg.float16, True),
        (tg.float32, tg.int64, False),
        (tg.int64, tg.bool, False),
    ],
)
def test_can_cast_never_to_a_lower_kind(source, target, allowed):
    assert tg.can_cast(source, target) is allowed
