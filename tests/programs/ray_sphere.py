"""Rays against spheres: the nearest hit is shaded, mirrors send the ray on, the sky is what is left."""

import math
from typing import NamedTuple

import numba
import numpy as np
from program import Program


class Hit(NamedTuple):
    found: bool
    index: int
    distance: float


@numba.njit
def dot(a, b):
    return a[0] * b[0] + a[1] * b[1] + a[2] * b[2]


@numba.njit
def normalise(a):
    return a / math.sqrt(dot(a, a))


@numba.njit
def intersect(origin, direction, centre, radius):
    """Distance along the ray, or a negative number."""
    oc = origin - centre
    b = dot(oc, direction)
    c = dot(oc, oc) - radius * radius
    disc = b * b - c
    if disc < 0.0:
        return -1.0
    root = math.sqrt(disc)
    t = -b - root
    if t > 1e-6:
        return t
    t = -b + root
    if t > 1e-6:
        return t
    return -1.0


@numba.njit
def nearest(origin, direction, centres, radii):
    best = Hit(False, -1, 1e30)
    for i in range(len(radii)):
        t = intersect(origin, direction, centres[i], radii[i])
        if 0.0 < t < best.distance:
            best = Hit(True, i, t)
    return best


@numba.njit
def trace(origin, direction, centres, radii, mirror, light):
    weight = 1.0
    colour = 0.0
    for _ in range(4):
        hit = nearest(origin, direction, centres, radii)
        if not hit.found:
            return colour + weight * (0.5 + 0.5 * direction[1])
        point = origin + hit.distance * direction
        normal = normalise(point - centres[hit.index])
        colour += weight * (1.0 - mirror[hit.index]) * max(0.0, dot(normal, light))
        weight *= mirror[hit.index]
        if weight < 1e-3:
            break
        direction = direction - 2.0 * dot(direction, normal) * normal
        origin = point
    return colour


@numba.njit
def brightness(centres, radii, mirror, light, pixels):
    light = normalise(light)
    origin = np.array([0.0, 0.0, -4.0])
    total = 0.0
    for i in range(pixels):
        for j in range(pixels):
            x = -0.6 + 1.2 * (i + 0.5) / pixels
            y = -0.6 + 1.2 * (j + 0.5) / pixels
            direction = normalise(np.array([x, y, 1.0]))
            total += trace(origin, direction, centres, radii, mirror, light)
    return total / pixels**2


def twin(centres, radii, mirror, light, pixels):
    """All rays at once, with masks."""
    places = -0.6 + 1.2 * (np.arange(pixels) + 0.5) / pixels
    rays = np.array([(x, y, 1) for x in places for y in places], complex)
    rays /= np.sqrt((rays**2).sum(1))[:, None]
    light = light / np.sqrt((light**2).sum())
    start = np.tile(np.array([0, 0, -4], complex), (len(rays), 1))
    weight, colour = np.ones(len(rays), complex), np.zeros(len(rays), complex)
    for _ in range(4):
        b = np.einsum("rsk,rk->rs", start[:, None] - centres, rays)
        c = ((start[:, None] - centres) ** 2).sum(2) - radii**2
        disc = b**2 - c
        root = np.sqrt(np.where(disc.real < 0, 1, disc))
        t = np.where((-b - root).real > 1e-6, -b - root, -b + root)
        t = np.where((disc.real < 0) | (t.real <= 1e-6), np.inf, t)
        best = np.argmin(t.real, axis=1)
        t = t[np.arange(len(rays)), best]
        hit = np.isfinite(t.real)
        colour = colour + np.where(hit, 0, weight * (1 + rays[:, 1]) / 2)
        weight = np.where(hit, weight, 0)
        start = start + np.where(hit, t, 0)[:, None] * rays
        normal = start - centres[best]
        normal = normal / np.sqrt((normal**2).sum(1))[:, None]
        shade = normal @ light
        colour = colour + weight * (1 - mirror[best]) * np.where(shade.real > 0, shade, 0)
        weight = weight * mirror[best]
        rays = rays - 2 * (rays * normal).sum(1)[:, None] * normal
    return colour.sum() / pixels**2


CENTRES = np.array([[0.0, 0.1, 0.0], [0.9, -0.3, -0.6], [-0.8, -0.4, 0.5]])
PROGRAM = Program(
    "ray tracing",
    brightness,
    (CENTRES, np.array([0.7, 0.4, 0.5]), np.array([0.6, 0.2, 0.3]), np.array([0.5, 1.0, -1.0]), 6),
    (0, 1, 2, 3),
    twin,
)
