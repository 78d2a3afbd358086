"""Values and gradients of scalar functions."""

from __future__ import annotations

import functools
from collections.abc import Callable
from types import MethodDescriptorType
from typing import Any

import numpy as np

from tapegrad.autograd.sweep import sweep_towards
from tapegrad.drivers.calling import call
from tapegrad.drivers.direct import direct_of
from tapegrad.drivers.leaves import Argnums, Call, Callee, is_compiled, is_tracked, mappable, plain, recorder_of
from tapegrad.numpy_arrays.untracked import PAIRS
from tapegrad.tape.tape import TAPE
from tapegrad.tensors.tensor import FLOATS, Tensor, array_of, make, wrap

__all__ = ["elementwise_grad", "grad", "gradients", "scalar_output", "value_and_grad"]


def value_and_grad(f: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False) -> Callable[..., Any]:
    """Function that gives the value of a scalar function and its gradient.

    Parameters
    ----------
    f : callable
        Returns a scalar; called once for each call. Either any callable of Python's: it gets tensors in place of what it is
        differentiated by, on which operators, the functions of `tapegrad` and NumPy's (``np.sin(x)``) are recorded. Or a function
        decorated with `numba.njit`, unmodified: it gets its arguments as they are, and is recorded while its compiled code runs.
        Compiled functions are differentiated by float64 arrays and numbers, and tuples and named tuples of these.
    argnums : int or sequence of int
        Which positional arguments to differentiate by: arrays and numbers of floats, or containers of these.
    has_aux : bool
        Whether `f` returns a pair, of which the second is handed through.

    Returns
    -------
    callable
        Takes the arguments of `f`, those by keyword as constants, and gives ``(value, gradient)``, or ``((value, aux), gradient)``
        with `has_aux`. The value is a float; the gradient has the structure of the argument with fresh arrays and floats, and is a
        tuple of these if `argnums` is a sequence. What `f` does not depend on gets zeros.

    Raises
    ------
    TypeError
        By that function: if an input is not of floats, or the output is not a scalar or lost its derivative on the way.
    CompileError
        By that function: if a compiled `f` uses what cannot be recorded; a `TypeError` that names the line.
    ValueError
        If there is no such argument.

    Notes
    -----
    One recording and one reverse sweep: time is proportional to that of `f` itself, whatever the size of the arguments, and
    memory to the number of operations [1]_.

    The value of a compiled function has the bits that the function itself returns; Numba leaves them open for ``fastmath=True`` and
    for reductions of ``parallel=True`` functions. The first call with arguments of some types compiles, in every process anew.

    Inside of a function that another driver differentiates the results are tensors, so
    drivers can be nested; and so they are at a tracked tensor, so that they can be part of a graph. Tracked tensors that `f` finds
    elsewhere are constants otherwise.

    References
    ----------
    .. [1] A. Griewank, A. Walther, "Evaluating Derivatives", 2nd edition, SIAM, 2008.

    Examples
    --------
    >>> def f(p, scale=1.0):
    ...     return scale * (np.sin(p["a"]) * p["b"]).sum()
    >>> tg.value_and_grad(f)({"a": np.array([0.0, 0.0]), "b": 3.0}, scale=2.0)
    (0.0, {'a': array([6., 6.]), 'b': 0.0})

    A compiled function:

    >>> import numba
    >>> @numba.njit
    ... def power(x, n):
    ...     y = 1.0
    ...     for _ in range(n):
    ...         y *= x
    ...     return y
    >>> tg.value_and_grad(power)(2.0, 3)
    (8.0, 12.0)
    """
    callee = Callee(f)

    def finish(made: Call) -> Any:
        output = scalar_output(made, "grad")
        found = made.finished(gradients(made, output))
        data = output._data
        value = data if type(data) is float and not made.inside else plain(output, made.inside)
        return ((value, made.aux) if has_aux else value), found

    direct = direct_of(f, "", argnums, has_aux)

    @functools.wraps(f, assigned=("__name__", "__qualname__", "__doc__"), updated=())
    def value_and_gradient(*args: Any, **kwargs: Any) -> Any:
        if direct is not None and (run := direct.call) is not None and not kwargs and (found := run(args)) is not None:
            return found
        if callee.replay is not None and (replayed := callee.replay(args, kwargs, argnums, has_aux, finish)) is not None:
            return replayed[1]
        return finish(call(callee, args, kwargs, argnums, has_aux, "grad"))

    if callee.compiled and not has_aux:
        from tapegrad.drivers.compiled import compiled_gradient

        return compiled_gradient(callee.function, argnums, value_and_gradient)
    return mappable(
        value_and_gradient,
        f,
        "drivers.gradients:value_and_grad",
        argnums,
        has_aux,
        argnums=argnums,
        parts="" if has_aux else "value and gradient",
    )


