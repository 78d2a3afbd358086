"""Find how well the parts of a plate of 100,000 cells conduct heat, from its temperature at a few places.

The temperature solves a system of 100,000 equations, by ``tg.optimize.root`` with sparse Jacobian. Its derivative by conductivities
is that of the implicit function theorem: one more solution with the same factors, whatever their number.

Run it with ``python examples/inverse_heat.py``, or with ``python examples/inverse_heat.py inverse_heat.png`` to draw the plate as
well; a further argument is the number of cells a side. It needs what ``pip install 'tapegrad[examples]'`` installs: SciPy, and
Matplotlib for the picture.
"""

from __future__ import annotations

import sys
import time
from typing import Any

import numpy as np

import tapegrad as tg

CELLS = int(sys.argv[2]) if __name__ == "__main__" and len(sys.argv) > 2 else 316  # a side
PATCHES = 4  # a side, of one conductivity each
NOISE, SCALE = 1e-4, 1e-2  # of temperatures
ITERATIONS = 12
EDGES = np.arange(CELLS) * PATCHES // CELLS
SENSORS = np.ix_(*2 * [np.linspace(0.04 * CELLS, 0.96 * CELLS, 13).astype(int)])


def conductivity(logarithms: Any) -> Any:
    """Of all cells, by the logarithms of the patches."""
    return np.exp(logarithms)[EDGES][:, EDGES]


def balance(temperature: Any, logarithms: Any) -> Any:
    """Heat that flows out of each cell less what is produced there; the plate's rim is held at zero."""
    k = conductivity(logarithms)
    u = temperature.reshape(CELLS, CELLS)
    down = 2.0 / (1.0 / k[1:] + 1.0 / k[:-1]) * (u[1:] - u[:-1])  # flows between cells
    right = 2.0 / (1.0 / k[:, 1:] + 1.0 / k[:, :-1]) * (u[:, 1:] - u[:, :-1])
    out = np.concatenate([2.0 * k[:1] * u[:1], down, -2.0 * k[-1:] * u[-1:]])
    across = np.concatenate([2.0 * k[:, :1] * u[:, :1], right, -2.0 * k[:, -1:] * u[:, -1:]], axis=1)
    return (out[:-1] - out[1:] + across[:, :-1] - across[:, 1:] - 10.0 / CELLS**2).reshape(-1)


def temperatures(logarithms: Any) -> Any:
    """Of all cells."""
    return tg.optimize.root(balance, np.zeros(CELLS * CELLS), (logarithms,), sparse=True).x.reshape(CELLS, CELLS)


def draw(path: str, exact: np.ndarray, fitted: np.ndarray, measured: np.ndarray) -> None:
    """Conductivities, and the temperature that they lead to."""
    try:
        from matplotlib.figure import Figure
    except ImportError as missing:
        raise SystemExit(
            "the picture needs matplotlib; install what the examples need with: pip install 'tapegrad[examples]'"
        ) from missing
    figure = Figure(figsize=(10, 3.4), layout="constrained")
    axes = figure.subplots(1, 3)
    limits = {"vmin": exact.min(), "vmax": exact.max()}
    for place, logarithms, name in ((axes[0], exact, "true"), (axes[1], fitted, "fitted")):
        shown = place.imshow(conductivity(logarithms), norm="log", vmin=np.exp(limits["vmin"]), vmax=np.exp(limits["vmax"]))
        place.set_title(f"conductivity, {name}")
    figure.colorbar(shown, ax=axes[:2].tolist(), shrink=0.8)
    axes[2].imshow(temperatures(fitted), cmap="inferno")
    rows, columns = np.broadcast_arrays(*SENSORS)
    axes[2].plot(columns.reshape(-1), rows.reshape(-1), "w.", markersize=2)
    axes[2].set_title("temperature and sensors")
    for place in axes:
        place.set_axis_off()
    figure.savefig(path, dpi=120)


def main() -> None:
    """Measure, and fit the conductivities to that."""
    random = np.random.default_rng(0)
    exact = random.normal(0.0, 0.7, (PATCHES, PATCHES))
    measured = temperatures(exact)[SENSORS]
    measured += NOISE * random.standard_normal(measured.shape)

    def misfit(logarithms: Any) -> Any:
        return (((temperatures(logarithms)[SENSORS] - measured) / SCALE) ** 2).mean()

    start, begin = np.zeros((PATCHES, PATCHES)), time.perf_counter()
    found = tg.optimize.minimize(misfit, start, method="L-BFGS-B", options={"maxiter": ITERATIONS})
    took = time.perf_counter() - begin
    print(f"{CELLS * CELLS} cells, {measured.size} sensors, {start.size} unknown conductivities")
    print(f"{found.nfev} values and gradients in {took:.1f} s")
    for name, logarithms in (("start", start), ("fitted", found.x)):
        off = np.sqrt(((temperatures(logarithms)[SENSORS] - measured) ** 2).mean())
        wrong = np.exp(np.abs(logarithms - exact).mean()) - 1.0
        print(f"{name:<8}temperatures are off by {off:.1e} (noise {NOISE:.0e}), conductivities by {100.0 * wrong:.0f} %")
    if len(sys.argv) > 1:
        draw(sys.argv[1], exact, found.x, measured)


if __name__ == "__main__":
    main()
