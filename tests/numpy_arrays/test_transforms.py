"""Fourier transforms and complex numbers of what is differentiated, besides the lines that are compared with NumPy's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import tapegrad as tg

RNG = np.random.default_rng(3)
X = RNG.normal(size=7)


def filtered(x: Any) -> Any:
    z = np.fft.rfft(x)
    z[2:] = 0.0
    z *= 1.5 - 0.5j
    z[0] += x[0]
    return np.fft.irfft(z, len(x))


def test_a_filter_is_written_in_place() -> None:
    np.testing.assert_allclose(tg.jacobian(filtered)(X) @ X, filtered(X), rtol=1e-14)


@pytest.mark.parametrize(
    "f",
    [
        lambda x: (np.abs(np.fft.rfft(np.sin(x))) ** 3).sum(),
        lambda x: (np.fft.irfft(np.fft.rfft(x**2) * np.exp(1j * np.arange(4)), 7) ** 3).sum(),
        lambda x: np.angle(np.exp(1j * x) + 2.0).sum() * abs((x + 1j) ** 3).sum(),
    ],
)
def test_second_derivatives_are_the_slopes_of_the_first(f: Any) -> None:
    gradient = tg.grad(f)
    slope = np.array([gradient(X + 1e-5 * e) - gradient(X - 1e-5 * e) for e in np.eye(7)]) / 2e-5
    np.testing.assert_allclose(tg.hessian(f)(X), slope, rtol=1e-6, atol=1e-6 * np.abs(slope).max())


@pytest.mark.parametrize("norm", ["backward", "ortho", "forward"])
@pytest.mark.parametrize("length", [4, 7, 8, 9])
def test_transforms_are_the_transpose_of_their_vjps(norm: str, length: int) -> None:
    def f(x: Any) -> Any:
        z, w = np.fft.rfft(x, length, norm=norm), np.fft.ifft(x, length, norm=norm)
        return np.concatenate([z.real, z.imag, w.real, w.imag, np.fft.irfft(z + w[: len(z)], length, norm=norm)])

    jacobian = tg.jacobian(f, mode="reverse")(X)
    np.testing.assert_allclose(jacobian, np.stack([f(e) for e in np.eye(7)], 1), atol=1e-14)


def test_single_precision_stays() -> None:
    seen: list[Any] = []
    gradient = tg.grad(lambda x: seen.append(np.fft.fft(x)) or np.abs(seen[0]).sum())(X.astype(np.float32))
    assert (seen[0].dtype, gradient.dtype) == (np.complex64, np.float32)


def test_a_constant_of_complex_numbers_is_numpys() -> None:
    gradient = tg.grad(lambda x: (tg.stop_gradient(np.fft.fft(x)).real * x).sum())(X)
    np.testing.assert_allclose(gradient, np.fft.fft(X).real, rtol=1e-14, atol=1e-14)


@pytest.mark.parametrize(
    ("f", "message"),
    [
        (lambda x: np.fft.fft(x).sum(), "returned a complex number"),
        (lambda x: np.spacing(x + 1j).real.sum(), "spacing is not covered for complex numbers"),
        (lambda x: np.sort(x + 1j), "real and imaginary parts"),
        (lambda x: np.asarray(x + 1j), "take real parts"),
    ],
)
def test_what_complex_numbers_cannot_do_is_said(f: Any, message: str) -> None:
    with pytest.raises(TypeError, match=message):
        tg.grad(f)(X)
