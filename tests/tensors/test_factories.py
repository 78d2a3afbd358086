"""Making tensors: values, dtypes, sharing of memory, and refusals."""

import os

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from many_cases import each

import tapegrad as tg

CANNOT_TRACK = "Only Tensors of floating point and complex dtype can require gradients"

# From data


@each(
    ("data", "dtype"),
    [
        (1.5, tg.float64),
        (2, tg.int64),
        (True, tg.bool),
        ([1, 2.5], tg.float64),
        ([True, 2], tg.int64),
        ([], tg.float64),
        (np.float64(1.5), tg.float64),
        (np.float32(1.5), tg.float32),
        ([np.float32(1.5), 2], tg.float32),
        (np.zeros(2, np.float32), tg.float32),
        (np.zeros(2, np.uint8), tg.uint8),
        (range(3), tg.int64),
    ],
)
def test_dtype_follows_from_the_data(data, dtype):
    assert tg.tensor(data).dtype == dtype


@each(
    ("data", "shape"),
    [(1.5, ()), ([1.5], (1,)), ([[1, 2, 3], (4, 5, 6)], (2, 3)), ([[], []], (2, 0)), ([np.zeros(2)] * 3, (3, 2))],
)
def test_shape_follows_from_the_nesting(data, shape):
    assert tuple(tg.tensor(data).shape) == shape


def test_values_are_those_of_the_data():
    assert tg.tensor([[1, -2], [3, 4]]).tolist() == [[1, -2], [3, 4]]


def test_scalar_tensors_inside_lists_are_numbers():
    assert tg.tensor([tg.tensor(1.0), 2.0, tg.tensor([3.0])]).tolist() == [1.0, 2.0, 3.0]


def test_a_dtype_converts():
    assert tg.tensor([1.7, -1.7], dtype=tg.int64).tolist() == [1, -1]


def test_tensor_copies_arrays():
    array = np.zeros(2)
    made = tg.tensor(array)
    array[0] = 1.0
    assert made.tolist() == [0.0, 0.0]


def test_tensor_copies_tensors():
    first = tg.zeros(2)
    second = tg.tensor(first)
    first.add_(1.0)
    assert second.tolist() == [0.0, 0.0]


def test_tensor_of_a_tracked_tensor_is_untracked():
    with pytest.warns(UserWarning, match="clone"):
        assert not tg.tensor(tg.ones(2, requires_grad=True)).requires_grad


def test_a_folder_whose_name_begins_like_the_packages_is_the_callers():
    place = os.path.dirname(tg.__file__) + "_models/model.py"
    with pytest.warns(UserWarning, match="requires_grad=True") as caught:
        exec(compile("float(t)", place, "exec"), {"t": tg.tensor(2.0, requires_grad=True)})
    assert caught[0].filename == place


@each(
    "make",
    [
        lambda t: tg.tensor([t, 1.0]),
        lambda t: tg.as_tensor([[t], [1.0]]),
        lambda t: tg.linspace(0.0, t, 3),
        lambda t: tg.arange(t),
    ],
    ids=["list", "nested list", "linspace", "arange"],
)
def test_numbers_taken_from_tracked_tensors_warn(make):
    with pytest.warns(UserWarning, match="requires_grad=True"):
        assert not make(tg.tensor(2.0, requires_grad=True)).requires_grad


def test_numbers_taken_from_tracked_tensors_under_no_grad_do_not_warn():
    with tg.no_grad():
        assert tg.tensor([tg.tensor(2.0, requires_grad=True)]).tolist() == [2.0]


def test_the_warning_names_the_callers_line():
    with pytest.warns(UserWarning, match="requires_grad=True") as caught:
        tg.as_tensor([tg.tensor(2.0, requires_grad=True)])
    assert caught[0].filename == __file__


def test_foreign_byte_order_is_converted():
    assert tg.tensor(np.array([1.0, 2.0], ">f8")).tolist() == [1.0, 2.0]


def test_float_data_beyond_float32_is_infinite():
    assert tg.tensor([1e300, -1e300], dtype=tg.float32).tolist() == [np.inf, -np.inf]


