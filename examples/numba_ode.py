"""Fit the rates of a chain of reactions to measurements, with the exact gradient of the compiled solver.

The solver is ordinary `numba.njit` code that knows nothing of derivatives. SciPy gets its gradient from `tg.value_and_grad`, and
once more from finite differences; both fits start at the same point.

Run it with ``python examples/numba_ode.py``, or with ``python examples/numba_ode.py numba_ode.png`` to draw the measurements and
the fitted curves as well. It needs what ``pip install 'tapegrad[examples]'`` installs: SciPy, and Matplotlib for the picture.
"""

from __future__ import annotations

import math
import sys
import time
from typing import Any

import numba
import numpy as np
from scipy.optimize import minimize

import tapegrad as tg

SPECIES, STEPS, DT = 40, 300, 0.04


@numba.njit
def change(amounts, rates, out):
    """Every species turns into the next one; the last one stays."""
    out[0] = 0.0
    for i in range(len(rates)):
        flow = rates[i] * (1.0 - math.exp(-amounts[i]))
        out[i] -= flow
        out[i + 1] = flow


@numba.njit
def simulate(rates, amounts, every):
    """Amounts at every so many steps, by the midpoint rule."""
    n = len(amounts)
    slope, middle = np.empty(n), np.empty(n)
    seen = np.empty((STEPS // every, n))
    for step in range(STEPS):
        change(amounts, rates, slope)
        for i in range(n):
            middle[i] = amounts[i] + 0.5 * DT * slope[i]
        change(middle, rates, slope)
        for i in range(n):
            amounts[i] += DT * slope[i]
        if (step + 1) % every == 0:
            seen[step // every] = amounts
    return seen


@numba.njit
def misfit(log_rates, start, measured):
    """Sum of squares between the simulation and the measurements."""
    seen = simulate(np.exp(log_rates), start.copy(), STEPS // len(measured))
    return ((seen - measured) ** 2).sum()


def draw(path: str, fitted: Any, measured: Any) -> None:
    """Every fifth species: measurements, and curves of the fitted rates."""
    try:
        from matplotlib.figure import Figure
    except ImportError as missing:
        raise SystemExit(
            "the picture needs matplotlib; install what the examples need with: pip install 'tapegrad[examples]'"
        ) from missing
    figure = Figure(figsize=(8, 4.5), layout="constrained")
    axes = figure.subplots()
    for i in range(0, SPECIES, 5):
        (line,) = axes.plot(DT * np.arange(1, STEPS + 1), fitted[:, i], label=f"species {i}")
        axes.plot(DT * STEPS / len(measured) * np.arange(1, len(measured) + 1), measured[:, i], ".", color=line.get_color())
    axes.set(xlabel="time", ylabel="amount")
    axes.set_yscale("asinh", linear_width=0.05)  # most species are few
    axes.set_yticks([0.0, 0.1, 0.3, 1.0, 5.0], ["0", "0.1", "0.3", "1", "5"])
    figure.legend(loc="outside right center")
    figure.savefig(path)


def main() -> None:
    """Fit twice, and print how long it took."""
    random = np.random.default_rng(0)
    rates = random.uniform(1.0, 4.0, SPECIES - 1)
    start = np.zeros(SPECIES)
    start[0] = 5.0
    measured = simulate(rates, start.copy(), 30)
    measured += 0.001 * random.standard_normal(measured.shape)
    guess = np.full(SPECIES - 1, np.log(2.0))

    gradient = tg.value_and_grad(misfit)
    gradient(guess, start, measured)  # compiles
    misfit(guess, start, measured)

    seconds = {}
    for name, f, jac in (("exact gradient", gradient, True), ("finite differences", misfit, None)):
        began = time.perf_counter()
        fit = minimize(f, guess, args=(start, measured), jac=jac, method="BFGS", options={"maxiter": 400, "gtol": 1e-6})
        seconds[name] = time.perf_counter() - began
        error = abs(np.exp(fit.x[:5]) / rates[:5] - 1.0).max()
        print(f"{name:20}{seconds[name]:8.3f} s{fit.nit:6} iterations   misfit {fit.fun:.6f}   first rates within {error:.1%}")
    print(f"the exact gradient is {seconds['finite differences'] / seconds['exact gradient']:.1f} times faster")
    if len(sys.argv) > 1:
        draw(sys.argv[1], simulate(np.exp(fit.x), start.copy(), 1), measured)


if __name__ == "__main__":
    main()
