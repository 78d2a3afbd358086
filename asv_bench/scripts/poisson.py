"""The evidence of a Poisson regression by Laplace's approximation: L-BFGS-B, and the Hessian at the minimum."""

from __future__ import annotations

import sys

import numpy as np

MINIMUM = 153.91049778
SETTINGS = {"method": "L-BFGS-B", "options": {"maxfun": 10**4}}
START = np.zeros(6)
_random = np.random.default_rng(0)
X = np.hstack([np.ones((300, 1)), 0.5 * _random.standard_normal((300, 5))])
COUNTS = _random.poisson(np.exp(X @ np.array([0.5, 1.0, -0.7, 0.3, 0.0, 0.4]))).astype(float)


def loss(w, np=np, x=X, counts=COUNTS):
    rates = x @ w
    return (np.exp(rates) - counts * rates).sum() + 0.5 * (w**2).sum()


def evidence(minimum, hessian):
    return minimum + 0.5 * np.linalg.slogdet(hessian)[1]


def tapegrad():
    import tapegrad as tg

    found = tg.optimize.minimize(loss, START, **SETTINGS)
    return evidence(found.fun, tg.hessian(loss)(found.x))


def scipy():
    from scipy.optimize import minimize

    found = minimize(loss, START, **SETTINGS)
    hessian = np.empty((6, 6))
    for i, s in enumerate(1e-3 * np.eye(6)):
        for j, t in enumerate(1e-3 * np.eye(6)):
            corners = loss(found.x + s + t) - loss(found.x + s - t) - loss(found.x - s + t) + loss(found.x - s - t)
            hessian[i, j] = corners / 4e-6
    return evidence(found.fun, hessian)


def autograd():
    import autograd.numpy as anp
    from autograd import hessian, value_and_grad
    from scipy.optimize import minimize

    def function(w):
        return loss(w, anp)

    found = minimize(value_and_grad(function), START, jac=True, **SETTINGS)
    return evidence(found.fun, hessian(function)(found.x))


def jax():
    import jax
    import jax.numpy as jnp
    from scipy.optimize import minimize

    jax.config.update("jax_enable_x64", True)

    def function(w):
        return loss(w, jnp)

    found = minimize(jax.jit(jax.value_and_grad(function)), START, jac=True, **SETTINGS)
    return evidence(found.fun, jax.jit(jax.hessian(function))(found.x))


def torch():
    import torch
    from scipy.optimize import minimize

    x, counts = torch.tensor(X), torch.tensor(COUNTS)

    def function(w):
        return loss(w, torch, x, counts)

    def value_and_gradient(w):
        w = torch.tensor(w, requires_grad=True)
        value = function(w)
        value.backward()
        return value.item(), w.grad.numpy()

    found = minimize(value_and_gradient, START, jac=True, **SETTINGS)
    return evidence(found.fun, torch.autograd.functional.hessian(function, torch.tensor(found.x)).numpy())


def casadi():
    import casadi as ca
    from scipy.optimize import minimize

    w = ca.MX.sym("w", 6)
    rates = ca.DM(X) @ w
    value = ca.sum1(ca.exp(rates) - COUNTS * rates) + 0.5 * ca.sumsqr(w)
    both, hessian = ca.Function("both", [w], [value, ca.gradient(value, w)]), ca.Function("hessian", [w], [ca.hessian(value, w)[0]])

    def value_and_gradient(w):
        value, gradient = both(w)
        return float(value), gradient.full().ravel()

    found = minimize(value_and_gradient, START, jac=True, **SETTINGS)
    return evidence(found.fun, hessian(found.x).full())


if __name__ == "__main__":
    print(float(globals()[sys.argv[1]]()))
