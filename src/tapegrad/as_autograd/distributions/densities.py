"""Distributions by the logarithmic derivatives of their densities."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tapegrad.as_autograd.given_derivatives import defvjp
from tapegrad.as_autograd.primitives import primitive

__all__ = ["density_and_logarithm", "distribution_function"]

Slope = Callable[..., Any]


def density_and_logarithm(density: Any, logarithm: Any, slopes: Sequence[Slope | None]) -> tuple[Any, Any]:
    """Functions of SciPy as primitives.

    Parameters
    ----------
    density, logarithm : callable
    slopes : sequence of callable or None
        For each argument the derivative of the logarithm, as a function of all of them.
    """
    pdf, logpdf = primitive(density), primitive(logarithm)
    defvjp(pdf, *[slope and _of_density(slope) for slope in slopes])
    defvjp(logpdf, *[slope and _of_logarithm(slope) for slope in slopes])
    return pdf, logpdf


def _of_density(slope: Slope) -> Callable[..., Any]:
    return lambda ans, *args: lambda g: g * ans * slope(*args)


def _of_logarithm(slope: Slope) -> Callable[..., Any]:
    return lambda ans, *args: lambda g: g * slope(*args)


def distribution_function(function: Any, slope: Slope, argnum: int = 0) -> Any:
    """A distribution function as a primitive, with its derivative by one argument."""
    cdf = primitive(function)
    defvjp(cdf, lambda ans, *args: lambda g: g * slope(*args), argnums=[argnum])
    return cdf
