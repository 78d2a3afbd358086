"""Logistic regression of 1000 answers on 30 measurements, with a ridge, by L-BFGS-B."""

from __future__ import annotations

import sys

import numpy as np

MINIMUM = 194.95554336
SETTINGS = {"method": "L-BFGS-B", "options": {"maxfun": 10**5}}
START = np.zeros(30)
_random = np.random.default_rng(0)
X = _random.standard_normal((1000, 30))
SIGNS = np.where(X @ _random.standard_normal(30) + _random.logistic(size=1000) > 0.0, 1.0, -1.0)


def loss(w, np=np, x=X, signs=SIGNS):
    return np.logaddexp(0.0, -signs * (x @ w)).sum() + 0.5 * (w**2).sum()


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

    return minimize(value_and_grad(lambda w: loss(w, anp)), START, jac=True, **SETTINGS).fun


def jax():
    import jax
    import jax.numpy as jnp
    from scipy.optimize import minimize

    jax.config.update("jax_enable_x64", True)
    return minimize(jax.jit(jax.value_and_grad(lambda w: loss(w, jnp))), START, jac=True, **SETTINGS).fun


def torch():
    import torch
    from scipy.optimize import minimize

    x, signs = torch.tensor(X), torch.tensor(SIGNS)

    def value_and_gradient(w):
        w = torch.tensor(w, requires_grad=True)
        value = torch.nn.functional.softplus(-signs * (x @ w)).sum() + 0.5 * (w**2).sum()
        value.backward()
        return value.item(), w.grad.numpy()

    return minimize(value_and_gradient, START, jac=True, **SETTINGS).fun


def casadi():
    import casadi as ca
    from scipy.optimize import minimize

    w = ca.MX.sym("w", 30)
    z = -ca.DM(SIGNS) * (ca.DM(X) @ w)
    value = ca.sum1(ca.fmax(z, 0.0) + ca.log1p(ca.exp(-ca.fabs(z)))) + 0.5 * ca.sumsqr(w)
    both = ca.Function("both", [w], [value, ca.gradient(value, w)])

    def value_and_gradient(w):
        value, gradient = both(w)
        return float(value), gradient.full().ravel()

    return minimize(value_and_gradient, START, jac=True, **SETTINGS).fun


if __name__ == "__main__":
    print(float(globals()[sys.argv[1]]()))
