"""Random parametrised problems for solvers: objectives, residuals, bounds, constraints and kinks, of any scale.

A problem is solved for parameters ``p``, a vector of which the solution is a function. Where the solution is smooth its derivative
is known from solving the problem again for other parameters; where it is not, only a refusal is right.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numba
import numpy as np
from scipy.optimize import minimize as scipy_minimize

import tapegrad as tg
from tapegrad import optimize

MINIMISERS = ["BFGS", "CG", "L-BFGS-B", "TNC", "SLSQP", "Newton-CG", "trust-ncg", "trust-krylov", "trust-exact", "trust-constr"]
BOUNDED = ["L-BFGS-B", "TNC", "SLSQP", "trust-constr", "Nelder-Mead", "Powell"]
ROOT_FINDERS = ["hybr", "lm", "broyden1", "broyden2", "anderson", "krylov", "df-sane"]


@dataclass
class Problem:
    """What is solved, and what is to come of it.

    Attributes
    ----------
    name : str
    p : ndarray
        The parameters.
    solve : callable
        Takes parameters and where to start, and gives the solution as a vector: a tensor where parameters are tracked.
    start : ndarray
    size : ndarray
        What is a long way for each element of the solution.
    expected : {"smooth", "any", "refused"}
        Whether the solution is smooth and well determined, may be either, or has no derivative.
    again : callable, optional
        Solves for differences, where it is another way than `solve`; also takes a point to start from.
    """

    name: str
    p: np.ndarray
    solve: Callable[[Any, np.ndarray], Any]
    start: np.ndarray
    size: np.ndarray
    expected: str
    again: Callable[[Any, np.ndarray], Any] | None = None
    notes: dict[str, Any] = field(default_factory=dict)


@numba.njit
def loops(x, p, q, c, r, d, a, b):  # type: ignore[no-untyped-def]
    """`Smooth.value` by loops."""
    n = x.shape[0]
    y = np.empty(n)
    for i in range(n):
        target = r[i]
        for k in range(p.shape[0]):
            target += c[i, k] * np.tanh(p[k])
        y[i] = x[i] / d[i] - target
    s = 0.0
    for i in range(n):
        for j in range(n):
            s += 0.5 * q[i, j] * y[i] * y[j]
        s += b * y[i] ** 4 + np.sin(p[0]) * 0.3 * b * y[i]
    return a * s


class Smooth:
    """A convex function with one minimum, near ``r + c tanh(p)`` in units of ``d``."""

    def __init__(self, rng: np.random.Generator, n: int, k: int, condition: float = 30.0, one_scale: bool = True) -> None:
        u = np.linalg.qr(rng.normal(size=(n, n)))[0]
        self.q = u @ np.diag(condition ** rng.uniform(0.0, 1.0, size=n)) @ u.T
        self.q = 0.5 * (self.q + self.q.T)
        self.c, self.r = rng.normal(size=(n, k)), rng.normal(size=n)
        self.d = np.full(n, 10.0 ** rng.choice([0.0, rng.uniform(-8.0, 8.0)]))
        if not one_scale:
            self.d = self.d * 10.0 ** rng.uniform(-2.0, 2.0, size=n)
        self.a = 10.0 ** rng.choice([0.0, rng.uniform(-8.0, 8.0)])
        self.b = rng.uniform(0.0, 0.5)

    def centre(self, p: Any) -> Any:
        """The minimum but for the term in ``sin(p)``, in units of ``d``."""
        return self.r + (self.c * np.tanh(p)).sum(-1)

    def value(self, x: Any, p: Any) -> Any:
        y = x / self.d - self.centre(p)
        return self.a * (0.5 * (y @ (self.q @ y)) + self.b * (y**4).sum() + np.sin(p[0]) * 0.3 * self.b * y.sum())

    def gradient(self, x: np.ndarray, p: np.ndarray) -> np.ndarray:
        """By hand."""
        y = x / self.d - self.centre(p)
        return self.a * (self.q @ y + 4.0 * self.b * y**3 + np.sin(p[0]) * 0.3 * self.b) / self.d

    def hessian(self, x: np.ndarray, p: np.ndarray) -> np.ndarray:
        """By hand."""
        y = x / self.d - self.centre(p)
        return self.a * (self.q + np.diag(12.0 * self.b * y * y)) / np.outer(self.d, self.d)

    def minimum(self, p: np.ndarray, x: np.ndarray) -> np.ndarray:
        """By Newton's method, for differences."""
        for _ in range(30):
            x = x - np.linalg.solve(self.hessian(x, p), self.gradient(x, p))
        return x

    def start(self, rng: np.random.Generator, p: np.ndarray) -> np.ndarray:
        return self.d * (self.centre(p) + 0.3 * rng.normal(size=len(self.r)))


