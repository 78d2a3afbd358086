"""Random numbers inside of functions that are differentiated: ``tapegrad.numpy.random``.

Draws are NumPy's, from the same streams, and constants of the derivative. Where a parameter is differentiated that places or scales
a distribution, the draw is one of the standard distribution, moved and stretched, so it has a derivative by the parameter; the
numbers are those that NumPy draws.
"""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from tapegrad.numpy.creation import own
from tapegrad.numpy_arrays.array import Array
from tapegrad.numpy_arrays.untracked import is_tracked, values_of

__all__ = ["Generator", "default_rng"]

_np: Any = np

# Standard draw, and what is made of it: names of the parameters with their defaults.
_MOVED: dict[str, tuple[Callable[..., Any], dict[str, float], Callable[..., Any]]] = {
    "normal": (lambda rng, size: rng.standard_normal(size), {"loc": 0.0, "scale": 1.0}, lambda z, loc, scale: loc + scale * z),
    "uniform": (lambda rng, size: rng.random(size), {"low": 0.0, "high": 1.0}, lambda z, low, high: low + (high - low) * z),
    "exponential": (lambda rng, size: rng.standard_exponential(size), {"scale": 1.0}, lambda z, scale: scale * z),
    "laplace": (lambda rng, size: rng.laplace(size=size), {"loc": 0.0, "scale": 1.0}, lambda z, loc, scale: loc + scale * z),
    "logistic": (lambda rng, size: rng.logistic(size=size), {"loc": 0.0, "scale": 1.0}, lambda z, loc, scale: loc + scale * z),
    "gumbel": (lambda rng, size: rng.gumbel(size=size), {"loc": 0.0, "scale": 1.0}, lambda z, loc, scale: loc + scale * z),
    "rayleigh": (lambda rng, size: rng.rayleigh(size=size), {"scale": 1.0}, lambda z, scale: scale * z),
    "lognormal": (
        lambda rng, size: rng.standard_normal(size), {"mean": 0.0, "sigma": 1.0}, lambda z, mean, sigma: _np.exp(mean + sigma * z),
    ),
}  # fmt: skip


class Generator:
    """A generator of NumPy's, whose draws can depend on what is differentiated.

    Parameters
    ----------
    generator : numpy.random.Generator, numpy.random.RandomState, or module of functions
    """

    def __init__(self, generator: Any) -> None:
        self._generator = generator

    def __getattr__(self, name: str) -> Any:
        found = getattr(self._generator, name)
        if not callable(found) or isinstance(found, type) or name.startswith("_"):
            return found
        return _drawing(self._generator, name, found)

    def __repr__(self) -> str:
        return repr(self._generator)


def _shuffle(generator: Any, x: Any, axis: int = 0) -> None:
    places = np.arange(np.shape(x)[axis])
    generator.shuffle(places)
    x[...] = _np.take(x, places, axis)


def _permutation(generator: Any, x: Any, axis: int = 0) -> Any:
    return _np.take(x, generator.permutation(np.shape(x)[axis]), axis)


def _choice(generator: Any, a: Any, *args: Any, **kwargs: Any) -> Any:
    return a[generator.choice(len(a), *values_of(args), **values_of(kwargs))]


OF_ARRAYS: dict[str, Callable[..., Any]] = {
    "shuffle": _shuffle,
    "permutation": _permutation,
    "choice": _choice,
}  # what takes an array, whose elements it gives


def _drawing(generator: Any, name: str, method: Callable[..., Any]) -> Callable[..., Any]:
    @functools.wraps(method)
    def draw(*args: Any, **kwargs: Any) -> Any:
        if name in OF_ARRAYS and args and isinstance(args[0], Array) and args[0].ndim:
            return OF_ARRAYS[name](generator, *args, **kwargs)
        if not is_tracked(args, kwargs):
            return own(method(*values_of(args), **values_of(kwargs)))
        if name not in _MOVED:
            raise TypeError(
                f"random numbers of {name} have no derivative by their parameters; those of {', '.join(sorted(_MOVED))} have, and "
                "tg.stop_gradient(parameter) makes a constant"
            )
        standard, defaults, moved = _MOVED[name]
        places = [*defaults, "size"]
        given = defaults | {"size": None} | dict(zip(places, args, strict=False)) | kwargs
        size = given.pop("size")
        if size is None:
            size = np.broadcast_shapes(*(np.shape(value) for value in given.values())) or None
        return moved(standard(generator, values_of(size)), **given)

    return draw


@functools.wraps(np.random.default_rng)
def default_rng(seed: Any = None) -> Generator:
    """NumPy's generator for a seed, whose draws can depend on what is differentiated."""
    return Generator(np.random.default_rng(seed))


_global = Generator(np.random)


def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(name)
    return getattr(_global, name)
