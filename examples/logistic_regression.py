"""Logistic regression by the methods of SciPy, with gradients and Hessian-vector products from the tape.

The model is text that NumPy users write; a dictionary holds its parameters.

Run it with ``python examples/logistic_regression.py``, or with ``python examples/logistic_regression.py logistic_regression.png``
to draw the data and the line that separates them as well. It needs what ``pip install 'tapegrad[examples]'`` installs: SciPy, and
Matplotlib for the picture.
"""

from __future__ import annotations

import sys
import time
from typing import Any

import numpy as np

import tapegrad as tg

POINTS, PENALTY = 400, 1e-2
METHODS = ("BFGS", "L-BFGS-B", "Newton-CG", "trust-ncg", "trust-exact")


def data() -> tuple[np.ndarray, np.ndarray]:
    """Two clouds of points in the plane that overlap, with labels 1 and -1."""
    random = np.random.default_rng(0)
    labels = np.where(np.arange(POINTS) % 2 == 0, 1.0, -1.0)
    return random.standard_normal((POINTS, 2)) + labels[:, None] * np.array([1.0, 0.5]), labels


def loss(parameters: Any, points: Any, labels: Any) -> Any:
    """Mean logistic loss and a small penalty."""
    margins = labels * (points @ parameters["weights"] + parameters["bias"])
    return np.logaddexp(0.0, -margins).mean() + PENALTY * (parameters["weights"] ** 2).sum()


def draw(path: str, points: np.ndarray, labels: np.ndarray, parameters: Any) -> None:
    """Both clouds and the line where both labels are as likely."""
    try:
        from matplotlib.figure import Figure
    except ImportError as missing:
        raise SystemExit(
            "the picture needs matplotlib; install what the examples need with: pip install 'tapegrad[examples]'"
        ) from missing
    figure = Figure(layout="constrained")
    axes = figure.subplots()
    for label in (1.0, -1.0):
        axes.plot(*points[labels == label].T, ".", label=f"label {label:+.0f}")
    x = np.array([points[:, 0].min(), points[:, 0].max()])
    (u, v), b = parameters["weights"], parameters["bias"]
    axes.plot(x, -(u * x + b) / v, "k-")
    axes.set(xlabel="first coordinate", ylabel="second coordinate", ylim=(points[:, 1].min(), points[:, 1].max()))
    axes.legend()
    figure.savefig(path)


def main() -> None:
    """Every method, one line each."""
    points, labels = data()
    start = {"weights": np.zeros(2), "bias": 0.0}
    tg.check_grads(lambda p: loss(p, points, labels), (start,))
    for method in METHODS:  # the first use of compiled sweeps loads them; it is not timed
        tg.optimize.minimize(loss, start, (points, labels), method=method, options={"maxiter": 1})
    print(f"{'method':<14}{'iterations':>12}{'time':>12}{'loss':>14}{'right':>10}")
    for method in METHODS:
        began = time.perf_counter()
        result = tg.optimize.minimize(loss, start, (points, labels), method=method, tol=1e-8)
        elapsed = time.perf_counter() - began
        right = ((points @ result.x["weights"] + result.x["bias"]) * labels > 0).mean()
        print(f"{method:<14}{result.nit:>12}{elapsed:>10.3f} s{result.fun:>14.8f}{right:>10.1%}")
    if len(sys.argv) > 1:
        draw(sys.argv[1], points, labels, result.x)


if __name__ == "__main__":
    main()