def grad(f: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False) -> Callable[..., Any]:
    """Function that gives the gradient of a scalar function; `value_and_grad` gives its value as well, at no cost.

    Parameters
    ----------
    f, argnums, has_aux
        As for `value_and_grad`.

    Returns
    -------
    callable
        Gives the gradient, or ``(gradient, aux)`` with `has_aux`.

    Raises
    ------
    TypeError, CompileError, ValueError
        As for `value_and_grad`.

    Examples
    --------
    >>> tg.grad(lambda x: x**3)(2.0)
    12.0
    >>> tg.grad(tg.grad(lambda x: x**3))(2.0)
    12.0
    """
    both = value_and_grad(f, argnums, has_aux)

    @functools.wraps(f, assigned=("__name__", "__qualname__", "__doc__"), updated=())
    def gradient(*args: Any, **kwargs: Any) -> Any:
        value, found = both(*args, **kwargs)
        return (found, value[1]) if has_aux else found

    return mappable(gradient, f, "drivers.gradients:grad", argnums, has_aux, argnums=argnums, parts="" if has_aux else "gradient")


def elementwise_grad(f: Callable[..., Any], argnums: Argnums = 0) -> Callable[..., Any]:
    """Function that gives the derivative of each element of a result by the same element of an argument.

    Parameters
    ----------
    f : callable
        Works on arrays of any shape element by element; Python's or compiled, as for `value_and_grad`.
    argnums : int or sequence of int
        As for `value_and_grad`.

    Returns
    -------
    callable
        Gives an array of the argument's shape: the gradient of the sum of all elements, which is that derivative as long as no
        element of the result depends on another one of the argument.

    Raises
    ------
    TypeError, CompileError, ValueError
        As for `value_and_grad`.

    Notes
    -----
    One recording and one reverse sweep.

    Examples
    --------
    >>> tg.elementwise_grad(np.sin)(np.array([0.0, np.pi]))
    array([ 1., -1.])
    """
    record = recorder_of(f)

    def total(*args: Any, **kwargs: Any) -> Any:
        result = record(*args, **kwargs)
        return result.sum() if isinstance(result, (Tensor, np.ndarray)) else result

    general = grad(total, argnums)
    if is_compiled(f):
        return _compiled_elementwise_grad(f, argnums, general)
    return _elementwise_grad_of_program(f, argnums, general) if hasattr(f, "__replay__") else general


def _elementwise_grad_of_program(f: Any, argnums: Argnums, general: Callable[..., Any]) -> Callable[..., Any]:
    def finish(made: Call) -> Any:
        output = made.output
        if not made.kept or not isinstance(output, Tensor):
            return NotImplemented
        from tapegrad.drivers.derivatives import gradients_of

        return made.finished(list(map(array_of, gradients_of([output], made.leaves, [wrap(np.ones_like(array_of(output)))]))))

    @functools.wraps(f, assigned=("__name__", "__qualname__", "__doc__"), updated=())
    def gradient(*args: Any, **kwargs: Any) -> Any:
        done = f.__replay__(args, kwargs, argnums, False, finish, "rows")
        return general(*args, **kwargs) if done is None or done[1] is NotImplemented else done[1]

    return gradient


def _compiled_elementwise_grad(f: Callable[..., Any], argnums: Argnums, general: Callable[..., Any]) -> Callable[..., Any]:
    from tapegrad.drivers.compiled import parts_of

    @functools.wraps(f, assigned=("__name__", "__qualname__", "__doc__"), updated=())
    def gradient(*args: Any, **kwargs: Any) -> Any:
        if is_tracked((args, kwargs)):
            return general(*args, **kwargs)
        made = call(f, args, kwargs, argnums, False, "grad")
        recording = made.recording
        return made.finished(parts_of(recording.pull(np.ones((recording.results, 1)))[:, 0], made.leaves))

    return gradient


