"""Calls that a program does at once: drivers look there first."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

__all__ = ["at_once", "direct_of"]


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


def at_once(f: Callable[..., Any], what: str, argnums: Any, args: tuple[Any, ...]) -> Any:
    """What a program does at once for these arguments; None if the driver has to go its own way."""
    if not hasattr(type(f), "__direct__"):
        return None
    run = f.__direct__(what, argnums).call  # type: ignore[attr-defined]
    return None if run is None else run(args)
