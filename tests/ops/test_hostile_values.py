"""NaN, infinities, subnormal numbers and signed zeros in every kind of row, and dtypes that tensors cannot have."""

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
from engine_fixtures import leaf, numbers
from many_cases import each

import tapegrad as tg

SPECIAL = {
    np.float64: [0.0, -0.0, np.nan, np.inf, -np.inf, 5e-324, -5e-324, 2e-308, 1e308, -1e308, 1.0, -1.0],
    np.float32: [0.0, -0.0, np.nan, np.inf, -np.inf, 1e-45, -1e-45, 1e-38, 3e38, -3e38, 1.0, -1.0],
}
REPEATS = {"small": 1, "large": 250}  # 3000 elements take other ways than 12
every_size = each("size", REPEATS)
every_dtype = each("dtype", SPECIAL)


def special(dtype: Any, size: str = "small") -> np.ndarray:
    return np.tile(np.array(SPECIAL[dtype], dtype), REPEATS[size])


def assert_same(got: Any, expected: Any) -> None:
    """Equal, with nan where nan is, and zeros of the same sign."""
    got, expected = np.asarray(got), np.asarray(expected)
    assert got.dtype == expected.dtype
    np.testing.assert_array_equal(got, expected)
    zero = expected == 0
    np.testing.assert_array_equal(np.signbit(got[zero]), np.signbit(expected[zero]))


EXACT: dict[str, tuple[Callable[[tg.Tensor], tg.Tensor], Callable[[np.ndarray], Any]]] = {
    "negative": (lambda t: -t, lambda a: -a),
    "abs": (abs, np.abs),
    "plus zero": (lambda t: t + 0.0, lambda a: a + a.dtype.type(0.0)),
    "plus minus zero": (lambda t: t + (-0.0), lambda a: a + a.dtype.type(-0.0)),
    "zero minus": (lambda t: 0.0 - t, lambda a: a.dtype.type(0.0) - a),
    "times zero": (lambda t: t * 0.0, lambda a: a * a.dtype.type(0.0)),
    "half": (lambda t: t / 2.0, lambda a: a / a.dtype.type(2.0)),
    "square": (lambda t: t * t, lambda a: a * a),
    "reciprocal": (lambda t: 1.0 / t, lambda a: a.dtype.type(1.0) / a),
    "sqrt": (tg.sqrt, np.sqrt),
    "floor": (tg.floor, np.floor),
    "ceil": (tg.ceil, np.ceil),
    "trunc": (tg.trunc, np.trunc),
    "round": (tg.round, np.round),
    "maximum with one": (lambda t: tg.maximum(t, tg.ones_like(t)), lambda a: np.maximum(a, np.ones_like(a))),
    "minimum with one": (lambda t: tg.minimum(t, tg.ones_like(t)), lambda a: np.minimum(a, np.ones_like(a))),
    "where": (lambda t: tg.where(t > 0, t, -t), lambda a: np.where(a > 0, a, -a)),
    "sum": (lambda t: t.reshape(3, -1).sum(0), lambda a: a.reshape(3, -1).sum(0)),
    "sum of one": (lambda t: t.reshape(-1, 1).sum(1), lambda a: a.reshape(-1, 1).sum(1)),
    "cumsum": (lambda t: t.reshape(-1, 2).cumsum(1), lambda a: a.reshape(-1, 2).cumsum(1)),
    "cumprod": (lambda t: t.reshape(-1, 2).cumprod(1), lambda a: a.reshape(-1, 2).cumprod(1)),
    "amax": (lambda t: t.reshape(-1, 2).amax(1), lambda a: a.reshape(-1, 2).max(1)),
    "cat": (lambda t: tg.cat([t, t]), lambda a: np.concatenate([a, a])),
    "stack": (lambda t: tg.stack([t, t], 1), lambda a: np.stack([a, a], 1)),
    "transposed": (lambda t: t.reshape(3, -1).t().contiguous(), lambda a: a.reshape(3, -1).T),
    "expanded": (lambda t: t.expand(2, *t.shape), lambda a: np.stack([a, a])),
    "gather": (lambda t: t[[4, 1, 1, 2]], lambda a: a[[4, 1, 1, 2]]),
    "mask": (lambda t: t[t >= 0], lambda a: a[a >= 0]),
    "clone": (lambda t: t.clone(), lambda a: a),
    "matrix product": (
        lambda t: t.reshape(-1, 1) @ tg.ones(1, 1, dtype=t.dtype),
        lambda a: a.reshape(-1, 1) @ np.ones((1, 1), a.dtype),
    ),
    "copied": (lambda t: tg.zeros_like(t).copy_(t), lambda a: a),
}


