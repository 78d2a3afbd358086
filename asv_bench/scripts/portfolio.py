"""Weights of 30 assets: risk, return and the impact of trading, under limits on weights and return, by SLSQP."""

from __future__ import annotations

import sys

import numpy as np

MINIMUM = -0.10397225
ASSETS = 30
SETTINGS = {"method": "SLSQP", "options": {"maxiter": 500, "ftol": 1e-10}}
LIMITS = (0.0, 0.15)
HELD = np.full(ASSETS, 1.0 / ASSETS)
TARGET = 0.09
_random = np.random.default_rng(0)
RETURNS = _random.uniform(0.02, 0.14, ASSETS)
_factors = 0.15 * _random.standard_normal((ASSETS, 4))
COVARIANCE = _factors @ _factors.T + np.diag(_random.uniform(0.01, 0.05, ASSETS))


def cost(w, covariance=COVARIANCE, returns=RETURNS, held=HELD):
    return 2.0 * (w @ covariance @ w) - returns @ w + 0.02 * (((w - held) ** 2 + 1e-4) ** 0.75).sum()


def left_over(w):
    return w.sum() - 1.0


def above_target(w, returns=RETURNS):
    return returns @ w - TARGET


def tapegrad():
    import tapegrad as tg
    from tapegrad.optimize import equality, inequality

    constraints = [equality(left_over), inequality(above_target)]
    return tg.optimize.minimize(cost, HELD, bounds=[LIMITS] * ASSETS, constraints=constraints, **SETTINGS).fun


def scipy():
    from scipy.optimize import minimize

    constraints = [{"type": "eq", "fun": left_over}, {"type": "ineq", "fun": above_target}]
    return minimize(cost, HELD, bounds=[LIMITS] * ASSETS, constraints=constraints, **SETTINGS).fun


def autograd():
    from autograd import grad, value_and_grad
    from scipy.optimize import minimize

    constraints = [
        {"type": "eq", "fun": left_over, "jac": grad(left_over)},
        {"type": "ineq", "fun": above_target, "jac": grad(above_target)},
    ]
    return minimize(value_and_grad(cost), HELD, jac=True, bounds=[LIMITS] * ASSETS, constraints=constraints, **SETTINGS).fun


def jax():
    import jax
    from scipy.optimize import minimize

    jax.config.update("jax_enable_x64", True)
    constraints = [
        {"type": "eq", "fun": left_over, "jac": jax.jit(jax.grad(left_over))},
        {"type": "ineq", "fun": above_target, "jac": jax.jit(jax.grad(above_target))},
    ]
    both = jax.jit(jax.value_and_grad(cost))
    return minimize(both, HELD, jac=True, bounds=[LIMITS] * ASSETS, constraints=constraints, **SETTINGS).fun


def torch():
    import torch
    from scipy.optimize import minimize

    covariance, returns, held = torch.tensor(COVARIANCE), torch.tensor(RETURNS), torch.tensor(HELD)

    def gradient_of(function, *data):
        def gradient(w):
            w = torch.tensor(w, requires_grad=True)
            function(w, *data).backward()
            return w.grad.numpy()

        return gradient

    constraints = [
        {"type": "eq", "fun": left_over, "jac": gradient_of(left_over)},
        {"type": "ineq", "fun": above_target, "jac": gradient_of(above_target, returns)},
    ]
    slope = gradient_of(cost, covariance, returns, held)
    return minimize(cost, HELD, jac=slope, bounds=[LIMITS] * ASSETS, constraints=constraints, **SETTINGS).fun


def casadi():
    import casadi as ca

    w = ca.SX.sym("w", ASSETS)
    value = 2.0 * (w.T @ ca.DM(COVARIANCE) @ w) - ca.dot(RETURNS, w) + 0.02 * ca.sum1(((w - HELD) ** 2 + 1e-4) ** 0.75)
    problem = {"x": w, "f": value, "g": ca.vertcat(ca.sum1(w), ca.dot(RETURNS, w))}
    solver = ca.nlpsol("solver", "ipopt", problem, {"print_time": False, "ipopt.print_level": 0, "ipopt.sb": "yes"})
    return solver(x0=HELD, lbx=LIMITS[0], ubx=LIMITS[1], lbg=[1.0, TARGET], ubg=[1.0, np.inf])["f"]


if __name__ == "__main__":
    print(float(globals()[sys.argv[1]]()))
