"""The likelihood of a mixture of three normal distributions in two dimensions, 600 points, by L-BFGS-B."""

from __future__ import annotations

import sys

import numpy as np

MINIMUM = 1099.21858137
SETTINGS = {"method": "L-BFGS-B", "options": {"maxfun": 10**5}}
_random = np.random.default_rng(0)
_CENTRES = np.array([[-2.0, 0.0], [1.0, 2.0], [2.0, -1.0]])
POINTS = _CENTRES[_random.choice(3, 600, p=[0.5, 0.3, 0.2])] + np.array([0.8, 1.2]) * _random.standard_normal((600, 2))
START = np.concatenate([np.zeros(3), [-1.0, 0.0, 0.0, 1.0, 1.0, 0.0], np.zeros(6)])  # log weights, means, log deviations


def loss(p, np, logsumexp, points=POINTS):
    weights, means, deviations = p[:3], p[3:9].reshape(3, 2), p[9:].reshape(3, 2)
    scaled = (points[:, None, :] - means) * np.exp(-deviations)
    densities = weights - deviations.sum(1) - 0.5 * (scaled**2).sum(2)
    # Neither the scale of the weights nor that of a deviation at a single point may run away.
    return (
        len(points) * logsumexp(weights, 0) - logsumexp(densities, 1).sum() + 0.5 * (weights**2).sum() + 0.5 * (deviations**2).sum()
    )


def tapegrad():
    import tapegrad as tg

    return tg.optimize.minimize(lambda p: loss(p, np, tg.logsumexp), START, **SETTINGS).fun


def scipy():
    from scipy.optimize import minimize
    from scipy.special import logsumexp

    return minimize(lambda p: loss(p, np, logsumexp), START, **SETTINGS).fun


def autograd():
    import autograd.numpy as anp
    from autograd import value_and_grad
    from autograd.scipy.special import logsumexp
    from scipy.optimize import minimize

    return minimize(value_and_grad(lambda p: loss(p, anp, logsumexp)), START, jac=True, **SETTINGS).fun


def jax():
    import jax
    import jax.numpy as jnp
    from scipy.optimize import minimize

    jax.config.update("jax_enable_x64", True)
    both = jax.jit(jax.value_and_grad(lambda p: loss(p, jnp, jax.scipy.special.logsumexp)))
    return minimize(both, START, jac=True, **SETTINGS).fun


def torch():
    import torch
    from scipy.optimize import minimize

    points = torch.tensor(POINTS)

    def value_and_gradient(p):
        p = torch.tensor(p, requires_grad=True)
        value = loss(p, torch, torch.logsumexp, points)
        value.backward()
        return value.item(), p.grad.numpy()

    return minimize(value_and_gradient, START, jac=True, **SETTINGS).fun


def casadi():
    import casadi as ca
    from scipy.optimize import minimize

    p = ca.MX.sym("p", 15)
    weights, means, deviations = p[:3], ca.reshape(p[3:9], 2, 3), ca.reshape(p[9:], 2, 3)
    densities = []
    for k in range(3):
        scaled = (ca.DM(POINTS) - ca.repmat(means[:, k].T, len(POINTS), 1)) * ca.repmat(ca.exp(-deviations[:, k].T), len(POINTS), 1)
        densities.append(weights[k] - ca.sum1(deviations[:, k]) - 0.5 * ca.sum2(scaled**2))
    largest = ca.fmax(ca.fmax(densities[0], densities[1]), densities[2])
    likelihood = ca.sum1(largest + ca.log(sum(ca.exp(density - largest) for density in densities)))
    value = len(POINTS) * ca.logsumexp(weights) - likelihood + 0.5 * ca.sumsqr(weights) + 0.5 * ca.sumsqr(deviations)
    both = ca.Function("both", [p], [value, ca.gradient(value, p)])

    def value_and_gradient(p):
        value, gradient = both(p)
        return float(value), gradient.full().ravel()

    return minimize(value_and_gradient, START, jac=True, **SETTINGS).fun


if __name__ == "__main__":
    print(float(globals()[sys.argv[1]]()))