@every_dtype
@every_size
@each("name", EXACT)
def test_values_are_numpys_to_the_sign_of_zero(name: str, size: str, dtype: Any) -> None:
    f, reference = EXACT[name]
    data = special(dtype, size)
    with np.errstate(all="ignore"):
        expected = reference(data)
    assert_same(numbers(f(tg.tensor(data, requires_grad=True))), expected)


@each("value", SPECIAL[np.float64])
def test_scalars_keep_what_they_are_given(value: float) -> None:
    x = leaf(value)
    for y in (tg.tensor(value), x.clone(), x + (-0.0), x.reshape(1), tg.stack([x]), x.expand(2)[1], -tg.neg(x)):
        assert_same(numbers(y).reshape(()), np.array(value))


ON_NUMBERS: dict[str, tuple[Callable[[tg.Tensor], tg.Tensor], Callable[[np.ndarray], Any]]] = {
    "sign": (tg.sign, np.sign),
    "clip": (lambda t: tg.clip(t, 0.0, 1.0), lambda a: np.clip(a, 0.0, 1.0)),
}


@each("tracked", [False, True])
@each("name", ON_NUMBERS)
@each("value", SPECIAL[np.float64])
def test_numbers_have_numpys_values_to_the_sign_of_zero(value: float, name: str, tracked: bool) -> None:
    f, reference = ON_NUMBERS[name]
    assert_same(numbers(f(tg.tensor(value, requires_grad=tracked))).reshape(()), reference(np.array(value)))


TINY = 5e-324


@each("create_graph", [False, True])
@each("shape", [(), (3,), (3000,)])
def test_subnormal_gradients_are_not_flushed(shape: tuple[int, ...], create_graph: bool) -> None:
    x = leaf(np.full(shape, 3.0))
    y = x * (4 * TINY)
    (g,) = tg.autograd.grad(y, x, tg.ones_like(y.detach()), create_graph=create_graph)
    assert_same(numbers(g), np.full(shape, 4 * TINY))


def test_subnormal_gradients_of_float32_are_not_flushed() -> None:
    x = leaf([3.0, 5.0], np.float32)
    (x * np.float32(1e-45)).sum().backward()
    assert_same(x.grad.numpy(), np.full(2, 1e-45, np.float32))


def with_zero_winning(bar: np.ndarray, partial: np.ndarray) -> np.ndarray:
    with np.errstate(all="ignore"):
        return np.where((bar == 0) | (partial == 0), 0.0, bar * partial)


# One function for each kind of row, linear in x elementwise, or with a closed partial.
PARTIALS: dict[str, tuple[Callable[[tg.Tensor], tg.Tensor], Callable[[np.ndarray], np.ndarray]]] = {
    "times zero": (lambda x: x * 0.0, np.zeros_like),
    "square": (lambda x: x * x, lambda a: 2 * a),
    "exp": (tg.exp, np.exp),
    "reciprocal": (lambda x: 1.0 / x, lambda a: -(1 / a) * (1 / a)),
    "sqrt": (tg.sqrt, lambda a: 0.5 / np.sqrt(a)),
    "log": (tg.log, lambda a: 1 / a),
    "strided map": (lambda x: (x.reshape(3, -1).t() * 2.0).t().reshape(-1), lambda a: np.full_like(a, 2.0)),
    "cat and split": (lambda x: tg.cat(x.split(4)), np.ones_like),
    "stack": (lambda x: tg.stack([x, x]).sum(0), lambda a: np.full_like(a, 2.0)),
    "gather": (lambda x: x[np.arange(len(x))[::-1].copy()][np.arange(len(x))[::-1].copy()], np.ones_like),
    "mask": (lambda x: x[tg.ones(len(x), dtype=tg.bool)], np.ones_like),
    "where": (lambda x: tg.where(x > 0, x, x * 0.0), lambda a: (a > 0).astype(a.dtype)),
    "in place": (lambda x: (x * 1.0).mul_(3.0), lambda a: np.full_like(a, 3.0)),
    "index assignment": (lambda x: assigned(x), np.ones_like),
}


def assigned(x: tg.Tensor) -> tg.Tensor:
    y = tg.zeros_like(x.detach())
    y[:] = x
    return y


@each("bar", [1.0, 0.0, -0.0, np.inf, np.nan])
@each("name", PARTIALS)
def test_an_exactly_zero_factor_wins_and_all_else_is_arithmetic(name: str, bar: float) -> None:
    f, partial = PARTIALS[name]
    for size in REPEATS:
        data = special(np.float64, size)
        with np.errstate(all="ignore"):
            expected = with_zero_winning(np.full(data.shape, bar), partial(data))
        for create_graph in (False, True):
            x = leaf(data)
            (g,) = tg.autograd.grad(f(x), x, tg.full(data.shape, bar), create_graph=create_graph)
            np.testing.assert_allclose(numbers(g), expected, rtol=1e-14, atol=0.0)


