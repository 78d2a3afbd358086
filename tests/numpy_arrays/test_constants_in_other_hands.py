"""Constants of drivers that are written into: as complex numbers, by NumPy's functions, and through arrays of NumPy's own."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest
import scipy.linalg
import scipy.special
import scipy.stats
from many_cases import each

import tapegrad as tg
import tapegrad.numpy as tnp

X = np.array([1.5, -0.5, 2.0])

TAKEN: dict[str, Callable[[Any], Any]] = {
    "asarray": np.asarray,
    "numpy": lambda c: c.numpy() if isinstance(c, tg.Tensor) else c,
    "from_dlpack": np.from_dlpack,
    "stop_gradient": lambda c: np.asarray(tg.stop_gradient(c)),
    "a view": lambda c: np.asarray(c[::-1]),
}


class OfThePast:
    """What a library hands on that knows the first version of DLPack only."""

    def __init__(self, array: Any) -> None:
        self.array = array

    def __dlpack__(self, **newer: Any) -> Any:
        return self.array.__dlpack__()

    def __dlpack_device__(self) -> tuple[int, int]:
        return self.array.__dlpack_device__()


def test_a_library_that_knows_no_memory_to_be_read_only_gets_a_copy() -> None:
    def f(x: Any) -> Any:
        c = np.ones_like(x)
        y = c * x
        array_of_theirs = np.from_dlpack(OfThePast(c))
        assert array_of_theirs.tolist() == [1.0, 1.0]
        if array_of_theirs.flags.writeable:
            array_of_theirs[...] = 7.0
        return y.sum()

    assert tg.grad(f)(np.array([2.0, 3.0])).tolist() == [1.0, 1.0]


@each("way", TAKEN)
def test_a_constant_that_numpy_got_hold_of_cannot_be_written_unseen(way: str) -> None:
    def f(x: Any) -> Any:
        c = np.ones_like(x)
        y = c * x
        TAKEN[way](c)[...] = 7.0
        return y.sum()

    with pytest.raises(ValueError, match="read-only"):
        tg.grad(f)(X)


def test_a_copy_of_a_constant_is_ones_own() -> None:
    def f(x: Any) -> Any:
        c = np.array(np.ones_like(x))
        c[:] = 7.0
        return (c * x).sum()

    np.testing.assert_array_equal(tg.grad(f)(X), np.full(3, 7.0))


# `c` are zeros and `d` three complex numbers; what is left in `c` is the result.
COMPLEX = """
c[[0, 1]] = d[:2] | c[[0, 1]] = 1j | c[c == 0] = 1j | c[c == 0] = 2 | c[0] = 1j | c[0] = d[1] | c[::-1] = d | c += d | c *= 2j
c[[0, 1]] += 1j | c[1:] += d[1:] | c.real[:] = 2 | c.imag[0] = 2 | np.put(c, [0], [1j]) | np.add.at(c, [0, 0], 1j) | c.fill(1j)
np.copyto(c, d) | np.add(c, d, out=c) | c[np.array([True, False, True])] = d[:2] | c[np.ix_([0, 1])] = d[:2]
c[0], c[1] = 1j, 2j | np.multiply.at(c, [0, 0], 2j) | c = np.stack([d, d]); c[[0, 1], [1, 0]] = 3j | c.put([0, 4], d[:2], "wrap")
c = x * 1j; c[[0, 1]] = 2j | c = x * 1j; c[0] = x[1] | c = x * 1j; c += x | c = x * 1j; np.add.at(c, [0, 0], 1j + x[0])
c = x * 1j; c.fill(1j) | c = np.zeros_like(x + 0j); c[0] = x[1] | c = np.ones_like(x * 1j); c[:] += x
c = np.full_like(x + 0j, 2j); c[1] *= x[0] | c = np.empty_like(x + 0j); c[:] = x | c = np.zeros_like(x + 0j, dtype=float) + x
"""


@each("text", [part.strip() for line in COMPLEX.strip().splitlines() for part in line.split(" | ")])
def test_complex_numbers_are_written_as_numpy_writes_them(text: str) -> None:
    code = compile(text, text, "exec")

    def left(x: Any, xp: Any) -> Any:
        names = {"np": np, "x": x, "c": xp.zeros(3, dtype=complex), "d": xp.array([1 + 2j, 3.0, 4j])}
        exec(code, names)
        return (abs(names["c"]) ** 2).sum() * x[0]

    value, gradient = tg.value_and_grad(lambda x: left(x, tnp))(X)
    assert value == pytest.approx(left(X, np), rel=1e-15)
    step = [left(X + 1e-5 * e, np) - left(X - 1e-5 * e, np) for e in np.eye(3)]
    np.testing.assert_allclose(gradient, np.array(step) / 2e-5, rtol=1e-8, atol=1e-8)


@each("text", ["c[0] = x[0]", "c[:] = x", "c[[0, 1]] = np.fft.fft(x)[:2]", "c += x", "c.fill(x[0])"])
def test_constants_of_complex_numbers_say_how_to_hold_what_is_differentiated(text: str) -> None:
    with pytest.raises(TypeError, match=r"np\.zeros_like\(x \+ 0j\)"):
        tg.grad(lambda x: exec(text, {"np": np, "x": x, "c": tnp.zeros(3, dtype=complex)}) or x.sum())(X)


SCIPY: list[tuple[str, Callable[[Any], Any]]] = [
    ("tg.softmax", scipy.special.softmax), ("tg.log_softmax", scipy.special.log_softmax),
    ("tg.logsumexp", scipy.special.logsumexp), ("tg.polygamma", lambda x: scipy.special.polygamma(1, x)),
    ("tg.linalg.solve_triangular", lambda x: scipy.linalg.solve_triangular(np.eye(3), x)),
    ("np.linalg.cholesky", lambda x: scipy.linalg.cho_factor(np.outer(x, x))),
    ("tg.cholesky_solve", lambda x: scipy.linalg.cho_solve((np.eye(3), True), x)),
    ("tg.linalg.lu_factor", lambda x: scipy.linalg.lu_factor(np.outer(x, x))),
    ("np.linalg.inv", lambda x: scipy.linalg.inv(np.outer(x, x))),
    (r"autograd\.scipy\.stats\.norm\.logpdf", scipy.stats.norm.logpdf),
    (r"autograd\.scipy\.stats\.norm\.cdf", lambda x: scipy.stats.norm.cdf(x[0], loc=x[1], scale=2.0)),
    (r"autograd\.scipy\.stats\.norm", lambda x: scipy.stats.norm(x[0], 1.0).logpdf(0.3)),
    (r"autograd\.scipy\.stats\.gamma\.logpdf", lambda x: scipy.stats.gamma.logpdf(0.3, x)),
    (r"autograd\.scipy\.stats\.poisson\.logpmf", lambda x: scipy.stats.poisson.logpmf(2, x)),
    (r"autograd\.scipy\.stats\.multivariate_normal\.logpdf", lambda x: scipy.stats.multivariate_normal.logpdf(x, np.zeros(3))),
    (r"that of expon with NumPy's functions and those of scipy\.special", scipy.stats.expon.pdf),
    ("that of norm with NumPy's functions", scipy.stats.norm.ppf),
]  # fmt: skip


@each(("name", "call"), SCIPY)
def test_functions_of_scipy_without_a_hook_name_what_to_write(name: str, call: Callable[[Any], Any]) -> None:
    with pytest.raises(RuntimeError, match=f"write .*{name}"):
        tg.grad(lambda x: call(x).sum())(X)


def test_the_zeta_function_has_no_derivative_where_it_has_no_value() -> None:
    with np.errstate(all="ignore"):
        gradient = tg.grad(lambda q: scipy.special.zeta(np.array([0.5, 1.0, 2.5]), q).sum())(X[[0, 2, 2]])
    np.testing.assert_array_equal(np.isnan(gradient), [True, True, False])


TURN = np.array([[1.0, 2.0, 0.5], [0.3, 1.5, -1.0], [0.2, 0.1, 2.0]])
SIMILAR = TURN @ np.diag([1.0, 2.5, 4.0]) @ np.linalg.inv(TURN)


def test_eigenvalues_and_vectors_have_derivatives() -> None:
    def f(x: Any) -> Any:
        values, vectors = np.linalg.eig(SIMILAR + x)
        parts = (
            (values * np.arange(1.0, 4.0)).sum()
            + (vectors**2 * np.arange(9.0).reshape(3, 3)).sum()
            + np.linalg.eigvals(SIMILAR + x)[0]
        )
        return np.real(parts)  # NumPy 2.5 gives complex numbers whatever they are

    tg.check_grads(f, (0.1 * TURN,), order=2)
    with pytest.raises(TypeError, match="returned a complex number"):
        tg.grad(lambda x: np.linalg.eigvals(x).sum())(np.array([[0.0, 1.0], [-1.0, 0.0]]))


NUMBERS: dict[str, Callable[[Any], Any]] = {
    "float": float, "item": lambda s: s.item(), "math": math.exp, "np.float64": np.float64, "array": lambda s: np.array(s)[()],
}  # fmt: skip


@pytest.mark.parametrize("name", NUMBERS)
def test_numbers_taken_out_say_how_a_constant_is_written(name: str) -> None:
    with pytest.raises((TypeError, RuntimeError), match=r"tg\.stop_gradient\(x.*\)"):
        tg.grad(lambda x: x[1] * NUMBERS[name](x[0]))(np.ones(2))
    assert tg.grad(lambda x: x[1] * NUMBERS[name](tg.stop_gradient(x[0])))(np.zeros(2)).tolist() == [
        0.0,
        1.0 if name == "math" else 0.0,
    ]
