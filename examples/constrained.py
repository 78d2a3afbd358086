"""A chain hangs between two hooks: least potential energy under a constraint for the length of each link.

SLSQP and trust-constr get the gradient of the energy, the Jacobian of all constraints and (trust-constr) Hessians from the tape.

Run it with ``python examples/constrained.py``, or with ``python examples/constrained.py constrained.png`` to draw the chain and
the curve that it approaches as well. It needs what ``pip install 'tapegrad[examples]'`` installs: SciPy, and Matplotlib for the
picture.
"""

from __future__ import annotations

import sys
import time
from typing import Any

import numpy as np

import tapegrad as tg

LINKS, LENGTH, WIDTH = 12, 1.5, 1.0


def joints(inner: Any) -> Any:
    """All joints, those at the hooks included, as an array of shape (LINKS + 1, 2)."""
    left, right = np.array([[0.0, 0.0]]), np.array([[WIDTH, 0.0]])
    return np.concatenate([left, inner, right])


def energy(inner: Any) -> Any:
    """Mean height of the links."""
    y = joints(inner)[:, 1]
    return (0.5 * (y[1:] + y[:-1])).mean()


def stretch(inner: Any) -> Any:
    """What is zero if each link has its length: one number for each link."""
    p = joints(inner)
    return ((p[1:] - p[:-1]) ** 2).sum(1) - (LENGTH / LINKS) ** 2


def catenary(x: np.ndarray) -> np.ndarray:
    """The curve of a chain of infinitely many links; its parameter solves an equation of one unknown."""
    # Where 2 a sinh(width / 2 a) is the length.
    a = tg.optimize.root(lambda a: 2.0 * a * np.sinh(0.5 * WIDTH / a) - LENGTH, 0.3).x
    return a * (np.cosh((x - 0.5 * WIDTH) / a) - np.cosh(0.5 * WIDTH / a))


def draw(path: str, chain: np.ndarray) -> None:
    """The chain and the catenary."""
    try:
        from matplotlib.figure import Figure
    except ImportError as missing:
        raise SystemExit(
            "the picture needs matplotlib; install what the examples need with: pip install 'tapegrad[examples]'"
        ) from missing
    figure = Figure(figsize=(7, 4), layout="constrained")
    axes = figure.subplots()
    x = np.linspace(0.0, WIDTH, 200)
    axes.plot(x, catenary(x), color="0.8", linewidth=6.0, label="catenary")
    axes.plot(*chain.T, "o-", label=f"{LINKS} links")
    axes.set(aspect="equal", xlabel="x", ylabel="height")
    axes.legend()
    figure.savefig(path)


def main() -> None:
    """Both methods, one line each."""
    inner = np.linspace(0.0, WIDTH, LINKS + 1)[1:-1]
    start = np.stack([inner, -np.sin(np.pi * inner / WIDTH)], axis=1)
    # The first use of compiled sweeps loads them; it is not timed.
    tg.optimize.minimize(energy, start, method="trust-constr", constraints=tg.optimize.equality(stretch), options={"maxiter": 1})
    print(f"{'method':<14}{'iterations':>12}{'time':>12}{'energy':>12}{'stretch':>12}{'off the catenary':>20}")
    for method in ("SLSQP", "trust-constr"):
        began = time.perf_counter()
        result = tg.optimize.minimize(
            energy, start, method=method, constraints=tg.optimize.equality(stretch), tol=1e-9, options={"maxiter": 500}
        )
        elapsed = time.perf_counter() - began
        chain = joints(result.x)
        stretched, off = np.abs(stretch(result.x)).max(), np.abs(chain[:, 1] - catenary(chain[:, 0])).max()
        print(f"{method:<14}{result.nit:>12}{elapsed:>10.3f} s{result.fun:>12.6f}{stretched:>12.0e}{off:>20.4f}")
    if len(sys.argv) > 1:
        draw(sys.argv[1], chain)


if __name__ == "__main__":
    main()
