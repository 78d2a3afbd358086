"""Value and tangents as a compiled function that compiled code calls, without Python."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tapegrad.errors import CompileError
from tapegrad.nopython.arguments import conversion, native_results, native_tangents
from tapegrad.nopython.compiled_forms import Form, compiled_form
from tapegrad.nopython.tape import native_memory

__all__ = ["dual"]


def dual(f: Callable[..., Any], argnums: int | Sequence[int] = 0) -> Any:
    """A compiled function of the value and of its change along tangents, which compiled code may call.

    Parameters
    ----------
    f : callable
        A function decorated with `numba.njit`, unmodified, or a plain function, which is then compiled. It returns float64 and
        float32 numbers, arrays or tuples of these.
    argnums : int or sequence of int, optional
        Which arguments have tangents: float64 and float32 numbers and arrays, and tuples of these.

    Returns
    -------
    compiled function
        Of all arguments of `f`, and after them a tangent of each argument in `argnums`, named like it with ``_dot`` at its end. It
        returns the value of `f` and the tangent of it: products of the Jacobian with the tangents. A tangent has the shape of its
        argument; or all have one more dimension at their end for several directions, and then so has the result's. Arrays in the
        result are new. It is called from Python and from functions that `numba.njit` compiles, those with ``nogil=True`` and
        ``parallel=True`` too.

    Raises
    ------
    CompileError
        When called first with arguments of some types, or when a function that calls it is compiled, if `f` uses what cannot be
        recorded, if tangents are no tangents of their arguments by their types, or if an argument is something else than numbers,
        text, functions, arrays and tuples of these.
    TypeError
        If `f` is no function, or `argnums` no integers.
    ValueError
        If `f` has no such argument, or takes ``*args``; in a call, if shapes of tangents do not fit, or if arrays in its arguments
        share memory and `f` writes into one of its arguments.

    Notes
    -----
    This is forward mode: its cost grows with the number of tangents and not with that of the results, so that it gives Jacobians
    with few columns and many rows. A call records `f`, which costs what `tapegrad.jvp` costs, and its rows are swept forwards,
    eight tangents at once. Memory is that of a tape, 12 bytes for each operand of a statement and 8 for each statement and tangent
    (up to eight), which is kept for calls to come (`free_tape_memory` gives it back).

    What is said of compilation, threads and second derivatives for `njit_derivative` holds here too.

    See Also
    --------
    tapegrad.jvp, tapegrad.jacfwd : The same to be called from Python.
    tapegrad.njit_derivative : Value and gradient.

    Examples
    --------
    Newton's method for two equations, in compiled code:

    >>> import numba
    >>> import numpy as np
    >>> @numba.njit
    ... def equations(x, a):
    ...     return np.array([x[0] ** 2 + x[1] ** 2 - a, x[0] - x[1]])
    >>> tangents = tg.dual(equations)
    >>> @numba.njit
    ... def solution(x, a):
    ...     for _ in range(8):
    ...         value, jacobian = tangents(x, a, np.eye(2))
    ...         x = x - np.linalg.solve(jacobian, value)
    ...     return x
    >>> solution(np.array([2.0, 1.0]), 2.0)
    array([1., 1.])

    One direction:

    >>> value, change = tangents(np.array([2.0, 1.0]), 2.0, np.array([1.0, 0.0]))
    >>> change
    array([4., 1.])
    """
    return compiled_form(f, argnums, TANGENTS)


def _names(inputs: list[str], names: list[str]) -> list[str]:
    """Names of the tangents of some arguments."""
    found: list[str] = []
    for name in inputs:
        made = f"{name}_dot"
        while made in names or made in found:
            made += "_"
        found.append(made)
    return found


def _check(record: Any, inputs: Any, kinds: Any) -> None:
    """Refuse types of tangents that do not fit the types of their arguments."""
    several = [native_tangents.are_several(*pair) for pair in zip(inputs, kinds, strict=True)]
    for kind, tangent, found in zip(inputs, kinds, several, strict=True):
        if found is None:
            raise CompileError(
                f"dual: the tangent of an argument of {record.name} that is {kind} is {tangent}; it must be numbers of its shape, "
                "or with one more dimension at the end for several tangents"
            )
    if len(set(several)) > 1:
        raise CompileError(
            f"dual: some arguments of {record.name} have one tangent and others several; give all of them one more dimension"
        )


def _before(places: tuple[int, ...], names: list[str], kinds: Any) -> list[str]:
    lines = [f"    inputs = {' + '.join(f'size(a{k})' for k in places)}", f"    count = width(a{places[0]}, {names[0]})"]
    lines += ["    directions = np.empty((inputs, count))", "    start = 0"]
    return lines + [f"    start = laid(a{k}, {name}, directions, start)" for k, name in zip(places, names, strict=True)]


def _after(places: tuple[int, ...], single: bool, inputs: Any, names: list[str], kinds: Any) -> list[str]:
    several = native_tangents.are_several(inputs[0], kinds[0])
    return [
        "    value, rows = finish(result)",
        "    outs = np.empty(size(rows), np.int32)",
        "    listed(rows, outs, 0)",
        "    products = np.empty((outs.size, count))",
        "    pushed(tape, outs, directions, products)",
        f"    return value, {'across' if several else 'along'}(value, products, 0)",
    ]


TANGENTS = Form(
    name="dual",
    suffix="_and_tangent",
    has_defaults=False,
    further=_names,
    check=_check,
    before=_before,
    after=_after,
    needed={name: getattr(native_tangents, name) for name in ("across", "along", "laid", "listed", "width")}
    | {"np": np, "size": native_results.size, "finish": conversion.finish, "pushed": native_memory.pushed},
)
