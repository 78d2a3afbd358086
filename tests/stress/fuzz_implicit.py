"""Solves random parametrised problems and compares derivatives of solutions with differences of solutions.

``python tests/stress/fuzz_implicit.py SEED`` shows and runs one problem again.
"""

import contextlib
import sys
import time
import traceback
import warnings
from collections import Counter
from collections.abc import Callable
from typing import Any

import implicit_equations as equations
import implicit_problems as problems
import numpy as np
from implicit_problems import Problem

import tapegrad as tg

REFUSALS = (RuntimeError, NotImplementedError)
KINDS: list[tuple[Callable[..., Problem], float]] = [
    (lambda rng: problems.smooth_minimum(rng, False), 3.0),
    (problems.bounded_minimum, 3.0),
    (problems.constrained_minimum, 2.0),
    (problems.kink_minimum, 4.0),
    (problems.kink_at_start, 1.0),
    (equations.least_squares, 2.0),
    (equations.root, 2.0),
    (equations.root_at_a_kink, 0.5),
    (equations.fixed_point, 1.0),
    (equations.curve_fit, 0.1),
    (equations.singular_minimum, 1.0),
]
COMPILED: tuple[Callable[..., Problem], float] = (lambda rng: problems.smooth_minimum(rng, True), 1.0)
STEPS = (2e-4, 1e-4)
FOUND_AGAIN = 1e-3  # how far a solver that starts from a solution may go, in units of its size


def problem_of(seed: int, compiled: bool = True) -> Problem:
    rng = np.random.default_rng(seed)
    kinds = [*KINDS, COMPILED] if compiled else KINDS
    weights = np.array([weight for _, weight in kinds])
    return kinds[rng.choice(len(kinds), p=weights / weights.sum())][0](rng)


def solution(problem: Problem, p: np.ndarray, start: np.ndarray) -> np.ndarray:
    with tg.no_grad():
        return np.array((problem.again or problem.solve)(p, start), float).reshape(-1)


def differences(problem: Problem, at: np.ndarray) -> np.ndarray | None:
    """The derivative in units of the solution's size, from solutions for other parameters; None where these do not tell."""
    columns = []
    found = solution(problem, problem.p, at) / problem.size
    if np.abs(found - at / problem.size).max() > FOUND_AGAIN:
        return None  # where a function jumps, a solver that goes on finds another minimum
    for e in np.eye(len(problem.p)):
        estimates = []
        for h in STEPS:
            up, down = (solution(problem, problem.p + side * h * e, at) / problem.size for side in (1.0, -1.0))
            estimates.append(((up - down) / (2.0 * h), (up - found) / h, (found - down) / h))
        (coarse, *_), (fine, forward, backward) = estimates
        scale = 1.0 + np.abs(fine).max()
        if not np.isfinite([coarse, fine, forward, backward]).all():
            return None
        if np.abs(coarse - fine).max() > 1e-3 * scale or np.abs(forward - backward).max() > 5e-3 * scale:
            return None
        columns.append(fine)
    return np.stack(columns, axis=1)


def derivative(problem: Problem, p: Any) -> Any:
    return tg.jacobian(lambda p: problem.solve(p, problem.start))(p)


def check(problem: Problem, second: bool) -> str:
    """What came of a problem: right, refused, or untold; raises if it is wrong."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = np.asarray(derivative(problem, problem.p), float).reshape(-1, len(problem.p))
    except REFUSALS as refusal:
        problem.notes["refusal"] = f"{type(refusal).__name__}: {refusal}"
        return "refused smooth" if problem.expected == "smooth" else "refused"
    except ValueError:
        with tg.no_grad(), contextlib.suppress(ValueError):
            problem.solve(problem.p, problem.start)
            raise
        return "untold"  # SciPy cannot solve it
    assert problem.expected != "refused", f"what has no derivative got {found.tolist()}"
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        with tg.no_grad():
            at = np.array(problem.solve(problem.p, problem.start), float).reshape(-1)
        try:
            truth = differences(problem, at)
        except (RuntimeError, np.linalg.LinAlgError):
            truth = None
        if truth is None:
            return "untold"
        scaled = found / problem.size[:, None]
        scale = 1.0 + np.abs(truth).max()
        assert np.abs(scaled - truth).max() <= 2e-3 * scale, f"{scaled.tolist()} by the equations, {truth.tolist()} by differences"
        if second and problem.expected == "smooth" and not problem.notes.get("compiled"):
            check_second(problem)
    return "right"


def check_second(problem: Problem) -> None:
    """The second derivative of a function of the solution, against differences of the first."""
    weights = np.cos(np.arange(len(problem.size))) / problem.size

    def value(p: Any) -> Any:
        x = problem.solve(p, problem.start)
        return (weights * x).sum() + 0.5 * ((weights * x) ** 2).sum()

    first = tg.grad(value)
    found = tg.hessian(value)(problem.p)
    h = 1e-4
    columns = [(first(problem.p + h * e) - first(problem.p - h * e)) / (2.0 * h) for e in np.eye(len(problem.p))]
    truth = np.stack(columns, axis=1)
    scale = 1.0 + np.abs(truth).max()
    assert np.abs(found - truth).max() <= 1e-3 * scale, f"second: {found.tolist()}, {truth.tolist()} by differences"


def fuzz(first: int, count: int, seconds: float, compiled: bool) -> None:
    """Run problems until their number or the time is up."""
    end = time.monotonic() + seconds
    failed, outcomes, smooth, seed = [], Counter[str](), 0, first
    while seed < first + count and time.monotonic() < end:
        print(seed, flush=True)
        problem = problem_of(seed, compiled)
        smooth += problem.expected == "smooth"
        try:
            outcome = check(problem, seed % 4 == 0)
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            failed.append(f"seed {seed} ({problem.name}) failed: {''.join(traceback.format_exception(error)[-2:])}")
            outcome = "wrong"
        outcomes[outcome] += 1
        if len(failed) >= 20:
            break
        seed += 1
    print(*failed, sep="\n", file=sys.stderr)
    print(*(f"{name}: {number}" for name, number in sorted(outcomes.items())), file=sys.stderr)
    print(seed - first, outcomes["right"], outcomes["untold"], smooth, outcomes["refused smooth"], len(failed))
    sys.exit(bool(failed))


if __name__ == "__main__":
    if len(sys.argv) == 2:
        shown = problem_of(int(sys.argv[1]))
        print(shown)
        print(check(shown, int(sys.argv[1]) % 4 == 0), shown.notes)
    else:
        fuzz(int(sys.argv[1]), int(sys.argv[2]), float(sys.argv[3]), sys.argv[4:] != ["short"])