@each(
    ("data", "message"),
    [
        ([[1, 2], [3]], r"expected sequence of length 2 at dim 1 \(got 1\)"),
        ([[[1], [2]], [[3], [4, 5]]], r"expected sequence of length 1 at dim 2 \(got 2\)"),
        ([[], [1]], r"expected sequence of length 0 at dim 1 \(got 1\)"),
        (["a"], "too many dimensions 'str'"),
        ([tg.zeros(2), tg.zeros(2)], "only one element tensors can be converted"),
        (2**63, "Overflow when unpacking long long"),
        ([2**70], "Overflow when unpacking long long"),
    ],
)
def test_data_with_wrong_values(data, message):
    with pytest.raises(ValueError, match=message):
        tg.tensor(data)


def test_a_list_inside_itself_is_refused():
    endless: list = []
    endless.append(endless)
    with pytest.raises(ValueError, match="too many dimensions"):
        tg.tensor(endless)


@each(
    ("data", "message"),
    [
        ("abc", "invalid data type 'str'"),
        ([1, "a"], "invalid data type 'str'"),
        ([[1, 2], 3], "not a sequence"),
        ([1, [2, 3]], "cannot be interpreted"),
        (1j, "complex numbers are not supported"),
        (np.array(["a"]), "can't convert np.ndarray of type numpy.str_"),
        (np.array([None]), "can't convert np.ndarray of type numpy.object_"),
        (np.array([1j]), "can't convert np.ndarray of type numpy.complex128"),
        (np.array([1], np.uint32), "can't convert np.ndarray of type numpy.uint32"),
    ],
)
def test_data_of_a_wrong_type(data, message):
    with pytest.raises(TypeError, match=message):
        tg.tensor(data)


@each("data", [None, [1.0, None], {}, {1}, object()])
def test_data_that_is_no_number(data):
    with pytest.raises(RuntimeError, match="Could not infer dtype of"):
        tg.tensor(data)


@each(("data", "dtype"), [(300, tg.uint8), (-1, tg.uint8), ([float("nan")], tg.int64), (float("inf"), tg.int32)])
def test_values_that_the_dtype_cannot_hold(data, dtype):
    with pytest.raises(RuntimeError, match=r"value cannot be converted to type u?int\d+ without overflow"):
        tg.tensor(data, dtype=dtype)


@given(st.recursive(st.floats(allow_nan=False), lambda inner: st.lists(inner, max_size=4), max_leaves=30))
def test_nested_lists_are_read_like_numpy_reads_them_or_refused(data):
    try:
        expected = np.array(data, dtype=float)
    except ValueError:
        with pytest.raises((ValueError, TypeError)):
            tg.tensor(data)
    else:
        np.testing.assert_array_equal(tg.tensor(data).numpy(), expected)


# Sharing


def test_from_numpy_shares_memory():
    array = np.zeros(2)
    made = tg.from_numpy(array)
    array[0] = 1.0
    made[1] = 2.0
    assert made.tolist() == array.tolist() == [1.0, 2.0]


def test_from_numpy_shares_memory_of_an_array_without_dimensions():
    array = np.array(1.0)
    made = tg.from_numpy(array)
    array[()] = 2.0
    assert made.item() == 2.0


def test_shapes_are_of_a_class_that_the_package_names():
    assert isinstance(tg.ones(2, 3).shape, tg.Size) and tg.Size([2, 3]).numel() == 6


def test_a_tracked_tensor_shares_its_memory_where_nothing_is_recorded():
    x = tg.tensor([1.0, 2.0], requires_grad=True)
    with tg.no_grad():
        assert np.shares_memory(x.numpy(), (x * 1.0).numpy()) is False
        assert np.shares_memory(x.numpy(), np.asarray(x)) and np.shares_memory(x.numpy(), x.detach().numpy())
    with pytest.raises(RuntimeError, match="requires grad"):
        x.numpy()


def test_from_numpy_takes_arrays_only():
    with pytest.raises(TypeError, match=r"expected np.ndarray \(got list\)"):
        tg.from_numpy([1.0])


def test_from_numpy_refuses_foreign_byte_order():
    with pytest.raises(ValueError, match="byte order different from the native"):
        tg.from_numpy(np.zeros(2, ">f8"))


