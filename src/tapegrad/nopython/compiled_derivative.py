"""Value and gradient as a compiled function that compiled code calls, without Python."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from tapegrad.nopython.arguments import native_results
from tapegrad.nopython.compiled_forms import Form, compiled_form
from tapegrad.nopython.tape import native_memory

__all__ = ["njit_derivative"]


def njit_derivative(f: Callable[..., Any], argnums: int | Sequence[int] = 0) -> Any:
    """A compiled function of the value and the gradient, which compiled code may call.

    Parameters
    ----------
    f : callable
        A function decorated with `numba.njit`, unmodified, or a plain function, which is then compiled. It returns a number.
    argnums : int or sequence of int, optional
        Which arguments it is differentiated by: float64 and float32 numbers and arrays, and tuples of these.

    Returns
    -------
    compiled function
        Of the arguments of `f`, with their names and defaults. It returns the value of `f`, and the gradient: a number, an array
        or a tuple like the argument, or a tuple of these for several. Arrays in it are new. It is called from Python and from
        functions that `numba.njit` compiles, those with ``nogil=True`` and ``parallel=True`` too.

    Raises
    ------
    CompileError
        When called first with arguments of some types, or when a function that calls it is compiled, if `f` uses what cannot be
        recorded, or if an argument is something else than numbers, text, functions, arrays and tuples of these.
    TypeError
        If `f` is no function, or `argnums` no integers.
    ValueError
        If `f` has no such argument, or takes ``*args``; in a call, if arrays in its arguments share memory and `f` writes into
        one of its arguments.

    Notes
    -----
    A call records `f` and sweeps back, as the drivers do, and costs the same; Python has no part in it, and its lock is not taken.
    Tapes are kept for calls to come (`free_tape_memory` gives their memory back); in several threads each call has its own.

    `f`, what it calls, and derivatives that were registered are those of the time at which the result is compiled for some types,
    as Numba's own callers of a function have it; what is made later is of what there is then. A function that calls the result is
    compiled in each process: Numba does not keep it on disk.

    Second derivatives are those of `tg.hessian` and `tg.hvp`: a function that calls the result with what depends on its inputs
    cannot be differentiated.

    See Also
    --------
    tapegrad.value_and_grad : The same to be called from Python.

    Examples
    --------
    Gradient descent in compiled code:

    >>> import numba
    >>> import numpy as np
    >>> @numba.njit
    ... def f(x, a):
    ...     return (x[0] - a) ** 2 + 10 * (x[1] - x[0] ** 2) ** 2
    >>> derivative = tg.njit_derivative(f)
    >>> @numba.njit
    ... def descend(x, steps):
    ...     for _ in range(steps):
    ...         value, gradient = derivative(x, 1.0)
    ...         x = x - 0.005 * gradient
    ...     return x
    >>> descend(np.array([0.5, 0.5]), 10_000).round(6)
    array([1., 1.])
    """
    return compiled_form(f, argnums, GRADIENT)


def _gradient_lines(places: tuple[int, ...], single: bool, inputs: Any, names: list[str], kinds: Any) -> list[str]:
    lines = ["    value, row = number(result)", "    bars = swept(tape, row)", "    start = 1"]
    for k in places:
        lines += [f"    g{k} = gathered(a{k}, bars, start)", f"    start += size(a{k})"]
    return [*lines, f"    return value, {f'g{places[0]}' if single else '(' + ''.join(f'g{k}, ' for k in places) + ')'}"]


GRADIENT = Form(
    name="njit_derivative",
    suffix="_and_gradient",
    has_defaults=True,
    further=lambda inputs, names: [],
    check=lambda record, inputs, kinds: None,
    before=lambda places, names, kinds: [],
    after=_gradient_lines,
    needed={made.__name__: made for made in (native_results.gathered, native_results.number, native_results.size)}
    | {"swept": native_memory.swept},
)
