"""Ufuncs of `scipy.special` on what is differentiated: SciPy's values, and derivatives of both orders."""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
import pytest
import scipy.special
from fresh_processes import environment, run

import tapegrad as tg
from tapegrad.numpy_protocol.protocols import SCIPY
from tapegrad.numpy_protocol.scipy_special import PARTIALS

X, A = np.array([0.71, 0.13, 0.42]), np.array([1.7, 2.3, 1.2])
# Where the points above are no operands.
POINTS: dict[str, list[Any]] = {
    "expn": [np.array([1, 2, 3]), X],
    "ndtri_exp": [-X],
    "_zeta": [A + 1.0, X],
    "binom": [A, X],
    "poch": [A, X],
    "chdtri": [A, X],
}
ORDERS = np.array([0, 1, 3])
OPERANDS = [(name, k) for name, (_, _, texts) in PARTIALS.items() for k, text in enumerate(texts) if text != "-"]


def ufunc_of(name: str) -> Any:
    found = getattr(scipy.special, name, None) or getattr(scipy.special._ufuncs, name, None)
    return found or pytest.skip(f"this SciPy has no {name}")


def operands_of(name: str) -> list[Any]:
    by_letter = [ORDERS if operand == "n" else A if operand in "abc" else X for operand in PARTIALS[name][1]]
    return POINTS.get(name, by_letter)


def slope(f: Any, x: np.ndarray) -> np.ndarray:
    return (8.0 * (f(x + 1e-4) - f(x - 1e-4)) - (f(x + 2e-4) - f(x - 2e-4))) / 12e-4


@pytest.mark.parametrize(("name", "place"), OPERANDS)
def test_derivatives_of_both_orders_are_the_slopes(name: str, place: int) -> None:
    ufunc, operands = ufunc_of(name), operands_of(name)

    def f(v: Any) -> Any:
        return ufunc(*operands[:place], v, *operands[place + 1 :])

    x = operands[place]
    value, pull = tg.vjp(f, x)
    np.testing.assert_array_equal(value, f(x))
    np.testing.assert_allclose(pull(np.ones(3))[0], slope(f, x), rtol=1e-8, atol=1e-10)
    first = tg.elementwise_grad(f)
    np.testing.assert_allclose(tg.elementwise_grad(first)(x), slope(first, x), rtol=1e-8, atol=1e-9)


@pytest.mark.parametrize("name", sorted(set(SCIPY) - {"xlogy", "erfinv"}))
def test_functions_with_a_counterpart_agree_with_scipy(name: str) -> None:
    ufunc = getattr(scipy.special, name)
    value, pull = tg.vjp(lambda x: ufunc(x), X)
    np.testing.assert_allclose(value, ufunc(X), rtol=1e-14)
    np.testing.assert_allclose(pull(np.ones(3))[0], slope(ufunc, X), rtol=1e-8)


@pytest.mark.parametrize("name", [name for name, (_, operands, _) in PARTIALS.items() if operands[0] == "n"])
def test_an_order_that_is_a_number_gives_scipys_value(name: str) -> None:
    ufunc, operands = ufunc_of(name), operands_of(name)[1:]
    value, pull = tg.vjp(lambda x: ufunc(3, *operands[:-1], x), X)
    np.testing.assert_array_equal(value, ufunc(3, *operands[:-1], X))
    np.testing.assert_allclose(pull(np.ones(3))[0], slope(lambda x: ufunc(3, *operands[:-1], x), X), rtol=1e-8)


@pytest.mark.parametrize("name", ["i1", "i1e"])
def test_the_slope_of_a_bessel_function_near_zero_is_one_half(name: str) -> None:
    x = np.array([0.0, 5e-324, 1.5e-323, -1e-310, 1e-300, 1e-20])
    np.testing.assert_allclose(tg.grad(lambda x: ufunc_of(name)(x).sum())(x), np.full(x.shape, 0.5), rtol=1e-15)


