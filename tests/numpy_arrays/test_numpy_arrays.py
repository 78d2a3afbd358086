"""What drivers hand to functions that are written for NumPy: the function's own value, and its derivative."""

from __future__ import annotations

import copy
import enum
import functools
import math
import pickle
import weakref
from collections.abc import Callable
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from many_cases import each

import tapegrad as tg
from tapegrad.numpy_arrays.array import Array

V = np.array([1.3, 0.7, 4.2, 2.1])
M = np.array([[1.3, 0.7, 4.2], [2.1, 0.4, 3.5]])
S = np.array([[2.3, 0.7], [0.4, 1.9]])
W4, W23, W22 = np.arange(1.0, 5.0), np.arange(1.0, 7.0).reshape(2, 3), np.arange(1.0, 5.0).reshape(2, 2)


def written(x: Any) -> Any:
    r = np.zeros_like(x)
    r[0] = x[1]
    r[::-1] = r + x
    r += x
    r[1:] *= 2.0
    r[[0, 2]] -= x[0]
    r[x > 2.0] = x[0] * 5.0
    return (r * W4).sum()


def sorted_in_place(x: Any) -> Any:
    y = x * np.array([3.0, -1.0, 2.0, 0.1])
    assert y.sort() is None
    return (y * W4).sum()


def two_names(x: Any) -> Any:
    a = b = x.sum()
    a += 1.0
    return a * b


def copy_of_the_flattened(x: Any) -> Any:
    y = x * 1.0
    z = y.flatten()
    z[0] = 5.0
    return (y * x).sum() + z.sum()


def element_before_a_write(x: Any) -> Any:
    y = x * 1.0
    first = y[0]
    y[0] = 7.0
    return first * y.sum()


def through_a_view(x: Any) -> Any:
    y = x * 1.0
    z = y.reshape(-1).ravel()
    z[0] = 3.0
    y[1:][1:] *= x[0]
    return (y * x).sum()


def filled(x: Any) -> Any:
    y = x.copy()
    y.fill(2.0)
    y.put([1], x[0])
    return (y * x).sum()


def counted(x: Any) -> Any:
    total = 0.0
    for i in range(len(x)):
        total = total + x[i] * x[i - 1]
    return total / x.size


def unpacked(x: Any) -> Any:
    a, b, c, d = np.exp(x)
    return a * b - c / d


def positive(x: Any) -> Any:
    y = +x
    y[0] = 1.0
    return (x * y).sum()


def branched(x: Any) -> Any:
    return x[0] * x[1] if x[0] > x[1] and x.min() > 0.0 else x[0]


def out_of_functions(x: Any) -> Any:
    r, total = np.empty_like(x), np.zeros_like(x[:1]).reshape(())
    assert np.multiply(x, x, out=r) is r
    np.exp(r[:2], out=r[:2])
    np.cumsum(r, out=r)
    np.sum(r, out=total)
    r.clip(2.0, 50.0, out=r)
    return (r * x).sum() * total


def copied(x: Any) -> Any:
    y, z = copy.copy(x), copy.deepcopy(x)
    y[0], z[1] = 2.0, x[3]
    return (x * y).std() * z.std()


FUNCTIONS = [written, sorted_in_place, two_names, copy_of_the_flattened, element_before_a_write, through_a_view, filled]
FUNCTIONS += [counted, unpacked, positive, branched, copied, out_of_functions]

