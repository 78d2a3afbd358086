"""Fits of packages that are built on autograd, as their users write them: lifelines and pymanopt."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple

import numpy as np

from .workloads import Step


class Fit(NamedTuple):
    """What is measured: a call that gives the numbers that it found."""

    group: str
    name: str
    run: Callable[[], Any]


def univariate(name: str, *args: Any) -> Fit:
    """A distribution of durations."""

    def run() -> Any:
        import lifelines
        from lifelines.datasets import load_waltons

        data = load_waltons()
        fitter = getattr(lifelines, f"{name}Fitter")(*args).fit(data["T"], data["E"])
        return [*fitter.summary["coef"], fitter.log_likelihood_]

    return Fit("univariate", name, run)


def regression(name: str, **options: Any) -> Fit:
    """Durations by covariates."""

    def run() -> Any:
        import lifelines
        from lifelines.datasets import load_rossi

        fitter = getattr(lifelines, f"{name}Fitter")(**options).fit(load_rossi(), "week", "arrest")
        return [*fitter.params_, fitter.log_likelihood_]

    return Fit("regression", name, run)


def _minimised(manifold: Any, cost: Any, optimizer: Any, start: Any) -> Any:
    import pymanopt

    return optimizer.run(pymanopt.Problem(manifold, pymanopt.function.autograd(manifold)(cost)), initial_point=start)


def eigenvector() -> Any:
    """The leading eigenvector of a matrix, on the sphere."""
    import autograd.numpy as anp
    from pymanopt import manifolds, optimizers

    rng = np.random.default_rng(0)
    matrix = rng.normal(size=(50, 50))
    matrix = matrix @ matrix.T / 50.0
    optimizer = optimizers.ConjugateGradient(verbosity=0, min_gradient_norm=1e-8)
    start = np.full(50, 50.0**-0.5)
    point = _minimised(manifolds.Sphere(50), lambda x: -x @ anp.dot(matrix, x), optimizer, start).point
    return point @ matrix @ point


def subspace() -> Any:
    """The leading subspace of a matrix, on the Grassmann manifold, by trust regions with Hessian products."""
    import autograd.numpy as anp
    from pymanopt import manifolds, optimizers

    rng = np.random.default_rng(0)
    matrix = rng.normal(size=(30, 30))
    matrix = matrix + matrix.T
    start = np.linalg.qr(rng.normal(size=(30, 3)))[0]
    optimizer = optimizers.TrustRegions(verbosity=0, min_gradient_norm=1e-8)
    cost = lambda x: -anp.trace(x.T @ matrix @ x)  # noqa: E731
    return _minimised(manifolds.Grassmann(30, 3), cost, optimizer, start).cost


def covariance() -> Any:
    """A mixture-free normal distribution, by its covariance on the manifold of positive definite matrices."""
    import autograd.numpy as anp
    from pymanopt import manifolds, optimizers

    points = np.random.default_rng(0).normal(size=(200, 5)) @ np.diag([1.0, 2.0, 0.5, 1.0, 3.0])
    moments = points.T @ points / len(points)
    cost = lambda s: anp.linalg.slogdet(s)[1] + anp.sum(anp.linalg.inv(s) * moments)  # noqa: E731
    optimizer = optimizers.SteepestDescent(verbosity=0, min_gradient_norm=1e-7)
    return _minimised(manifolds.SymmetricPositiveDefinite(5), cost, optimizer, np.eye(5)).cost


FITS = [
    univariate("Exponential"),
    univariate("Weibull"),
    univariate("LogNormal"),
    univariate("LogLogistic"),
    univariate("GeneralizedGamma"),
    univariate("PiecewiseExponential", [20, 40, 60]),
    univariate("Spline", [6, 20, 40, 75]),
    regression("WeibullAFT"),
    regression("LogNormalAFT"),
    regression("LogLogisticAFT"),
    regression("PiecewiseExponentialRegression", breakpoints=[25, 40], penalizer=0.1),
    regression("GeneralizedGammaRegression", penalizer=1.0),
    regression("CoxPH", penalizer=0.1),
    Fit("manifold", "eigenvector", eigenvector),
    Fit("manifold", "subspace", subspace),
    Fit("manifold", "covariance", covariance),
]


def operations(library: str) -> list[Fit]:
    """All fits, with `autograd` standing for one of the two."""
    if library == "tapegrad":
        import tapegrad.as_autograd  # noqa: F401
    return FITS


def build(library: str, fit: Fit, size: int, point: int) -> tuple[Step, list[float]]:
    """A step that fits once, and what it found."""
    return fit.run, np.ravel(fit.run()).astype(float).tolist()


class Fits:
    params = tuple(fit.name for fit in FITS)
    param_names = ("fit",)
    timeout = 300.0

    def setup(self, name: str) -> None:
        operations("tapegrad")
        try:
            self.step, _ = build("tapegrad", next(fit for fit in FITS if fit.name == name), 0, 0)
        except ImportError:
            raise NotImplementedError(name) from None  # asv leaves it out

    def time_fit(self, name: str) -> None:
        self.step()
