"""Calls that a program does at once: drivers look there first."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tapegrad.drivers.containers import flatten, restore

__all__ = ["at_once", "direct_of", "in_doubles"]

FLOAT32 = np.dtype(np.float32)


def direct_of(f: Any, what: str, argnums: Any, has_aux: bool = False) -> Any:
    """Where a driver finds what a program does at once, in its attribute `call`; None for other functions.

    Parameters
    ----------
    f : callable
    what : str
        "" for value and gradient, "jacobian" with the value, "hessian", "value_jvp" and "hvp", whose vectors follow the arguments,
        "jvp" and "vjp" for the value and what gives products later, or "value".
    argnums : int, tuple or range of int
        Others are not looked for.
    has_aux : bool
        Whether the function returns something besides, which no program does.
    """
    if not hasattr(type(f), "__direct__") or has_aux or type(argnums) not in (int, tuple, range):
        return None
    return f.__direct__(what, argnums)


def at_once(f: Callable[..., Any], what: str, argnums: Any, args: tuple[Any, ...], vectors: tuple[Any, ...] = ()) -> Any:
    """What a program does at once for these arguments, with vectors behind them; None if the driver has to go its own way."""
    if not hasattr(type(f), "__direct__"):
        return None
    run = f.__direct__(what, argnums).call  # type: ignore[attr-defined]
    if run is None:
        return None
    found = run((*args, *vectors))
    return run((*args, *doubles)) if found is None and vectors and (doubles := in_doubles(vectors)) is not None else found


def in_doubles(vectors: tuple[Any, ...]) -> tuple[Any, ...] | None:
    """Vectors with their arrays of float32 in float64, as which derivatives take them; None if there are none."""
    found: list[Any] = []
    structure = flatten(vectors, found)
    if not any(type(x) is np.ndarray and x.dtype == FLOAT32 for x in found):
        return None
    doubles = [x.astype(np.float64) if type(x) is np.ndarray and x.dtype == FLOAT32 else x for x in found]
    made: tuple[Any, ...] = restore(structure, iter(doubles))
    return made
