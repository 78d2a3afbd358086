"""Derivatives that the user gives for primitives: `defvjp`, `defjvp` and their kin."""

from __future__ import annotations

import functools
import itertools
import sys
import threading
import warnings
from collections.abc import Callable, Iterable, Sequence
from types import FunctionType
from typing import Any

from tapegrad.as_autograd.products import make_vjp
from tapegrad.as_autograd.vector_spaces import vspace
from tapegrad.as_autograd.wrapping import get_name, subval

__all__ = [
    "cotangents_of",
    "def_linear",
    "defgrad",
    "defjvp",
    "defjvp_argnum",
    "defjvp_argnums",
    "defvjp",
    "defvjp_argnum",
    "defvjp_argnums",
    "defvjp_is_zero",
    "defvjp_of_old",
    "primitive_jvps",
    "primitive_vjps",
]

# ``(argnums, value, args, kwargs)`` to a function of the result's cotangent, and ``(argnums, tangents, value, args, kwargs)`` to
# the result's tangent; for each primitive.
primitive_vjps: dict[Any, Callable[..., Any]] = {}
primitive_jvps: dict[Any, Callable[..., Any]] = {}


def cotangents_of(
    primitive: Any, argnums: tuple[int, ...], g: Any, value: Any, args: tuple[Any, ...], kwargs: dict[str, Any]
) -> list[Any]:
    """Cotangents of some arguments of a primitive, by what was given for it.

    Raises
    ------
    NotImplementedError
        If nothing was.
    """
    make = primitive_vjps.get(primitive)
    if make is not None:
        return list(make(argnums, value, args, kwargs)(g))
    push = primitive_jvps.get(primitive)
    if push is None or primitive in _thread.transposed:  # a function that is linear by itself has to be transposed by its own vjp
        raise NotImplementedError(f"VJP of {get_name(primitive)} wrt argnums {argnums} not defined")
    found = []
    before = _thread.transposed
    try:
        _thread.transposed = {*before, primitive}
        for argnum in argnums:
            of_tangent = functools.partial(_of_tangent, push, argnum, value, args, kwargs)
            found.append(make_vjp(of_tangent, vspace(args[argnum]).zeros())[0](g))
    finally:
        _thread.transposed = before
    return found


class _Thread(threading.local):
    """Primitives whose derivative in forward mode is just being transposed."""

    def __init__(self) -> None:
        self.transposed: set[Any] = set()


_thread = _Thread()


def _of_tangent(push: Any, argnum: int, value: Any, args: Any, kwargs: Any, tangent: Any) -> Any:
    return push((argnum,), (tangent,), value, args, kwargs)


def _primitive_of(fun: Any) -> Any:
    """The primitive that a derivative is given for; None if it has no effect, as in autograd for a plain function of Python's.

    Nor has it for a function of ``autograd.numpy``, which a warning tells.
    """
    if hasattr(fun, "as_primitive"):
        return fun.as_primitive()
    if hasattr(fun, "without_derivative"):
        return fun
    if not isinstance(fun, FunctionType) or fun.__module__.partition(".")[0] in ("numpy", "scipy", "tapegrad", "autograd"):
        warnings.warn(
            f"the derivative that is given for {get_name(fun)} is not used: tapegrad has one of its own. To have another one, "
            f"write f = primitive({get_name(fun)}), give it for f, and call f",
            UserWarning,
            stacklevel=_outside(),
        )
    return None


def _outside() -> int:
    """Level, for a warning of the caller, of the first frame that is not of this module."""
    frame, level = sys._getframe(1), 1
    while frame.f_back is not None and frame.f_globals is globals():
        frame, level = frame.f_back, level + 1
    return level


def defvjp_argnums(fun: Any, vjpmaker: Callable[..., Any]) -> None:
    """Give the derivative by several arguments at once: ``vjpmaker(argnums, value, args, kwargs)(g)`` gives one for each."""
    made = _primitive_of(fun)
    if made is not None:
        primitive_vjps[made] = vjpmaker


def defvjp_argnum(fun: Any, vjpmaker: Callable[..., Any]) -> None:
    """Give the derivative by any argument: ``vjpmaker(argnum, value, args, kwargs)(g)``."""

    def of_all(argnums: Sequence[int], value: Any, args: Any, kwargs: Any) -> Callable[[Any], Any]:
        vjps = [vjpmaker(argnum, value, args, kwargs) for argnum in argnums]
        return lambda g: [vjp(g) for vjp in vjps]

    defvjp_argnums(fun, of_all)


