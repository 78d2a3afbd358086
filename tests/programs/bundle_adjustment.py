"""Reprojection errors of a pinhole camera with radial distortion; small rotations take another formula."""

import math

import numba
import numpy as np
from program import Program


@numba.njit
def rotate(rot, pt):
    theta2 = rot[0] * rot[0] + rot[1] * rot[1] + rot[2] * rot[2]
    if theta2 > 1e-12:
        theta = math.sqrt(theta2)
        c, s = math.cos(theta), math.sin(theta)
        w = rot / theta
        return pt * c + np.cross(w, pt) * s + w * (np.dot(w, pt) * (1.0 - c))
    return pt + np.cross(rot, pt)


@numba.njit
def project(cam, pt):
    p = rotate(cam[:3], pt - cam[3:6])
    u, v = p[0] / p[2], p[1] / p[2]
    r2 = u * u + v * v
    distortion = 1.0 + cam[9] * r2 + cam[10] * r2 * r2
    return u * distortion * cam[6] + cam[7], v * distortion * cam[6] + cam[8]


@numba.njit
def residuals(cams, points, weights, cam_index, point_index, observed):
    out = np.empty((len(observed), 2))
    for k in range(len(observed)):
        u, v = project(cams[cam_index[k]], points[point_index[k]])
        out[k, 0] = weights[k] * (u - observed[k, 0])
        out[k, 1] = weights[k] * (v - observed[k, 1])
    return out


@numba.njit
def huber_cost(cams, points, weights, cam_index, point_index, observed, delta):
    r = residuals(cams, points, weights, cam_index, point_index, observed)
    cost = 0.0
    for k in range(r.shape[0]):
        s = r[k, 0] ** 2 + r[k, 1] ** 2
        cost += 0.5 * s if s <= delta * delta else delta * (math.sqrt(s) - 0.5 * delta)
    return cost


def twin(cams, points, weights, cam_index, point_index, observed, delta):
    cost = 0.0
    for w, i, j, seen in zip(weights, cam_index, point_index, observed, strict=True):
        cam, x = cams[i], points[j] - cams[i, 3:6]
        a, b, c = cam[:3]
        k = np.array([[0 * a, -c, b], [c, 0 * a, -a], [-b, a, 0 * a]])
        rotation, term = np.eye(3, dtype=complex), np.eye(3, dtype=complex)
        for order in range(1, 25):  # the exponential series
            term = term @ k / order
            rotation = rotation + term
        p = rotation @ x
        u = p[:2] / p[2]
        r2 = u @ u
        r = w * (u * (1 + cam[9] * r2 + cam[10] * r2**2) * cam[6] + cam[7:9] - seen)
        s = r @ r
        cost = cost + (s / 2 if s.real <= delta**2 else delta * (np.sqrt(s) - delta / 2))
    return cost


RANDOM = np.random.default_rng(6)
CAMS = np.zeros((3, 11))
CAMS[:, :3] = 0.2 * RANDOM.standard_normal((3, 3))
CAMS[2, :3] = 0.0  # the branch for small rotations
CAMS[:, 3:6] = RANDOM.standard_normal((3, 3)) - np.array([0.0, 0.0, 6.0])
CAMS[:, 6:9] = np.array([3.0, 0.1, -0.2])
CAMS[:, 9:] = np.array([0.05, 0.01])
PROGRAM = Program(
    "bundle adjustment",
    huber_cost,
    (
        CAMS,
        RANDOM.standard_normal((4, 3)),
        RANDOM.uniform(0.5, 1.0, 6),
        np.array([0, 0, 1, 1, 2, 2]),
        np.array([0, 1, 1, 2, 3, 0]),
        RANDOM.standard_normal((6, 2)),
        0.8,
    ),
    (0, 1, 2),
    twin,
)
