"""Fit a sum of two decays to measurements: SciPy's Levenberg-Marquardt with the exact Jacobian, and with differences.

Run it with ``python examples/curve_fit.py``, or with ``python examples/curve_fit.py curve_fit.png`` to draw the measurements and
the fitted curve as well. It needs what ``pip install 'tapegrad[examples]'`` installs: SciPy, and Matplotlib for the picture.
"""

from __future__ import annotations

import sys
from typing import Any

import numpy as np
from scipy import optimize

import tapegrad as tg

TRUE = np.array([2.0, 0.4, 1.0, 3.0])
START = np.array([1.0, 0.2, 1.5, 2.0])
NAMES = ("first amount", "first rate", "second amount", "second rate")


def decays(t: Any, a: Any, k: Any, b: Any, m: Any) -> Any:
    """``a exp(-k t) + b exp(-m t)``; the same text serves arrays and tensors."""
    return a * np.exp(-k * t) + b * np.exp(-m * t)


def draw(path: str, t: np.ndarray, measured: np.ndarray, parameters: np.ndarray) -> None:
    """Measurements and the fitted curve, on a logarithmic scale."""
    try:
        from matplotlib.figure import Figure
    except ImportError as missing:
        raise SystemExit(
            "the picture needs matplotlib; install what the examples need with: pip install 'tapegrad[examples]'"
        ) from missing
    figure = Figure(layout="constrained")
    figure.set_size_inches(7, 5)
    axes, rest = figure.subplots(2, sharex=True, height_ratios=(3, 1))
    fitted = decays(t, *parameters)
    axes.plot(t, measured, ".", label="measured")
    axes.plot(t, fitted, "-", label="fitted")
    axes.set(ylabel="amount", yscale="log")
    axes.set_yticks([0.3, 0.5, 1.0, 2.0, 3.0], ["0.3", "0.5", "1", "2", "3"])
    axes.minorticks_off()
    axes.legend()
    rest.plot(t, measured - fitted, ".")
    rest.axhline(0.0, color="tab:orange")
    rest.set(xlabel="time", ylabel="residual")
    figure.savefig(path)


def main() -> None:
    """Fit twice, and compare."""
    t = np.linspace(0.0, 5.0, 200)
    measured = decays(t, *TRUE) + 0.005 * np.random.default_rng(0).standard_normal(len(t))
    evaluations = 0

    def counted(t: Any, *parameters: Any) -> Any:
        nonlocal evaluations
        evaluations += 1
        return decays(t, *parameters)

    found, covariance = tg.optimize.curve_fit(counted, t, measured, START)
    exact, evaluations = evaluations, 0
    other, _ = optimize.curve_fit(counted, t, measured, START)
    print(f"{'parameter':<16}{'true':>8}{'fitted':>12}{'deviation':>12}")
    for name, true, value, variance in zip(NAMES, TRUE, found, np.diag(covariance), strict=True):
        print(f"{name:<16}{true:>8.3f}{value:>12.4f}{np.sqrt(variance):>12.4f}")
    print(f"evaluations with the exact Jacobian {exact}, with differences {evaluations}")
    print(f"the two fits differ by {abs(found - other).max():.0e}")
    if len(sys.argv) > 1:
        draw(sys.argv[1], t, measured, found)


if __name__ == "__main__":
    main()