def options_of(method: str, a: float, d: float) -> dict[str, Any]:
    """Options with which a method goes as far as rounding lets it, for values of size `a` and variables of size `d`."""
    g = 1e-11 * a / d
    return {
        "BFGS": {"gtol": g, "maxiter": 400},
        "CG": {"gtol": g, "maxiter": 2000},
        "L-BFGS-B": {"ftol": 0.0, "gtol": g, "maxiter": 2000, "maxls": 50},
        "TNC": {"ftol": 0.0, "xtol": 0.0, "gtol": g, "maxfun": 3000},
        "SLSQP": {"ftol": 1e-16 * a, "maxiter": 300},
        "Newton-CG": {"xtol": 1e-13 * d, "maxiter": 200},
        "trust-ncg": {"gtol": g},
        "trust-krylov": {"gtol": 1e5 * g},
        "trust-exact": {"gtol": g},
        "trust-constr": {"gtol": g, "xtol": 1e-13 * d, "barrier_tol": 1e-11 * a, "maxiter": 400},
        "Nelder-Mead": {"xatol": 1e-12 * d, "fatol": 1e-16 * a, "maxiter": 800, "maxfev": 1600},
        "Powell": {"xtol": 1e-12, "ftol": 1e-16, "maxiter": 2000},
    }[method]


def given_as(rng: np.random.Generator, f: Callable[[Any, Any], Any], p: Any) -> tuple[Callable[..., Any], tuple[Any, ...]]:
    """A function of the variable and its further arguments: parameters as an argument, in a dict, or around the function."""
    way = rng.integers(3)
    if way == 0:
        return f, (p,)
    if way == 1:
        return lambda x, held: f(x, held["p"]), ({"p": p, "q": 1.0},)
    return lambda x: f(x, p), ()


def smooth_minimum(rng: np.random.Generator, compiled: bool) -> Problem:
    n, k = int(rng.integers(1, 5)), int(rng.integers(1, 4))
    condition = 10.0 ** rng.uniform(0.0, 4.0)
    method = str(rng.choice(MINIMISERS))
    s = Smooth(rng, n, k, condition)
    p, d = rng.normal(size=k), float(s.d[0])
    way = int(rng.integers(2**31))

    def solve(p: Any, start: np.ndarray) -> Any:
        if compiled:
            given: Any = (p, s.q, s.c, s.r, s.d, s.a, s.b)
            return optimize.minimize(loops, start, given, method, options=options_of(method, s.a, d)).flat
        f, args = given_as(np.random.default_rng(way), s.value, p)
        return optimize.minimize(f, start, args, method, options=options_of(method, s.a, d)).flat

    # Some of SciPy's methods give up where numbers are not about one.
    tame = s.a == d == 1.0 or method not in ("CG", "SLSQP", "Newton-CG", "trust-krylov", "trust-ncg", "trust-exact", "trust-constr")
    reliable = condition < 1e3 and tame
    notes = {"method": method, "condition": condition, "a": s.a, "d": d, "compiled": compiled}
    return Problem("smooth minimum", p, solve, s.start(rng, p), s.d, "smooth" if reliable else "any", s.minimum, notes)


