"""Making tensors: values, dtypes, sharing of memory, and refusals."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tapegrad as tg

CANNOT_TRACK = "Only Tensors of floating point and complex dtype can require gradients"

# From data


@pytest.mark.parametrize(
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


@pytest.mark.parametrize(
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
    assert not tg.tensor(tg.ones(2, requires_grad=True)).requires_grad


def test_foreign_byte_order_is_converted():
    assert tg.tensor(np.array([1.0, 2.0], ">f8")).tolist() == [1.0, 2.0]


def test_float_data_beyond_float32_is_infinite():
    assert tg.tensor([1e300, -1e300], dtype=tg.float32).tolist() == [np.inf, -np.inf]


@pytest.mark.parametrize(
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


@pytest.mark.parametrize(
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


@pytest.mark.parametrize("data", [None, [1.0, None], {}, {1}, object()])
def test_data_that_is_no_number(data):
    with pytest.raises(RuntimeError, match="Could not infer dtype of"):
        tg.tensor(data)


@pytest.mark.parametrize(
    ("data", "dtype"), [(300, tg.uint8), (-1, tg.uint8), ([float("nan")], tg.int64), (float("inf"), tg.int32)]
)
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


@pytest.mark.parametrize("sizes", [(2, 3), ((2, 3),), ([2, 3],), (np.int64(2), 3)])
@pytest.mark.parametrize("factory", [tg.zeros, tg.ones, tg.empty, tg.rand, tg.randn])
def test_sizes_are_several_integers_or_one_sequence(factory, sizes):
    assert tuple(factory(*sizes).shape) == (2, 3)


@pytest.mark.parametrize("factory", [tg.zeros, tg.ones, tg.empty, tg.rand, tg.randn])
def test_an_empty_sequence_of_sizes_makes_a_tensor_without_dimensions(factory):
    assert tuple(factory(()).shape) == ()


@pytest.mark.parametrize("size", [2.5, "a", None, True, (2, 2.5)])
@pytest.mark.parametrize("factory", [tg.zeros, tg.rand])
def test_sizes_must_be_integers(factory, size):
    with pytest.raises(TypeError, match="must be tuple of ints"):
        factory(size)


def test_a_size_is_needed():
    with pytest.raises(TypeError, match="missing 1 required positional argument"):
        tg.zeros()


@pytest.mark.parametrize("factory", [tg.zeros, tg.ones, tg.empty, tg.rand, tg.randn, tg.randperm])
def test_sizes_must_not_be_negative(factory):
    with pytest.raises(RuntimeError, match="negative dimension -1"):
        factory(-1)


def test_zeros_and_ones():
    assert (tg.zeros(2).tolist(), tg.ones(2).tolist()) == ([0.0, 0.0], [1.0, 1.0])


@pytest.mark.parametrize(("value", "dtype"), [(3, tg.int64), (3.0, tg.float64), (True, tg.bool)])
def test_full_takes_the_dtype_of_the_value(value, dtype):
    made = tg.full((2,), value)
    assert (made.tolist(), made.dtype) == ([value, value], dtype)


@pytest.mark.parametrize(("size", "value"), [(2, 3), ((2,), "a"), ((2,), [1, 2])])
def test_full_refuses(size, value):
    with pytest.raises(TypeError):
        tg.full(size, value)


def test_eye():
    assert tg.eye(2, 3).tolist() == [[1.0, 0.0, 0.0], [0.0, 1.0, 0.0]]


def test_eye_refuses_negative_lengths():
    with pytest.raises(RuntimeError, match="n must be greater or equal to 0, got -1"):
        tg.eye(-1)


LIKE = [tg.zeros_like, tg.ones_like, tg.empty_like, tg.rand_like, tg.randn_like]


@pytest.mark.parametrize("factory", LIKE)
def test_like_takes_shape_and_dtype(factory):
    made = factory(tg.zeros(2, 3, dtype=tg.float32))
    assert (tuple(made.shape), made.dtype) == ((2, 3), tg.float32)


@pytest.mark.parametrize("factory", LIKE)
def test_like_takes_another_dtype(factory):
    assert factory(tg.zeros(2, dtype=tg.int64), dtype=tg.float64).dtype == tg.float64


@pytest.mark.parametrize("factory", LIKE)
def test_like_is_untracked_unless_asked_for(factory):
    assert not factory(tg.zeros(2, requires_grad=True)).requires_grad


@pytest.mark.parametrize("factory", LIKE)
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


@pytest.mark.parametrize("make", TRACKABLE.values(), ids=TRACKABLE)
def test_requires_grad_makes_a_leaf(make):
    made = make(requires_grad=True)
    assert (made.requires_grad, made.is_leaf) == (True, True)


@pytest.mark.parametrize("make", TRACKABLE.values(), ids=TRACKABLE)
def test_untracked_by_default(make):
    assert not make().requires_grad


def test_requires_grad_holds_under_no_grad():
    with tg.no_grad():
        assert tg.zeros(2, requires_grad=True).requires_grad


@pytest.mark.parametrize(
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


# Ranges


@pytest.mark.parametrize(
    ("arguments", "values"),
    [
        ((3,), [0, 1, 2]),
        ((1, 4), [1, 2, 3]),
        ((5, 0, -2), [5, 3, 1]),
        ((0,), []),
        ((1.5,), [0.0, 1.0]),
        ((0, 1, 0.25), [0.0, 0.25, 0.5, 0.75]),
    ],
)
def test_arange(arguments, values):
    assert tg.arange(*arguments).tolist() == values


def test_arange_is_of_integers_only_if_all_arguments_are():
    assert (tg.arange(3).dtype, tg.arange(3.0).dtype, tg.arange(0, 3, 0.5).dtype) == (
        tg.int64,
        tg.float64,
        tg.float64,
    )


def test_arange_of_large_integers_is_exact():
    assert tg.arange(2**60, 2**60 + 2).tolist() == [2**60, 2**60 + 1]


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ((0, 5, 0), "step must be nonzero"),
        ((5, 0), "upper bound and lower bound inconsistent with step sign"),
        ((0, 5, -1), "upper bound and lower bound inconsistent with step sign"),
        ((float("nan"),), "unsupported range"),
        ((float("inf"),), "unsupported range"),
    ],
)
def test_arange_refuses(arguments, message):
    with pytest.raises(RuntimeError, match=message):
        tg.arange(*arguments)


@pytest.mark.parametrize(
    ("arguments", "values"),
    [((0, 1, 5), [0.0, 0.25, 0.5, 0.75, 1.0]), ((3, 9, 1), [3.0]), ((3, 9, 0), []), ((1, -1, 3), [1.0, 0.0, -1.0])],
)
def test_linspace(arguments, values):
    assert tg.linspace(*arguments).tolist() == values


@given(st.floats(-1e6, 1e6), st.floats(-1e6, 1e6), st.integers(2, 50))
def test_linspace_has_exact_ends_and_is_symmetric(start, end, steps):
    there, back = tg.linspace(start, end, steps).numpy(), tg.linspace(end, start, steps).numpy()
    assert (there[0], there[-1]) == (start, end)
    np.testing.assert_allclose(there, back[::-1], rtol=0, atol=4e-10)


def test_linspace_refuses_a_negative_number_of_steps():
    with pytest.raises(RuntimeError, match="number of steps"):
        tg.linspace(0, 1, -1)


# Random numbers


def test_the_same_seed_gives_the_same_numbers():
    tg.manual_seed(3)
    first = tg.randn(5)
    tg.manual_seed(3)
    assert tg.randn(5).tolist() == first.tolist()


def test_another_seed_gives_other_numbers():
    tg.manual_seed(3)
    first = tg.randn(5)
    tg.manual_seed(4)
    assert tg.randn(5).tolist() != first.tolist()


def test_negative_seeds_are_accepted():
    tg.manual_seed(-1)


@pytest.mark.parametrize("seed", [2**64, -(2**63) - 1])
def test_seeds_beyond_64_bits_are_refused(seed):
    with pytest.raises(ValueError, match="does not fit in 64 bits"):
        tg.manual_seed(seed)


@pytest.mark.parametrize("dtype", [tg.float16, tg.float32, tg.float64])
def test_rand_is_uniform_in_the_half_open_unit_interval(dtype):
    made = tg.rand(100_000, dtype=dtype)
    values = made.numpy().astype(float)
    assert made.dtype == dtype
    assert values.min() >= 0.0
    assert values.max() < 1.0
    assert abs(values.mean() - 0.5) < 0.01
    assert abs(values.var() - 1 / 12) < 0.005


@pytest.mark.parametrize("dtype", [tg.float16, tg.float32, tg.float64])
def test_randn_is_normal(dtype):
    made = tg.randn(100_000, dtype=dtype)
    values = made.numpy().astype(float)
    assert made.dtype == dtype
    assert abs(values.mean()) < 0.02
    assert abs(values.var() - 1.0) < 0.03


@pytest.mark.parametrize("factory", [tg.rand, tg.randn])
def test_continuous_numbers_need_a_floating_dtype(factory):
    with pytest.raises(NotImplementedError, match="not implemented for 'Long'"):
        factory(2, dtype=tg.int64)


def test_randint_covers_its_interval():
    assert set(tg.randint(-1, 2, (1000,)).tolist()) == {-1, 0, 1}


def test_randint_starts_at_zero_if_one_bound_is_given():
    assert set(tg.randint(2, (1000,)).tolist()) == {0, 1}


def test_randint_takes_size_by_name():
    assert tuple(tg.randint(5, size=(2, 3)).shape) == (2, 3)


def test_randint_like():
    made = tg.randint_like(tg.zeros(2, 3), 4, 5)
    assert (made.tolist(), made.dtype) == ([[4.0] * 3] * 2, tg.float64)


@pytest.mark.parametrize("bounds", [(5, 5), (0,), (3, 1)])
def test_randint_refuses_empty_intervals(bounds):
    with pytest.raises(RuntimeError, match="expects 'from' to be less than 'to'"):
        tg.randint(*bounds, (2,))


def test_randint_refuses_bounds_beyond_the_dtype():
    with pytest.raises(RuntimeError, match="out of bounds for uint8"):
        tg.randint(0, 300, (2,), dtype=tg.uint8)


def test_randperm_is_a_permutation():
    assert sorted(tg.randperm(50).tolist()) == list(range(50))


def test_normal_of_numbers():
    values = tg.normal(2.0, 3.0, (100_000,)).numpy()
    assert abs(values.mean() - 2.0) < 0.05
    assert abs(values.std() - 3.0) < 0.05


def test_normal_of_tensors_broadcasts():
    made = tg.normal(tg.tensor([[1.0], [2.0]]), tg.tensor([0.0, 0.0]))
    assert made.tolist() == [[1.0, 1.0], [2.0, 2.0]]


def test_normal_refuses_negative_deviations():
    with pytest.raises(RuntimeError, match=r"normal expects std >= 0.0, but found std -1"):
        tg.normal(0.0, -1.0, (2,))


def test_normal_refuses_shapes_that_do_not_broadcast():
    with pytest.raises(RuntimeError, match="must match or broadcast"):
        tg.normal(tg.zeros(2), tg.ones(3))


# PyTorch's older names


@pytest.mark.parametrize(
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