LINES = """
V x.std() | x.var() | x.std(ddof=1) | x.var(ddof=1) | (x.repeat(2) * np.arange(8.0)).sum() | x.sum() / x.size | (x[::-1] * W4).sum()
V x.copy().sum() | x.astype(float).sum() | (x.cumsum() * W4).sum() | (x.cumprod() * W4).sum() | x.prod() | x.max() | x.min() | x.mean()
V x[x.argmax()] * 2.0 | x[x.argmin()] ** 2 | (x[x.argsort()] * W4).sum() | x.dot(x) | x.take([0, 2]).sum() | x.clip(1.0, 3.0).sum()
V (x * x.round()).sum() | x.shape[0] * x.sum() | x.ndim * x.sum() | len(x) * x.sum() | x.real.sum() | x.imag.sum() + x.sum()
V (x.reshape(2, 2) * W22).sum() | (x.reshape((2, -1)) * W22).sum() | (x.reshape(2, 2, order="F") * W22).sum()
V (x.reshape(2, 2).ravel("F") * W4).sum() | (x.reshape(2, 2).flatten("F") * W4).sum() | (x.T * W4).sum() | (x.transpose() * W4).sum()
V x[0] * x[-1] | x[1:3].sum() | x[..., 1] * x[2] | x[None, :].sum() | x[np.newaxis].std() | (x[::2] * x[1::2]).sum() | (x[-2::-1] * W4[:3]).sum()
V x[[0, 2]].std() | x[np.array([3, 0])].prod() | x[x > 1.0].sum() | x[np.array([True, False, True, False])].std() | x[np.int64(1)] * x[0]
V x[3:0:-2].prod() | x[()].sum() | x[:, None].std() | (x[:, None] * x[None, :]).std() | x[slice(None, None, -1)][0] * x[1]
V np.exp(x).std() | np.sin(x).var() | (-x).std() | abs(-x).var() | (x**2).std() | (2.0**x).std() | (1.0 + x).std() | (x % 2.0).std()
V (x // 2.0 + x).std() | divmod(x, 2.0)[1].std() | (3.0 / x).std() | (np.arange(4.0) * x).std() | (np.float64(2.0) * x).std()
V ((x > 1.0) * x).std() | (~(x > 1.0) * x).std() | ((x > 1.0) & (x < 3.0)).sum() * x[0] | np.where(x > 1.0, x, 2.0 * x).std() | np.stack([x, x]).std()
V np.concatenate([x[:1], x]).std() | np.outer(x, x).std() | np.add.reduce(x.reshape(2, 2)).std() | np.maximum(x, 2.0).std() | np.hypot(x, 1.0).std()
V np.linalg.norm(x) | np.linalg.norm(x.reshape(2, 2)).std() + x.std() | np.cumsum(x).std() | np.diff(x).std() | np.sort(x)[::-1][0] | np.median(x)
V np.interp(1.7, np.arange(4.0), x) | np.tile(x, 2).var() | np.split(x, 2)[1].std() | np.array_split(x, 3)[0].std() | np.flip(x)[0] * x[1]
V x.any() * x.sum() | (x > 1.0).all() * x[0] + x[1] | x.nonzero()[0].size * x.sum() | x.searchsorted(2.0) * x[0] | x.itemsize * x.sum() | x.nbytes * x[1]
V x.flat[2] * x[0] | x.view().std() | x.squeeze().std() | x.tolist.__name__.count("t") * x[0] | x.strides[0] * x[0] | x.flags.c_contiguous * x[0]
V int(x[0]) * x[1] | round(x[0]) * x[1] | x[int(x[0])] * 3.0 | x[0].ndim + x[1] | x[0].shape.__len__() + x[2] | f"{x[0]:.1f}".count("1") * x[1]
V sum(x) | sum(v * v for v in x) | max(x) * 2.0 | min(x) * 2.0 | sorted(x)[0] * 3.0 | np.sum(np.stack([x[0], x[1]])) | np.prod(np.stack([x[0], 2 * x[1]]))
V np.mean(x, keepdims=True)[0] | x.mean(keepdims=True)[0] * x[0] | x.sum(axis=0) | x.max(axis=-1) * x[0] | np.ptp(x) | x.compress([True, False, True, True]).std()
V x.__len__() * x.std() | x.choose.__name__.count("o") * x[0] | (x == x[0]).sum() * x[1] | (x != 1.3).sum() * x[1]
M x.max(axis=0).sum() | x.min(axis=1).std() | (x.T * W23.T).sum() | x.T.shape[0] * x.sum() | x.transpose(1, 0)[2].std() | x.transpose((1, 0))[2].std()
M x.mean(0).std() | x.mean(axis=1, keepdims=True).std() | x.std(0).sum() | x.std(axis=1, ddof=1).sum() | x.var(axis=(0, 1)) | x.sum(1, keepdims=True).std()
M x[0].dot(x[1]) | x.dot(x[0]).std() | x.dot(x.T).std() | (x @ x.T).std() | x[1, 2] * x[0][1] | x[:, 1].std() | x[::-1, ::-1][0, 0] * x[0, 0]
M x[[0, 1], [2, 0]].std() | x[0, [2, 1]].std() | x[:, [2, 0]].std() | x[[1]][:, ::-1].std() | x[x > 1.0].std() | x[np.ix_([0, 1], [2, 0])].std()
M (x[None][0, :, [1, 0]] * W22).sum() | x.swapaxes(0, 1)[0].std() | x.diagonal().std() | x.trace() | x.repeat(2, axis=1).std() | x.cumsum(axis=1).std()
M x.argmax(axis=1).sum() * x[0, 0] | x.argsort(axis=1)[0, 0] + x[1, 1] | x.take([0, 2], axis=1).std() | x.ravel()[::2].std() | x.flatten().std() | x.mT[2].std()
M sum(row.std() for row in x) | np.vstack([x, x[:1]]).std() | np.hstack([x, x]).std() | x.reshape(3, 2)[::-1].ravel()[0] * x[0, 0] | x.size * x.std()
M np.einsum("ij,ij->i", x, x).std() | np.tensordot(x, x, 2) | np.linalg.norm(x, axis=1).std() | np.average(x, axis=0).std() | np.cov(x)[0, 1] | np.ptp(x, 0).std()
S np.linalg.inv(x).std() | np.linalg.det(x) | np.linalg.solve(x, np.ones(2)).std() | np.trace(x @ x) | (x @ x.T)[0, 1] | np.linalg.cholesky(x @ x.T).std()
S tg.grad(lambda y: (y**3).sum())(x).std() | tg.value_and_grad(lambda y: y.std())(x)[0] * x[0, 0] | tg.jacobian(lambda y: y.std(0))(x).std()
S tg.hessian(lambda y: (y**3).sum())(x).std() | tg.hvp(lambda y: (y**3).sum(), x, x).std() | tg.vjp(lambda y: y**2, x)[1](x)[0].std() | tg.jvp(lambda y: y**2, (x,), (x,))[1].std()
"""  # noqa: E501
POINTS = {"V": V, "M": M, "S": S}
CASES: list[tuple[str, np.ndarray]] = [
    (text.strip(), POINTS[line[0]]) for line in LINES.strip().splitlines() for text in line[2:].split(" | ")
]


