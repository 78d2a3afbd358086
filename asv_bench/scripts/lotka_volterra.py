"""Rates and beginning of a Lotka-Volterra system fitted to 20 measurements of both species, through 200 Runge-Kutta steps."""

from __future__ import annotations

import sys

import numpy as np

MINIMUM = 10.63809333
SETTINGS = {"method": "L-BFGS-B", "options": {"maxfun": 10**5}}
STEPS, EVERY, DT = 200, 10, 0.1
START = np.log([0.8, 0.8, 0.8, 0.8, 1.0, 1.0])  # four rates, prey and predators at the beginning
DEVIATION = 0.1


def step(x, y, a, b, c, d):
    """One of Runge and Kutta's steps of fourth order."""

    def slope(x, y):
        return x * (a - b * y), y * (d * x - c)

    x1, y1 = slope(x, y)
    x2, y2 = slope(x + 0.5 * DT * x1, y + 0.5 * DT * y1)
    x3, y3 = slope(x + 0.5 * DT * x2, y + 0.5 * DT * y2)
    x4, y4 = slope(x + DT * x3, y + DT * y3)
    return x + DT / 6.0 * (x1 + 2.0 * x2 + 2.0 * x3 + x4), y + DT / 6.0 * (y1 + 2.0 * y2 + 2.0 * y3 + y4)


def _measured():
    x, y, seen = 1.2, 0.7, []
    for i in range(STEPS):
        x, y = step(x, y, 1.0, 0.9, 1.1, 0.7)
        if (i + 1) % EVERY == 0:
            seen.append([np.log(x), np.log(y)])
    return np.array(seen) + DEVIATION * np.random.default_rng(0).standard_normal((len(seen), 2))


MEASURED = _measured()


def loss(p, np=np):
    """Squares of the residuals, and of what the rates and beginnings are believed to be."""
    a, b, c, d, x, y = (np.exp(p[i]) for i in range(6))
    value = 0.5 * (p**2).sum()
    for i in range(STEPS):
        x, y = step(x, y, a, b, c, d)
        if (i + 1) % EVERY == 0:
            prey, predators = MEASURED[i // EVERY]
            value = value + 0.5 * ((np.log(x) - prey) ** 2 + (np.log(y) - predators) ** 2) / DEVIATION**2
    return value


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

    def loss(p):
        *rates, x, y = jnp.exp(p)

        def advance(state, _):
            state = jax.lax.fori_loop(0, EVERY, lambda _, state: step(*state, *rates), state)
            return state, jnp.log(jnp.stack(state))

        _, seen = jax.lax.scan(advance, (x, y), length=STEPS // EVERY)
        return 0.5 * (p**2).sum() + 0.5 * ((seen - MEASURED) ** 2).sum() / DEVIATION**2

    return minimize(jax.jit(jax.value_and_grad(loss)), START, jac=True, **SETTINGS).fun


def torch():
    import torch
    from scipy.optimize import minimize

    def value_and_gradient(p):
        p = torch.tensor(p, requires_grad=True)
        value = loss(p, torch)
        value.backward()
        return value.item(), p.grad.numpy()

    return minimize(value_and_gradient, START, jac=True, **SETTINGS).fun


def casadi():
    import casadi as ca
    from scipy.optimize import minimize

    p = ca.SX.sym("p", 6)
    rates, state = ca.exp(p[:4]), ca.exp(p[4:])
    value = 0.5 * ca.sumsqr(p)
    for i in range(STEPS):
        state = ca.vertcat(*step(state[0], state[1], *ca.vertsplit(rates)))
        if (i + 1) % EVERY == 0:
            value += 0.5 * ca.sumsqr(ca.log(state) - MEASURED[i // EVERY]) / DEVIATION**2
    both = ca.Function("both", [p], [value, ca.gradient(value, p)])

    def value_and_gradient(p):
        value, gradient = both(p)
        return float(value), gradient.full().ravel()

    return minimize(value_and_gradient, START, jac=True, **SETTINGS).fun


if __name__ == "__main__":
    print(float(globals()[sys.argv[1]]()))