@pytest.mark.parametrize("name", ["i1", "i1e"])
@pytest.mark.parametrize("odd", [0.0, np.inf, -np.inf, np.nan, 1e5])
def test_the_slope_of_a_bessel_function_does_not_depend_on_its_neighbours(name: str, odd: float) -> None:
    slopes = tg.grad(lambda x: ufunc_of(name)(x).sum())
    x = np.array([0.25, -3.0, odd, 7.0])
    with np.errstate(all="ignore"):
        np.testing.assert_array_equal(slopes(x), slopes(np.append(x, 0.0))[:-1])
    assert slopes(x[:0]).shape == (0,)


def test_operands_broadcast_and_single_precision_stays() -> None:
    gradient = tg.grad(lambda a: scipy.special.betaln(a[:, None], X).sum())(A)
    np.testing.assert_allclose(gradient, slope(lambda a: scipy.special.betaln(a[:, None], X).sum(1), A), rtol=1e-8)
    gradient = tg.grad(lambda x: scipy.special.ndtr(x).sum())(X.astype(np.float32))
    assert gradient.dtype == np.float32
    np.testing.assert_allclose(gradient, np.exp(-(X**2) / 2) / np.sqrt(2 * np.pi), rtol=1e-6)


def test_an_operand_without_a_derivative_is_named() -> None:
    with pytest.raises(NotImplementedError, match=r"gammainc has no derivative by its operand 0 \(a\)"):
        tg.grad(lambda a: scipy.special.gammainc(a, X).sum())(A)
    assert tg.grad(lambda a: scipy.special.gammainc(tg.stop_gradient(a), X).sum() + a.sum())(A).tolist() == [1.0] * 3


def test_a_masked_branch_does_not_make_the_gradient_nan() -> None:
    gradient = tg.grad(lambda x: np.where(x > 0.0, scipy.special.entr(x), 0.0).sum())(np.array([0.0, 0.5]))
    np.testing.assert_allclose(gradient, [0.0, -np.log(0.5) - 1.0])


def test_a_ufunc_without_a_row_is_refused() -> None:
    with pytest.raises(TypeError, match="agm is not covered"):
        tg.grad(lambda x: scipy.special.agm(x, 1.0).sum())(X)


def test_a_bessel_function_of_numpys_without_scipy_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "scipy.special", None)
    with pytest.raises(ModuleNotFoundError, match=r"np.i0 of a tensor needs SciPy: pip install 'tapegrad\[scipy\]'"):
        np.i0(tg.tensor(1.0, requires_grad=True))


NAMESPACES = """
import numpy as np
import scipy.special
import tapegrad as tg
import tapegrad.numpy as tnp

x = np.array([0.3, 1.7])
assert not isinstance(scipy.special.gammaln, np.ufunc)
print(*tg.grad(lambda x: scipy.special.gammaln(x).sum() + scipy.special.entr(x) @ x)(x))
print(*tg.grad(lambda x: scipy.special.xlogy(x, tnp.array(x)).sum() + np.i0(x).sum())(x))
t = tg.tensor(x, requires_grad=True)
tg.special.ndtr(t).sum().backward()
print(*t.grad.tolist())
print(hasattr(tnp.special, "gammaln"), hasattr(tnp.special, "logsumexp"), hasattr(tnp.special, "nonsense"))
"""


def test_scipys_switch_for_namespaces_keeps_derivatives() -> None:
    *gradients, names = run(NAMESPACES, environment() | {"SCIPY_ARRAY_API": "1"}).stdout.splitlines()
    x = np.array([0.3, 1.7])
    special = scipy.special
    expected = [
        special.psi(x) + special.entr(x) - x * (np.log(x) + 1.0),
        np.log(x) + 1.0 + special.i1(x),
        np.exp(-x * x / 2.0) / np.sqrt(2.0 * np.pi),
    ]
    for found, wanted in zip(gradients, expected, strict=True):
        np.testing.assert_allclose(list(map(float, found.split())), wanted, rtol=1e-13)
    assert names == "True False False"
