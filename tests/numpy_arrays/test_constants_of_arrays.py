"""Arrays of which nothing is differentiated: NumPy's values, dtypes and shapes, and what other libraries ask of arrays."""

from __future__ import annotations

import operator
from typing import Any

import numpy as np
import pytest
from many_cases import each

import tapegrad as tg
import tapegrad.numpy as tnp
from tapegrad.numpy_arrays.array import Array

V = np.array([1.3, 0.7, 4.2, 2.1])
F = V.astype(np.float32)


def inside(function: Any, x: np.ndarray = V) -> Any:
    """What a function gives under a driver."""
    seen: list[Any] = []
    tg.grad(lambda x: seen.append(function(x)) or x.sum())(x)
    return seen[0]


def of(result: Any) -> Any:
    return np.asarray(tg.stop_gradient(result)) if isinstance(result, tg.Tensor) else result


# `n` are integers, `u` unsigned ones, `b` bools, `c` complex numbers, `f` and `d` floats, all made by `tapegrad.numpy`.
LINES = """
n * 2 | n / 2 | n // 2 | n % 3 | n ** 2 | -n | abs(-n) | n + 1.5 | n + u | u + 1 | u - u | n @ n | n << 1 | n & 1 | ~n | n ^ n
3 - n | 2**n | n == 1 | n < 2.5 | b & b | b | (n > 1) | b ^ True | ~b | b + b | b * 2 | b.sum() | n.sum() | u.sum() | n.mean()
n.std() | n.max() | n.prod() | n.cumsum() | u.cumsum() | np.sum(n, dtype=np.int8) | np.sort(n)[::-1] | np.unique(n)
np.isin(n, [1, 2]) | np.bitwise_count(u) | n.astype(np.uint16) | n.astype(complex) | c * 2 | c + d | c.real | c.imag | abs(c)
c.conj() | np.angle(c) | np.exp(c) | c @ c | c.sum() | c[1] | c[::-1] | c == c | d * c | d.astype(np.complex64)
f * np.float64(2) | np.float64(2) * f | f + d | f * 2.0 | f * n | f + np.float32(1) | f @ d | f[0] * d[0] | f.sum() * d | d // 0.3
d % 0.3 | divmod(d, 0.3) | 1.0 // d | np.floor_divide(d, 0.3) | np.heaviside(d, 0.5) | np.spacing(d) | np.frexp(d)
np.ldexp(d, n) | np.fft.fft(d) | np.fft.rfft(d) | np.add.at.__name__ | np.histogram(d, 3) | np.lexsort((d, n))
np.digitize(d, [1.0, 2.0]) | np.packbits(b) | np.linalg.eig(np.outer(d, d) + np.eye(4))[0] | np.linalg.matrix_rank(np.outer(d, d))
np.union1d(n, [7]) | np.setdiff1d(n, [1]) | np.convolve(n, n) | np.trim_zeros(n) | np.vsplit(np.outer(n, n), 2)
np.apply_along_axis(np.sum, 0, np.outer(d, n)) | np.piecewise(d, [d > 1], [1.0, 2.0]) | np.cov(d) | d.sum(where=b)
d.max(initial=9.0) | np.einsum("i,i", n, n) | np.where(b)[0] | np.where(n, d, 0) | np.choose(n % 2, [d, -d]) | np.partition(d, 2)
n[n > 1] | n[[0, 1]] | n[..., None] | n.reshape(2, 2).T | np.split(n, 2) | c.reshape(2, 2)[:, 0] | np.diff(u) | u[1] - u[2] * 1
n.argmax() | f.mean() | d == [1.3, 0.7, 4.2, 2.1] | d * [1, 2, 3, 4] | (1, 2, 3, 4) - d | d @ [1, 2, 3, 4] | [1, 2, 3, 4] @ d
float(b[0]) | complex(d[0]) | int(u[1])
"""


@each("line", [part.strip() for line in LINES.strip().splitlines() for part in line.split(" | ")])
def test_constants_have_numpys_values_and_dtypes(line: str) -> None:
    code = compile(line, line, "eval")

    def run(x: Any, xp: Any) -> Any:
        n, u = xp.array([0, 3, 1, 2]), xp.array([4, 3, 1, 2], dtype=np.uint16)
        names = {
            "n": n, "u": u, "b": xp.array([True, False, True, True]), "d": xp.array([1.3, 0.7, 4.2, 2.1]), "np": xp,
            "f": xp.array(F.tolist(), dtype=np.float32), "c": xp.array([1 + 2j, 3j, 1.0, 2 - 1j]),
        }  # fmt: skip
        return eval(code, names)

    with np.errstate(all="ignore"):
        expected, found = run(V, np), inside(lambda x: run(x, tnp))
    pairs = zip(expected, found, strict=True) if isinstance(expected, (tuple, list)) else [(expected, found)]
    for want, got in pairs:
        assert not isinstance(want, np.ndarray) or isinstance(got, Array)
        np.testing.assert_array_equal(of(got), want, strict=isinstance(want, (np.ndarray, np.generic)))


SINGLE = """
x * np.float64(2) | np.float64(2) * x | x + np.arange(4) | x * np.int64(2) | x ** np.float64(2) | x[0] * np.float64(2)
x * np.ones(4) | x[0] * np.ones(3, np.float32) | np.maximum(x, np.float64(0)) | np.where(x > 0, x, np.float64(0))
np.float64(7.1) // x + x | np.arange(4) // x + x | np.floor_divide(x, np.ones(4)) + x | np.divmod(np.ones(4), x)[1]
x @ np.arange(4) | x * 2.0 | x @ np.ones(4) | x.sum() * np.arange(3) | np.array(2.0) * x | x * np.float32(3)
np.arctan2(x, np.ones(4)) | x - 1 | x / np.int8(2)
np.polyval([1, 2], x) | np.polyval([1.0, 2.0], x) | np.vander(x, 3) | np.cov(x) | np.cov(x, x[::-1])[0]
"""