def of(text: str) -> Callable[[Any], Any]:
    function: Callable[[Any], Any] = eval(f"lambda x: {text}", globals())
    return function


def differences(f: Callable[[Any], Any], x: np.ndarray) -> np.ndarray:
    """Central differences of fourth order."""
    found = np.zeros_like(x)
    for place in np.ndindex(*x.shape):
        step = np.zeros_like(x)
        step[place] = 1e-3
        found[place] = (8.0 * (f(x + step) - f(x - step)) - f(x + 2 * step) + f(x - 2 * step)) / 12e-3
    return found


def check(f: Callable[[Any], Any], x: np.ndarray) -> None:
    value, gradient = tg.value_and_grad(f)(x.copy())
    np.testing.assert_allclose(value, f(x.copy()), rtol=1e-15)
    np.testing.assert_allclose(gradient, differences(f, x), rtol=1e-7, atol=1e-9)


@each(("text", "x"), CASES, ids=[text for text, _ in CASES])
def test_one_line(text: str, x: np.ndarray) -> None:
    check(of(text), x)


@each("f", FUNCTIONS)
def test_function(f: Callable[[Any], Any]) -> None:
    check(f, V)


def given(x: np.ndarray = V) -> Any:
    """What a driver hands to a function."""
    found: list[Any] = []
    tg.grad(lambda y: (found.append(y), y.sum())[1])(x)
    return found[0]


LEAVING = {
    "float": lambda x: float(x[0]) * x[1],
    "item": lambda x: x[0].item() * x[1],
    "item of a place": lambda x: x.item(0) * x[1],
    "tolist": lambda x: x.tolist()[0] * x[1],
    "math.exp": lambda x: math.exp(x[0]) * x[1],
    "math.fsum": lambda x: math.fsum(x) * x[1],
    "complex": lambda x: abs(complex(x[0])) * x[1],
    "tobytes": lambda x: len(x.tobytes()) * x[1],
    "numpy.float64": lambda x: np.float64(x[0]) * x[1],
    "numpy.array": lambda x: np.array(x).sum() * x[1],
    "numpy.asarray": lambda x: np.asarray(x).sum() * x[1],
}


@each("name", LEAVING)
def test_a_number_taken_out_is_refused_with_what_to_write(name: str) -> None:
    with pytest.raises((TypeError, RuntimeError), match=r"derivative.*(stop_gradient|np.stack)"):
        tg.grad(LEAVING[name])(V)


def test_constants_may_be_taken_out() -> None:
    assert tg.grad(lambda x: float(tg.stop_gradient(x[0])) * x[1])(V).tolist() == [0.0, V[0], 0.0, 0.0]


def test_stop_gradient_of_containers_and_numbers() -> None:
    def f(p: dict[str, Any]) -> Any:
        fixed = tg.stop_gradient(p)
        return fixed["a"] * p["a"] + fixed["b"][0].sum() * tg.stop_gradient(2.0)

    gradient = tg.grad(f)({"a": 3.0, "b": [V]})
    assert gradient["a"] == 3.0
    assert gradient["b"][0].tolist() == [0.0] * 4


@each("write", ["x[0] = 1.0", "x += 1.0", "x.sort()", "x.fill(0.0)"])
def test_the_argument_is_not_written_into(write: str) -> None:
    def f(x: Any) -> Any:
        exec(write, {"x": x})
        return x.sum()

    with pytest.raises(RuntimeError, match="copy"):
        tg.grad(f)(V.copy())


