"""Dense Jacobians."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tapegrad.drivers.calling import finished_call
from tapegrad.drivers.derivatives import Derivative, Outputs, cut, derivative_of, gradients_of, sizes_of
from tapegrad.drivers.direct import direct_of
from tapegrad.drivers.leaves import Argnums, Call, Callee, finish, mappable
from tapegrad.errors import CompileError, DerivativeOrderError
from tapegrad.tensors.tensor import Tensor, array_of, wrap

__all__ = ["blocks", "jacobian", "own_block", "tracked_rows", "value_and_jacobian"]

MODES = ("auto", "forward", "reverse")
BAND = 1024


def value_and_jacobian(
    f: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False, mode: str = "auto"
) -> Callable[..., Any]:
    """Function that gives the value of a function and its dense Jacobian.

    Parameters
    ----------
    f : callable
        Returns an array, a float, or a container of these; called once for each call. Python's or compiled, as for
        `value_and_grad`; compiled functions return tuples of these at most.
    argnums : int or sequence of int
        Which positional arguments to differentiate by.
    has_aux : bool
        Whether `f` returns a pair, of which the second is handed through.
    mode : str
        ``"forward"`` (cost grows with the number of inputs), ``"reverse"`` (with that of outputs), or ``"auto"``, which takes the
        cheaper one.

    Returns
    -------
    callable
        Gives ``(value, jacobian)``, or ``((value, aux), jacobian)``. The Jacobian of one output by one argument has the output's
        shape followed by the argument's; for containers, the structure of the output with that of the arguments in each place.

    Raises
    ------
    TypeError
        By that function: if an input or an output is not of floats.
    CompileError
        By that function: if a compiled `f` uses what cannot be recorded.
    ValueError
        If `mode` is another one, or there is no such argument.

    Notes
    -----
    One recording, then as many vectors as there are inputs (forward) or outputs (reverse), of which up to 32 go through one sweep
    and share its cost. The matrix is dense, also where the derivative is not.

    Examples
    --------
    >>> tg.value_and_jacobian(lambda x: np.exp(x) * x[0])(np.array([1.0, 0.0]))
    (array([2.71828183, 1.        ]), array([[5.43656366, 0.        ],
           [1.        , 1.        ]]))
    """
    if mode not in MODES:
        raise ValueError(f"mode must be one of {', '.join(map(repr, MODES))}, but got {mode!r}")

    callee, needs = Callee(f), "rows" if mode == "reverse" else "jacobian"
    direct = None if mode == "reverse" else direct_of(f, "jacobian", argnums, has_aux)

    def finish(made: Call) -> Any:
        outputs = Outputs(made, "jacobian")
        found = _tracked_jacobian(made, outputs) if made.inside else _jacobian(made, outputs, mode)
        value, found = outputs.values(), made.like_the_arguments(found)
        return ((value, made.aux) if has_aux else value), found

    @functools.wraps(f, assigned=("__name__", "__qualname__", "__doc__"), updated=())
    def value_and_matrix(*args: Any, **kwargs: Any) -> Any:
        if direct is not None and (run := direct.call) is not None and not kwargs and (found := run(args)) is not None:
            return found
        return finished_call(callee, args, kwargs, argnums, has_aux, "jacobian", finish, needs=needs)

    return mappable(value_and_matrix, f, "drivers.jacobians:value_and_jacobian", argnums, has_aux, mode)


def jacobian(f: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False, mode: str = "auto") -> Callable[..., Any]:
    """Function that gives the dense Jacobian of a function; see `value_and_jacobian`.

    Parameters
    ----------
    f, argnums, has_aux, mode
        As for `value_and_jacobian`.

    Returns
    -------
    callable
        Gives the Jacobian, or ``(jacobian, aux)`` with `has_aux`.

    Raises
    ------
    TypeError, CompileError, ValueError
        As for `value_and_jacobian`.

    Examples
    --------
    >>> tg.jacobian(lambda x, y: x * y, argnums=(0, 1))(np.array([1.0, 2.0]), 3.0)
    (array([[3., 0.],
           [0., 3.]]), array([1., 2.]))
    """
    both = value_and_jacobian(f, argnums, has_aux, mode)

    @functools.wraps(f, assigned=("__name__", "__qualname__", "__doc__"), updated=())
    def matrix(*args: Any, **kwargs: Any) -> Any:
        value, found = both(*args, **kwargs)
        return (found, value[1]) if has_aux else found

    return mappable(matrix, f, "drivers.jacobians:jacobian", argnums, has_aux, mode)


def _jacobian(made: Call, outputs: Outputs, mode: str) -> Any:
    if made.matrix is not None:
        return blocks(made.matrix, outputs, made)
    if made.recording is None and mode != "forward" and sum(sizes_of(outputs.tensors)) == 1:
        # One sweep is all there is to do, which a linear tape would only make longer.
        seeds = [wrap(np.ones_like(array_of(t))) for t in outputs.tensors]
        row = [array_of(g).reshape(1, -1) for g in gradients_of(outputs.tensors, made.leaves, seeds)]
        return blocks(np.concatenate(row, axis=1) if row else np.empty((1, 0)), outputs, made)
    return blocks(jacobian_matrix(derivative_of(made, outputs.tensors), mode), outputs, made)


def jacobian_matrix(derivative: Derivative, mode: str = "auto") -> np.ndarray:
    """Matrix of shape (results, inputs)."""
    inputs, results = derivative.inputs, derivative.results
    if mode == "auto":
        # Without compiled sweeps a forward product is a sweep over the recorded gradient, which is longer.
        mode = "forward" if inputs < (results if derivative.compiled else results / 3) else "reverse"
        if mode == "forward" and not derivative.compiled:
            try:
                return _of_units(derivative.push, inputs)
            except (CompileError, DerivativeOrderError):
                # From the recorded gradient a forward product needs an order more, which compiled functions may not have.
                mode = "reverse"
    if mode == "forward":
        return _of_units(derivative.push, inputs)
    return _of_units(derivative.pull, results).T


def _of_units(product: Callable[[np.ndarray], np.ndarray], count: int) -> np.ndarray:
    """Products with all unit vectors, of which no more than a few bands stand in memory at once."""
    if count <= BAND:
        return product(np.eye(count))
    return np.concatenate([product(np.eye(count, min(BAND, count - start), -start)) for start in range(0, count, BAND)], axis=1)


def blocks(matrix: np.ndarray, outputs: Outputs, made: Call) -> Any:
    """A matrix over all inputs and outputs, cut into the structures of both."""
    sizes = sizes_of(made.leaves)
    found = []
    for band, t in zip(cut(matrix, sizes_of(outputs.tensors)), outputs.tensors, strict=True):
        row = []
        for block, x in zip(cut(band, sizes, axis=1), made.leaves, strict=True):
            shape = np.shape(t._data) + np.shape(x._data)
            row.append(own_block(block, matrix, array_of(x).dtype).reshape(shape) if shape else float(block[0, 0]))
        found.append(made.arranged(row))
    return outputs.arranged(found)


def own_block(block: np.ndarray, matrix: np.ndarray, dtype: Any) -> np.ndarray:
    """A copy of a block of a matrix.

    What is all of it is nobody else's, and need not be copied: 8 of 60 microseconds for 100 variables.
    """
    is_whole = block.size == matrix.size and matrix.flags.c_contiguous and block.dtype == dtype
    return block if is_whole else np.array(block, dtype)


def _tracked_jacobian(made: Call, outputs: Outputs) -> Any:
    """The same with tensors that can be differentiated further."""
    return outputs.arranged(made.arranged(tracked_rows(t, made.leaves)) for t in outputs.tensors)


def tracked_rows(output: Tensor, leaves: Sequence[Tensor]) -> list[Any]:
    """Jacobians of one tensor by each leaf, recorded."""
    from tapegrad.ops.joining import stack

    shape = np.shape(output._data)
    rows = []
    for place in range(array_of(output).size):
        seed = np.zeros(shape, array_of(output).dtype)
        seed.reshape(-1)[place] = 1.0
        rows.append(gradients_of([output], leaves, [wrap(seed)], create_graph=True))
    found: list[Any] = []
    for k, leaf in enumerate(leaves):
        full = shape + np.shape(leaf._data)
        if not rows:
            found.append(np.zeros(full))
            continue
        block = stack([row[k] for row in rows]).reshape(full)
        found.append(block if block._row else finish(block, np.ndarray if full else float))
    return found