def test_nan_in_one_row_of_a_reduction_stays_in_that_row() -> None:
    x = leaf([[np.nan, 1.0], [2.0, 3.0]])
    ((x * x).sum(1) * tg.tensor([1.0, 2.0])).sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), [[np.nan, 2.0], [8.0, 12.0]])


def test_a_softmax_over_minus_infinity_has_a_finite_gradient() -> None:
    x = leaf([0.0, -np.inf, 0.0])
    y = x.softmax(0)
    y.backward(tg.tensor([1.0, 0.0, 0.0]))
    np.testing.assert_array_equal(numbers(y), [0.5, 0.0, 0.5])
    np.testing.assert_array_equal(x.grad.numpy(), [0.25, 0.0, -0.25])


OVERFLOWING: dict[str, Callable[[tg.Tensor], tg.Tensor]] = {
    "float()": lambda t: t.float(),
    "to(float32)": lambda t: t.to(tg.float32),
    "copy_": lambda t: tg.zeros(2, dtype=tg.float32).copy_(t),
    "index assignment": lambda t: (tg.ones(2, dtype=tg.float32) * t.float().sign()).mul_(np.inf),
    "add_": lambda t: tg.zeros(2, dtype=tg.float32).add_(t),
    "sum of a cast": lambda t: tg.stack([t.float(), t.float()]).amax(0),
}


@each("name", OVERFLOWING)
def test_what_float32_cannot_hold_is_infinite_without_a_warning(name: str) -> None:
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        y = OVERFLOWING[name](leaf([1e308, -1e308]))
    np.testing.assert_array_equal(numbers(y), np.array([np.inf, -np.inf], np.float32))


def test_the_gradient_of_a_running_product_overflows_to_infinity_without_a_warning() -> None:
    x = leaf([1e30, 1e30, 1e30], np.float32)
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        x.cumprod(0).sum().backward()
    assert np.isinf(x.grad.numpy()).any()


# Dtypes

REFUSED: dict[str, np.ndarray] = {
    "complex128": np.ones(2, complex),
    "complex64": np.ones(2, np.complex64),
    "datetime64": np.array(["2020-01-01", "2021-01-01"], "M8[D]"),
    "timedelta64": np.array([1, 2], "m8[s]"),
    "str": np.array(["a", "b"]),
    "bytes": np.array([b"a", b"b"]),
    "void": np.zeros(2, "V4"),
    "structured": np.zeros(2, [("a", "f8"), ("b", "i4")]),
    "record": np.zeros(2, [("a", "f8")]).view(np.recarray),
    "object": np.array([1.0, "a"], object),
    "uint16": np.ones(2, np.uint16),
    "uint64": np.ones(2, np.uint64),
    "longdouble": np.ones(2, np.longdouble),
}


def assign(t: tg.Tensor, key: Any, value: Any) -> None:
    t[key] = value


ARRAY_USES: dict[str, Callable[[np.ndarray], Any]] = {
    "tensor": tg.tensor,
    "as_tensor": tg.as_tensor,
    "from_numpy": tg.from_numpy,
    "x * a": lambda a: leaf([1.0, 2.0]) * a,
    "a - x": lambda a: a - leaf([1.0, 2.0]),
    "a / scalar": lambda a: a / leaf(2.0),
    "x @ a": lambda a: leaf([1.0, 2.0]) @ a,
    "x < a": lambda a: leaf([1.0, 2.0]) < a,
    "sin(a)": tg.sin,
    "atan2(a, x)": lambda a: tg.atan2(a, leaf([1.0, 2.0])),
    "where(a, x, 0)": lambda a: tg.where(a, leaf([1.0, 2.0]), 0.0),
    "where(m, x, a)": lambda a: tg.where(tg.tensor([True, False]), leaf([1.0, 2.0]), a),
    "x.mul_(a)": lambda a: tg.ones(2).mul_(a),
    "copy_": lambda a: tg.ones(2).copy_(a),
    "x[:] = a": lambda a: assign(tg.ones(2), slice(None), a),
    "x[[0, 1]] = a": lambda a: assign(tg.ones(2), [0, 1], a),
}
NUMBER_USES: dict[str, Callable[[Any], Any]] = {
    "tensor": lambda n: tg.tensor([n]),
    "x * n": lambda n: leaf([1.0, 2.0]) * n,
    "n * x": lambda n: n * leaf([1.0, 2.0]),
    "scalar * n": lambda n: leaf(2.0) * n,
    "n - scalar": lambda n: n - leaf(2.0),
    "x < n": lambda n: leaf([1.0, 2.0]) < n,
    "where": lambda n: tg.where(tg.tensor([True, False]), leaf([1.0, 2.0]), n),
    "clamp": lambda n: leaf([1.0, 2.0]).clamp(n, n),
    "mul_": lambda n: tg.ones(2).mul_(n),
    "fill_": lambda n: tg.ones(2).fill_(n),
    "x[0] = n": lambda n: assign(tg.ones(2), 0, n),
    "masked_fill": lambda n: leaf([1.0, 2.0]).masked_fill(tg.tensor([True, False]), n),
    "full": lambda n: tg.full((2,), n),
}


