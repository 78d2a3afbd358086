"""Optimal control by collocation with IPOPT, whole scripts: the swing-up of the examples in 1,000 steps, beside CasADi's.

``python -m benchmarks.collocation [runs]`` prints medians of fresh processes in turns, wall and processor time, and how many
iterations IPOPT took. It needs cyipopt and CasADi; CasADi's form of scalars (SX) and of matrices (MX).

Both must have one IPOPT if they are to be compared. CasADi's wheel has one, with its headers, that cyipopt can be built with. Where
``$CASADI`` stands for the folder of the package casadi, make a file ``ipopt.pc`` with the lines ``Name: Ipopt``,
``Description: CasADi's``, ``Version: 3.14.19``, ``Cflags: -I$CASADI/include/coin-or`` and ``Libs: -L$CASADI -lipopt``, and run
beside it ``PKG_CONFIG_PATH=$PWD LDFLAGS=-Wl,-rpath,$CASADI pip install --no-deps --no-binary cyipopt --target one_ipopt
cyipopt``; then ``PYTHONPATH=one_ipopt`` has that one.
"""

from __future__ import annotations

import json
import resource
import statistics
import subprocess
import sys
import time
from pathlib import Path
from types import ModuleType

__all__ = ["FORMS", "STEPS"]

FORMS = ("tapegrad", "CasADi, SX", "CasADi, MX")
STEPS = 1000
EXAMPLES = Path(__file__).parents[2] / "examples"


def _by_casadi(form: str) -> tuple[float, int]:
    import warnings

    import casadi
    import numpy as np

    warnings.simplefilter("ignore")  # of NumPy's functions of its symbols, which reads the source where they are called: 10 ms
    sys.modules["tapegrad"] = ModuleType("tapegrad")  # which the example imports, and CasADi's users do not
    import swing_up  # type: ignore[import-not-found]

    n = STEPS + 1
    z = (casadi.SX if form == "CasADi, SX" else casadi.MX).sym("z", 5 * n)
    table = casadi.reshape(z, n, 5)
    state = [table[:, k] for k in range(5)]
    rates = swing_up.motion(state)
    half = 0.5 * swing_up.DURATION / STEPS
    defects = casadi.vertcat(*[state[k][1:] - state[k][:-1] - half * (rates[k][1:] + rates[k][:-1]) for k in range(4)])
    effort = half * (casadi.sum1(state[4][1:] ** 2) + casadi.sum1(state[4][:-1] ** 2))
    options = {"ipopt.tol": 1e-8, "ipopt.print_level": 0, "ipopt.sb": "yes", "print_time": False}
    solver = casadi.nlpsol("swing_up", "ipopt", {"x": z, "f": effort, "g": defects}, options)
    start, low, high = swing_up.start_and_bounds(STEPS)
    given = {"x0": start, "lbx": low, "ubx": high}
    found = solver(**{name: np.ravel(value) for name, value in given.items()}, lbg=0.0, ubg=0.0)
    return float(found["f"]), int(solver.stats()["iter_count"])


def _run(form: str) -> None:
    """In a process of its own: import all that is needed, solve, and print the minimum and the number of iterations."""
    sys.path.insert(0, str(EXAMPLES))
    if form == "tapegrad":
        import swing_up  # type: ignore[import-not-found]

        found = swing_up.solve(STEPS, "ipopt")
        print(json.dumps([found.fun, found.nit]))
    else:
        print(json.dumps(_by_casadi(form)))


def _used() -> float:
    """Processor time of all processes that have ended."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def main() -> None:
    """The table."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    taken: dict[str, list[tuple[float, float]]] = {form: [] for form in FORMS}
    said: dict[str, list[float]] = {}
    for number in range(runs + 1):
        for form in FORMS:
            start, used = time.perf_counter(), _used()
            words = [sys.executable, "-m", "benchmarks.collocation", "--form", form]
            done = subprocess.run(words, capture_output=True, text=True, check=True)
            if number:
                taken[form].append((time.perf_counter() - start, _used() - used))
            said[form] = json.loads(done.stdout.strip().splitlines()[-1])
    print(
        f"swing-up, {5 * (STEPS + 1)} unknowns, IPOPT to 1e-8; seconds of whole processes: wall, of the processor, least of these"
    )
    for form in FORMS:
        minimum, iterations = said[form]
        walls, uses = zip(*taken[form], strict=True)
        times = f"{statistics.median(walls):8.3f}{statistics.median(uses):8.3f}{min(uses):8.3f}"
        print(f"{form:<12}{times}   minimum {minimum:.8f} in {iterations} iterations")


if __name__ == "__main__":
    if len(sys.argv) > 2 and sys.argv[1] == "--form":
        _run(sys.argv[2])
    else:
        main()
