"""Choose the penalties of a regression by the gradient of the validation loss through the solver: bilevel optimisation.

The inner problem fits weights to one half of the data with a penalty for each weight; the outer one changes the penalties so that
the fitted weights predict the other half. `tg.optimize.minimize` knows the derivative of its solution by the implicit function
theorem, so no iteration is recorded.

Run it with ``python examples/implicit.py``, or with ``python examples/implicit.py implicit.png`` to draw the path of the loss and
the penalties as well. It needs what ``pip install 'tapegrad[examples]'`` installs: SciPy, and Matplotlib for the picture.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

import tapegrad as tg

FEATURES, USEFUL, POINTS = 12, 4, 30


def data() -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
    """Points and noisy values for fitting, and for validation; only some of the features matter."""
    random = np.random.default_rng(1)
    weights = np.zeros(FEATURES)
    weights[:USEFUL] = [3.0, -2.0, 1.5, 1.0]
    points = random.standard_normal((2 * POINTS, FEATURES))
    values = points @ weights + random.standard_normal(2 * POINTS)
    return points[:POINTS], values[:POINTS], points[POINTS:], values[POINTS:]


TRAIN_X, TRAIN_Y, VALID_X, VALID_Y = data()


def penalised(w: Any, log_penalties: Any) -> Any:
    """The inner objective."""
    return ((TRAIN_X @ w - TRAIN_Y) ** 2).mean() + (np.exp(log_penalties) * w * w).sum()


def fitted(log_penalties: Any) -> Any:
    """The inner solution, a differentiable function of the penalties."""
    return tg.optimize.minimize(penalised, np.zeros(FEATURES), (log_penalties,), method="trust-exact", tol=1e-9).x


def validation(log_penalties: Any) -> Any:
    """The outer objective."""
    return ((VALID_X @ fitted(log_penalties) - VALID_Y) ** 2).mean()


def draw(path: str, losses: list[float], penalties: np.ndarray) -> None:
    """The loss at each iteration, and the penalties that are found."""
    try:
        from matplotlib.figure import Figure
    except ImportError as missing:
        raise SystemExit(
            "the picture needs matplotlib; install what the examples need with: pip install 'tapegrad[examples]'"
        ) from missing
    figure = Figure(figsize=(9, 4), layout="constrained")
    left, right = figure.subplots(1, 2)
    left.plot(losses, ".-")
    left.set(xlabel="iteration", ylabel="validation loss")
    right.bar(range(FEATURES), penalties, color=["C0"] * USEFUL + ["C3"] * (FEATURES - USEFUL))
    right.set(yscale="log", xlabel="feature (blue ones matter)", ylabel="penalty")
    figure.savefig(path)


def main() -> None:
    """Check the gradient against differences, then follow it."""
    start = np.full(FEATURES, np.log(0.1))
    gradient = tg.grad(validation)(start)
    with tg.no_grad():
        step = 1e-5 * np.eye(FEATURES)[0]
        difference = (validation(start + step) - validation(start - step)) / 2e-5
    print(f"derivative by the first penalty {gradient[0]:.8f}, by differences {difference:.8f}")

    losses = [float(validation(start))]
    result = tg.optimize.minimize(
        validation,
        start,
        method="L-BFGS-B",
        bounds=[(-9.0, 4.0)] * FEATURES,
        callback=lambda intermediate_result: losses.append(float(intermediate_result.fun)),
        options={"maxiter": 40},
    )
    penalties = np.exp(result.x)
    print(f"validation loss with one penalty for all {losses[0]:.4f}, with a penalty for each {result.fun:.4f}")
    useful, others = np.median(penalties[:USEFUL]), np.median(penalties[USEFUL:])
    print(f"median penalty of the features that matter {useful:.4f}, of the others {others:.4f}")
    if len(sys.argv) > 1:
        draw(sys.argv[1], losses, penalties)


if __name__ == "__main__":
    main()
