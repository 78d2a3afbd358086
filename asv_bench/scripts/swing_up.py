"""A pendulum swung up with the least effort: trapezoidal collocation on 24 intervals, by SLSQP."""

from __future__ import annotations

import sys

import numpy as np

MINIMUM = 2.86158344
SETTINGS = {"method": "SLSQP", "options": {"maxiter": 500, "ftol": 1e-10}}
POINTS = 25
DT = 5.0 / (POINTS - 1)
START = np.concatenate([np.linspace(0.0, np.pi, POINTS), np.zeros(2 * POINTS)])  # angles, speeds, torques


def effort(z):
    torque = z[2 * POINTS :]
    return 0.5 * DT * (torque[1:] ** 2 + torque[:-1] ** 2).sum()


def defects(z, np=np, concatenate=np.concatenate):
    """What every interval and both ends violate of the motion."""
    angle, speed, torque = z[:POINTS], z[POINTS : 2 * POINTS], z[2 * POINTS :]
    acceleration = torque - np.sin(angle) - 0.1 * speed
    moved = angle[1:] - angle[:-1] - 0.5 * DT * (speed[1:] + speed[:-1])
    driven = speed[1:] - speed[:-1] - 0.5 * DT * (acceleration[1:] + acceleration[:-1])
    return concatenate([moved, driven, angle[:1], angle[-1:] - np.pi, speed[:1], speed[-1:]])


def tapegrad():
    import tapegrad as tg

    return tg.optimize.minimize(effort, START, constraints=tg.optimize.equality(defects), **SETTINGS).fun


def scipy():
    from scipy.optimize import minimize

    return minimize(effort, START, constraints={"type": "eq", "fun": defects}, **SETTINGS).fun


def autograd():
    import autograd.numpy as anp
    from autograd import jacobian, value_and_grad
    from scipy.optimize import minimize

    constraint = {"type": "eq", "fun": defects, "jac": jacobian(lambda z: defects(z, anp, anp.concatenate))}
    return minimize(value_and_grad(effort), START, jac=True, constraints=constraint, **SETTINGS).fun


def jax():
    import jax
    import jax.numpy as jnp
    from scipy.optimize import minimize

    jax.config.update("jax_enable_x64", True)
    slopes = jax.jit(jax.jacrev(lambda z: defects(z, jnp, jnp.concatenate)))
    constraint = {"type": "eq", "fun": defects, "jac": slopes}
    return minimize(jax.jit(jax.value_and_grad(effort)), START, jac=True, constraints=constraint, **SETTINGS).fun


def torch():
    import torch
    from scipy.optimize import minimize

    def value_and_gradient(z):
        z = torch.tensor(z, requires_grad=True)
        value = effort(z)
        value.backward()
        return value.item(), z.grad.numpy()

    slopes = torch.func.jacrev(lambda z: defects(z, torch, torch.concatenate))
    constraint = {"type": "eq", "fun": defects, "jac": lambda z: slopes(torch.tensor(z)).numpy()}
    return minimize(value_and_gradient, START, jac=True, constraints=constraint, **SETTINGS).fun


def casadi():
    import casadi as ca

    z = ca.SX.sym("z", 3 * POINTS)
    torque = z[2 * POINTS :]
    value = 0.5 * DT * (ca.sumsqr(torque[1:]) + ca.sumsqr(torque[:-1]))
    problem = {"x": z, "f": value, "g": defects(z, ca, lambda pieces: ca.vertcat(*pieces))}
    solver = ca.nlpsol("solver", "ipopt", problem, {"print_time": False, "ipopt.print_level": 0, "ipopt.sb": "yes"})
    return solver(x0=START, lbg=0.0, ubg=0.0)["f"]


if __name__ == "__main__":
    print(float(globals()[sys.argv[1]]()))