def defvjp(fun: Any, *vjpmakers: Any, argnums: Iterable[int] | None = None) -> None:
    """Give the derivatives by the arguments, one after the other: ``vjpmaker(value, *args, **kwargs)(g)``; None for none.

    Parameters
    ----------
    fun : callable
        What `primitive` made.
    *vjpmakers : callable or None
    argnums : iterable of int, optional
        The arguments that they are for, if not the first ones.
    """
    by_argnum = _by_argnum(fun, vjpmakers, argnums, "VJP")

    def of_one(argnum: int, value: Any, args: Any, kwargs: Any) -> Callable[[Any], Any]:
        if argnum not in by_argnum:
            raise NotImplementedError(f"VJP of {get_name(fun)} wrt argnum {argnum} not defined")
        maker = by_argnum[argnum]
        if maker is None:
            return lambda g: None
        vjp: Callable[[Any], Any] = maker(value, *args, **kwargs)
        return vjp

    defvjp_argnum(fun, of_one)


def _by_argnum(fun: Any, makers: Sequence[Any], argnums: Iterable[int] | None, what: str) -> dict[int, Any]:
    for maker in makers:
        if maker is not None and not callable(maker) and not (what == "JVP" and maker == "same"):
            raise TypeError(f"Bad {what} {maker!r} for {get_name(fun)!r}: it must be a function, or None")
    return dict(zip(itertools.count() if argnums is None else argnums, makers, strict=False))


def defjvp_argnums(fun: Any, jvpmaker: Callable[..., Any]) -> None:
    """Give the derivative in forward mode: ``jvpmaker(argnums, tangents, value, args, kwargs)`` is the result's tangent."""
    made = _primitive_of(fun)
    if made is not None:
        primitive_jvps[made] = jvpmaker


def defjvp_argnum(fun: Any, jvpmaker: Callable[..., Any]) -> None:
    """The same for any argument: ``jvpmaker(argnum, tangent, value, args, kwargs)``."""

    def of_all(argnums: Sequence[int], gs: Sequence[Any], value: Any, args: Any, kwargs: Any) -> Any:
        parts = [jvpmaker(argnum, g, value, args, kwargs) for argnum, g in zip(argnums, gs, strict=True)]
        return functools.reduce(vspace(value).add, parts)

    defjvp_argnums(fun, of_all)


def defjvp(fun: Any, *jvpfuns: Any, argnums: Iterable[int] | None = None) -> None:
    """The same one after the other: ``jvpfun(tangent, value, *args, **kwargs)``, ``"same"`` where `fun` is linear, or None."""
    by_argnum = _by_argnum(fun, jvpfuns, argnums, "JVP")

    def of_one(argnum: int, g: Any, value: Any, args: Any, kwargs: Any) -> Any:
        if argnum not in by_argnum:
            raise NotImplementedError(f"JVP of {get_name(fun)} wrt argnum {argnum} not defined")
        jvp = by_argnum[argnum]
        if jvp is None:
            return vspace(value).zeros()
        return fun(*subval(args, argnum, g), **kwargs) if jvp == "same" else jvp(g, value, *args, **kwargs)

    defjvp_argnum(fun, of_one)


def def_linear(fun: Any) -> None:
    """Say that a primitive is linear in each of its arguments."""
    defjvp_argnum(fun, lambda argnum, g, value, args, kwargs: fun(*subval(args, argnum, g), **kwargs))


# Methods of primitives that autograd keeps for code of before version 1.2.


def _note_old(name: str) -> None:
    warnings.warn(f"The {name} method of primitives is deprecated. Use autograd.extend.defvjp", UserWarning, stacklevel=4)


def defgrad(made: Any, known: dict[int, Any], gradfun: Any, argnum: int = 0) -> None:
    """``primitive.defgrad(gradfun, argnum)``."""
    _note_old("defgrad")
    known[argnum] = gradfun
    defvjp(made, *known.values(), argnums=list(known))


def defvjp_of_old(made: Any, known: dict[int, Any], vjpmaker: Any, argnum: int = 0) -> None:
    """``primitive.defvjp(vjpmaker, argnum)``, with a function of the cotangent and all else at once."""

    def staged(value: Any, *args: Any, **kwargs: Any) -> Callable[[Any], Any]:
        return lambda g: vjpmaker(g, value, vspace(args[argnum]), vspace(g), *args, **kwargs)

    _note_old("defvjp")
    known[argnum] = staged
    defvjp(made, *known.values(), argnums=list(known))


def defvjp_is_zero(made: Any, argnums: Iterable[int] = (0,)) -> None:
    """``primitive.defvjp_is_zero(argnums)``."""
    _note_old("defvjp_is_zero")
    numbers = list(argnums)
    defvjp(made, *[None] * len(numbers), argnums=numbers)