def scalar_output(made: Call, name: str) -> Tensor:
    """The output of a call as a tensor of one number.

    Raises
    ------
    TypeError
        If it is something else.
    """
    output = made.output
    advice = "Reduce it, for example with .sum(), or use jacobian."
    if isinstance(output, Tensor):
        data = output._data
        if type(data) is float:
            return output
        if data.ndim:
            raise TypeError(f"Gradient only defined for scalar-output functions. Output had shape: {tuple(data.shape)}. {advice}")
        if data.dtype in FLOATS:
            return output
        output = data.item()
    if issubclass(type(output), (np.ndarray, np.generic)):
        if output.ndim:
            raise TypeError(f"Gradient only defined for scalar-output functions. Output had shape: {output.shape}. {advice}")
        output = output.item()
    if isinstance(output, float):
        return make(float(output), 0)
    if type(output) in PAIRS:
        raise TypeError(
            f"{name} requires real-valued outputs (a float), but the function returned a complex number. Return a real one, as its "
            "np.real(...) or np.abs(...)."
        )
    if isinstance(output, (bool, int, complex)):
        raise TypeError(
            f"{name} requires real-valued outputs (a float), but the function returned {output!r} of type "
            f"{type(output).__name__}. Return a float."
        )
    raise TypeError(
        f"Gradient only defined for scalar-output functions. Output was {type(output).__name__}. Return one number"
        + ("; for (value, aux) pass has_aux=True." if isinstance(output, tuple) else ".")
    )


def gradients(made: Call, output: Tensor, keeps: bool = False) -> list[Any]:
    """Gradients of a scalar output by the leaves of its call, zeros where it does not depend on one.

    Parameters
    ----------
    made : Call
    output : Tensor
    keeps : bool
        Whether what was recorded is kept for other passes, as it is of calls that are kept, and the gradients are constants.
    """
    if made.gradients is not None:
        return made.gradients
    leaves = made.leaves
    if made.recording is not None:
        from tapegrad.drivers.compiled import parts_of

        return list(parts_of(made.recording.gradient(), leaves))
    if not leaves:
        return []
    if not output._row:
        return [wrap(_zeros(leaf)) if made.inside else _zeros(leaf) for leaf in leaves]
    if made.inside and not keeps:
        from tapegrad.autograd.entry_points import grad as tensor_grad
        from tapegrad.autograd.once_differentiable import strictly

        return list(strictly(tensor_grad, output, leaves, create_graph=True, materialize_grads=True))
    found = None
    if output._row > 0 and not TAPE.anomalies and not made.inside:
        kept = made.kept or keeps
        if not kept and (in_one_call := _in_one_call(output, leaves)) is not None:
            return in_one_call
        found = sweep_towards(output._row, leaves, 0) if kept else sweep_towards(output._row, leaves)
    if found is None:
        from tapegrad.autograd.entry_points import grad as tensor_grad

        return list(tensor_grad(output, leaves, retain_graph=made.kept or keeps, materialize_grads=True))
    return [_zeros(leaf) if g is None else g for leaf, g in zip(leaves, found, strict=True)]


def _in_one_call(output: Any, leaves: list[Tensor]) -> list[Any] | None:
    """The same by the method `backward`; None, with nothing done, if that is not compiled or there is more to do."""
    if type(type(output).backward) is not MethodDescriptorType:
        return None
    meta: Any
    links: list[Any] = []
    for leaf in leaves:
        meta = leaf._meta
        if meta is None or meta.hooks is not None or meta.grad is not None or meta.left:
            return None
        links.append(meta.leaf)
    if output.backward(*links) is False:
        return None
    results: list[Any] = []
    for leaf in leaves:
        meta = leaf._meta
        found = meta.grad
        if found is None:
            results.append(_zeros(leaf))
        else:
            results.append(found._data)
            meta.grad = None
    return results


def _zeros(leaf: Tensor) -> np.ndarray:
    return np.zeros_like(array_of(leaf))
