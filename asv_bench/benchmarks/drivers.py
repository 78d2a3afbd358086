"""Drivers for optimisation: gradients and minimisations against differences and peers, dense derivatives against sweeps.

``python -m benchmarks.drivers`` (in ``asv_bench``) prints what is about compiled functions, in one run.
"""

from __future__ import annotations

import importlib.util
import statistics
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from .workloads import load

RIVALS = ("differences", "torch", "autograd")
FORMS = ("loop", "vector")
BY_HAND = "by hand"  # the compiled gradient that a careful person writes: what is left is SciPy's own time
METHODS = {"L-BFGS-B": False, "BFGS": False, "Newton-CG": True, "trust-ncg": True, "trust-krylov": True}  # whether by the Hessian
LIMITS = {"maxfun": 10**7, "maxiter": 10**5}  # differences would reach SciPy's limit on calls before the minimum


def loop(x: Any) -> Any:
    """Rosenbrock's function, number by number."""
    value = 0.0
    for i in range(len(x) - 1):
        value = value + 100.0 * (x[i + 1] - x[i] * x[i]) ** 2 + (1.0 - x[i]) ** 2
    return value


def vector(x: Any) -> Any:
    """The same on arrays."""
    return (100.0 * (x[1:] - x[:-1] ** 2) ** 2).sum() + ((1.0 - x[:-1]) ** 2).sum()


def residual(x: Any) -> Any:
    """A residual of as many numbers as there are variables, less one."""
    return 10.0 * (x[1:] - x[:-1] ** 2)


FUNCTIONS: dict[str, Callable[[Any], Any]] = {"loop": loop, "vector": vector}


def start(n: int) -> np.ndarray:
    """The usual starting point."""
    x = np.full(n, -1.2)
    x[1::2] = 1.0
    return x


def value_and_gradient(f: Callable[[Any], Any], library: str) -> Callable[[np.ndarray], Any]:
    """What a user of a library would give to SciPy."""
    if library == "differences":
        if importlib.util.find_spec("scipy") is None:
            raise NotImplementedError("scipy is not installed")
        from scipy.optimize import approx_fprime

        return lambda x: (f(x), approx_fprime(x, f))
    if library == BY_HAND:
        from .nopython import rosenbrock_by_hand

        written: Callable[[np.ndarray], Any] = rosenbrock_by_hand
        return written
    module = load(library)
    if library == "tapegrad":
        driver: Callable[[np.ndarray], Any] = module.value_and_grad(f)
        return driver
    if library == "autograd":
        other: Callable[[np.ndarray], Any] = module.value_and_grad(f)
        return other

    def by_torch(x: np.ndarray) -> Any:
        t = module.tensor(x, requires_grad=True)
        value = f(t)
        value.backward()
        return value.item(), t.grad.numpy()

    return by_torch


def medians(*steps: Callable[[], Any]) -> list[float]:
    """Seconds of processor time that each takes, in turns: other processes have no part in these."""
    counts = [1 + int(0.01 / max(spent(step, 1), 1e-6)) for step in steps]
    rounds = [[spent(step, count) / count for step, count in zip(steps, counts, strict=True)] for _ in range(7)]
    return [statistics.median(found) for found in zip(*rounds, strict=True)]


def spent(step: Callable[[], Any], count: int) -> float:
    """Seconds of processor time for a number of calls."""
    begin = time.thread_time()
    for _ in range(count):
        step()
    return time.thread_time() - begin


def ratio(ours: Callable[[], Any], theirs: Callable[[], Any]) -> float:
    """How many times longer the second takes."""
    own, other = medians(ours, theirs)
    return other / own


def product_with_hessian(f: Callable[[Any], Any], library: str) -> Callable[[np.ndarray, np.ndarray], Any]:
    """What a user of a peer would give to SciPy beside the gradient."""
    module = load(library)
    if library == "autograd":
        product: Callable[[np.ndarray, np.ndarray], Any] = module.hessian_vector_product(f)
        return product

    def by_torch(x: np.ndarray, v: np.ndarray) -> Any:
        t = module.tensor(x, requires_grad=True)
        (gradient,) = module.autograd.grad(f(t), t, create_graph=True)
        return module.autograd.grad(gradient, t, module.tensor(v))[0].numpy()

    return by_torch


