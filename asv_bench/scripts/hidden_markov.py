"""Transitions, means and deviations of a hidden Markov model of three states, from 400 measurements, by L-BFGS-B."""

from __future__ import annotations

import sys

import numpy as np

MINIMUM = 185.7174954
SETTINGS = {"method": "L-BFGS-B", "options": {"maxfun": 10**5}}
STATES, LENGTH = 3, 400
START = np.concatenate([2.0 * np.eye(STATES).ravel(), [-1.0, 0.0, 1.0], np.zeros(STATES)])


def _measured():
    random, state, seen = np.random.default_rng(0), 0, []
    for _ in range(LENGTH):
        if random.random() > 0.9:
            state = random.integers(STATES)
        seen.append([-2.0, 0.0, 3.0][state] + [0.5, 1.0, 0.7][state] * random.standard_normal())
    return np.array(seen)


MEASURED = _measured()


def prepared(p, np, measured):
    """Transition probabilities, densities of the measurements in each state, and what is believed of the parameters."""
    weights = np.exp(p[:9].reshape(STATES, STATES))
    densities = np.exp(-0.5 * ((measured[:, None] - p[9:12]) * np.exp(-p[12:])) ** 2 - p[12:])
    return weights / weights.sum(1)[:, None], densities, 0.05 * (p**2).sum()


def loss(p, np=np, measured=MEASURED):
    """The forward algorithm, scaled at each step."""
    transitions, densities, value = prepared(p, np, measured)
    state = densities[0] / STATES
    for i in range(1, LENGTH):
        total = state.sum()
        value = value - np.log(total)
        state = (state / total) @ transitions * densities[i]
    return value - np.log(state.sum())


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
        transitions, densities, value = prepared(p, jnp, MEASURED)

        def advance(state, density):
            total = state.sum()
            return (state / total) @ transitions * density, jnp.log(total)

        state, logarithms = jax.lax.scan(advance, densities[0] / STATES, densities[1:])
        return value - logarithms.sum() - jnp.log(state.sum())

    return minimize(jax.jit(jax.value_and_grad(loss)), START, jac=True, **SETTINGS).fun


def torch():
    import torch
    from scipy.optimize import minimize

    measured = torch.tensor(MEASURED)

    def value_and_gradient(p):
        p = torch.tensor(p, requires_grad=True)
        value = loss(p, torch, measured)
        value.backward()
        return value.item(), p.grad.numpy()

    return minimize(value_and_gradient, START, jac=True, **SETTINGS).fun


def casadi():
    import casadi as ca
    from scipy.optimize import minimize

    p = ca.SX.sym("p", 15)
    weights = ca.exp(ca.reshape(p[:9], STATES, STATES))  # by columns, each the weights of leaving a state
    transitions = weights / ca.repmat(ca.sum1(weights), STATES, 1)
    value, state = 0.05 * ca.sumsqr(p), 1.0 / STATES
    for i in range(LENGTH):
        state = state * ca.exp(-0.5 * ((MEASURED[i] - p[9:12]) * ca.exp(-p[12:])) ** 2 - p[12:])
        total = ca.sum1(state)
        value -= ca.log(total)
        state = transitions @ (state / total)
    both = ca.Function("both", [p], [value, ca.gradient(value, p)])

    def value_and_gradient(p):
        value, gradient = both(p)
        return float(value), gradient.full().ravel()

    return minimize(value_and_gradient, START, jac=True, **SETTINGS).fun


if __name__ == "__main__":
    print(float(globals()[sys.argv[1]]()))
