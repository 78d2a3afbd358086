"""Amplitude, two lengths and noise of a Gaussian process of 80 points, by the marginal likelihood and L-BFGS-B."""

from __future__ import annotations

import sys

import numpy as np

MINIMUM = -111.14512072
SETTINGS = {"method": "L-BFGS-B", "options": {"maxfun": 10**4}}
START = np.zeros(4)  # logarithms of amplitude, lengths, noise
_random = np.random.default_rng(0)
POINTS = _random.uniform(-2.0, 2.0, (80, 2))
VALUES = np.sin(2.0 * POINTS[:, 0]) + 0.3 * POINTS[:, 1] + 0.1 * _random.standard_normal(80)
SQUARES = (POINTS[:, None, :] - POINTS) ** 2
UNIT = np.eye(80)


def loss(p, np=np, squares=SQUARES, values=VALUES, unit=UNIT):
    covariance = np.exp(2.0 * p[0] - 0.5 * (squares @ np.exp(-2.0 * p[1:3]))) + np.exp(2.0 * p[3]) * unit
    factor = np.linalg.cholesky(covariance)
    whitened = np.linalg.solve(factor, values)
    return 0.5 * (whitened**2).sum() + np.log(np.diag(factor)).sum()


def tapegrad():
    import tapegrad as tg

    return tg.optimize.minimize(loss, START, **SETTINGS).fun


def scipy():
    from scipy.optimize import minimize

    return minimize(loss, START, **SETTINGS).fun


def autograd():
    import autograd.numpy as anp
    from autograd import value_and_grad
    from scipy.optimize import minimize

    return minimize(value_and_grad(lambda p: loss(p, anp)), START, jac=True, **SETTINGS).fun


def jax():
    import jax
    import jax.numpy as jnp
    from scipy.optimize import minimize

    jax.config.update("jax_enable_x64", True)
    return minimize(jax.jit(jax.value_and_grad(lambda p: loss(p, jnp))), START, jac=True, **SETTINGS).fun


def torch():
    import torch
    from scipy.optimize import minimize

    data = [torch.tensor(array) for array in (SQUARES, VALUES, UNIT)]

    def value_and_gradient(p):
        p = torch.tensor(p, requires_grad=True)
        value = loss(p, torch, *data)
        value.backward()
        return value.item(), p.grad.numpy()

    return minimize(value_and_gradient, START, jac=True, **SETTINGS).fun


if __name__ == "__main__":
    print(float(globals()[sys.argv[1]]()))
