"""Values under a driver are NumPy's and SciPy's to the last digit, whatever the package itself computes them with."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import scipy.special
from many_cases import each

import tapegrad as tg

X = np.random.default_rng(3).uniform(-3, 3, 2000)
P = np.random.default_rng(4).uniform(0.01, 0.99, 2000)

FUNCTIONS: dict[str, tuple[Callable[[Any], Any], np.ndarray]] = {
    name: (getattr(scipy.special, name), P)
    for name in ["digamma", "erf", "erfc", "erfinv", "exp2", "expit", "expm1", "gammaln", "log1p", "logit", "psi", "ndtr", "gamma"]
}
FUNCTIONS["xlogy"] = lambda p: scipy.special.xlogy(0.3, p), P
FUNCTIONS |= {f"x ** {n}": (lambda x, n=n: x**n, X) for n in (-2, -1, 2, 3, 4)}
FUNCTIONS |= {
    "x ** 3.0": (lambda x: x**3.0, X), "np.power": (lambda x: np.power(x, 3), X), "np.sinc": (np.sinc, X),
    "np.gradient": (np.gradient, X), "abs of complex": (lambda x: abs(x + 2j), X), "quotient": (lambda x: (1 / (x + 1j)).imag, X),
    "complex root": (lambda x: np.sqrt(x + 1j).real, X), "complex exponential": (lambda x: np.exp(x + 1j).imag, X),
}  # fmt: skip


@each("name", FUNCTIONS)
def test_values_have_numpys_digits(name: str) -> None:
    function, x = FUNCTIONS[name]
    seen: list[Any] = []

    def f(x: Any) -> Any:
        seen.append(function(x))
        if name != "np.gradient":
            seen.append(function(x[7]))
            seen.append(function(x[7]) * 1.0)
        return seen[0].sum()

    tg.grad(f)(x)
    expected = [function(x)] if name == "np.gradient" else [function(x), function(x[7]), function(x[7])]
    for found, want in zip(seen, expected, strict=True):
        np.testing.assert_array_equal(np.asarray(tg.stop_gradient(found)), want)


def test_number_next_to_infinity_is_the_largest_one() -> None:
    value, _ = tg.value_and_grad(lambda x: np.nextafter(x, 0.0)[0])(np.array([np.inf, 1.0]))
    assert value == np.finfo(np.float64).max