def bounded_minimum(rng: np.random.Generator) -> Problem:
    """Bounds that hold by far, hold hardly, are near, or are exactly where the minimum is."""
    n, k = int(rng.integers(1, 5)), int(rng.integers(1, 3))
    s = Smooth(rng, n, k)
    p, d = rng.normal(size=k), float(s.d[0])
    free = s.minimum(p, s.d * s.centre(p)) / d
    kind = str(rng.choice(["some", "all", "near", "weak"]))
    # How far a bound is from where the free minimum is: negative ones hold, if they are alone.
    gap = {
        "some": rng.choice([-1.0, 1.0], size=n) * rng.uniform(0.2, 2.0, size=n),
        "all": -10.0 * rng.uniform(1.0, 2.0, size=n),
        "near": 10.0 ** rng.uniform(-4.0, -1.0, size=n),
        "weak": np.where(np.arange(n) == 0, 0.0, rng.uniform(0.5, 2.0, size=n)),
    }[kind]
    upper = rng.random(size=n) < 0.5
    pairs = [((None, float(d * (x + g))) if up else (float(d * (x - g)), None)) for x, g, up in zip(free, gap, upper, strict=True)]
    method = str(rng.choice(BOUNDED))
    inside = np.where(upper, free + gap - rng.uniform(0.1, 0.5, size=n), free - gap + rng.uniform(0.1, 0.5, size=n))
    way = int(rng.integers(2**31))

    def solve(p: Any, start: np.ndarray) -> Any:
        f, args = given_as(np.random.default_rng(way), s.value, p)
        return optimize.minimize(f, start, args, method, pairs, options=options_of(method, s.a, d)).flat

    def again(p: Any, start: np.ndarray) -> Any:
        return bounded_again(s, p, start, pairs)

    expected = {"some": "any", "all": "any", "near": "any", "weak": "refused"}[kind]
    notes = {"method": method, "kind": kind, "gap": gap, "a": s.a, "d": d}
    return Problem("bounded minimum", p, solve, d * inside, s.d, expected, again, notes)


def constrained_minimum(rng: np.random.Generator) -> Problem:
    n, k = int(rng.integers(2, 5)), int(rng.integers(1, 3))
    s = Smooth(rng, n, k)
    s.d[:] = 1.0
    s.a = 10.0 ** rng.choice([0.0, rng.uniform(-3.0, 3.0)])
    p = rng.normal(size=k)
    w, shift = rng.normal(size=n), float(rng.normal())
    offset = float(rng.choice([-1.0, 1.0]) * rng.uniform(0.3, 1.0))
    kind = str(rng.choice(["equality", "inequality", "ball", "both", "bounds"]))
    method = str(rng.choice(["SLSQP", "trust-constr"]))
    radius = float(rng.uniform(0.3, 3.0))
    as_list = bool(rng.integers(2))
    u = 10.0 ** float(rng.choice([0.0, rng.uniform(-3.0, 3.0)]))  # constraints have units, too

    def constraints(p: Any) -> list[Any]:
        def plane(x: Any) -> Any:
            value = u * (x @ w - shift * np.tanh(p[0]) - offset)
            return [value] if as_list else value

        ball = optimize.inequality(lambda x: u * (radius + 0.1 * p[0] ** 2 - ((x - s.r) ** 2).sum()))
        flat = {"type": "eq", "fun": plane} if rng_is_even else optimize.equality(plane)
        return {
            "equality": [flat],
            "inequality": [optimize.inequality(plane)],
            "ball": [ball],
            "both": [optimize.inequality(plane), ball],
            "bounds": [flat],
        }[kind]

    rng_is_even = bool(rng.integers(2))
    bounds = [(float(s.r[0]) - 0.2, float(s.r[0]) + 0.3), *[(None, None)] * (n - 1)] if kind == "bounds" else None

    def solve(p: Any, start: np.ndarray) -> Any:
        return optimize.minimize(
            s.value, start, (p,), method, bounds, constraints(p), options=options_of(method, s.a, 1.0)
        ).flat  # fmt: skip

    def again(p: Any, start: np.ndarray) -> Any:
        given = [
            {"type": "ineq", "fun": (c["fun"] if isinstance(c, dict) else c.function)}
            | ({"type": "eq"} if isinstance(c, dict) or c.upper == 0.0 else {})
            for c in constraints(p)
        ]
        found = scipy_minimize(
            s.value, start, (p,), "SLSQP", s.gradient, bounds=bounds, constraints=given, options=options_of("SLSQP", s.a, 1.0)
        )
        if not found.success:
            raise RuntimeError(found.message)
        return found.x

    start = s.r + 0.1 * rng.normal(size=n)
    if bounds:
        start[0] = s.r[0]
    notes = {"method": method, "kind": kind, "a": s.a, "u": u}
    return Problem("constrained minimum", p, solve, start, s.d, "any", again, notes)


