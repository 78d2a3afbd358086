"""Sparse derivatives beside CasADi: patterns and colours beside its symbolic construction, values beside its compiled functions.

``python -m benchmarks.sparse`` (in ``asv_bench``) prints the tables; CasADi's columns are empty where it is not installed.
"""

from __future__ import annotations

import functools
import importlib.util
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np

SIZE, SIDE = 100_000, 316
JOINTS = 4000
ENDS = np.random.default_rng(0).integers(0, JOINTS, (2, 10 * JOINTS))
PROBLEMS = ("tridiagonal", "stencil", "rosenbrock")


def tridiagonal(x: Any) -> Any:
    """Each element by three."""
    return x[1:-1] ** 2 * 3.0 - x[:-2] * np.sin(x[1:-1]) + x[2:]


def stencil(u: Any) -> Any:
    """The 5-point stencil with a nonlinear term, of a square."""
    u = u.reshape(SIDE, SIDE)
    inside = u[1:-1, 1:-1]
    return 4.0 * inside - u[:-2, 1:-1] - u[2:, 1:-1] - u[1:-1, :-2] - u[1:-1, 2:] + np.exp(inside)


def rosenbrock(x: Any) -> Any:
    """A scalar, for Hessians."""
    return (100.0 * (x[1:] - x[:-1] ** 2) ** 2 + (1.0 - x[:-1]) ** 2).sum()


def springs(x: Any) -> Any:
    """The energy of 40,000 springs between 4,000 joints on a line: a sum over elements of which many share variables."""
    one, other = ENDS
    stretch = x[one] - x[other]
    return (np.sqrt(stretch * stretch + 1.0) + 0.1 * np.sin(x[one]) * x[other]).sum()


FUNCTIONS: dict[str, Callable[[Any], Any]] = {"tridiagonal": tridiagonal, "stencil": stencil, "rosenbrock": rosenbrock}


def point(name: str) -> np.ndarray:
    """Where it is evaluated."""
    return np.linspace(0.5, 1.5, SIDE * SIDE if name == "stencil" else SIZE)


def construction(name: str) -> Callable[[], Any]:
    """Pattern and colours of a function."""
    import tapegrad as tg

    x = point(name)
    return lambda: tg.sparse.plan(FUNCTIONS[name], x, second=name == "rosenbrock")


def of_program(name: str) -> tuple[Any, float]:
    """The derivative of the function as a program with machine code, and seconds of making both."""
    import tapegrad as tg

    x = point(name)
    begun = time.process_time()
    program = tg.program(FUNCTIONS[name])
    made = tg.sparse.plan(program, x, second=name == "rosenbrock")
    for _ in range(2):  # recorded, and run again: what machine code is made of
        made(x)
    program.compile()
    made(x)
    return made, time.process_time() - begun


def casadi_construction(name: str) -> Callable[[], Any]:
    """The symbolic derivative as a function; its own array type for vectors, scalars for the Hessian."""
    if importlib.util.find_spec("casadi") is None:
        raise NotImplementedError("casadi is not installed")
    import casadi as ca

    def make() -> Any:
        if name == "stencil":
            u = ca.MX.sym("u", SIDE, SIDE)
            inside = u[1:-1, 1:-1]
            y = 4 * inside - u[:-2, 1:-1] - u[2:, 1:-1] - u[1:-1, :-2] - u[1:-1, 2:] + ca.exp(inside)
            return ca.Function("derivative", [u], [ca.jacobian(ca.vec(y), ca.vec(u))])
        x = ca.SX.sym("x", SIZE)
        if name == "tridiagonal":
            y = x[1:-1] ** 2 * 3 - x[:-2] * ca.sin(x[1:-1]) + x[2:]
            return ca.Function("derivative", [x], [ca.jacobian(y, x)])
        y = ca.sum1(100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2)
        return ca.Function("derivative", [x], [ca.hessian(y, x)[0]])

    return make