def test_as_tensor_shares_memory_with_arrays():
    array = np.zeros(2)
    made = tg.as_tensor(array)
    array[0] = 1.0
    assert made.tolist() == [1.0, 0.0]


def test_as_tensor_copies_for_another_dtype():
    array = np.zeros(2)
    made = tg.as_tensor(array, dtype=tg.float32)
    array[0] = 1.0
    assert made.tolist() == [0.0, 0.0]


def test_as_tensor_returns_tensors_themselves():
    made = tg.ones(2, requires_grad=True)
    assert tg.as_tensor(made) is made


def test_as_tensor_converts_differentiably():
    x = tg.ones(2, requires_grad=True)
    tg.as_tensor(x, dtype=tg.float32).sum().backward()
    assert x.grad.dtype == tg.float64


# Filled


@each("sizes", [(2, 3), ((2, 3),), ([2, 3],), (np.int64(2), 3)])
@each("factory", [tg.zeros, tg.ones, tg.empty, tg.rand, tg.randn])
def test_sizes_are_several_integers_or_one_sequence(factory, sizes):
    assert tuple(factory(*sizes).shape) == (2, 3)


@each("factory", [tg.zeros, tg.ones, tg.empty, tg.rand, tg.randn])
def test_an_empty_sequence_of_sizes_makes_a_tensor_without_dimensions(factory):
    assert tuple(factory(()).shape) == ()


@each("size", [2.5, "a", None, True, (2, 2.5)])
@each("factory", [tg.zeros, tg.rand])
def test_sizes_must_be_integers(factory, size):
    with pytest.raises(TypeError, match="must be tuple of ints"):
        factory(size)


def test_a_size_is_needed():
    with pytest.raises(TypeError, match="missing 1 required positional argument"):
        tg.zeros()


@each("factory", [tg.zeros, tg.ones, tg.empty, tg.rand, tg.randn, tg.randperm])
def test_sizes_must_not_be_negative(factory):
    with pytest.raises(RuntimeError, match="negative dimension -1"):
        factory(-1)


def test_zeros_and_ones():
    assert (tg.zeros(2).tolist(), tg.ones(2).tolist()) == ([0.0, 0.0], [1.0, 1.0])


@each(("value", "dtype"), [(3, tg.int64), (3.0, tg.float64), (True, tg.bool)])
def test_full_takes_the_dtype_of_the_value(value, dtype):
    made = tg.full((2,), value)
    assert (made.tolist(), made.dtype) == ([value, value], dtype)


@each(("size", "value"), [(2, 3), ((2,), "a"), ((2,), [1, 2])])
def test_full_refuses(size, value):
    with pytest.raises(TypeError):
        tg.full(size, value)


@each("make", [lambda t: tg.full((2,), t), lambda t: tg.full_like(tg.ones(2), t)], ids=["full", "full_like"])
def test_full_refuses_a_tracked_value(make):
    with pytest.raises(TypeError, match="requires grad"):
        make(tg.tensor(2.0, requires_grad=True))


LIKE = [tg.zeros_like, tg.ones_like, tg.empty_like, tg.rand_like, tg.randn_like]


@each("factory", LIKE)
def test_like_takes_shape_and_dtype(factory):
    made = factory(tg.zeros(2, 3, dtype=tg.float32))
    assert (tuple(made.shape), made.dtype) == ((2, 3), tg.float32)


@each("factory", LIKE)
def test_like_takes_another_dtype(factory):
    assert factory(tg.zeros(2, dtype=tg.int64), dtype=tg.float64).dtype == tg.float64


@each("factory", LIKE)
def test_like_is_untracked_unless_asked_for(factory):
    assert not factory(tg.zeros(2, requires_grad=True)).requires_grad


@each("factory", LIKE)
def test_like_needs_a_tensor(factory):
    with pytest.raises(TypeError, match="must be Tensor, not list"):
        factory([1.0])


def test_full_like():
    assert tg.full_like(tg.zeros(2, dtype=tg.int64), 7).tolist() == [7, 7]


# Tracking

