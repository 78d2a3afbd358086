"""Whole problems, a call each: value and gradient, or the Jacobian, at the sizes that users have.

Each function is written once, for the arrays and tensors of every library.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from .workloads import Step, load

RANDOM = np.random.default_rng(0)
FOCAL, STATES, SIGNS_OF = 500.0, 4, (1.0, -1.0)


def logistic(w: Any, np: Any, x: Any, signs: Any, zero: Any) -> Any:
    """Logistic regression with a ridge."""
    return np.logaddexp(zero, -signs * (x @ w)).sum() + 0.5 * (w**2).sum()


def mixture(p: Any, np: Any, points: Any) -> Any:
    """Three normal distributions in two dimensions."""
    weights, means, deviations = p[:3], p[3:9].reshape(3, 2), p[9:].reshape(3, 2)
    scaled = (points[:, None, :] - means) * np.exp(-deviations)
    densities = weights - deviations.sum(1) - 0.5 * (scaled**2).sum(2)
    return len(points) * np.log(np.exp(weights).sum()) - np.log(np.exp(densities).sum(1)).sum() + 0.5 * (p**2).sum()


def gaussian_process(p: Any, np: Any, squares: Any, values: Any, unit: Any) -> Any:
    """Marginal likelihood in amplitude, two lengths and noise."""
    covariance = np.exp(2.0 * p[0] - 0.5 * (squares @ np.exp(-2.0 * p[1:3]))) + np.exp(2.0 * p[3]) * unit
    factor = np.linalg.cholesky(covariance)
    whitened = np.linalg.solve(factor, values)
    return 0.5 * (whitened**2).sum() + np.log(np.diag(factor)).sum()


def portfolio(w: Any, np: Any, covariance: Any, returns: Any, held: Any) -> Any:
    """Risk, return and the impact of trading, with its two constraints as penalties."""
    cost = 2.0 * (w @ covariance @ w) - returns @ w + 0.02 * (((w - held) ** 2 + 1e-4) ** 0.75).sum()
    return cost + 10.0 * (w.sum() - 1.0) ** 2 + 10.0 * np.exp(-40.0 * (returns @ w - 0.09))


def bundle(variables: Any, np: Any, seen: Any) -> Any:
    """Residuals of the places where eight cameras see sixty points."""
    cameras, points = variables[:48].reshape(8, 6), variables[48:].reshape(60, 3)
    angle = np.sqrt((cameras[:, :3] ** 2).sum(1))[:, None]
    cosine, sine = np.cos(angle), np.sin(angle)
    a, b, c = (cameras[:, i : i + 1] / angle for i in range(3))
    x, y, z = points[:, 0], points[:, 1], points[:, 2]
    along = (1.0 - cosine) * (a * x + b * y + c * z)
    u = cosine * x + sine * (b * z - c * y) + along * a + cameras[:, 3:4]
    v = cosine * y + sine * (c * x - a * z) + along * b + cameras[:, 4:5]
    w = cosine * z + sine * (a * y - b * x) + along * c + cameras[:, 5:6]
    return FOCAL * np.stack([u / w, v / w]).reshape(-1) - seen


def hidden_markov(p: Any, np: Any, measured: Any) -> Any:
    """The forward algorithm over 1,000 measurements in four states, scaled at each step."""
    weights = np.exp(p[:16].reshape(STATES, STATES))
    transitions = weights / weights.sum(1)[:, None]
    densities = np.exp(-0.5 * ((measured[:, None] - p[16:20]) * np.exp(-p[20:])) ** 2 - p[20:])
    state, value = densities[0] / STATES, 0.05 * (p**2).sum()
    for i in range(1, len(measured)):
        total = state.sum()
        value = value - np.log(total)
        state = (state / total) @ transitions * densities[i]
    return value - np.log(state.sum())


def heat(p: Any, np: Any, beginning: Any, none: Any) -> Any:
    """400 explicit steps of a rod of 100 cells that is insulated at both ends."""
    conductivity, temperature = np.exp(p), beginning
    for _ in range(400):
        flow = 0.2 * conductivity * (temperature[1:] - temperature[:-1])
        temperature = temperature + np.concatenate([flow, none]) - np.concatenate([none, flow])
    return (temperature**2).sum()


def lotka_volterra(p: Any, np: Any) -> Any:
    """400 of Runge and Kutta's steps of fourth order of prey and predators, on numbers."""

    def slope(x: Any, y: Any) -> Any:
        return x * (a - b * y), y * (d * x - c)

    a, b, c, d, x, y = (np.exp(p[i]) for i in range(6))
    dt, value = 0.05, 0.5 * (p**2).sum()
    for _ in range(400):
        x1, y1 = slope(x, y)
        x2, y2 = slope(x + 0.5 * dt * x1, y + 0.5 * dt * y1)
        x3, y3 = slope(x + 0.5 * dt * x2, y + 0.5 * dt * y2)
        x4, y4 = slope(x + dt * x3, y + dt * y3)
        x, y = x + dt / 6.0 * (x1 + 2.0 * x2 + 2.0 * x3 + x4), y + dt / 6.0 * (y1 + 2.0 * y2 + 2.0 * y3 + y4)
    return value + x * x + y * y


