"""Fit the three rates of Robertson's reactions, which are nine orders of magnitude apart, to measured concentrations.

The equations are stiff: SciPy's BDF solves them, the sensitivity equations give the exact Jacobian of the residual, and least
squares finds the logarithms of the rates.

Run it with ``python examples/stiff_reactions.py``, or with ``python examples/stiff_reactions.py stiff_reactions.png`` to draw
measurements and solution as well. It needs what ``pip install 'tapegrad[examples]'`` installs: SciPy, and Matplotlib for the
picture.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np

import tapegrad as tg

RATES = np.array([0.04, 1e4, 3e7])
START = np.log(RATES) + np.array([0.5, -0.6, 0.8])
TIMES = np.geomspace(0.01, 1000.0, 25)
SCALES = np.array([1.0, 1e-5, 1.0])  # of the three concentrations
NOISE = 0.01


def reactions(t: float, y: Any, k: Any) -> Any:
    """H. H. Robertson, "The solution of a set of reaction rate equations", in: Numerical Analysis, Academic Press, 1966."""
    slow, fast, pairs = k[0] * y[0], k[1] * y[1] * y[2], k[2] * y[1] ** 2
    return np.stack([fast - slow, slow - fast - pairs, pairs])


def concentrations(logarithms: Any) -> Any:
    """Concentrations at all times, of shape (3, times), by the logarithms of the rates."""
    start, span = [1.0, 0.0, 0.0], (0.0, TIMES[-1])
    return tg.integrate.solve_ivp(reactions, span, start, "BDF", TIMES, args=(np.exp(logarithms),), rtol=1e-7, atol=1e-11).y


def draw(path: str, measured: np.ndarray, logarithms: np.ndarray) -> None:
    """Measurements, and the solution for the fitted rates."""
    try:
        from matplotlib.figure import Figure
    except ImportError as missing:
        raise SystemExit(
            "the picture needs matplotlib; install what the examples need with: pip install 'tapegrad[examples]'"
        ) from missing
    figure = Figure(layout="constrained")
    axes = figure.subplots()
    fitted = concentrations(logarithms) / SCALES[:, None]
    for k, name in enumerate(("A", "B, times 1e5", "C")):
        (line,) = axes.plot(TIMES, fitted[k], "-", label=name)
        axes.plot(TIMES, measured[k], ".", color=line.get_color())
    axes.set(xlabel="time", ylabel="concentration", xscale="log")
    axes.legend()
    figure.savefig(path)


def main() -> None:
    """Make measurements, and fit the rates to them."""
    exact = concentrations(np.log(RATES)) / SCALES[:, None]
    measured = exact + NOISE * np.random.default_rng(0).standard_normal(exact.shape)

    def residual(logarithms: Any) -> Any:
        return ((concentrations(logarithms) / SCALES[:, None] - measured) / NOISE).reshape(-1)

    found = tg.optimize.least_squares(residual, START)
    deviations = np.sqrt(np.diag(np.linalg.inv(found.jac.T @ found.jac)))
    print(f"{'rate':<8}{'true':>12}{'start':>12}{'fitted':>12}{'deviation':>12}")
    for k, (true, start, value, deviation) in enumerate(zip(RATES, np.exp(START), np.exp(found.x), deviations, strict=True)):
        print(f"{k + 1:<8}{true:>12.4g}{start:>12.4g}{value:>12.4g}{deviation * value:>12.2g}")
    print(
        f"{found.nfev} solutions and {found.njev} Jacobians; half the sum of squares is {found.cost:.1f} for {measured.size} values"
    )
    if len(sys.argv) > 1:
        draw(sys.argv[1], measured, found.x)


if __name__ == "__main__":
    main()
