"""Conductivity along a rod from temperatures at four times: 400 explicit steps on 21 nodes, by L-BFGS-B."""

from __future__ import annotations

import sys

import numpy as np

MINIMUM = 36.35108576
SETTINGS = {"method": "L-BFGS-B", "options": {"maxfun": 10**5}}
NODES, STEPS, EVERY, RATE = 21, 400, 100, 0.2
START = np.zeros(NODES - 1)  # logarithms of the conductivity between nodes
BEGINNING = np.exp(-0.5 * ((np.arange(NODES) - 6.0) / 2.0) ** 2)
DEVIATION = 0.002


def advance(temperature, conductivity, np=np):
    """One step of a rod that is insulated at both ends."""
    flow = RATE * conductivity * (temperature[1:] - temperature[:-1])
    none = np.zeros_like(flow[:1])
    return temperature + np.concatenate([flow, none]) - np.concatenate([none, flow])


def _measured():
    temperature, seen = BEGINNING, []
    for i in range(STEPS):
        temperature = advance(temperature, np.exp(0.5 * np.sin(np.arange(NODES - 1) / 3.0)))
        if (i + 1) % EVERY == 0:
            seen.append(temperature)
    return np.array(seen) + DEVIATION * np.random.default_rng(0).standard_normal((len(seen), NODES))


MEASURED = _measured()


def loss(p, np=np, measured=MEASURED, temperature=BEGINNING):
    """Squares of the residuals, and of steps in the conductivity."""
    conductivity = np.exp(p)
    value = 0.5 * (p**2).sum() + 10.0 * ((p[1:] - p[:-1]) ** 2).sum()
    for i in range(STEPS):
        temperature = advance(temperature, conductivity, np)
        if (i + 1) % EVERY == 0:
            value = value + 0.5 * ((temperature - measured[i // EVERY]) ** 2).sum() / DEVIATION**2
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
        conductivity = jnp.exp(p)

        def until_measured(temperature, _):
            temperature = jax.lax.fori_loop(0, EVERY, lambda _, t: advance(t, conductivity, jnp), temperature)
            return temperature, temperature

        _, seen = jax.lax.scan(until_measured, jnp.asarray(BEGINNING), length=STEPS // EVERY)
        rough = 0.5 * (p**2).sum() + 10.0 * ((p[1:] - p[:-1]) ** 2).sum()
        return rough + 0.5 * ((seen - MEASURED) ** 2).sum() / DEVIATION**2

    return minimize(jax.jit(jax.value_and_grad(loss)), START, jac=True, **SETTINGS).fun


def torch():
    import torch
    from scipy.optimize import minimize

    measured, beginning = torch.tensor(MEASURED), torch.tensor(BEGINNING)

    def value_and_gradient(p):
        p = torch.tensor(p, requires_grad=True)
        value = loss(p, torch, measured, beginning)
        value.backward()
        return value.item(), p.grad.numpy()

    return minimize(value_and_gradient, START, jac=True, **SETTINGS).fun


def casadi():
    import casadi as ca
    from scipy.optimize import minimize

    t, k = ca.SX.sym("t", NODES), ca.SX.sym("k", NODES - 1)
    flow = RATE * k * (t[1:] - t[:-1])
    step = ca.Function("step", [t, k], [t + ca.vertcat(flow, 0.0) - ca.vertcat(0.0, flow)])
    until_measured = step.mapaccum(EVERY)
    p = ca.MX.sym("p", NODES - 1)
    value, temperature = 0.5 * ca.sumsqr(p) + 10.0 * ca.sumsqr(p[1:] - p[:-1]), ca.DM(BEGINNING)
    for measured in MEASURED:
        temperature = until_measured(temperature, ca.repmat(ca.exp(p), 1, EVERY))[:, -1]
        value += 0.5 * ca.sumsqr(temperature - measured) / DEVIATION**2
    both = ca.Function("both", [p], [value, ca.gradient(value, p)])

    def value_and_gradient(p):
        value, gradient = both(p)
        return float(value), gradient.full().ravel()

    return minimize(value_and_gradient, START, jac=True, **SETTINGS).fun


if __name__ == "__main__":
    print(float(globals()[sys.argv[1]]()))