class Problem(NamedTuple):
    """A function, where it is differentiated, and its data.

    Attributes
    ----------
    group : str
        What is asked for: "gradient" or "jacobian"
    name : str
    function : callable
        Of the variables, a library's NumPy-like functions, and the data.
    start : ndarray
    data : tuple of ndarray
    of_tensors : bool
        Whether tapegrad's data are tensors, made once before, as PyTorch's always are: arrays, which the caller may write into, are
        copied in each call.
    """

    group: str
    name: str
    function: Callable[..., Any]
    start: np.ndarray
    data: tuple[Any, ...]
    of_tensors: bool = False


def _problems() -> list[Problem]:
    def regression(count: int) -> list[Problem]:
        data = RANDOM.standard_normal((count, 30)), RANDOM.choice(SIGNS_OF, count), np.zeros(())
        name = f"logistic regression {count} x 30"
        of_arrays = Problem("gradient", name, logistic, np.full(30, 0.1), data)
        return [of_arrays, of_arrays._replace(name=f"{name}, data in tensors", of_tensors=True)]

    def process(count: int) -> Problem:
        places = RANDOM.uniform(-2.0, 2.0, (count, 2))
        data = (places[:, None, :] - places) ** 2, np.sin(2.0 * places[:, 0]), np.eye(count)
        return Problem("gradient", f"Gaussian process of {count} points", gaussian_process, np.array([0.0, 0.1, -0.1, -1.0]), data)

    factors = 0.15 * RANDOM.standard_normal((30, 4))
    covariance = factors @ factors.T + np.diag(RANDOM.uniform(0.01, 0.05, 30))
    cameras = np.hstack([0.3 * RANDOM.standard_normal((8, 3)), np.array([0.0, 0.0, 6.0]) + 0.5 * RANDOM.standard_normal((8, 3))])
    scene = np.concatenate([cameras.ravel(), RANDOM.uniform(-1.5, 1.5, 180)])
    markov = np.concatenate([2.0 * np.eye(STATES).ravel(), [-1.0, 0.0, 1.0, 2.0], np.zeros(STATES)])
    rod = np.exp(-0.5 * ((np.arange(100) - 30.0) / 6.0) ** 2)
    gmm = np.concatenate([np.zeros(3), [-1.0, 0.0, 0.0, 1.0, 1.0, 0.0], np.zeros(6)])
    return [
        *regression(10_000),
        *regression(100_000),
        Problem("gradient", "mixture of 1000 points", mixture, gmm, (RANDOM.standard_normal((1000, 2)),)),
        process(150),
        process(500),
        Problem(
            "gradient",
            "portfolio of 30 assets",
            portfolio,
            np.full(30, 1 / 30),
            (covariance, RANDOM.uniform(0.02, 0.14, 30), np.zeros(30)),
        ),
        Problem("jacobian", "bundle adjustment 960 x 228", bundle, scene, (np.zeros(960),)),
        Problem("gradient", "hidden Markov model of 1000 steps", hidden_markov, markov, (RANDOM.standard_normal(1000),)),
        Problem("gradient", "heat equation of 400 steps", heat, np.zeros(99), (rod, np.zeros(1))),
        Problem("gradient", "Lotka-Volterra of 400 steps", lotka_volterra, np.log([0.8, 0.8, 0.8, 0.8, 1.0, 1.0]), ()),
    ]


PROBLEMS = {problem.name: problem for problem in _problems()}


def operations(library: str) -> list[Problem]:
    """All problems."""
    load(library)
    return list(PROBLEMS.values())


def build(library: str, problem: Problem, size: int, point: int) -> tuple[Step, list[float]]:
    """A step that asks for the derivative once, and the derivative."""
    step = globals()[f"_{library}"](problem)
    found = step()
    value, derivative = found if isinstance(found, tuple) else (0.0, found)
    return step, [float(value), *np.asarray(derivative).ravel()[:1000].tolist()]


def _tapegrad(problem: Problem) -> Step:
    import tapegrad as tg

    driver = tg.jacobian if problem.group == "jacobian" else tg.value_and_grad
    data = [tg.tensor(item) for item in problem.data] if problem.of_tensors else problem.data
    derivative = driver(lambda x: problem.function(x, np, *data))
    return lambda: derivative(problem.start)


def _autograd(problem: Problem) -> Step:
    import autograd

    functions = importlib.import_module("autograd.numpy")
    driver = autograd.jacobian if problem.group == "jacobian" else autograd.value_and_grad
    derivative = driver(lambda x: problem.function(x, functions, *problem.data))
    return lambda: derivative(problem.start)


def _torch(problem: Problem) -> Step:
    import torch

    data = [torch.tensor(item) for item in problem.data]
    if problem.group == "jacobian":
        jacobian = torch.func.jacfwd(lambda x: problem.function(x, torch, *data))
        return lambda: jacobian(torch.tensor(problem.start)).numpy()

    def value_and_gradient() -> Any:
        x = torch.tensor(problem.start, requires_grad=True)
        value = problem.function(x, torch, *data)
        value.backward()
        return value.item(), x.grad.numpy()

    return value_and_gradient


class Problems:
    params = (list(PROBLEMS), ["tapegrad", "torch", "autograd"])
    param_names = ("problem", "library")

    def setup(self, name: str, library: str) -> None:
        load(library)
        self.step, _ = build(library, PROBLEMS[name], 0, 0)

    def time_derivative(self, name: str, library: str) -> None:
        self.step()