TRACKABLE = {
    "tensor": lambda **kw: tg.tensor([1.0], **kw),
    "zeros": lambda **kw: tg.zeros(2, **kw),
    "ones": lambda **kw: tg.ones(2, **kw),
    "empty": lambda **kw: tg.empty(2, **kw),
    "full": lambda **kw: tg.full((2,), 1.0, **kw),
    "eye": lambda **kw: tg.eye(2, **kw),
    "arange": lambda **kw: tg.arange(2.0, **kw),
    "linspace": lambda **kw: tg.linspace(0, 1, 3, **kw),
    "rand": lambda **kw: tg.rand(2, **kw),
    "randn": lambda **kw: tg.randn(2, **kw),
    "normal": lambda **kw: tg.normal(0.0, 1.0, (2,), **kw),
    "zeros_like": lambda **kw: tg.zeros_like(tg.ones(2), **kw),
    "rand_like": lambda **kw: tg.rand_like(tg.ones(2), **kw),
}


@each("make", TRACKABLE.values(), ids=TRACKABLE)
def test_requires_grad_makes_a_leaf(make):
    made = make(requires_grad=True)
    assert (made.requires_grad, made.is_leaf) == (True, True)


@each("make", TRACKABLE.values(), ids=TRACKABLE)
def test_untracked_by_default(make):
    assert not make().requires_grad


def test_requires_grad_holds_under_no_grad():
    with tg.no_grad():
        assert tg.zeros(2, requires_grad=True).requires_grad


@each(
    "make",
    [
        lambda: tg.tensor([1], requires_grad=True),
        lambda: tg.tensor(True, requires_grad=True),
        lambda: tg.zeros(2, dtype=tg.int64, requires_grad=True),
        lambda: tg.arange(3, requires_grad=True),
        lambda: tg.randint(3, (2,), requires_grad=True),
        lambda: tg.zeros_like(tg.tensor([1]), requires_grad=True),
        lambda: tg.Variable(tg.tensor([1]), requires_grad=True),
    ],
)
def test_integers_and_bools_cannot_be_tracked(make):
    with pytest.raises(RuntimeError, match=CANNOT_TRACK):
        make()


def test_requires_grad_must_be_a_bool():
    with pytest.raises(TypeError, match="'requires_grad' must be bool, not str"):
        tg.tensor([1.0], requires_grad="yes")


# PyTorch's older names


@each(
    ("factory", "dtype"),
    [(tg.FloatTensor, tg.float32), (tg.DoubleTensor, tg.float64), (tg.LongTensor, tg.int64)],
)
def test_typed_tensors_from_data(factory, dtype):
    made = factory([[1, 2]])
    assert (made.tolist(), made.dtype) == ([[1, 2]], dtype)


def test_typed_tensors_of_a_size():
    assert tuple(tg.FloatTensor(2, 3).shape) == (2, 3)


def test_typed_tensors_of_nothing():
    assert tuple(tg.FloatTensor().shape) == (0,)


def test_typed_tensors_need_a_sequence():
    with pytest.raises(TypeError, match=r"data must be a sequence \(got float\)"):
        tg.FloatTensor(1.5)


def test_variable_is_a_new_leaf():
    source = tg.ones(2, requires_grad=True) * 2.0
    made = tg.Variable(source, requires_grad=True)
    assert made is not source
    assert (made.is_leaf, made.requires_grad, made.grad_fn) == (True, True, None)


def test_variable_is_untracked_by_default():
    assert not tg.Variable(tg.ones(2, requires_grad=True)).requires_grad


def test_variable_shares_memory():
    source = tg.zeros(2)
    made = tg.Variable(source)
    source.add_(1.0)
    assert made.tolist() == [1.0, 1.0]


def test_variable_needs_a_tensor():
    with pytest.raises(TypeError, match="Variable data has to be a tensor, but got list"):
        tg.Variable([1.0])


@each("made", [lambda: tg.tensor(np.float64(1.5)), lambda: tg.tensor([np.float64(1.5), 2]), lambda: tg.as_tensor(np.float64(1.5))])
def test_a_number_of_numpy_keeps_its_dtype_whatever_the_default(made):
    before = tg.get_default_dtype()
    tg.set_default_dtype(tg.float32)
    try:
        assert made().dtype == tg.float64
    finally:
        tg.set_default_dtype(before)
