"""SciPy minimises the Rosenbrock function of 100 variables: gradient from the tape against finite differences.

Run it with ``python examples/rosenbrock.py``; it needs SciPy.
"""

import time
from collections.abc import Callable
from typing import Any

import numpy as np
from scipy.optimize import minimize

import tapegrad as tg

VARIABLES = 100


def rosenbrock(x: Any) -> Any:
    """The sum of ``100 (x[i+1] - x[i]^2)^2 + (1 - x[i])^2``; the same text serves arrays and tensors."""
    return (100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2).sum()


def value_and_gradient(point: np.ndarray) -> tuple[float, np.ndarray]:
    """What SciPy asks for with ``jac=True``: both come from one forward and one backward pass."""
    x = tg.tensor(point, requires_grad=True)
    value = rosenbrock(x)
    value.backward()
    return value.item(), x.grad.numpy()


def run(name: str, function: Callable[[np.ndarray], Any], jac: bool | None) -> float:
    """Minimise, print a line of the table, and return the solution's error."""
    start = np.zeros(VARIABLES)
    evaluations = 0

    def counted(point: np.ndarray) -> Any:
        nonlocal evaluations
        evaluations += 1
        return function(point)

    began = time.perf_counter()
    result = minimize(
        counted,
        start,
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
    """Both ways, one line each."""
    value_and_gradient(np.zeros(VARIABLES))  # the first backward pass loads or compiles the sweep; not timed below
    print(f"Rosenbrock function of {VARIABLES} variables, L-BFGS-B from the origin\n")
    print(f"{'gradient':<22}{'iterations':>11}{'function evaluations':>22}{'time':>13}{'largest error':>20}")
    error = run("tape", value_and_gradient, jac=True)
    run("finite differences", rosenbrock, jac=None)
    assert error < 1e-6


if __name__ == "__main__":
    main()
