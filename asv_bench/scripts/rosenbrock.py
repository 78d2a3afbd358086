"""Rosenbrock's function of ten variables, by L-BFGS-B."""

from __future__ import annotations

import sys

import numpy as np

MINIMUM = 0.0
SETTINGS = {"method": "L-BFGS-B", "options": {"maxfun": 10**4}}
START = np.tile([1.3, 0.7, 0.8, 1.9, 1.2], 2)


def rosenbrock(x):
    return (100.0 * (x[1:] - x[:-1] ** 2) ** 2).sum() + ((1.0 - x[:-1]) ** 2).sum()


def tapegrad():
    import tapegrad as tg

    return tg.optimize.minimize(rosenbrock, START, **SETTINGS).fun


def scipy():
    from scipy.optimize import minimize

    return minimize(rosenbrock, START, **SETTINGS).fun


def autograd():
    from autograd import value_and_grad
    from scipy.optimize import minimize

    return minimize(value_and_grad(rosenbrock), START, jac=True, **SETTINGS).fun


def jax():
    import jax
    from scipy.optimize import minimize

    jax.config.update("jax_enable_x64", True)
    return minimize(jax.jit(jax.value_and_grad(rosenbrock)), START, jac=True, **SETTINGS).fun


def torch():
    import torch
    from scipy.optimize import minimize

    def value_and_gradient(x):
        x = torch.tensor(x, requires_grad=True)
        value = rosenbrock(x)
        value.backward()
        return value.item(), x.grad.numpy()

    return minimize(value_and_gradient, START, jac=True, **SETTINGS).fun


def casadi():
    import casadi as ca

    x = ca.SX.sym("x", 10)
    value = 100.0 * ca.sumsqr(x[1:] - x[:-1] ** 2) + ca.sumsqr(1.0 - x[:-1])
    solver = ca.nlpsol("solver", "ipopt", {"x": x, "f": value}, {"print_time": False, "ipopt.print_level": 0, "ipopt.sb": "yes"})
    return solver(x0=START)["f"]


if __name__ == "__main__":
    print(float(globals()[sys.argv[1]]()))