def casadi_value(name: str) -> Callable[[], Any]:
    """Its evaluation into memory that is there, the quickest way that it has from Python."""
    made = casadi_construction(name)()
    x, out = point(name), np.zeros(made.nnz_out(0))
    buffer, evaluate = made.buffer()
    buffer.set_arg(0, memoryview(x))
    buffer.set_res(0, memoryview(out))
    kept = made, buffer, x, out
    return lambda: (evaluate(), kept)[0]


def median(step: Callable[[], Any], rounds: int = 7) -> float:
    """Seconds of a call."""
    step()
    found = []
    for _ in range(rounds):
        begun = time.perf_counter()
        step()
        found.append(time.perf_counter() - begun)
    return statistics.median(found)


class Structure:
    """Pattern and colours."""

    params = PROBLEMS
    param_names = ("problem",)

    def setup(self, problem: str) -> None:
        """Once, so that nothing is loaded in what is timed."""
        self.make = construction(problem)
        self.make()

    def time_plan(self, problem: str) -> None:
        """Find the structure."""
        self.make()

    def track_ratio(self, problem: str) -> float:
        """Times CasADi's construction."""
        return median(self.make, 3) / median(casadi_construction(problem), 1)

    track_ratio.unit = "x"  # type: ignore[attr-defined]


class Values:
    """Derivatives where the structure is known."""

    params = PROBLEMS
    param_names = ("problem",)

    def setup(self, problem: str) -> None:
        """Find the structure."""
        self.derivative, self.x = construction(problem)(), point(problem)
        self.derivative(self.x)

    def time_values(self, problem: str) -> None:
        """One derivative, recording included."""
        self.derivative(self.x)

    def track_ratio(self, problem: str) -> float:
        """Times CasADi's evaluation."""
        return median(lambda: self.derivative(self.x)) / median(casadi_value(problem))

    track_ratio.unit = "x"  # type: ignore[attr-defined]


class Bundles:
    """Derivatives of bundle adjustment where the structure is known."""

    params = ("Hessian", "Jacobian")
    param_names = ("derivative",)

    def setup(self, derivative: str) -> None:
        """Find the structure."""
        from .sparse_bundles import sparse_derivative

        self.info, self.step = sparse_derivative(derivative)
        self.step()

    def time_values(self, derivative: str) -> None:
        """One derivative, recording included."""
        self.step()

    def track_ratio(self, derivative: str) -> float:
        """Times CasADi's blocks."""
        from .sparse_bundles import casadi_blocks

        return median(self.step) / median(casadi_blocks(derivative))

    track_ratio.unit = "x"  # type: ignore[attr-defined]


def beside(ours: Callable[[], Any], other: Callable[[], Any] | None, rounds: int = 15) -> tuple[float, float]:
    """Least processor time of two steps that take turns; without the second, that is nan."""
    steps: list[Callable[[], Any]] = [ours] if other is None else [ours, other]
    least = [float("inf")] * 2
    for _ in range(rounds):
        for k, step in enumerate(steps):
            begun = time.process_time()
            step()
            least[k] = min(least[k], time.process_time() - begun)
    return least[0], least[1] if other is not None else float("nan")


def dense_hessian() -> tuple[Callable[[], Any], Callable[[], Any] | None]:
    """Of Rosenbrock's function of 100 variables, compiled; and CasADi's."""
    import tapegrad as tg

    from .nopython import rosenbrock as compiled

    x, hessian = np.linspace(0.5, 1.5, 100), tg.hessian(compiled)
    if importlib.util.find_spec("casadi") is None:
        return lambda: hessian(x), None
    import casadi as ca

    z = ca.SX.sym("z", 100)
    y = ca.sum1(100 * (z[1:] - z[:-1] ** 2) ** 2 + (1 - z[:-1]) ** 2)
    made, out = ca.Function("derivative", [z], [ca.densify(ca.hessian(y, z)[0])]), np.zeros(10_000)
    buffer, evaluate = made.buffer()
    buffer.set_arg(0, memoryview(x))
    buffer.set_res(0, memoryview(out))
    kept = made, buffer, x, out
    return lambda: hessian(x), lambda: (evaluate(), kept)[0]


