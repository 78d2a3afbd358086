"""Hessians of functions of tensors and their products with vectors, as in `torch.autograd.functional`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tapegrad.drivers.derivatives import Derivative, sizes_of
from tapegrad.drivers.functional_calls import (
    FUNCTION,
    INDEPENDENT,
    OF_INPUT,
    STRICT_GRAPH,
    STRICT_HESSIAN,
    Function,
    Tensors,
    as_tuple,
    called,
    check_strategy,
    filled,
    finished,
    gradients_or_none,
    like_given,
    numbers_only,
    single,
    vector_for,
)
from tapegrad.drivers.functional_jacobians import jacobian
from tapegrad.drivers.functional_results import blocks_of, column_of, pieces_of
from tapegrad.tensors.grad_mode import enable_grad
from tapegrad.tensors.tensor import Tensor, array_of, wrap

__all__ = ["hessian", "hvp", "vhp"]


def hessian(
    func: Function,
    inputs: Tensors,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    outer_jacobian_strategy: str = "reverse-mode",
) -> Any:
    """Hessian of a function with one output of one element.

    Parameters
    ----------
    func : callable
        Maps tensors to a tensor of one element; called once.
    inputs : Tensor or tuple of Tensor
        The point.
    create_graph : bool
        Record, so that the result can be differentiated.
    strict : bool
        Raise where the gradient does not depend on an input, instead of giving zeros.
    vectorize : bool
        Changes nothing, as for `jacobian`.
    outer_jacobian_strategy : str
        As `strategy` of `jacobian`.

    Returns
    -------
    Tensor or tuple of tuples of Tensor
        The block of two inputs has the shape of the first followed by that of the second.

    Raises
    ------
    TypeError
        If inputs or outputs are not tensors.
    RuntimeError
        If the function does not return one tensor of one element, or strict mode forbids it.
    NotImplementedError, AssertionError
        As by `jacobian`.

    Notes
    -----
    One recording, then products with the unit vectors, of which up to 32 share one forward and one reverse sweep [1]_. With
    `strict` or `create_graph`, and where a derivative between is Python's, the Jacobian of the recorded gradient.

    References
    ----------
    .. [1] B. A. Pearlmutter, "Fast exact multiplication by the Hessian", Neural Computation 6(1), 1994.

    Examples
    --------
    >>> tg.autograd.functional.hessian(lambda x: (x**3).sum(), tg.tensor([1.0, 2.0]))
    tensor([[ 6.,  0.],
            [ 0., 12.]])
    """
    check_strategy(outer_jacobian_strategy, "hessian", create_graph, strict, vectorize)
    as_tuple(inputs, "inputs", "hessian")
    if numbers_only(create_graph, strict):
        with enable_grad():
            leaves, returned = called(func, inputs, "hessian", False, False)
            as_tuple(returned, FUNCTION, "hessian")
            # Rows are gradients of the gradient's elements, if it is these that are differentiated.
            matrix = Derivative(leaves, [single(returned, "hessian")], second=True).curve(np.eye(sum(sizes_of(leaves)))).T
        return like_given([like_given(row, inputs) for row in blocks_of(matrix, leaves, leaves)], inputs)

    def gradient(*leaves: Tensor) -> Any:
        returned = func(*leaves)
        as_tuple(returned, FUNCTION, "hessian")
        found = gradients_or_none([single(returned, "hessian")], leaves, None)
        return like_given(filled(found, leaves, strict, STRICT_HESSIAN, STRICT_HESSIAN), inputs)

    return jacobian(gradient, inputs, create_graph, strict, vectorize)


def vhp(func: Function, inputs: Tensors, v: Any = None, create_graph: bool = False, strict: bool = False) -> tuple[Any, Any]:
    """Value of a function of one element, and the product of a vector with its Hessian.

    Parameters
    ----------
    func : callable
        Maps tensors to a tensor of one element; called once.
    inputs : Tensor or tuple of Tensor
        The point.
    v : Tensor or tuple of Tensor, optional
        Of the shapes of the inputs; may be left out for one element.
    create_graph : bool
        Record, so that the results can be differentiated.
    strict : bool
        Raise where the gradient does not depend on an input, instead of giving zeros.

    Returns
    -------
    output : Tensor
    product : Tensor or tuple of Tensor
        Of the shapes of the inputs.

    Raises
    ------
    TypeError
        If inputs, outputs or `v` are not tensors.
    RuntimeError
        If `v` does not fit the inputs, the function does not return one tensor of one element, or strict mode forbids it.

    Examples
    --------
    >>> tg.autograd.functional.vhp(lambda x: (x**3).sum(), tg.tensor([1.0, 2.0]), tg.tensor([1.0, 1.0]))
    (tensor(9.), tensor([ 6., 12.]))
    """
    with enable_grad():
        leaves, output, vector = _number(func, inputs, v, "vhp", create_graph, strict)
        if numbers_only(create_graph, strict):
            product: Sequence[Tensor] = pieces_of(
                Derivative(leaves, [output], second=True, once=True).curve(column_of(vector)), leaves
            )
        else:
            found = gradients_or_none(_recorded_gradient(output, leaves, strict), leaves, vector, create_graph)
            product = filled(found, leaves, strict, STRICT_HESSIAN, STRICT_GRAPH if create_graph else "")
    return finished([output], create_graph)[0], like_given(finished(product, create_graph), inputs)


def hvp(func: Function, inputs: Tensors, v: Any = None, create_graph: bool = False, strict: bool = False) -> tuple[Any, Any]:
    """Value of a function of one element, and the product of its Hessian with a vector.

    Parameters, results and errors are those of `vhp`, which costs less and gives the same where second derivatives are continuous.

    Notes
    -----
    One forward and one reverse sweep. With `strict` or `create_graph`, and where a derivative between is Python's, the `jvp` of the
    gradient.

    Examples
    --------
    >>> tg.autograd.functional.hvp(lambda x: (x**3).sum(), tg.tensor([1.0, 2.0]), tg.tensor([1.0, 1.0]))
    (tensor(9.), tensor([ 6., 12.]))
    """
    with enable_grad():
        leaves, output, vector = _number(func, inputs, v, "hvp", create_graph, strict)
        derivative = Derivative(leaves, [output], second=True, once=True) if numbers_only(create_graph, strict) else None
        if derivative is not None and derivative.compiled:
            product: Sequence[Tensor] = pieces_of(derivative.curve(column_of(vector)), leaves)
        else:
            gradient = _recorded_gradient(output, leaves, strict)
            seeds = [wrap(np.zeros_like(array_of(x))).requires_grad_() for x in leaves]
            linear = filled(gradients_or_none(gradient, leaves, seeds), leaves, strict, STRICT_HESSIAN)
            found = gradients_or_none(linear, seeds, vector, create_graph)
            product = filled(found, leaves, strict, STRICT_HESSIAN, STRICT_GRAPH if create_graph else "")
    return finished([output], create_graph)[0], like_given(finished(product, create_graph), inputs)


def _number(
    func: Function, inputs: Any, v: Any, name: str, create_graph: bool, strict: bool
) -> tuple[tuple[Tensor, ...], Tensor, tuple[Tensor, ...]]:
    """Leaves, the only output, and the vector of a product with its Hessian."""
    leaves, returned = called(func, inputs, name, create_graph, strict)
    vector = vector_for(v, leaves, OF_INPUT, name)
    return leaves, single(returned, name), vector


def _recorded_gradient(output: Tensor, leaves: tuple[Tensor, ...], strict: bool) -> tuple[Tensor, ...]:
    return filled(gradients_or_none([output], leaves, None), leaves, strict, INDEPENDENT, STRICT_HESSIAN)
