"""Derivatives that users say of functions which compiled code calls."""

from __future__ import annotations

import ctypes
import inspect
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from numba.core import types
from numba.core.ccallback import CFunc
from numba.core.dispatcher import Dispatcher
from numba.core.registry import cpu_target
from numba.core.types import WrapperAddressProtocol

from tapegrad.nopython.formulas.rule_names import RULE_OF
from tapegrad.nopython.functions.reductions import FUNCTIONS
from tapegrad.nopython.functions.registered_calls import name_of, recorded_call
from tapegrad.nopython.twins.generations import outdate
from tapegrad.nopython.twins.registrations import Registration, is_pointer, register

__all__ = ["register_derivative", "stand_in"]

NAME = "register_derivative"
Partials = Callable[..., Any] | Sequence[Callable[..., Any] | None]


def register_derivative(f: Any, partials: Partials) -> None:
    """Say what the derivative of a function is that compiled functions call.

    For C functions, which cannot be recorded, and for compiled functions whose derivative is known better: an iteration that
    converges, a table, a series. Wherever a differentiated function calls `f` from now on, the call is one row of the tape.

    Parameters
    ----------
    f : callable
        A function that `numba.njit` compiles; a C function, as `ctypes`, `numba.cfunc` or an object with an address of its own
        (`numba.types.WrapperAddressProtocol`, in which packages hand out SciPy's functions) has it; or a function of Python or
        another package that Numba knows by `numba.extending.overload`. Its result is a number.
    partials : compiled function, or sequence of these
        For each argument a function that `numba.njit` compiles, which takes the arguments of `f` and returns the partial derivative
        by that one: a number, or an array of the shape of an argument that is an array. None for an argument of which no
        derivative is asked: a call where it depends on the inputs is refused. One alone is for a function of one argument.

    Raises
    ------
    TypeError
        If `f` is not such a function or a partial is not compiled.
    ValueError
        If there are not as many partials as arguments, if one takes another number of arguments than `f`, or if `f` has a
        derivative of tapegrad's own.

    Notes
    -----
    The value of `f` is what `f` returns. Second derivatives are those of the partials, which are recorded for that as any other
    function; where one calls what cannot be recorded, second derivatives are refused.

    A C function is known by its address: what is registered for it holds for all objects that point to it. Registered again, the
    last one counts; derivatives that were compiled before are compiled anew.

    The partials are called after `f`, and see arrays of constants as `f` left them. `f` must not write into arrays of variables:
    a call that does raises ValueError.

    See Also
    --------
    tapegrad.njit_op : A compiled function as an operation on tensors.

    Examples
    --------
    A root that Newton's method finds, whose derivative is that of the equation ``y**3 + y = x``:

    >>> import numba
    >>> @numba.njit
    ... def root(x):
    ...     y = x
    ...     for _ in range(50):
    ...         y -= (y**3 + y - x) / (3 * y * y + 1)
    ...     return y
    >>> @numba.njit
    ... def slope_of_root(x):
    ...     return 1 / (3 * root(x) ** 2 + 1)
    >>> tg.register_derivative(root, (slope_of_root,))
    >>> tg.grad(root)(2.0)
    0.25
    """
    name = name_of(f)
    given = tuple(partials) if isinstance(partials, Sequence) else (partials,)
    for k, partial in enumerate(given):
        if not (partial is None or isinstance(partial, Dispatcher)):
            raise TypeError(
                f"{NAME}: partial {k} of {name} must be compiled, and is {type(partial).__name__}; decorate it with numba.njit"
            )
    if all(partial is None for partial in given):
        raise ValueError(f"{NAME}: there is no partial of {name} at all")
    names = _arguments(f, name, given)
    if len(given) != len(names):
        raise ValueError(f"{NAME}: the arguments of {name} are {', '.join(names)}, but the number of partials is {len(given)}")
    for k, partial in enumerate(given):
        if partial is not None and (count := _count(partial)) != len(names):
            raise ValueError(
                f"{NAME}: partial {k} of {name} must take the arguments of {name}, {', '.join(names)}, but it takes {count}"
            )
    call = recorded_call(name, f, given, names)
    register(f, Registration(given, call, stand_in(f, call, names)))
    outdate()


def _arguments(f: Any, name: str, partials: tuple[Any, ...]) -> list[str]:
    """Names of the arguments of what can be registered."""
    if isinstance(f, Dispatcher):
        if f.targetoptions.get("inline", "never") != "never":
            raise ValueError(f"{NAME}: {name} is compiled with inline, so that there are no calls of it; leave that away")
        return _named(f.py_func, name)
    if isinstance(f, CFunc):
        return [f"x{k}" for k in range(len(f._sig.args))]
    if isinstance(f, WrapperAddressProtocol):
        if f.signature().return_type not in (types.float64, types.float32):
            raise TypeError(f"{NAME}: the C function {name} must return a float, not {f.signature().return_type}")
        return [f"x{k}" for k in range(len(f.signature().args))]
    if is_pointer(f):
        if f.argtypes is None:
            raise TypeError(f"{NAME}: the C function {name} has no argtypes; set them and restype, as Numba needs them")
        if f.restype is not ctypes.c_double:
            raise TypeError(f"{NAME}: the C function {name} must return ctypes.c_double, not {f.restype}")
        return [f"x{k}" for k in range(len(f.argtypes))]
    if not callable(f) or isinstance(f, type):
        raise TypeError(f"{NAME}: {f!r} is not a function that compiled code calls")
    try:
        known = cpu_target.typing_context.resolve_value_type(f) is not None
    except ValueError:
        known = False
    if not known:
        raise TypeError(f"{NAME}: Numba does not know {name}; decorate it with numba.njit")
    if f in FUNCTIONS or f in RULE_OF:
        raise ValueError(f"{NAME}: {name} has a derivative already")
    count = next(_count(partial) for partial in partials if partial is not None)
    return [f"x{k}" for k in range(f.nin if isinstance(f, np.ufunc) else count)]


def _named(function: Any, name: str) -> list[str]:
    parameters = inspect.signature(function).parameters.values()
    if any(p.kind is not p.POSITIONAL_OR_KEYWORD for p in parameters):
        raise ValueError(f"{NAME}: {name} takes *args; give it arguments with names")
    return [p.name for p in parameters]


def _count(partial: Any) -> int:
    return len(inspect.signature(partial.py_func).parameters)


def stand_in(f: Any, call: Any, names: Sequence[str]) -> Any:
    """A function with the arguments of `f` that calls what records; the recording pass adds the tape."""
    space = {"call": call}
    arguments = ", ".join(names)
    exec(compile(f"def stand_in({arguments}):\n    return call({arguments})", "<tapegrad registered>", "exec"), space)
    made: Any = space["stand_in"]
    if isinstance(f, Dispatcher):
        made.__name__, made.__defaults__ = f.py_func.__name__, f.py_func.__defaults__
    return made