def bounded_again(s: Smooth, p: np.ndarray, x: np.ndarray, pairs: list[Any]) -> np.ndarray:
    """Newton's method with the bounds that hold, which are those that the gradient presses on."""
    lower = np.array([-np.inf if low is None else low for low, _ in pairs])
    upper = np.array([np.inf if high is None else high for _, high in pairs])
    held = np.zeros(len(x), int)
    for _ in range(60):
        step = np.where(held < 0, lower - x, np.where(held > 0, upper - x, 0.0))
        step[held == 0] = 0.0
        free = held == 0
        gradient, hessian = s.gradient(x, p), s.hessian(x, p)
        moved = step * (held != 0)
        if free.any():
            step[free] = -np.linalg.solve(hessian[np.ix_(free, free)], (gradient + hessian @ np.where(free, 0.0, moved))[free])
        x = x + step
        gradient = s.gradient(x, p)
        held = np.where(free, np.where(x < lower, -1, np.where(x > upper, 1, 0)), np.where(held * gradient > 0.0, 0, held))
    return x


def relu(y: Any) -> Any:
    return tg.relu(y) if isinstance(y, tg.Tensor) else np.maximum(y, 0.0)


def kink_terms(rng: np.random.Generator, n: int) -> Callable[[Any, Any], Any]:
    """A function that is not differentiable where a variable meets a parameter, or another variable."""
    i, j, weight = int(rng.integers(n)), int(rng.integers(n)), 10.0 ** rng.uniform(-1.5, 1.0)
    at: Callable[[Any], Any] = [lambda p: p[0], lambda p: np.sin(p[0]), lambda p: p[-1] * p[0] * 0.5, lambda p: 0.2][
        rng.integers(4)
    ]
    kinds: dict[str, Callable[[Any, Any], Any]] = {
        "abs": lambda y, p: abs(y[i] - at(p)),
        "maximum": lambda y, p: np.maximum(y[i], at(p)),
        "minimum": lambda y, p: -np.minimum(y[i] - at(p), 0.1 * (y[i] - at(p))),
        "hinge": lambda y, p: np.maximum(0.0, 1.0 - (y[i] - at(p))),
        "relu": lambda y, p: relu(y[i] - at(p)),
        "where": lambda y, p: np.where(y[i] > at(p), 1.0, -0.5) * (y[i] - at(p)),
        "where on values": lambda y, p: np.where(y[i] > at(p), 1.0, -0.5) * y[i],
        "branch": lambda y, p: (y[i] - at(p)) if y[i] > at(p) else -0.7 * (y[i] - at(p)),
        "norm": lambda y, p: np.sqrt(((y - at(p)) ** 2).sum()),
        "linalg norm": lambda y, p: np.linalg.norm(y - at(p)),
        "greatest": lambda y, p: np.maximum((y - at(p)).max(), 0.0) if n > 1 else abs(y[0] - at(p)),
        "sorted": lambda y, p: (np.sort(y) * np.arange(1.0, n + 1.0)).sum() + abs(y[j] - at(p)),
        "median": lambda y, p: abs(y - at(p)).sum(),
        "between": lambda y, p: abs(y[i] - y[j] - at(p)) if i != j else abs(y[i] - at(p)),
        "bent": lambda y, p: np.maximum(y[i] - at(p), 0.0) ** 2,
    }  # fmt: skip
    name = str(rng.choice(list(kinds)))
    term = kinds[name]

    def function(y: Any, p: Any) -> Any:
        return weight * term(y, p)

    function.__name__ = f"{name} {weight:.3g}"
    return function