def test_a_write_into_what_was_read_backwards_is_not_lost() -> None:
    def f(x: Any) -> Any:
        y = x * 1.0
        y[::-1][0] = 5.0
        return y.sum()

    np.testing.assert_array_equal(tg.grad(f)(V), [1.0, 1.0, 1.0, 0.0])


def test_a_sum_that_does_not_fit_in_place_is_refused() -> None:
    def f(x: Any) -> Any:
        y = x[:1] * 1.0
        y += x
        return y.sum()

    with pytest.raises(ValueError, match="does not hold"):
        tg.grad(f)(V)


def test_operations_with_tensors_give_arrays_and_functions_of_the_package_tensors() -> None:
    x, t = given(), tg.tensor(W4)
    assert [type(y) for y in (x, x + t, t + x, np.add(t, x), np.exp(x), x[0], x.sum(), x == t)] == [Array] * 8
    assert [type(y) for y in (tg.exp(x), tg.cat([x, x]), tg.sum(x), t)] == [tg.Tensor] * 4
    assert np.broadcast_arrays(t, x)[0] is t or type(t) is tg.Tensor


def test_layers_and_their_methods_are_given_tensors() -> None:
    kinds = []

    class Layer(tg.nn.Module):
        def forward(self, x: tg.Tensor) -> tg.Tensor:
            kinds.append(type(x))
            return x

    layer = Layer()
    for f in (layer, layer.forward, functools.partial(layer)):
        tg.jacobian(f)(V)
    assert kinds == [tg.Tensor] * 3


def test_drivers_inside_of_drivers_give_arrays_for_arrays_and_tensors_for_tensors() -> None:
    kinds = []
    inner = tg.grad(lambda y: (y**3).sum())
    tg.grad(lambda x: (kinds.append(type(inner(x))), x.sum())[1])(V)
    kinds.append(type(inner(tg.tensor(V, requires_grad=True))))
    assert kinds == [Array, tg.Tensor]


def test_inference_of_an_array_that_was_pickled() -> None:
    x = pickle.loads(pickle.dumps(tg.stop_gradient(given() * 2.0)))
    assert type(x) is Array
    np.testing.assert_array_equal(np.asarray(tg.stop_gradient(x)), 2.0 * V)


def test_attributes_are_those_of_numpy() -> None:
    x = given(M)
    for name in ("shape", "size", "ndim", "itemsize", "nbytes", "strides", "dtype"):
        assert getattr(x, name) == getattr(M, name)
    assert type(x.shape) is tuple
    assert len(x) == len(M)


UNWANTED = "base byteswap ctypes data device dump dumps getfield setfield setflags to_device tofile"


def test_every_public_attribute_of_an_array_is_there_or_says_why_not() -> None:
    x = given(M)
    absent = {name for name in dir(np.ndarray) if not name.startswith("_") and not hasattr(x, name)}
    assert absent <= frozenset(UNWANTED.split())


def test_arrays_are_shown_as_numpys() -> None:
    x = given(M)
    assert (repr(x), str(x), f"{x}") == (repr(M), str(M), f"{M}")
    assert (repr(x[0, 1]), str(x[0, 1]), f"{x[0, 1]:.3f}") == (repr(M[0, 1]), str(M[0, 1]), f"{M[0, 1]:.3f}")


def test_ufuncs_keep_no_array_alive() -> None:
    x = given()
    for ufunc in (np.negative, np.absolute, np.positive, np.sin, np.cbrt):
        y = x * 2.0
        seen = weakref.ref(y)
        ufunc(y)
        del y
        assert seen() is None


def test_resizing_is_refused() -> None:
    with pytest.raises(ValueError, match="np.resize"):
        tg.grad(lambda x: (x * 1.0).resize(2))(V)


def test_arrays_are_not_subclassed() -> None:
    with pytest.raises(TypeError, match="cannot be subclassed"):
        type("Mine", (Array,), {})


class Half(float):
    pass


class Two(enum.IntEnum):
    TWO = 2


@pytest.mark.parametrize("number", [Half(0.5), Two.TWO], ids=["of float", "of int"])
@pytest.mark.parametrize(
    "f", [lambda x, k: x * k, lambda x, k: k / x[0], lambda x, k: x**k, np.maximum, lambda x, k: np.where(x > 1, k, x)]
)
def test_numbers_of_derived_classes_are_numbers(f: Any, number: Any) -> None:
    x = np.array([1.5, 0.7])
    plain = number * 1
    np.testing.assert_allclose(tg.jacobian(lambda x: f(x, number))(x), tg.jacobian(lambda x: f(x, plain))(x), rtol=4e-16)


def test_objects_that_are_no_numbers_are_named() -> None:
    with pytest.raises(TypeError, match="meets Fraction"):
        tg.grad(lambda x: (x * Fraction(1, 2)).sum())(np.ones(2))
