"""Random parametrised equations for solvers: least squares, roots, fixed points, and what has no derivative."""

from typing import Any

import numpy as np
from implicit_problems import ROOT_FINDERS, Problem, Smooth, given_as, kink_terms, options_of
from scipy.optimize import least_squares as scipy_least_squares

from tapegrad import optimize


def least_squares(rng: np.random.Generator) -> Problem:
    n, k, m = int(rng.integers(1, 4)), int(rng.integers(1, 3)), 6
    t = np.linspace(0.0, 1.0, m)
    rank = str(rng.choice(["full", "full", "deficient", "nearly"]))
    design = np.stack([t**i for i in range(n)], axis=1) + 0.1 * rng.normal(size=(m, n))
    if rank != "full" and n > 1:
        design[:, 1] = 2.0 * design[:, 0] + (1e-9 * rng.normal(size=m) if rank == "nearly" else 0.0)
    d = 10.0 ** float(rng.choice([0.0, rng.uniform(-6.0, 6.0)]))
    a = 10.0 ** float(rng.choice([0.0, rng.uniform(-6.0, 6.0)]))
    bend, data, c = float(rng.uniform(0.0, 0.3)), rng.normal(size=m), rng.normal(size=(m, k))
    p, method = rng.normal(size=k), str(rng.choice(["trf", "dogbox", "lm"]))
    held = bool(rng.integers(2)) and method != "lm"
    bounds = (np.full(n, -0.3) * d, np.full(n, 0.4) * d) if held else (-np.inf, np.inf)
    loss = "linear" if method == "lm" else str(rng.choice(["linear", "linear", "linear", "soft_l1", "huber"]))
    way, as_list = int(rng.integers(2**31)), bool(rng.integers(2))

    def residual(x: Any, p: Any) -> Any:
        y = design @ (x / d)
        r = a * (y + bend * np.tanh(y) * y - data - c @ np.sin(p))
        return [r[i] for i in range(m)] if as_list else r

    tight = {"ftol": 1e-15, "xtol": 1e-15, "gtol": max(1e-14 * a * a / d, 1e-15), "max_nfev": 100}

    def solve(p: Any, start: np.ndarray) -> Any:
        f, args = given_as(np.random.default_rng(way), residual, p)
        return optimize.least_squares(f, start, args, bounds=bounds, method=method, loss=loss, **tight).flat

    def again(p: np.ndarray, start: np.ndarray) -> np.ndarray:
        # In units of one, so that tolerances are small.
        def scaled(y: np.ndarray) -> np.ndarray:
            return np.asarray(residual(y * d, p), float) / a

        limits = (bounds[0] / d, bounds[1] / d) if held else bounds
        by = "lm" if method == "lm" else "trf"
        return d * scipy_least_squares(scaled, start / d, bounds=limits, method=by, ftol=1e-15, xtol=1e-15, gtol=1e-15).x

    regular = rank == "full" or n == 1 or held  # by bounds, perhaps
    expected = "refused" if loss != "linear" else "any" if regular else "refused"
    notes = {"method": method, "rank": rank, "held": held, "loss": loss, "a": a, "d": d}
    return Problem("least squares", p, solve, np.full(n, 0.05 * d), np.full(n, d), expected, again, notes)


def root(rng: np.random.Generator) -> Problem:
    n, k = int(rng.integers(1, 5)), int(rng.integers(1, 4))
    s = Smooth(rng, n, k, 10.0)
    method = str(rng.choice(ROOT_FINDERS)) if s.a == s.d[0] == 1.0 else str(rng.choice(["hybr", "lm"]))
    skew = 0.5 * rng.normal(size=(n, n))
    kinked = rng.random() < 0.3
    terms = kink_terms(rng, n)
    p, way = rng.normal(size=k), int(rng.integers(2**31))

    def f(x: Any, p: Any) -> Any:
        y = x / s.d - s.centre(p)
        value = s.q @ y + (skew - skew.T) @ y + s.b * y**3 + 0.1 * np.tanh(x / s.d * p[0])
        if kinked:
            value = value + 0.2 * np.tanh(terms(x / s.d, p))
        return [s.a * value[i] for i in range(n)] if way % 2 else s.a * value

    def solve(p: Any, start: np.ndarray) -> Any:
        g, args = given_as(np.random.default_rng(way), f, p)
        return optimize.root(g, start, args, method, tol=1e-13 if method in ("hybr", "lm") else 1e-10).flat

    def again(p: Any, start: np.ndarray) -> Any:
        return optimize.root(f, start, (p,), "hybr", tol=1e-13).flat

    expected = "smooth" if method in ("hybr", "lm") and not kinked else "any"
    notes = {"method": method, "kink": terms.__name__ if kinked else "", "a": s.a, "d": s.d[0]}
    return Problem("root", p, solve, s.start(rng, p), s.d, expected, again, notes)


