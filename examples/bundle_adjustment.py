"""Find cameras and points of a scene together, from where the cameras see the points: least squares with a sparse Jacobian.

A row of the Jacobian depends on one camera and one point, so 27,000 unknowns take as many products as one camera and one point have
coordinates.

Run it with ``python examples/bundle_adjustment.py``, or with ``python examples/bundle_adjustment.py bundle_adjustment.png`` to draw
the scene and the pattern of its Jacobian as well. It needs what ``pip install 'tapegrad[examples]'`` installs: SciPy, and
Matplotlib for the pictures.
"""

from __future__ import annotations

import sys
import time
from typing import Any

import numpy as np

import tapegrad as tg

CAMERAS, POINTS, SEEN = 24, 9000, 4  # each point is seen by a few cameras beside each other
RADIUS, FOCAL, NOISE = 8.0, 800.0, 0.5  # of the circle that cameras stand on; in pixels
FIRST = np.repeat(np.arange(POINTS) % CAMERAS, SEEN)
WHICH = (FIRST + np.tile(np.arange(SEEN), POINTS)) % CAMERAS  # the camera of each observation
POINT = np.repeat(np.arange(POINTS), SEEN)  # and its point


def scene(random: np.random.Generator) -> dict[str, np.ndarray]:
    """Cameras on a circle that look at its centre, and points on a wavy sheet around it."""
    angles = 2.0 * np.pi * np.arange(CAMERAS) / CAMERAS
    turns = np.stack([np.zeros(CAMERAS), angles, np.zeros(CAMERAS)], axis=1)
    shifts = np.tile([0.0, 0.0, RADIUS], (CAMERAS, 1))
    across = random.uniform(-1.0, 1.0, (POINTS, 2)) * 2.0
    points = np.stack([across[:, 0], 0.4 * np.sin(2.0 * across[:, 0]) * np.cos(2.0 * across[:, 1]), across[:, 1]], axis=1)
    return {"turns": turns, "shifts": shifts, "points": points}


def rotated(points: Any, turns: Any) -> Any:
    """Points turned by the vectors whose direction is the axis and whose length is the angle, by Rodrigues' formula."""
    angle = np.sqrt((turns**2).sum(axis=1) + 1e-20)[:, None]
    axis = turns / angle
    along = (axis * points).sum(axis=1)[:, None]
    (a, b, c), (x, y, z) = axis.T, points.T
    beside = np.stack([b * z - c * y, c * x - a * z, a * y - b * x], axis=1)
    return np.cos(angle) * points + np.sin(angle) * beside + (1.0 - np.cos(angle)) * along * axis


def images(scene: Any) -> Any:
    """Where cameras see points, in pixels, of shape (observations, 2)."""
    seen = rotated(scene["points"][POINT], scene["turns"][WHICH]) + scene["shifts"][WHICH]
    return FOCAL * seen[:, :2] / seen[:, 2:]


def draw(path: str, start: Any, found: Any, pattern: Any) -> None:
    """The scene from the side, before and after, and a part of the pattern."""
    try:
        from matplotlib.figure import Figure
    except ImportError as missing:
        raise SystemExit(
            "the picture needs matplotlib; install what the examples need with: pip install 'tapegrad[examples]'"
        ) from missing
    figure = Figure(figsize=(10, 4), layout="constrained")
    left, right = figure.subplots(1, 2)
    for points, name in ((start["points"], "start"), (found["points"], "fitted")):
        left.plot(points[:, 0], points[:, 1], ".", markersize=1, label=name)
    left.set(xlabel="x", ylabel="height")
    left.legend(markerscale=8)
    shown = np.arange(0, pattern.shape[0], pattern.shape[0] // 400)
    right.spy(pattern[shown], markersize=0.6, aspect="auto")
    right.set(xlabel="unknown", ylabel="every 180th observation")
    figure.savefig(path, dpi=120)


def main() -> None:
    """Make observations, and find the scene from a bad guess."""
    random = np.random.default_rng(0)
    exact = scene(random)
    observed = images(exact) + NOISE * random.standard_normal((len(POINT), 2))
    sizes = {"turns": 0.02, "shifts": 0.05, "points": 0.05}
    start = {name: values + sizes[name] * random.standard_normal(values.shape) for name, values in exact.items()}

    def residual(scene: Any) -> Any:
        return ((images(scene) - observed) / NOISE).reshape(-1)

    def residual_of(*parts: Any) -> Any:
        return residual(dict(zip(start, parts, strict=True)))

    structure = tg.sparse.plan(residual_of, *start.values(), argnums=(0, 1, 2))
    unknowns = sum(values.size for values in start.values())
    print(f"{unknowns} unknowns, {2 * len(POINT)} residuals, {structure.info.entries} entries of the Jacobian")
    print(f"its columns have {structure.info.colours} colours: a Jacobian costs as many products")
    begin = time.perf_counter()
    found = tg.optimize.least_squares(residual, start, sparse=True, tr_solver="lsmr", x_scale="jac", ftol=1e-6, max_nfev=30)
    print(f"{found.nfev} evaluations, {time.perf_counter() - begin:.1f} s: cost {found.cost:.0f}")
    off = np.sqrt(np.mean(residual(found.x) ** 2)) * NOISE
    print(f"residuals of {np.sqrt(np.mean(residual(start) ** 2)) * NOISE:.2f} pixels became {off:.2f}; the noise has {NOISE}")
    if len(sys.argv) > 1:
        draw(sys.argv[1], start, found.x, structure.pattern)


if __name__ == "__main__":
    main()
