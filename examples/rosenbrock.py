"""SciPy minimises the Rosenbrock function: every method with the derivatives that it takes, and the gradient against differences.

The gradient comes from the function on arrays, and from a loop that Numba compiles, which knows nothing of derivatives.

Run it with ``python examples/rosenbrock.py``, or with ``python examples/rosenbrock.py rosenbrock.png`` to draw how the methods
converge as well. It needs what ``pip install 'tapegrad[examples]'`` installs: SciPy, and Matplotlib for the picture.
"""

from __future__ import annotations

import sys
import time
from collections.abc import Callable
from typing import Any

import numba
import numpy as np
from scipy import optimize

import tapegrad as tg

VARIABLES, FEW = 30, 6
METHODS = {
    "Nelder-Mead": "values", "Powell": "values", "COBYLA": "values", "CG": "gradient", "BFGS": "gradient", "L-BFGS-B": "gradient",
    "TNC": "gradient", "SLSQP": "gradient", "Newton-CG": "and products", "trust-ncg": "and products",
    "trust-krylov": "and products", "trust-constr": "and products", "trust-exact": "and Hessian",
}  # fmt: skip
LIMITS = {"TNC": {"maxfun": 5000}, "Nelder-Mead": {"maxiter": 5000, "maxfev": 5000}, "COBYLA": {"maxiter": 200}}


def rosenbrock(x: Any) -> Any:
    """The sum of ``100 (x[i+1] - x[i]^2)^2 + (1 - x[i])^2``; the same text serves arrays and tensors."""
    return (100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2).sum()


@numba.njit
def rosenbrock_loop(x: Any) -> Any:
    """The same as a loop over numbers, compiled; it knows nothing of derivatives."""
    total = 0.0
    for i in range(len(x) - 1):
        total += 100.0 * (x[i + 1] - x[i] ** 2) ** 2 + (1.0 - x[i]) ** 2
    return total


def by_method(method: str) -> list[float]:
    """Minimise by one method, print a line of the table, and return the least value after each evaluation."""
    values: list[float] = []

    def seen(x: Any) -> Any:
        value = rosenbrock(x)
        values.append(tg.stop_gradient(value).item())
        return value

    began = time.perf_counter()
    options = LIMITS.get(method, {"maxiter": 5000})
    result = tg.optimize.minimize(seen, np.zeros(FEW), method=method, tol=1e-8, options=options)
    elapsed = time.perf_counter() - began
    iterations = result.get("nit", "-")
    error = np.abs(result.x - 1.0).max()
    print(f"{method:<14}{METHODS[method]:<14}{iterations:>11}{len(values):>13}{elapsed:>11.3f} s{error:>16.1e}")
    return list(np.minimum.accumulate(values))


def draw(path: str, histories: dict[str, list[float]]) -> None:
    """The least value so far over the number of evaluations."""
    try:
        from matplotlib.figure import Figure
    except ImportError as missing:
        raise SystemExit(
            "the picture needs matplotlib; install what the examples need with: pip install 'tapegrad[examples]'"
        ) from missing
    figure = Figure(figsize=(9, 5), layout="constrained")
    axes = figure.subplots()
    for number, (method, values) in enumerate(histories.items()):
        axes.plot(np.arange(1, len(values) + 1), values, linestyle=("-", "--")[number // 10], label=method)
    axes.set(xlabel="evaluations", ylabel="least value so far", xscale="log", yscale="log", ylim=(1e-18, None))
    figure.legend(loc="outside right center")
    figure.savefig(path)


def against(name: str, function: Callable[[np.ndarray], Any], jac: bool | None = None) -> float:
    """Minimise with many variables, print a line of the table, and return the solution's error."""
    evaluations = 0

    def counted(point: np.ndarray) -> Any:
        nonlocal evaluations
        evaluations += 1
        return function(point)

    began = time.perf_counter()
    result = optimize.minimize(
        counted,
        np.zeros(VARIABLES),
        jac=jac,
        method="L-BFGS-B",
        options={"maxiter": 10_000, "maxfun": 10**6, "ftol": 1e-15, "gtol": 1e-9},
    )
    elapsed = time.perf_counter() - began
    # The minimum is at (1, ..., 1).
    error = float(np.abs(result.x - 1.0).max())
    print(f"{name:<22}{result.nit:>11}{evaluations:>22}{elapsed:>11.3f} s{error:>20.1e}")
    return error


def main() -> None:
    """A table of methods, and one of both ways to a gradient."""
    for method in ("BFGS", "trust-ncg"):  # the first use of compiled sweeps loads them; it is not timed
        tg.optimize.minimize(rosenbrock, np.zeros(FEW), method=method, options={"maxiter": 1})
    print(f"Rosenbrock function of {FEW} variables from the origin\n")
    print(f"{'method':<14}{'gets':<14}{'iterations':>11}{'evaluations':>13}{'time':>13}{'largest error':>16}")
    histories = {method: by_method(method) for method in METHODS}

    print(f"\nRosenbrock function of {VARIABLES} variables, L-BFGS-B from the origin\n")
    print(f"{'gradient':<22}{'iterations':>11}{'function evaluations':>22}{'time':>13}{'largest error':>20}")
    compiled = tg.value_and_grad(rosenbrock_loop)
    compiled(np.zeros(VARIABLES))  # the first call compiles the recording
    error = against("on arrays", tg.value_and_grad(rosenbrock), jac=True)
    error_of_loop = against("of the compiled loop", compiled, jac=True)
    against("differences, arrays", rosenbrock)
    against("differences, loop", rosenbrock_loop)
    assert max(error, error_of_loop) < 1e-6
    if len(sys.argv) > 1:
        draw(sys.argv[1], histories)


if __name__ == "__main__":
    main()
