"""Swing a pendulum up on a cart with the least force: optimal control by collocation, with 10,000 unknowns.

Positions, velocities and force at 2,001 times are all unknown, and the equations of motion between neighbours are constraints
(trapezoidal collocation). Jacobian and Hessian of the Lagrangian are sparse, and their structure is found by itself.

Run it with ``python examples/swing_up.py``, or with ``python examples/swing_up.py swing_up.png`` to draw the solution and the
pattern of the Jacobian as well. It needs what ``pip install 'tapegrad[examples]'`` installs: SciPy, and Matplotlib for the picture.
With ``pip install 'tapegrad[ipopt]'`` IPOPT solves it, else SciPy's trust-constr a coarser one.
"""

from __future__ import annotations

import functools
import sys
import time
from importlib.util import find_spec
from typing import Any

import numpy as np

import tapegrad as tg

CART, BOB, LENGTH, GRAVITY = 1.0, 0.3, 0.5, 9.81  # kg, kg, m, m/s2
DURATION, FORCE, WAY = 2.0, 20.0, 2.0  # s, N, m
END = np.array([1.0, np.pi, 0.0, 0.0])


def motion(state: Any) -> tuple[Any, ...]:
    """Derivatives of position, angle and their velocities by time.

    M. Kelly, "An introduction to trajectory optimization", SIAM Review 59(4), 2017, section 6.
    """
    _, angle, speed, turning, force = state
    sine, cosine = np.sin(angle), np.cos(angle)
    weight = CART + BOB * sine**2
    faster = (LENGTH * BOB * sine * turning**2 + force + BOB * GRAVITY * cosine * sine) / weight
    swinging = -(LENGTH * BOB * cosine * sine * turning**2 + force * cosine + (CART + BOB) * GRAVITY * sine) / (LENGTH * weight)
    return speed, turning, faster, swinging


def defects(z: Any, steps: int) -> Any:
    """By how much the motion over each step differs from the mean of the rates at its ends."""
    state = z.reshape(5, steps + 1)
    rates = motion(state)
    return np.concatenate(
        [state[k, 1:] - state[k, :-1] - 0.5 * DURATION / steps * (rates[k][1:] + rates[k][:-1]) for k in range(4)]
    )


def start_and_bounds(steps: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A straight way to the end, and what is allowed, both of shape (5, times)."""
    low, high = np.full((5, steps + 1), -np.inf), np.full((5, steps + 1), np.inf)
    low[0], high[0], low[4], high[4] = -WAY, WAY, -FORCE, FORCE
    low[:4, 0] = high[:4, 0] = 0.0
    low[:4, -1] = high[:4, -1] = END
    start = np.zeros((5, steps + 1))
    start[:2] = END[:2, None] * np.linspace(0.0, 1.0, steps + 1)
    return start, low, high


def solve(steps: int, method: str) -> Any:
    """The swing-up in so many steps."""

    def effort(z: Any) -> Any:
        force = z.reshape(5, steps + 1)[4]
        return 0.5 * DURATION / steps * (force[1:] ** 2 + force[:-1] ** 2).sum()

    start, low, high = start_and_bounds(steps)
    bounds = np.stack([low.reshape(-1), high.reshape(-1)], axis=1)
    options = {} if method == "ipopt" else {"maxiter": 500, "gtol": 1e-6, "xtol": 1e-9}
    return tg.optimize.minimize(
        effort, start.reshape(-1), method=method, tol=1e-8 if method == "ipopt" else None, bounds=bounds,
        constraints=tg.optimize.equality(functools.partial(defects, steps=steps)), sparse=True, options=options,
    )  # fmt: skip


def draw(path: str, state: np.ndarray, structure: Any) -> None:
    """Cart, pendulum and force over time, and the pattern and colours of a smaller problem's Jacobian."""
    try:
        from matplotlib.figure import Figure
    except ImportError as missing:
        raise SystemExit(
            "the picture needs matplotlib; install what the examples need with: pip install 'tapegrad[examples]'"
        ) from missing
    figure = Figure(figsize=(10, 4), layout="constrained")
    left, right = figure.subplots(1, 2)
    times = np.linspace(0.0, DURATION, state.shape[1])
    for row, name in ((0, "cart / m"), (1, "angle / rad"), (4, "force / 10 N")):
        left.plot(times, state[row] / (10.0 if row == 4 else 1.0), label=name)
    left.set(xlabel="time / s")
    left.legend()
    rows, columns = structure.pattern.tocoo().coords
    right.scatter(columns, rows, 6.0, structure.colours[columns], cmap="tab10", marker="s")
    right.invert_yaxis()
    right.set(title="Jacobian of 20 steps, a product for each colour", xlabel="unknown", ylabel="equation")
    figure.savefig(path, dpi=120)


def main() -> None:
    """Solve it, and say what it took."""
    method, steps = ("ipopt", 2000) if find_spec("cyipopt") else ("trust-constr", 300)
    structure = tg.sparse.plan(functools.partial(defects, steps=steps), np.zeros(5 * (steps + 1)))
    info = structure.info
    print(f"{5 * (steps + 1)} unknowns, {4 * steps} equations; {info.entries} entries in {info.colours} colours")
    begin = time.perf_counter()
    found = solve(steps, method)
    outcome = "solved" if found.success else found.message
    print(f"{method}: {found.nit} iterations in {time.perf_counter() - begin:.1f} s, {outcome}")
    state = found.x.reshape(5, steps + 1)
    print(f"effort {found.fun:.2f} N2 s, largest force {np.abs(state[4]).max():.1f} N, at the end {state[:4, -1].round(6)}")
    if len(sys.argv) > 1:
        draw(sys.argv[1], state, tg.sparse.plan(functools.partial(defects, steps=20), np.zeros(105), mode="forward"))


if __name__ == "__main__":
    main()