def products() -> dict[str, tuple[Callable[[], Any], Callable[[], Any]]]:
    """Product of the Hessian of Rosenbrock's function with a vector, and its gradient: by arrays, compiled, and of a program."""
    import tapegrad as tg

    from .nopython import rosenbrock as compiled

    x = point("rosenbrock")
    v = np.cos(x)
    program = tg.program(rosenbrock)
    forms = {"arrays": rosenbrock, "compiled": compiled, "program": program}
    made = {}
    for name, f in forms.items():
        gradient = tg.grad(f)
        made[name] = functools.partial(tg.hvp, f, x, v), functools.partial(gradient, x)
    for call in range(3):
        for steps in made.values():
            steps[0](), steps[1]()
        if call == 0:
            program.compile()
    return made


def repeated(step: Callable[[], Any] | None, count: int = 200) -> Callable[[], Any] | None:
    """A short step so often that the processor's clock sees it."""
    return None if step is None else lambda: [step() for _ in range(count)]


def main() -> None:
    """All tables: least processor times, in turns with CasADi."""
    has_peer = importlib.util.find_spec("casadi") is not None
    print("| problem | method | entries | colours | plan | CasADi | derivative | CasADi | ratio | ns an entry |")
    print("|---|---|---|---|---|---|---|---|---|---|")
    for name in PROBLEMS:
        case = Values()
        case.setup(name)
        info = case.derivative.info
        plans = beside(construction(name), casadi_construction(name) if has_peer else None, 2)
        step = lambda case=case: case.derivative(case.x)  # type: ignore[misc] # noqa: E731
        values = beside(step, casadi_value(name) if has_peer else None)
        line(name, info, plans, values)
        made, seconds = of_program(name)
        step = lambda made=made, x=case.x: made(x)  # type: ignore[misc] # noqa: E731
        line(f"{name}, program", made.info, (seconds, plans[1]), beside(step, casadi_value(name) if has_peer else None))
    from .sparse_bundles import DERIVATIVES, casadi_blocks, sparse_derivative

    for name in DERIVATIVES:
        begun = time.process_time()
        made, step = sparse_derivative(name)
        plans = time.process_time() - begun, float("nan")
        line(f"bundle adjustment, {name}", made.info, plans, beside(step, casadi_blocks(name) if has_peer else None))
    import tapegrad as tg

    x = np.linspace(0.5, 1.5, JOINTS)
    for mode in ("star", "auto"):
        begun = time.process_time()
        made = tg.sparse.plan(springs, x, second=True, mode=mode)
        plans = time.process_time() - begun, float("nan")
        line("springs, Hessian", made.info, plans, beside(lambda made=made: made(x), None, 5))  # type: ignore[misc]
    ours, other = dense_hessian()
    ours(), other and other()
    found = beside(repeated(ours), repeated(other))  # type: ignore[arg-type]
    print(
        f"\ndense Hessian, n = 100: {found[0] / 200 * 1e6:.0f} us, CasADi {found[1] / 200 * 1e6:.0f} us: {found[0] / found[1]:.2f}"
    )
    print("\nHessian-vector product, n = 100,000")
    for name, steps in products().items():
        product, gradient = beside(*(repeated(step, 10) for step in steps))  # type: ignore[arg-type]
        print(f"{name}: {product * 100:.3f} ms, gradient {gradient * 100:.3f} ms: {product / gradient:.2f}")


def line(name: str, info: Any, plans: tuple[float, float], values: tuple[float, float]) -> None:
    """A line of the table."""
    print(
        f"| {name} | {info.method} | {info.entries} | {info.colours} | {plans[0] * 1e3:.0f} ms | {plans[1] * 1e3:.0f} ms "
        f"| {values[0] * 1e3:.2f} ms | {values[1] * 1e3:.2f} ms | {values[0] / values[1]:.2f} "
        f"| {values[0] / info.entries * 1e9:.1f} |",
        flush=True,
    )


if __name__ == "__main__":
    main()