def root_at_a_kink(rng: np.random.Generator) -> Problem:
    """Equations that bend exactly at their root."""
    n = int(rng.integers(1, 4))
    bend, i = float(rng.uniform(0.1, 0.9)), int(rng.integers(n))
    matrix, p = np.eye(n) + 0.2 * rng.normal(size=(n, n)), np.zeros(1)

    def f(x: Any, p: Any) -> Any:
        return matrix @ x + bend * abs(x[i]) * np.ones(n) - p[0] * np.ones(n)

    def solve(p: Any, start: np.ndarray) -> Any:
        return optimize.root(f, start, (p,)).flat

    return Problem("root at a kink", p, solve, np.zeros(n), np.ones(n), "refused", None, {"bend": bend})


def fixed_point(rng: np.random.Generator) -> Problem:
    n, k = int(rng.integers(1, 5)), int(rng.integers(1, 4))
    matrix, c = rng.normal(size=(n, n)), rng.normal(size=(n, k))
    matrix *= 0.6 / np.linalg.norm(matrix, 2)
    kinked = rng.random() < 0.3
    terms = kink_terms(rng, n)
    p, way, method = rng.normal(size=k), int(rng.integers(2**31)), str(rng.choice(["del2", "iteration"]))

    def f(x: Any, p: Any) -> Any:
        value = np.tanh(matrix @ x) + c @ np.sin(p)
        if kinked:
            value = value + 0.05 * np.tanh(terms(x, p))
        return [value[i] for i in range(n)] if way % 2 else value

    def solve(p: Any, start: np.ndarray) -> Any:
        g, args = given_as(np.random.default_rng(way), f, p)
        return optimize.fixed_point(g, start, args, xtol=1e-13, method=method, maxiter=3000)

    # Steffensen's method goes anywhere in several dimensions.
    notes = {"method": method, "kink": terms.__name__ if kinked else ""}
    return Problem(
        "fixed point", p, solve, np.full(n, 0.1), np.ones(n), "any" if kinked or method == "del2" else "smooth", None, notes
    )


def curve_fit(rng: np.random.Generator) -> Problem:
    """What is refused whole."""
    t = np.linspace(0.0, 1.0, 5)

    def solve(p: Any, start: np.ndarray) -> Any:
        return optimize.curve_fit(lambda t, a: a * t + p[0] * t * t, t, t, start)[0]

    return Problem("curve fit", rng.normal(size=1), solve, np.ones(1), np.ones(1), "refused")


def singular_minimum(rng: np.random.Generator) -> Problem:
    """Minima that are not unique, or flatter than a parabola."""
    n = int(rng.integers(2, 5))
    w, kind = rng.normal(size=n), str(rng.choice(["valley", "flat", "linear", "ring"]))
    p = rng.uniform(0.5, 1.5, size=1)

    def f(x: Any, p: Any) -> Any:
        return {
            "valley": lambda: (x @ w - p[0]) ** 2,
            "flat": lambda: ((x - p[0]) ** 4).sum(),
            "linear": lambda: abs(x - p[0] * np.arange(1.0, n + 1.0)).sum(),
            "ring": lambda: ((x * x).sum() - p[0]) ** 2,
        }[kind]()

    def solve(p: Any, start: np.ndarray) -> Any:
        method = "Nelder-Mead" if kind == "linear" else "BFGS"
        return optimize.minimize(f, start, (p,), method, options=options_of(method, 1.0, 1.0)).flat

    return Problem("singular minimum", p, solve, rng.normal(size=n), np.ones(n), "refused", None, {"kind": kind})
