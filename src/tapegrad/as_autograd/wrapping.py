"""Operators on functions of one argument as operators on functions of many."""

from __future__ import annotations

import functools
from collections.abc import Callable, Iterable
from typing import Any

__all__ = ["func", "get_doc", "get_name", "subval", "subvals", "unary_to_nary", "wrap_nary_f", "wraps"]


def get_name(f: Any) -> str:
    """The name of a callable, whatever it is."""
    return getattr(f, "__name__", "[unknown name]")


def get_doc(f: Any) -> str:
    """The text that describes a callable."""
    return getattr(f, "__doc__", None) or ""


def func(f: Callable[..., Any]) -> Callable[..., Any]:
    """The function itself."""
    return f


def subvals(x: Iterable[Any], ivs: Iterable[tuple[int, Any]]) -> tuple[Any, ...]:
    """A tuple with other values in some places."""
    values = list(x)
    for place, value in ivs:
        values[place] = value
    return tuple(values)


def subval(x: Iterable[Any], i: int, v: Any) -> tuple[Any, ...]:
    """A tuple with another value in one place."""
    return subvals(x, [(i, v)])


def wraps(fun: Any, namestr: str = "{fun}", docstr: str = "{doc}", **names: Any) -> Callable[[Any], Any]:
    """Decorator that gives a function a name and a text made of those of another one."""

    def decorate(f: Any) -> Any:
        f.__name__ = namestr.format(fun=get_name(fun), **names)
        f.__doc__ = docstr.format(fun=get_name(fun), doc=get_doc(fun), **names)
        return f

    return decorate


def wrap_nary_f(fun: Any, op: Any, argnum: Any) -> Callable[[Any], Any]:
    """Decorator for what an operator makes of a function."""
    name, operator = get_name(fun), get_name(op)

    def decorate(f: Any) -> Any:
        f.__name__ = f"{operator}_of_{name}_wrt_argnum_{argnum}"
        f.__doc__ = (
            f"    {operator} of function {name} with respect to argument number {argnum}: takes its arguments, and returns the "
            f"{operator}."
        )
        return f

    return decorate


def unary_to_nary(unary_operator: Callable[..., Any]) -> Callable[..., Any]:
    """Operator on functions of many arguments, one of which it is about.

    Parameters
    ----------
    unary_operator : callable
        ``operator(f, x, *more)`` for a function of one argument.

    Returns
    -------
    callable
        ``operator(f, argnum=0, *more)`` gives a function of the arguments of `f`. With a list or tuple of numbers the one argument
        is the tuple of all that they name.
    """

    @functools.wraps(unary_operator)
    def nary_operator(fun: Callable[..., Any], argnum: Any = 0, *more: Any, **named: Any) -> Callable[..., Any]:
        if type(argnum) not in (int, tuple, list):
            raise TypeError(f"{get_name(unary_operator)}: argnum must be an integer, or a tuple or list of them, not {argnum!r}")
        single = isinstance(argnum, int)

        @wrap_nary_f(fun, unary_operator, argnum)
        def of_all(*args: Any, **kwargs: Any) -> Any:
            def of_one(x: Any) -> Any:
                given = list(args)
                if single:
                    given[argnum] = x
                else:
                    for place, value in zip(argnum, x, strict=True):
                        given[place] = value
                return fun(*given, **kwargs)

            of_one.__name__ = get_name(fun)
            x = args[argnum] if single else tuple(args[place] for place in argnum)
            return unary_operator(of_one, x, *more, **named)

        return of_all

    return nary_operator