def minimisation(f: Callable[[Any], Any], library: str, x: np.ndarray, method: str = "L-BFGS-B") -> Callable[[], Any]:
    """What a user of a library would minimise with."""
    from scipy.optimize import minimize

    limits = LIMITS if method == "L-BFGS-B" else {"maxiter": LIMITS["maxiter"]}
    if library == "tapegrad":
        import tapegrad as tg

        return lambda: tg.optimize.minimize(f, x, method=method, options=limits)
    if library == "differences":
        return lambda: minimize(f, x, method=method, options=limits)
    both = value_and_gradient(f, library)
    second = {"hessp": product_with_hessian(f, library)} if METHODS[method] else {}
    return lambda: minimize(both, x, jac=True, method=method, options=limits, **second)


def best_form(library: str, x: np.ndarray) -> Callable[[Any], Any]:
    """The form of the function that a library is faster with."""
    gradients = [value_and_gradient(f, library) for f in FUNCTIONS.values()]
    times = medians(*(lambda g=g: g(x) for g in gradients))
    return list(FUNCTIONS.values())[times.index(min(times))]


class CompiledBesideRivals:
    """How many times longer others take than we do with the compiled function, in the form that is best for them."""

    params = ([2, 10, 100], [*RIVALS, BY_HAND])
    param_names = ("n", "rival")
    timeout = 300

    def setup(self, n: int, rival: str) -> None:
        import tapegrad as tg

        from .nopython import rosenbrock

        x, f = start(n), best_form(rival, start(n))
        gradient, theirs = tg.value_and_grad(rosenbrock), value_and_gradient(f, rival)
        self.gradients = (lambda: gradient(x)), (lambda: theirs(x))
        self.minimisations = minimisation(rosenbrock, "tapegrad", x), minimisation(f, rival, x)
        for step in (*self.gradients, self.minimisations[0]):
            step()

    def track_gradient(self, n: int, rival: str) -> float:
        return ratio(*self.gradients)

    def track_minimisation(self, n: int, rival: str) -> float:
        return ratio(*self.minimisations)

    track_gradient.unit = track_minimisation.unit = "x"  # type: ignore[attr-defined]


class CompiledByMethod:
    """The same at n = 100 for methods of SciPy, end to end; peers give products with the Hessian to those that take them."""

    params = (list(METHODS), ["torch", "autograd"])
    param_names = ("method", "rival")
    timeout = 300

    def setup(self, method: str, rival: str) -> None:
        from .nopython import rosenbrock

        x = start(100)
        self.ours = minimisation(rosenbrock, "tapegrad", x, method)
        self.theirs = minimisation(best_form(rival, x), rival, x, method)
        self.ours()

    def track_ratio(self, method: str, rival: str) -> float:
        return ratio(self.ours, self.theirs)

    track_ratio.unit = "x"  # type: ignore[attr-defined]


class ValueAndGradient:
    """Value and gradient of Rosenbrock's function: how many times longer others take."""

    params = ([2, 5, 10, 100], list(FORMS), list(RIVALS))
    param_names = ("n", "form", "rival")

    def setup(self, n: int, form: str, rival: str) -> None:
        self.x = start(n)
        self.ours = value_and_gradient(FUNCTIONS[form], "tapegrad")
        self.theirs = value_and_gradient(FUNCTIONS[form], rival)
        self.ours(self.x)
        self.theirs(self.x)

    def track_ratio(self, n: int, form: str, rival: str) -> float:
        return ratio(lambda: self.ours(self.x), lambda: self.theirs(self.x))

    track_ratio.unit = "x"  # type: ignore[attr-defined]


class Minimise:
    """The same for `scipy.optimize.minimize` from start to end."""

    params = ([2, 10], list(FORMS), list(RIVALS))
    param_names = ("n", "form", "rival")

    def setup(self, n: int, form: str, rival: str) -> None:
        f, x = FUNCTIONS[form], start(n)
        self.ours, self.theirs = minimisation(f, "tapegrad", x), minimisation(f, rival, x)
        self.ours()
        self.theirs()

    def track_ratio(self, n: int, form: str, rival: str) -> float:
        return ratio(self.ours, self.theirs)

    track_ratio.unit = "x"  # type: ignore[attr-defined]


class Dense:
    """Dense derivatives."""

    params = ([2, 10, 100], list(FORMS))
    param_names = ("n", "form")

    def setup(self, n: int, form: str) -> None:
        import tapegrad as tg

        self.x = start(n)
        self.hessian = tg.hessian(FUNCTIONS[form])
        self.jacobian = tg.jacobian(residual, mode="reverse")
        self.hessian(self.x)
        self.jacobian(self.x)

    def time_hessian(self, n: int, form: str) -> None:
        self.hessian(self.x)

    def track_sweeps_for_a_jacobian(self, n: int, form: str) -> float:
        """Single sweeps, one for each output, over the time of the Jacobian."""
        import tapegrad as tg

        def one_by_one() -> None:
            t = tg.tensor(self.x, requires_grad=True)
            r = residual(t)
            for seed in np.eye(n - 1):
                tg.autograd.grad(r, t, tg.tensor(seed), retain_graph=True)

        return ratio(lambda: self.jacobian(self.x), one_by_one)

    track_sweeps_for_a_jacobian.unit = "x"  # type: ignore[attr-defined]


