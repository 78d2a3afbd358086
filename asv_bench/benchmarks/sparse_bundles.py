"""Bundle adjustment of ADBench's ba1 in size, beside CasADi through gcc: Hessian of the objective, Jacobian of the errors.

CasADi has no function of 31,843 observations at once: it maps the derivative of one, compiled by gcc, over all, and leaves blocks
that are not put together. ``python -m benchmarks.sparse`` prints the table.
"""

from __future__ import annotations

import importlib.util
import subprocess
import tempfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numba
import numpy as np

from .nopython import rotate

CAMERAS, POINTS, OBSERVATIONS = 49, 7776, 31843
DERIVATIVES = ("Hessian", "Jacobian")


@numba.njit  # type: ignore[untyped-decorator]
def errors_of(camera: Any, point: Any, weight: Any, seen: Any, shifted: Any, turned: Any) -> Any:
    """Weighted errors of one observation, and what the weight's own is."""
    for i in range(3):
        shifted[i] = point[i] - camera[3 + i]
    rotate(camera, shifted, turned)
    u, v = turned[0] / turned[2], turned[1] / turned[2]
    r2 = u * u + v * v
    stretch = 1.0 + camera[9] * r2 + camera[10] * r2 * r2
    x = weight * (u * stretch * camera[6] + camera[7] - seen[0])
    y = weight * (v * stretch * camera[6] + camera[8] - seen[1])
    return x, y, 1.0 - weight * weight


@numba.njit  # type: ignore[untyped-decorator]
def objective(x: Any, seen: Any, camera_of: Any, point_of: Any) -> Any:
    """Sum of the squares of all errors."""
    cameras, points, weights = x[:539].reshape(49, 11), x[539:23867].reshape(7776, 3), x[23867:]
    shifted, turned, total = np.empty(3), np.empty(3), 0.0
    for k in range(len(weights)):
        x, y, own = errors_of(cameras[camera_of[k]], points[point_of[k]], weights[k], seen[k], shifted, turned)
        total += x * x + y * y + own * own
    return total


@numba.njit  # type: ignore[untyped-decorator]
def errors(x: Any, seen: Any, camera_of: Any, point_of: Any) -> Any:
    """All errors of the projections."""
    cameras, points, weights = x[:539].reshape(49, 11), x[539:23867].reshape(7776, 3), x[23867:]
    shifted, turned, found = np.empty(3), np.empty(3), np.empty((len(weights), 2))
    for k in range(len(weights)):
        x, y, _ = errors_of(cameras[camera_of[k]], points[point_of[k]], weights[k], seen[k], shifted, turned)
        found[k, 0], found[k, 1] = x, y
    return found


FUNCTIONS = {"Hessian": objective, "Jacobian": errors}


def inputs() -> tuple[Any, ...]:
    """Arguments of both."""
    random = np.random.default_rng(0)
    line = np.array([-0.76, -1.11, -0.85, 34.6, 39.7, 53.9, 419.0, 5.9, -8.5, 0.088, 0.0027, 7.2, 0.0011, 3.0])
    cameras = line[:11] * (1.0 + 0.001 * random.standard_normal((CAMERAS, 11)))
    points = line[11:] * (1.0 + 0.001 * random.standard_normal((POINTS, 3)))
    weights, seen = random.random(OBSERVATIONS), random.random((OBSERVATIONS, 2)) * 800.0
    camera_of, point_of = random.integers(0, CAMERAS, OBSERVATIONS), np.sort(random.integers(0, POINTS, OBSERVATIONS))
    return cameras, points, weights, seen, camera_of, point_of


def sparse_derivative(name: str) -> tuple[Any, Callable[[], Any]]:
    """Ours, with the structure found."""
    import tapegrad as tg

    cameras, points, weights, *data = inputs()
    args = np.concatenate([cameras.reshape(-1), points.reshape(-1), weights]), *data
    made = tg.sparse.plan(FUNCTIONS[name], *args, second=name == "Hessian")
    return made, lambda: made(*args)


def casadi_blocks(name: str) -> Callable[[], Any]:
    """CasADi's derivative of one observation, compiled by gcc and mapped over all."""
    if importlib.util.find_spec("casadi") is None:
        raise NotImplementedError("casadi is not installed")
    import casadi as ca

    z, seen = ca.SX.sym("z", 15), ca.SX.sym("seen", 2)
    camera, point, weight = z[:11], z[11:14], z[14]
    shifted = point - camera[3:6]
    angle = ca.sqrt(ca.sumsqr(camera[:3]))
    axis, cos, sin = camera[:3] / angle, ca.cos(angle), ca.sin(angle)
    turned = shifted * cos + ca.cross(axis, shifted) * sin + axis * ca.dot(axis, shifted) * (1 - cos)
    u, v = turned[0] / turned[2], turned[1] / turned[2]
    r2 = u * u + v * v
    stretch = 1 + camera[9] * r2 + camera[10] * r2 * r2
    found = weight * (ca.vertcat(u, v) * stretch * camera[6] + camera[7:9] - seen)
    if name == "Hessian":
        made = ca.tril(ca.hessian(ca.sumsqr(found) + (1 - weight * weight) ** 2, z)[0])
    else:
        made = ca.jacobian(found, z)
    one = ca.Function("block", [z, seen], [made])
    folder = tempfile.TemporaryDirectory()
    source, library = Path(folder.name) / "block.c", Path(folder.name) / "block.so"
    generator = ca.CodeGenerator("block.c")
    generator.add(one)
    generator.generate(folder.name + "/")
    subprocess.run(["gcc", "-O3", "-march=native", "-shared", "-fPIC", str(source), "-o", str(library), "-lm"], check=True)
    every = ca.external("block", str(library)).map(OBSERVATIONS)
    cameras, points, weights, targets, camera_of, point_of = inputs()
    given = [np.ascontiguousarray(np.column_stack([cameras[camera_of], points[point_of], weights])), targets]
    out = np.zeros(every.nnz_out(0))
    buffer, evaluate = every.buffer()
    for k, array in enumerate(given):
        buffer.set_arg(k, memoryview(array.reshape(-1)))
    buffer.set_res(0, memoryview(out))
    kept = every, buffer, given, out, folder
    return lambda: (evaluate(), kept)[0]