@each("line", [part.strip() for line in SINGLE.strip().splitlines() for part in line.split(" | ")])
def test_single_precision_is_promoted_as_numpy_promotes_it(line: str) -> None:
    function = eval(f"lambda x: {line}", {"np": np})
    found = inside(function, F)
    want = function(F)
    assert found.dtype == want.dtype
    np.testing.assert_array_equal(of(found), want)
    gradient = tg.grad(lambda x: function(x).sum())(F)
    assert gradient.dtype == np.float32
    at, steps = F.astype(float), 1e-6 * np.eye(4)
    step = np.array([function(at + e).sum() - function(at - e).sum() for e in steps]) / 2e-6
    np.testing.assert_allclose(gradient, step, rtol=1e-5)


def test_tracked_values_go_through_views_of_constants() -> None:
    def f(x: Any) -> Any:
        r = tnp.zeros((2, 2))
        rows = np.vsplit(r, 2)
        rows[1][0, 0] = x[0]
        r.T[0, 1] *= x[1]
        return r.sum()

    np.testing.assert_array_equal(tg.grad(f)(V), [0.7, 1.3, 0.0, 0.0])


WRITES = """
np.put(r, [0, 2], x[:2]) | np.place(r, x > 1, [x[0], 2.0]) | np.putmask(r, x > 1, x) | np.copyto(r, 2 * x)
np.copyto(r, x[0], where=x > 1) | np.fill_diagonal(r.reshape(2, 2), x[:2]) | np.put_along_axis(r, np.argsort(x)[:2], x[2:], 0)
np.add.at(r, [0, 0, 3], x[:3]) | np.subtract.at(r, 1, x[2]) | np.multiply.at(r, [1, 2], x[:2]) | np.negative.at(r, [1])
np.put(r, [0, 5], x[:2], mode="wrap")
"""


@each("line", [part.strip() for line in WRITES.strip().splitlines() for part in line.split(" | ")])
def test_functions_that_write_do_so_in_arrays_of_ours(line: str) -> None:
    code = compile(line, line, "exec")

    def f(x: Any) -> Any:
        r = x * np.arange(1.0, 5.0)
        exec(code, {"np": np, "r": r, "x": x})
        return (r * r).sum()

    value, gradient = tg.value_and_grad(f)(V)
    assert value == f(V)
    step = np.array([f(V + 1e-6 * e) - f(V - 1e-6 * e) for e in np.eye(4)]) / 2e-6
    np.testing.assert_allclose(gradient, step, rtol=1e-7, atol=1e-7)


def test_writing_into_numpys_own_array_says_what_to_write() -> None:
    with pytest.raises(TypeError, match=r"np\.zeros_like\(x\)"):
        tg.grad(lambda x: np.put(np.zeros(4), [0], x[:1]))(V)
    with pytest.raises(TypeError, match="occurs twice"):
        tg.grad(lambda x: np.multiply.at(x * 1.0, [0, 0], 2.0))(V)


def test_arrays_know_their_namespace_and_device() -> None:
    assert inside(lambda x: x.__array_namespace__()) is tnp
    assert inside(lambda x: (x.device, x.to_device("cpu") is x)) == ("cpu", True)
    with pytest.raises(ValueError, match="1066"):
        inside(lambda x: x.__array_namespace__(api_version="1066.10"))


def test_complex_numbers_that_are_differentiated_know_them_too() -> None:
    assert inside(lambda x: (x * 1j).__array_namespace__()) is tnp
    assert inside(lambda x: (z := x * 1j, z.device, z.to_device("cpu") is z)[1:]) == ("cpu", True)
    with pytest.raises(ValueError, match="gpu"):
        inside(lambda x: (x * 1j).to_device("gpu"))


def test_one_integer_of_a_line_is_an_array_of_indices() -> None:
    def written(x: Any) -> Any:
        table = np.zeros((2, 4))
        table[:, np.argmax(x, keepdims=True)] = [[1.0], [2.0]]
        return table

    np.testing.assert_array_equal(inside(written), written(V))
    for used in (operator.index, range, np.arange(4).item):
        with pytest.raises(TypeError):
            inside(lambda x, used=used: used(np.argmax(x, keepdims=True)))  # type: ignore[misc]
        assert inside(lambda x, used=used: used(np.argmax(x))) == used(2)  # type: ignore[misc]


def test_memory_is_handed_to_other_libraries_unless_it_is_differentiated() -> None:
    taken = inside(lambda x: np.from_dlpack(tg.stop_gradient(x)))
    assert type(taken) is np.ndarray
    np.testing.assert_array_equal(taken, V)
    with pytest.raises(BufferError, match="stop_gradient"):
        inside(np.from_dlpack)


@each("kind", "?bBhHiIlLqQefdFD")
def test_elements_of_every_width_are_picked_whole(kind: str) -> None:
    values = (np.array([1.0, 70.0, 3.0]) * (1.5 if kind in "efdFD" else 1.0)).astype(kind)

    def picked(x: Any) -> Any:
        c = tnp.array(values)
        return c[[2, 1]], c[np.array([False, True, True])], np.stack([c, c])[[0, 1], [1, 2]]

    for found, expected in zip(inside(picked), (values[[2, 1]], values[1:], values[1:]), strict=True):
        assert found.dtype == values.dtype
        np.testing.assert_array_equal(of(found), expected)
