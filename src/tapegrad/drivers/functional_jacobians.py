"""Jacobians of functions of tensors and their products with vectors, as in `torch.autograd.functional`.

The function is called on fresh leaves that share memory with the inputs, so the inputs and their ``.grad`` are not touched. With
``create_graph=True`` tracked inputs are connected instead, and the results can be differentiated further.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from tapegrad.drivers.derivatives import Derivative
from tapegrad.drivers.functional_calls import (
    FUNCTION,
    INDEPENDENT,
    OF_INPUT,
    OF_OUTPUT,
    STRICT_GRAPH,
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
    vector_for,
)
from tapegrad.drivers.functional_results import as_tensor, blocks_of, column_of, pieces_of
from tapegrad.drivers.jacobians import jacobian_matrix
from tapegrad.tensors.grad_mode import enable_grad
from tapegrad.tensors.tensor import Tensor, array_of, wrap

__all__ = ["jacobian", "jvp", "vjp"]


def jacobian(
    func: Function,
    inputs: Tensors,
    create_graph: bool = False,
    strict: bool = False,
    vectorize: bool = False,
    strategy: str = "reverse-mode",
) -> Any:
    """Jacobian of a function.

    Parameters
    ----------
    func : callable
        Maps tensors to a tensor or a tuple of tensors; called once.
    inputs : Tensor or tuple of Tensor
        The point.
    create_graph : bool
        Record, so that the result can be differentiated.
    strict : bool
        Raise where an output does not depend on an input, instead of giving zeros.
    vectorize : bool
        Changes nothing but what is allowed beside it: rows share sweeps in any case.
    strategy : str
        ``"reverse-mode"``, or ``"forward-mode"`` with `vectorize` and without `create_graph` and `strict`.

    Returns
    -------
    Tensor, tuple of Tensor, or tuple of tuples of Tensor
        Of the output's shape followed by the input's. A tuple over the inputs if `inputs` is one, in a tuple over the outputs if
        `func` returns one.

    Raises
    ------
    TypeError
        If inputs or outputs are not tensors.
    RuntimeError
        If strict mode forbids the function; or `strict` is given with `vectorize` or ``"forward-mode"``.
    NotImplementedError
        If `strategy` is ``"forward-mode"`` without `vectorize`, or with `create_graph`.
    AssertionError
        If it is another one.

    Notes
    -----
    One recording, then as many vectors as there are elements of the inputs or of the outputs, whichever are fewer; up to 32 share
    one sweep. With `create_graph`, and where a derivative between is Python's, one reverse sweep for each element of the outputs.

    Examples
    --------
    >>> tg.autograd.functional.jacobian(lambda x: x.exp() * x[0], tg.tensor([1.0, 0.0]))
    tensor([[5.4366, 0.0000],
            [1.0000, 1.0000]])
    """
    check_strategy(strategy, "jacobian", create_graph, strict, vectorize)
    with enable_grad():
        leaves, returned = called(func, inputs, "jacobian", create_graph, strict)
        outputs = as_tuple(returned, FUNCTION, "jacobian")
        if create_graph:
            blocks = [_recorded_blocks(k, output, leaves, strict) for k, output in enumerate(outputs)]
        else:
            if strict:
                _check_dependence(outputs, leaves)
            if strategy == "reverse-mode" and len(outputs) == 1 and outputs[0].numel() == 1:
                # One sweep is all there is to do, which a linear tape would only make longer.
                row = filled(gradients_or_none(outputs, leaves, [wrap(np.ones_like(array_of(outputs[0])))], False), leaves)
                blocks = [[as_tensor(array_of(g), (*outputs[0].shape, *x.shape), x) for g, x in zip(row, leaves, strict=True)]]
            else:
                blocks = blocks_of(_matrix(leaves, outputs, strategy), outputs, leaves)
    return like_given([like_given(row, inputs) for row in blocks], returned)


def _missing(output: int) -> str:
    return f"Output {output} of the user-provided function is independent of input {{}}. This is not allowed in strict mode."


def _check_dependence(outputs: Sequence[Tensor], leaves: tuple[Tensor, ...]) -> None:
    """Raise if an output does not depend on an input; what it depends on is the same for all of its elements."""
    for k, output in enumerate(outputs):
        if output.numel():
            seed = wrap(np.zeros_like(array_of(output)))
            filled(gradients_or_none([output], leaves, [seed], False), leaves, True, _missing(k))


def _matrix(leaves: Sequence[Tensor], outputs: Sequence[Tensor], strategy: str) -> np.ndarray:
    """The Jacobian of all outputs by all leaves, of shape (results, inputs)."""
    derivative = Derivative(leaves, outputs)
    if strategy == "forward-mode":
        return jacobian_matrix(derivative, "forward")
    # What is Python's need not be differentiable twice, which its forward products are made of.
    return jacobian_matrix(derivative, "auto" if derivative.compiled else "reverse")


def _recorded_blocks(index: int, output: Tensor, leaves: tuple[Tensor, ...], strict: bool) -> list[Tensor]:
    """Jacobians of one output by all leaves that can be differentiated further: one recorded sweep for each of its elements."""
    shape, rows = output.shape, []
    for place in range(output.numel()):
        seed = np.zeros(shape, array_of(output).dtype)
        seed.reshape(-1)[place] = 1
        found = gradients_or_none([output], leaves, [wrap(seed)])
        rows.append(filled(found, leaves, strict, _missing(index), STRICT_GRAPH))
    return [_recorded_block((*shape, *x.shape), [row[k] for row in rows], x) for k, x in enumerate(leaves)]


def _recorded_block(shape: tuple[int, ...], rows: list[Tensor], like: Tensor) -> Tensor:
    if any(row.requires_grad for row in rows):
        from tapegrad.ops.joining import stack

        return stack(rows).reshape(shape)
    return as_tensor(np.array([array_of(row) for row in rows]), shape, like)


def vjp(func: Function, inputs: Tensors, v: Any = None, create_graph: bool = False, strict: bool = False) -> tuple[Any, Any]:
    """Value of a function, and the product of a vector with its Jacobian.

    Parameters
    ----------
    func : callable
        Maps tensors to a tensor or a tuple of tensors; called once.
    inputs : Tensor or tuple of Tensor
        The point.
    v : Tensor or tuple of Tensor, optional
        Of the shapes of the outputs; may be left out for one element.
    create_graph : bool
        Record, so that the results can be differentiated.
    strict : bool
        Raise where the outputs do not depend on an input, instead of giving zeros.

    Returns
    -------
    outputs : Tensor or tuple of Tensor
    product : Tensor or tuple of Tensor
        Of the shapes of the inputs.

    Raises
    ------
    TypeError
        If inputs, outputs or `v` are not tensors.
    RuntimeError
        If `v` does not fit the outputs, or strict mode forbids the function.

    Examples
    --------
    >>> tg.autograd.functional.vjp(lambda x: x * x, tg.tensor([1.0, 2.0]), tg.tensor([1.0, 10.0]))
    (tensor([1., 4.]), tensor([ 2., 40.]))
    """
    with enable_grad():
        leaves, returned = called(func, inputs, "vjp", create_graph, strict)
        outputs = as_tuple(returned, FUNCTION, "vjp")
        seeds = vector_for(v, outputs, OF_OUTPUT, "vjp")
        found = gradients_or_none(outputs, leaves, seeds, create_graph)
        product = filled(found, leaves, strict, INDEPENDENT, STRICT_GRAPH if create_graph else "")
    return like_given(finished(outputs, create_graph), returned), like_given(finished(product, create_graph), inputs)


def jvp(func: Function, inputs: Tensors, v: Any = None, create_graph: bool = False, strict: bool = False) -> tuple[Any, Any]:
    """Value of a function, and the product of its Jacobian with a vector.

    Parameters
    ----------
    func : callable
        Maps tensors to a tensor or a tuple of tensors; called once.
    inputs : Tensor or tuple of Tensor
        The point.
    v : Tensor or tuple of Tensor, optional
        Of the shapes of the inputs; may be left out for one element.
    create_graph : bool
        Record, so that the results can be differentiated.
    strict : bool
        Raise where the outputs do not depend on an input, instead of giving zeros.

    Returns
    -------
    outputs, product : Tensor or tuple of Tensor

    Raises
    ------
    TypeError
        If inputs, outputs or `v` are not tensors.
    RuntimeError
        If `v` does not fit the inputs, or strict mode forbids the function.

    Notes
    -----
    One forward sweep. With `strict` or `create_graph`, and where a derivative between is Python's, two reverse sweeps: the gradient
    is linear in its seed, and the derivative of that linear map is applied to `v`.

    Examples
    --------
    >>> tg.autograd.functional.jvp(lambda x: x[0] * x, tg.tensor([1.0, 2.0]), tg.tensor([1.0, 0.0]))
    (tensor([1., 2.]), tensor([2., 2.]))
    """
    with enable_grad():
        leaves, returned = called(func, inputs, "jvp", create_graph, strict)
        vector = vector_for(v, leaves, OF_INPUT, "jvp")
        outputs = as_tuple(returned, FUNCTION, "jvp")
        if numbers_only(create_graph, strict):
            pushed = pieces_of(Derivative(leaves, outputs).push(column_of(vector)), outputs)
            return like_given(finished(outputs, False), returned), like_given(pushed, returned)
        seeds = [wrap(np.zeros_like(array_of(y))).requires_grad_() if y.requires_grad else y for y in outputs]
        linear = filled(gradients_or_none(outputs, leaves, seeds), leaves, strict, INDEPENDENT)
        used = [k for k, y in enumerate(outputs) if y.requires_grad]
        found: list[Tensor | None] = [None] * len(outputs)
        for k, product in zip(
            used, gradients_or_none(linear, [seeds[k] for k in used], vector, create_graph) if used else (), strict=True
        ):
            found[k] = product
        products = filled(found, outputs, strict, STRICT_GRAPH, STRICT_GRAPH if create_graph else "")
    return like_given(finished(outputs, create_graph), returned), like_given(finished(products, create_graph), returned)
