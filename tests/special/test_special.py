"""The namespace of special functions: which functions its names are, what they take, and what they say."""

from __future__ import annotations

import math
import sys
from typing import Any

import numpy as np
import pytest

import tapegrad as tg
from tapegrad.special import by_scipy
from tapegrad.special.by_scipy import DOCUMENTED

S = tg.special
X = np.array([0.7, 1.3, 2.2])
SAME = {
    "digamma": tg.digamma, "erf": tg.erf, "erfc": tg.erfc, "erfinv": tg.erfinv, "exp2": tg.exp2, "expit": tg.sigmoid,
    "expm1": tg.expm1, "gammainc": tg.igamma, "gammaincc": tg.igammac, "gammaln": tg.lgamma, "i0": tg.i0, "log1p": tg.log1p,
    "log_softmax": tg.log_softmax, "logit": tg.logit, "logsumexp": tg.logsumexp, "multigammaln": tg.mvlgamma,
    "polygamma": tg.polygamma, "psi": tg.digamma, "round": tg.round, "sinc": tg.sinc, "softmax": tg.softmax, "xlogy": tg.xlogy,
}  # fmt: skip


def unwrapped(function: Any) -> Any:
    return getattr(function, "__wrapped__", function)


@pytest.mark.parametrize("name", SAME)
def test_functions_of_the_package_are_the_same(name: str) -> None:
    assert unwrapped(getattr(S, name)) is unwrapped(SAME[name])


def test_all_names_are_functions() -> None:
    assert {*SAME, *DOCUMENTED} == set(S.__all__)
    assert all(callable(getattr(S, name)) and getattr(S, name).__doc__ for name in S.__all__)


def test_a_name_that_is_not_there_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match=r"module 'tapegrad.special' has no attribute 'airy_bi'"):
        _ = S.airy_bi


def test_functions_of_the_second_kind_fit_to_those_of_the_first() -> None:
    x = tg.tensor(X, requires_grad=True)
    wronskian = S.bessel_j1(x) * S.bessel_y0(x) - S.bessel_j0(x) * S.bessel_y1(x)
    np.testing.assert_allclose(wronskian.detach(), 2.0 / (math.pi * X), rtol=1e-14)
    (slope,) = tg.autograd.grad(wronskian.sum(), [x])
    np.testing.assert_allclose(slope, -2.0 / (math.pi * X**2), rtol=1e-13)


def test_single_precision_stays_beside_numbers() -> None:
    x = tg.tensor(X, dtype=tg.float32, requires_grad=True)
    result = S.xlog1py(2.0, x)
    assert result.dtype == tg.float32
    result.sum().backward()
    np.testing.assert_allclose(x.grad, 2.0 / (1.0 + X), rtol=1e-6)


def test_integers_are_taken_for_floats() -> None:
    np.testing.assert_allclose(S.entr(tg.tensor([0, 2])), [0.0, -2.0 * math.log(2.0)], rtol=1e-15)


def test_nothing_times_an_infinite_logarithm_has_the_gradient_zero() -> None:
    x = tg.zeros(1, requires_grad=True)
    S.xlog1py(x, tg.tensor([-1.0])).sum().backward()
    assert x.grad.tolist() == [0.0]


@pytest.mark.parametrize(("name", "value"), [("i0", [1.2660658777520084]), ("igamma", [1.0 - 2.0 / math.e])])
def test_methods_in_place_write_and_are_differentiated(name: str, value: list[float]) -> None:
    x = tg.ones(1, requires_grad=True)
    others = [x] if name == "igamma" else []
    start = tg.tensor([2.0]) if others else x * 1.0
    result = getattr(start, f"{name}_")(*others)
    assert result is start
    np.testing.assert_allclose(result.detach(), value, rtol=1e-14)
    result.sum().backward()
    slope = math.exp(-1.0) if others else 0.5651591039924851
    np.testing.assert_allclose(x.grad, [slope], rtol=1e-14)


def test_an_operand_without_a_derivative_is_named() -> None:
    a = tg.ones(1, requires_grad=True)
    with pytest.raises(NotImplementedError, match=r"gammainc has no derivative by its operand 0 \(a\)"):
        tg.igamma(a, tg.ones(1))


@pytest.mark.parametrize("call", [lambda: S.ndtr(1.0), lambda: S.xlog1py(1.0, 2.0), lambda: tg.i0([1.0])])
def test_what_is_no_tensor_is_refused(call: Any) -> None:
    with pytest.raises(TypeError, match="argument 'input' \\(position 1\\) must be Tensor, not (float|list)"):
        call()


def test_without_scipy_an_error_says_what_to_install(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "scipy.special", None)
    by_scipy._of_scipy.cache_clear()  # as in a process that has not called it
    with pytest.raises(ModuleNotFoundError, match=r"tapegrad.special.ndtr needs SciPy: pip install 'tapegrad\[scipy\]'"):
        S.ndtr(tg.ones(1))
    assert S.erf(tg.zeros(1)).tolist() == [0.0]