class Product:
    """Product of the Hessian with a vector, by a function of long arrays."""

    params = ([1000, 100_000],)
    param_names = ("n",)

    def setup(self, n: int) -> None:
        import tapegrad as tg

        self.x = np.random.default_rng(0).standard_normal(n)
        self.product = lambda: tg.hvp(vector, self.x, self.x)
        self.gradient = tg.value_and_grad(vector)
        self.product()
        self.gradient(self.x)

    def time_product(self, n: int) -> None:
        self.product()

    def track_gradients(self, n: int) -> float:
        """How many gradients a product costs."""
        return ratio(lambda: self.gradient(self.x), self.product)

    track_gradients.unit = "x"  # type: ignore[attr-defined]


class Compiled:
    """Derivatives of compiled functions, beside the value and gradient of the same function in the same run."""

    params = (["hessian", "hvp", "jacobian"],)
    param_names = ("driver",)

    def setup(self, driver: str) -> None:
        self.step, self.gradient = compiled_steps()[driver]
        self.step()
        self.gradient()

    def time_driver(self, driver: str) -> None:
        self.step()

    def track_gradients(self, driver: str) -> float:
        """How many gradients it costs."""
        return ratio(self.gradient, self.step)

    track_gradients.unit = "x"  # type: ignore[attr-defined]


def compiled_steps() -> dict[str, tuple[Callable[[], Any], Callable[[], Any]]]:
    """For each driver a call, and value and gradient of the same function (for the Jacobian, one cotangent pulled back)."""
    import numba

    import tapegrad as tg

    from .nopython import rosenbrock

    short, long = start(100), np.random.default_rng(0).random(100_000)
    differences = numba.njit(residual)
    hessian, gradient, jacobian = tg.hessian(rosenbrock), tg.value_and_grad(rosenbrock), tg.jacobian(differences)
    cotangent = np.ones(len(short) - 1)
    return {
        "hessian": (lambda: hessian(short), lambda: gradient(short)),
        "hvp": (lambda: tg.hvp(rosenbrock, long, long), lambda: gradient(long)),
        "jacobian": (lambda: jacobian(short), lambda: tg.vjp(differences, short)[1](cotangent)),
    }


def main() -> None:
    """Tables of what compiled functions cost beside their rivals, and their drivers beside the gradient."""
    sizes, rivals = CompiledBesideRivals.params
    print("| Rosenbrock, L-BFGS-B | tapegrad, njit | " + " | ".join(rivals) + " |")
    for n in sizes:
        found = []
        for rival in rivals:
            case = CompiledBesideRivals()
            case.setup(n, rival)
            found.append((case.track_gradient(n, rival), case.track_minimisation(n, rival)))
        gradient, minimum = medians(case.gradients[0], case.minimisations[0])
        others = " | ".join(f"{b:.1f}x ({a:.1f}x)" for a, b in found)
        print(f"| n = {n} | {minimum * 1e3:.1f} ms ({gradient * 1e6:.1f} us) | {others} |", flush=True)
    print()
    methods, peers = CompiledByMethod.params
    print("| Rosenbrock, n = 100 | tapegrad, njit | " + " | ".join(peers) + " |")
    for method in methods:
        ratios = []
        for peer in peers:
            one = CompiledByMethod()
            one.setup(method, peer)
            ratios.append(one.track_ratio(method, peer))
        others = " | ".join(f"{found:.1f}x" for found in ratios)
        print(f"| {method} | {medians(one.ours)[0] * 1e3:.1f} ms | {others} |", flush=True)
    print()
    print("| njit, driver | time | gradient | times the gradient |")
    names = {"hessian": "Hessian, n = 100", "hvp": "product with the Hessian, n = 1e5", "jacobian": "Jacobian, 99 x 100"}
    for name, (step, gradient) in compiled_steps().items():
        step(), gradient()
        times = medians(step, gradient)
        print(f"| {names[name]} | {times[0] * 1e6:.0f} us | {times[1] * 1e6:.0f} us | {times[0] / times[1]:.1f} |", flush=True)


if __name__ == "__main__":
    main()
