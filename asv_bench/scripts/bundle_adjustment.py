"""Four cameras and thirty points from where each camera sees each point: least squares in 114 variables."""

from __future__ import annotations

import sys

import numpy as np

MINIMUM = 16.22072562
SETTINGS = {"method": "trf", "x_scale": "jac", "ftol": 1e-12}
CAMERAS, POINTS, FOCAL = 4, 30, 500.0


def project(variables, np=np):
    """Where the cameras (three numbers of a rotation, three of a place) see the points, both coordinates in a row."""
    cameras, points = variables[: 6 * CAMERAS].reshape(CAMERAS, 6), variables[6 * CAMERAS :].reshape(POINTS, 3)
    angle = np.sqrt((cameras[:, :3] ** 2).sum(1))[:, None]
    cosine, sine = np.cos(angle), np.sin(angle)
    a, b, c = (cameras[:, i : i + 1] / angle for i in range(3))
    x, y, z = points[:, 0], points[:, 1], points[:, 2]
    along = (1.0 - cosine) * (a * x + b * y + c * z)
    u = cosine * x + sine * (b * z - c * y) + along * a + cameras[:, 3:4]
    v = cosine * y + sine * (c * x - a * z) + along * b + cameras[:, 4:5]
    w = cosine * z + sine * (a * y - b * x) + along * c + cameras[:, 5:6]
    return FOCAL * np.stack([u / w, v / w]).reshape(-1)


_random = np.random.default_rng(0)
_rotations = 0.3 * _random.standard_normal((CAMERAS, 3))
_places = np.array([0.0, 0.0, 6.0]) + 0.5 * _random.standard_normal((CAMERAS, 3))
TRUE = np.concatenate([np.hstack([_rotations, _places]).ravel(), _random.uniform(-1.5, 1.5, 3 * POINTS)])
SEEN = project(TRUE) + 0.5 * _random.standard_normal(2 * CAMERAS * POINTS)
START = TRUE + 0.05 * _random.standard_normal(len(TRUE))


def residual(variables, np=np, seen=SEEN):
    return project(variables, np) - seen


def tapegrad():
    import tapegrad as tg

    return tg.optimize.least_squares(residual, START, **SETTINGS).cost


def scipy():
    from scipy.optimize import least_squares

    return least_squares(residual, START, **SETTINGS).cost


def autograd():
    import autograd.numpy as anp
    from autograd import jacobian
    from scipy.optimize import least_squares

    return least_squares(residual, START, jacobian(lambda x: residual(x, anp)), **SETTINGS).cost


def jax():
    import jax
    import jax.numpy as jnp
    from scipy.optimize import least_squares

    jax.config.update("jax_enable_x64", True)
    function = jax.jit(lambda x: residual(x, jnp))
    return least_squares(function, START, jax.jit(jax.jacfwd(function)), **SETTINGS).cost


def torch():
    import torch
    from scipy.optimize import least_squares

    seen = torch.tensor(SEEN)
    slopes = torch.func.jacfwd(lambda x: residual(x, torch, seen))
    return least_squares(residual, START, lambda x: slopes(torch.tensor(x)).numpy(), **SETTINGS).cost


def casadi():
    import casadi as ca
    from scipy.optimize import least_squares

    x = ca.SX.sym("x", len(START))
    across, down = [], []
    for i in range(CAMERAS):
        rotation, place = x[6 * i : 6 * i + 3], x[6 * i + 3 : 6 * i + 6]
        angle = ca.norm_2(rotation)
        axis, cosine, sine = rotation / angle, ca.cos(angle), ca.sin(angle)
        for j in range(POINTS):
            point = x[6 * CAMERAS + 3 * j : 6 * CAMERAS + 3 * j + 3]
            along = (1.0 - cosine) * ca.dot(axis, point)
            seen = cosine * point + sine * ca.cross(axis, point) + along * axis + place
            across.append(seen[0] / seen[2])
            down.append(seen[1] / seen[2])
    expression = FOCAL * ca.vertcat(*across, *down) - SEEN
    function, slopes = ca.Function("f", [x], [expression]), ca.Function("j", [x], [ca.jacobian(expression, x)])
    return least_squares(lambda x: function(x).full().ravel(), START, lambda x: slopes(x).full(), **SETTINGS).cost


if __name__ == "__main__":
    print(float(globals()[sys.argv[1]]()))