def kink_minimum(rng: np.random.Generator) -> Problem:
    n, k = int(rng.integers(1, 3)), int(rng.integers(1, 3))
    s = Smooth(rng, n, k, 5.0)
    s.b = float(rng.choice([0.0, s.b]))
    p, d = rng.normal(size=k), float(s.d[0])
    terms = [kink_terms(rng, n) for _ in range(rng.integers(1, 3))]
    way, method = int(rng.integers(2**31)), str(rng.choice(["Nelder-Mead", "Powell", "BFGS", "L-BFGS-B", "SLSQP"]))

    def f(x: Any, p: Any) -> Any:
        return s.value(x, p) + s.a * sum(term(x / s.d, p) for term in terms)

    def again(p: np.ndarray, start: np.ndarray) -> np.ndarray:
        for size in (0.1, 0.01, 0.001):
            simplex = start + np.concatenate([np.zeros((1, n)), size * np.diag(s.d)])
            options = options_of("Nelder-Mead", s.a, d) | {"initial_simplex": simplex}
            start = scipy_minimize(f, start, (p,), "Nelder-Mead", options=options).x
        return start

    def solve(p: Any, start: np.ndarray) -> Any:
        g, args = given_as(np.random.default_rng(way), f, p)
        with tg.no_grad():
            start = again(p.detach().numpy() if isinstance(p, tg.Tensor) else p, start)
        return optimize.minimize(g, start, args, method, options=options_of(method, s.a, d) | {"maxiter": 300}).flat

    notes = {"method": method, "terms": [t.__name__ for t in terms], "a": s.a, "d": d}
    return Problem("kink", p, solve, s.start(rng, p), s.d, "any", again, notes)


def kink_at_start(rng: np.random.Generator) -> Problem:
    """A solver that starts exactly at the kink that is the minimum, and stays: conventions make the gradient look like zero."""
    n = int(rng.integers(1, 4))
    s = Smooth(rng, n, 1, 5.0)
    s.r[:], s.b = 0.0, 0.0
    p, weight, only = np.zeros(1), 10.0 ** rng.uniform(-2.0, 1.0), int(rng.integers(1, n + 1))
    kind = str(rng.choice(["abs", "norm", "relu", "maximum"]))

    def f(x: Any, p: Any) -> Any:
        y = x[:only] / s.d[:only] - p[0] * np.arange(1.0, only + 1.0)
        sizes = {
            "abs": lambda: abs(y).sum(),
            "norm": lambda: np.sqrt((y * y).sum()),
            "relu": lambda: (tg.relu(y) + 0.5 * tg.relu(-y)).sum(),
            "maximum": lambda: np.maximum(y, -y).sum(),
        }
        return s.value(x, p) + s.a * weight * sizes[kind]()

    def solve(p: Any, start: np.ndarray) -> Any:
        return optimize.minimize(f, start, (p,), "BFGS", options=options_of("BFGS", s.a, float(s.d[0]))).flat

    return Problem("kink at start", p, solve, np.zeros(n), s.d, "refused", None, {"kind": kind, "weight": weight, "only": only})
