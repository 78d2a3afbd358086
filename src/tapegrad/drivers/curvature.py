"""Second derivatives of scalar functions, and the Gauss-Newton approximation of those of sums of squares."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

import numpy as np

from tapegrad.drivers.calling import finished_call
from tapegrad.drivers.derivatives import (
    Derivative,
    Outputs,
    as_column,
    cut,
    derivative_of,
    detached,
    gradients_of,
    hessian_matrix,
    joined,
    sizes_of,
    symmetric,
    vectors_like,
)
from tapegrad.drivers.direct import at_once, direct_of
from tapegrad.drivers.gradients import gradients, scalar_output
from tapegrad.drivers.jacobian_products import needs_along, split
from tapegrad.drivers.jacobians import jacobian_matrix, own_block, tracked_rows
from tapegrad.drivers.leaves import Argnums, Call, Callee, copied, mappable
from tapegrad.tensors.tensor import Tensor, array_of, wrap

__all__ = ["GaussNewton", "gauss_newton", "hessian", "hvp"]


def hvp(f: Callable[..., Any], x: Any, v: Any) -> Any:
    """Hessian-vector product of a scalar function, without forming the Hessian.

    Parameters
    ----------
    f : callable
        Takes `x` and returns a scalar; called once. Python's or compiled, as for `value_and_grad`.
    x : array, float or container of these
        The point.
    v : array, float or container of these
        The direction, of the structure and shapes of `x`.

    Returns
    -------
    array, float or container of these
        ``H(x) @ v`` in the structure of `x`, freshly allocated.

    Raises
    ------
    TypeError
        If `x` is not of floats, ``f(x)`` is not a scalar, or `v` has another structure.
    CompileError
        If a compiled `f` uses what cannot be recorded, or what has no second derivative there.
    ValueError
        If `v` has another shape.
    NotImplementedError
        If `f` is compiled and `v` is a tracked tensor.

    Notes
    -----
    Exact, not a difference quotient [1]_. One recording, one sweep for the gradient, and one forward and one reverse sweep for the
    product; no matrix, whatever the size of `x`.

    References
    ----------
    .. [1] B. A. Pearlmutter, "Fast exact multiplication by the Hessian", Neural Computation 6(1), 1994.

    Examples
    --------
    >>> tg.hvp(lambda x: x[0] ** 2 * x[1], np.array([1.0, 2.0]), np.array([1.0, 0.0]))
    array([4., 2.])
    """
    if (product := at_once(f, "hvp", 0, (x,), (v,))) is not None:
        return product
    needs = needs_along("hvp", x, v) if hasattr(type(f), "__replay__") else "rows"
    return finished_call(f, (x,), {}, 0, False, "hvp", functools.partial(_product, v=v), second=True, along=v, needs=needs)


def _product(made: Call, v: Any) -> Any:
    output = scalar_output(made, "hvp")
    if made.recording is not None:
        return _arranged(made, made.recording.curve_along())
    if made.matrix is not None:
        return _arranged(made, made.matrix[0])
    vectors = vectors_like(made.leaves, made.structure, v, "v")
    if made.inside or any(isinstance(t, Tensor) for t in vectors):
        if made.kept:
            return NotImplemented  # rows that the result would be part of have other values soon
        made.inside = True
        recorded = gradients(made, output)
        seeds = [t if isinstance(t, Tensor) else wrap(t) for t in vectors]
        return made.finished(gradients_of(recorded, made.leaves, seeds, create_graph=True))
    derivative = derivative_of(made, [output], second=True, once=True)
    product = derivative.curve(as_column(made, vectors))
    return _arranged(made, product[:, 0])


def _arranged(made: Call, vector: np.ndarray) -> Any:
    return made.finished([np.asarray(part) for part in split(vector, made.leaves)])


def hessian(f: Callable[..., Any], argnums: Argnums = 0, has_aux: bool = False) -> Callable[..., Any]:
    """Function that gives the dense Hessian of a scalar function.

    Parameters
    ----------
    f : callable
        Returns a scalar; called once for each call. Python's or compiled, as for `value_and_grad`.
    argnums : int or sequence of int
        Which positional arguments to differentiate by.
    has_aux : bool
        Whether `f` returns a pair, of which the second is handed through.

    Returns
    -------
    callable
        Gives the Hessian, or ``(hessian, aux)``. By one array it has that array's shape twice; for containers, their structure with
        the same structure in each place.

    Raises
    ------
    TypeError
        By that function: if an input is not of floats, or the output not a scalar.
    CompileError
        By that function: if a compiled `f` uses what cannot be recorded, or what has no second derivative there.
    ValueError
        If there is no such argument.

    Notes
    -----
    One recording; then products with the n unit vectors, of which up to 32 go through one forward and one reverse sweep [1]_. For
    compiled functions second partials are written by edge pushing over each statement [2]_. The matrix is dense, and symmetric to
    the bit.

    References
    ----------
    .. [1] B. A. Pearlmutter, "Fast exact multiplication by the Hessian", Neural Computation 6(1), 1994.
    .. [2] R. M. Gower, M. P. Mello, "A new framework for the computation of Hessians", Optimization Methods and Software 27, 2012.

    Examples
    --------
    >>> tg.hessian(lambda x: (x**3).sum() + x[0] * x[1])(np.array([1.0, 2.0]))
    array([[ 6.,  1.],
           [ 1., 12.]])
    """
    callee, direct = Callee(f), direct_of(f, "hessian", argnums, has_aux)

    def finish(made: Call) -> Any:
        output = scalar_output(made, "hessian")
        found = made.like_the_arguments(_tracked_hessian(made, output) if made.inside else _hessian(made, output))
        return (found, made.aux) if has_aux else found

    @functools.wraps(f, assigned=("__name__", "__qualname__", "__doc__"), updated=())
    def matrix(*args: Any, **kwargs: Any) -> Any:
        if direct is not None and (run := direct.call) is not None and not kwargs and (found := run(args)) is not None:
            return found
        return finished_call(callee, args, kwargs, argnums, has_aux, "hessian", finish, second=True, needs="hessian")

    return mappable(matrix, f, "drivers.curvature:hessian", argnums, has_aux)


def _hessian(made: Call, output: Tensor) -> Any:
    full = hessian_matrix(derivative_of(made, [output], second=True)) if made.matrix is None else symmetric(made.matrix)
    sizes = sizes_of(made.leaves)
    found = []
    for band, x in zip(cut(full, sizes), made.leaves, strict=True):
        row = []
        for block, y in zip(cut(band, sizes, axis=1), made.leaves, strict=True):
            shape = np.shape(x._data) + np.shape(y._data)
            row.append(own_block(block, full, array_of(x).dtype).reshape(shape) if shape else float(block[0, 0]))
        found.append(made.arranged(row))
    return made.arranged(found)


def _tracked_hessian(made: Call, output: Tensor) -> Any:
    """The same with tensors that can be differentiated further."""
    recorded = gradients(made, output)
    return made.arranged([made.arranged(tracked_rows(g, made.leaves)) for g in recorded])


class GaussNewton:
    """What the Jacobian of a residual says of the sum of squares ``0.5 * (r * r).sum()`` at a point.

    Attributes
    ----------
    value : array, float or container of these
        The residual.
    gradient : array, float or container of these
        ``J.T @ r`` in the structure of the point.

    Examples
    --------
    >>> model = tg.gauss_newton(lambda x: x * x, np.array([1.0, 2.0]))
    >>> model.value, model.product(np.array([1.0, 1.0]))
    (array([1., 4.]), array([ 4., 16.]))
    """

    __slots__ = ("_derivative", "_made", "gradient", "value")

    def __init__(self, made: Call, outputs: Outputs, derivative: Derivative) -> None:
        self._made, self._derivative = made, derivative
        self.value = outputs.values()
        residual = joined(map(array_of, outputs.tensors))
        self.gradient = _arranged(made, derivative.pull(residual[:, None])[:, 0])

    def product(self, v: Any) -> Any:
        """``J.T @ (J @ v)`` without forming a matrix: one forward and one reverse sweep.

        Parameters
        ----------
        v : array, float or container of these
            Of the structure and shapes of the point.

        Returns
        -------
        array, float or container of these
            In the structure of the point.

        Raises
        ------
        TypeError
            If `v` has another structure.
        ValueError
            If it has another shape.
        NotImplementedError
            If it is a tracked tensor.
        """
        vectors = vectors_like(self._made.leaves, self._made.structure, v, "v")
        if any(isinstance(t, Tensor) for t in vectors):
            raise NotImplementedError("gauss_newton's products have no derivative; write vjp(f, x)[1](jvp(f, (x,), (v,))[1])")
        column = joined(vectors)[:, None]
        return _arranged(self._made, self._derivative.pull(self._derivative.push(column))[:, 0])

    def matrix(self) -> np.ndarray:
        """``J.T @ J``, from the dense Jacobian.

        Returns
        -------
        ndarray, shape (n, n)
            All elements of the point one after the other.
        """
        full = jacobian_matrix(self._derivative)
        product: np.ndarray = full.T @ full
        return product


def gauss_newton(residual: Callable[..., Any], x: Any) -> GaussNewton:
    """Gauss-Newton products and matrix of a residual.

    Parameters
    ----------
    residual : callable
        Takes `x` and returns an array, a float or a container of these; called once. Python's or compiled, as for `value_and_grad`.
    x : array, float or container of these
        The point.

    Returns
    -------
    GaussNewton
        ``value`` (the residual), ``gradient`` (of half the sum of its squares), ``product(v)`` and ``matrix()``.

    Raises
    ------
    TypeError
        If `x` or the residual is not of floats.
    CompileError
        If a compiled residual uses what cannot be recorded.
    NotImplementedError
        If another driver is to differentiate it.

    Notes
    -----
    The Hessian of half the sum of squares is ``J.T @ J`` and a sum of second derivatives of the residual weighted by the residual
    itself, which is left out: for small residuals it is small [1]_. One recording serves all that is asked for.

    References
    ----------
    .. [1] J. Nocedal, S. J. Wright, "Numerical Optimization", 2nd edition, Springer, 2006, section 10.3.

    Examples
    --------
    >>> model = tg.gauss_newton(lambda x: np.stack([10.0 * (x[1] - x[0] ** 2), 1.0 - x[0]]), np.array([1.0, 2.0]))
    >>> model.gradient
    array([-200.,  100.])
    >>> model.matrix()
    array([[ 401., -200.],
           [-200.,  100.]])
    """
    return finished_call(residual, (copied(x),), {}, 0, False, "gauss_newton", _products)


def _products(made: Call) -> Any:
    if made.inside:
        raise NotImplementedError("gauss_newton cannot be differentiated by another driver; use jacobian inside of it")
    kept = detached(made, "gauss_newton")
    return NotImplemented if kept is None else GaussNewton(*kept)