@each("use", ARRAY_USES)
@each("name", REFUSED)
def test_an_array_of_a_foreign_dtype_is_refused_by_name(name: str, use: str) -> None:
    with pytest.raises(TypeError, match=REFUSED[name].dtype.type.__name__):
        ARRAY_USES[use](REFUSED[name])


@each("use", NUMBER_USES)
@each("name", [name for name in REFUSED if name != "object"])
def test_a_numpy_number_of_a_foreign_dtype_is_refused_by_name(name: str, use: str) -> None:
    number = REFUSED[name][0]
    with pytest.raises((TypeError, ValueError), match=f"{type(number).__name__}|{REFUSED[name].dtype.name}"):
        NUMBER_USES[use](number)


@each("name", [name for name in REFUSED if not name.startswith("uint")])
def test_an_index_of_a_foreign_dtype_is_refused_by_name(name: str) -> None:
    with pytest.raises(IndexError, match="indices.*got"):
        leaf([1.0, 2.0])[REFUSED[name]]


@each("dtype", [np.uint16, np.uint32, np.uint64, np.longlong, np.int8])
def test_numpys_other_integers_index(dtype: Any) -> None:
    x = leaf([1.0, 2.0, 3.0])
    x[np.array([2, 2, 0], dtype)].sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), [1.0, 0.0, 2.0])


def test_an_index_beyond_int64_is_not_wrapped_round() -> None:
    with pytest.raises(IndexError, match="18446744073709551615 is out of bounds"):
        leaf([1.0, 2.0])[np.array([2**64 - 1], np.uint64)]


def test_half_precision_is_computed_and_refused_where_it_would_be_tracked() -> None:
    assert_same((tg.tensor(np.array([1.5], np.float16)) * 2.0).numpy(), np.array([3.0], np.float16))
    with pytest.raises(RuntimeError, match="float16|Half"):
        tg.tensor(np.array([1.5], np.float16), requires_grad=True) * 2.0


@each("name", ["gather", "index_select", "masked_fill", "masked_select"])
def test_places_and_masks_that_are_no_tensors_are_refused_by_name(name: str) -> None:
    x = leaf([1.0, 2.0])
    arguments = {
        "gather": (0, np.array([0])),
        "index_select": (0, np.array([0])),
        "masked_fill": (np.array([True, False]), 0.0),
        "masked_select": (np.array([True, False]),),
    }
    with pytest.raises(TypeError, match="must be Tensor, not ndarray"):
        getattr(x, name)(*arguments[name])


@each("write", [lambda t, n: t.fill_(n), lambda t, n: assign(t, 0, n), lambda t, n: assign(t, [0], n)])
@each(("dtype", "number"), [("int64", 2**70), ("int8", 300), ("uint8", -1), ("int64", np.nan), ("int32", np.inf)])
def test_a_number_that_an_integer_dtype_cannot_hold_is_not_wrapped_round(write: Any, dtype: str, number: Any) -> None:
    t = tg.zeros(2, dtype=np.dtype(dtype))
    with pytest.raises((RuntimeError, ValueError), match="(?i)overflow"):
        write(t, number)
    assert t.tolist() == [0, 0]


def test_an_integer_beyond_int64_counts_as_a_float() -> None:
    x = leaf([1.0, 2.0])
    (x * 2**70).sum().backward()
    np.testing.assert_array_equal(x.grad.numpy(), [2.0**70, 2.0**70])
    assert (x > 2**70).tolist() == [False, False]
    assert (tg.tensor([3]) * 2**70).tolist() == [3.0 * 2**70]
    with pytest.raises(OverflowError):
        x * 10**400


@pytest.mark.parametrize("recorded", [False, True])
@pytest.mark.filterwarnings("error")
def test_infinities_of_both_signs_are_summed_without_a_warning(recorded: bool) -> None:
    b = np.ones((40, 300))
    b[0, 0], b[1, 0] = np.inf, -np.inf
    x = tg.tensor(np.ones(300), requires_grad=True)
    z = tg.addcmul(tg.zeros((40, 300), dtype=tg.float64), tg.tensor(b), x)
    (found,) = tg.autograd.grad((2.0 * z).sum(), x, create_graph=recorded)
    np.testing.assert_array_equal(found.detach().numpy(), [np.nan, *[80.0] * 299])
