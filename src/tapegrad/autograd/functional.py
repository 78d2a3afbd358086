"""Derivatives of functions: Jacobians, Hessians and their products with vectors, as in `torch.autograd.functional`.

The function is called on fresh leaves that share memory with the inputs, so the inputs and their ``.grad`` are not touched. With
``create_graph=True`` tracked inputs are connected instead, and the results can be differentiated further.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tapegrad.autograd.entry_points import grad
from tapegrad.tensors.grad_mode import enable_grad
from tapegrad.tensors.tensor import Tensor, array_of, make, wrap

__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]

Tensors = Tensor | tuple[Tensor, ...]
Function = Callable[..., Any]

FUNCTION = "outputs of the user-provided function"
INDEPENDENT = "The output of the user-provided function is independent of input {}. This is not allowed in strict mode."
STRICT_GRAPH = (
    "The jacobian of the user-provided function is independent of input {}. This is not allowed in strict mode when "
    "create_graph=True."
)
STRICT_HESSIAN = (
    "While computing the hessian, found that the jacobian of the user-provided function with respect to input {} is independent of "
    "the input. This is not allowed in strict mode. You should ensure that your function is twice differentiable and that the "
    "jacobian depends on the inputs (a linear function's does not)."
)


def _as_tuple(value: Any, what: str, name: str) -> tuple[Tensor, ...]:
    if isinstance(value, Tensor):
        return (value,)
    must = f"The {what} given to {name} must be either a Tensor or a tuple of Tensors but"
    if not isinstance(value, tuple):
        raise TypeError(f"{must} the given {what} has type {type(value)}.")
    for index, element in enumerate(value):
        if not isinstance(element, Tensor):
            raise TypeError(f"{must} the value at index {index} has type {type(element)}.")
    return value


def _like(results: Sequence[Any], given: Any) -> Any:
    """Results as a tuple if a tuple was given, else the only one."""
    return tuple(results) if isinstance(given, tuple) else results[0]


def _own_leaf(x: Tensor, create_graph: bool) -> Tensor:
    if create_graph and x.requires_grad:
        return x.view_as(x)
    # A scalar is a float; detach() would turn it into an array that is shared.
    return (make(x._data, 0) if type(x._data) is float else x.detach()).requires_grad_()


def _run(func: Function, inputs: Any, name: str, create_graph: bool, strict: bool) -> tuple[tuple[Tensor, ...], Any]:
    """The leaves that the function is called on, and what it returns."""
    leaves = tuple(_own_leaf(x, create_graph) for x in _as_tuple(inputs, "inputs", name))
    returned = func(*leaves)
    for index, output in enumerate(_as_tuple(returned, FUNCTION, name)):
        if strict and not output.requires_grad:
            raise RuntimeError(
                f"Output {index} of the user-provided function does not require gradients. The outputs must be computed in a "
                "differentiable manner from the input when running in strict mode."
            )
    return leaves, returned


def _single(returned: Any, name: str) -> Tensor:
    """The output of a function that a Hessian is asked of."""
    if isinstance(returned, tuple):
        raise RuntimeError(
            f"The function given to {name} should return a single Tensor, but it returned {len(returned)} in a tuple"
        )
    if returned.numel() != 1:
        raise RuntimeError(
            f"The Tensor returned by the function given to {name} should contain a single element, but it has shape "
            f"{list(returned.shape)}"
        )
    return returned


def _vector(v: Any, others: tuple[Tensor, ...], of: str, name: str) -> tuple[Tensor, ...]:
    """The vector of a product, checked against what it is multiplied with; ones if it may be left out."""
    if v is None:
        if len(others) != 1 or others[0].numel() != 1:
            raise RuntimeError(f"The vector v can only be None if {of} a single Tensor with a single element.")
        return (wrap(np.ones_like(array_of(others[0]))),)
    vector = _as_tuple(v, "v", name)
    if len(vector) != len(others):
        raise RuntimeError(f"v is a tuple of invalid length: should be {len(others)} but got {len(vector)}.")
    for index, (element, other) in enumerate(zip(vector, others, strict=True)):
        if element.shape != other.shape:
            where = f"Entry {index} in v" if len(others) > 1 else "v"
            raise RuntimeError(f"{where} has invalid size: should be {other.shape} but got {element.shape}.")
    return vector


OF_INPUT = "the input to the user-provided function is"
OF_OUTPUT = "the user-provided function returns"


def _gradients(
    outputs: Sequence[Tensor], inputs: Sequence[Tensor], seeds: Sequence[Tensor] | None, create_graph: bool = True
) -> tuple[Tensor | None, ...]:
    """Gradients of those outputs that are tracked; None for what they do not depend on."""
    tracked = [k for k, output in enumerate(outputs) if output.requires_grad]
    if not tracked:
        return (None,) * len(inputs)
    given = None if seeds is None else [seeds[k] for k in tracked]
    return grad([outputs[k] for k in tracked], inputs, given, create_graph=create_graph, retain_graph=True, allow_unused=True)


def _filled(
    found: Sequence[Tensor | None], like: Sequence[Tensor], strict: bool, missing: str, untracked: str = ""
) -> tuple[Tensor, ...]:
    """Zeros for None; in strict mode neither None nor (if there is a message for it) an untracked result is allowed."""
    for index, result in enumerate(found):
        if strict and result is None:
            raise RuntimeError(missing.format(index))
        if strict and untracked and not (result is not None and result.requires_grad):
            raise RuntimeError(untracked.format(index))
    return tuple(
        wrap(np.zeros_like(array_of(other))) if result is None else result for result, other in zip(found, like, strict=True)
    )


def _finished(results: Sequence[Tensor], create_graph: bool) -> list[Tensor]:
    return list(results) if create_graph else [x.detach() if x.requires_grad else x for x in results]


def _check_strategy(strategy: str, name: str) -> None:
    if strategy == "forward-mode":
        raise NotImplementedError(
            f'{name}: only "reverse-mode" is implemented; tapegrad has no forward-mode differentiation of Tensors'
        )
    if strategy != "reverse-mode":
        raise AssertionError(f'{name}: Expected strategy to be either "forward-mode" or "reverse-mode", but got {strategy!r}.')


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
        Changes nothing: rows are swept one by one, which the tape does without overhead.
    strategy : str
        ``"reverse-mode"``.

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
        If strict mode forbids the function; or `strict` and `vectorize` are both given.
    NotImplementedError
        If `strategy` is ``"forward-mode"``.

    Notes
    -----
    One reverse sweep for each element of the outputs.

    Examples
    --------
    >>> tg.autograd.functional.jacobian(lambda x: x.exp() * x[0], tg.tensor([1.0, 0.0]))
    tensor([[5.4366, 0.0000],
            [1.0000, 1.0000]])
    """
    _check_strategy(strategy, "jacobian")
    if strict and vectorize:
        raise RuntimeError(
            "tapegrad.autograd.functional.jacobian: `strict=True` and `vectorized=True` are not supported together. Please either "
            "set `strict=False` or `vectorize=False`."
        )
    with enable_grad():
        leaves, returned = _run(func, inputs, "jacobian", create_graph, strict)
        blocks = []
        for index, output in enumerate(_as_tuple(returned, FUNCTION, "jacobian")):
            missing = (
                f"Output {index} of the user-provided function is independent of input {{}}. This is not allowed in strict mode."
            )
            rows = _rows(output, leaves, create_graph, strict, missing)
            blocks.append(_like([_block(output, x, [row[k] for row in rows]) for k, x in enumerate(leaves)], inputs))
    return _like(blocks, returned)


def _rows(output: Tensor, leaves: tuple[Tensor, ...], create_graph: bool, strict: bool, missing: str) -> list[tuple[Tensor, ...]]:
    """Gradients of the elements of one output with respect to all leaves."""
    shape, rows = output.shape, []
    for place in range(output.numel()):
        seed = np.zeros(shape, array_of(output).dtype)
        seed.reshape(-1)[place] = 1
        found = _gradients([output], leaves, [wrap(seed)], create_graph)
        rows.append(_filled(found, leaves, strict, missing, STRICT_GRAPH if create_graph else ""))
    return rows


def _block(output: Tensor, x: Tensor, rows: list[Tensor]) -> Tensor:
    shape = (*output.shape, *x.shape)
    if any(row.requires_grad for row in rows):
        from tapegrad.ops.joining import stack

        return stack(rows).reshape(shape)
    values = np.array([array_of(row) for row in rows], array_of(x).dtype)
    return wrap(values.reshape(shape) if shape else values.reshape(()))


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
        ``"reverse-mode"``.

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
    NotImplementedError
        If `outer_jacobian_strategy` is ``"forward-mode"``.

    Examples
    --------
    >>> tg.autograd.functional.hessian(lambda x: (x**3).sum(), tg.tensor([1.0, 2.0]))
    tensor([[ 6.,  0.],
            [ 0., 12.]])
    """
    _check_strategy(outer_jacobian_strategy, "hessian")
    _as_tuple(inputs, "inputs", "hessian")

    def gradient(*leaves: Tensor) -> Any:
        returned = func(*leaves)
        _as_tuple(returned, FUNCTION, "hessian")
        found = _gradients([_single(returned, "hessian")], leaves, None)
        return _like(_filled(found, leaves, strict, STRICT_HESSIAN, STRICT_HESSIAN), inputs)

    return jacobian(gradient, inputs, create_graph, strict, vectorize)


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
        leaves, returned = _run(func, inputs, "vjp", create_graph, strict)
        outputs = _as_tuple(returned, FUNCTION, "vjp")
        seeds = _vector(v, outputs, OF_OUTPUT, "vjp")
        found = _gradients(outputs, leaves, seeds, create_graph)
        product = _filled(found, leaves, strict, INDEPENDENT, STRICT_GRAPH if create_graph else "")
    return _like(_finished(outputs, create_graph), returned), _like(_finished(product, create_graph), inputs)


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
    Two reverse sweeps: the gradient is linear in its seed, and the derivative of that linear map is applied to `v`.

    Examples
    --------
    >>> tg.autograd.functional.jvp(lambda x: x[0] * x, tg.tensor([1.0, 2.0]), tg.tensor([1.0, 0.0]))
    (tensor([1., 2.]), tensor([2., 2.]))
    """
    with enable_grad():
        leaves, returned = _run(func, inputs, "jvp", create_graph, strict)
        vector = _vector(v, leaves, OF_INPUT, "jvp")
        outputs = _as_tuple(returned, FUNCTION, "jvp")
        seeds = [wrap(np.zeros_like(array_of(y))).requires_grad_() if y.requires_grad else y for y in outputs]
        linear = _filled(_gradients(outputs, leaves, seeds), leaves, strict, INDEPENDENT)
        used = [k for k, y in enumerate(outputs) if y.requires_grad]
        found: list[Tensor | None] = [None] * len(outputs)
        for k, product in zip(
            used, _gradients(linear, [seeds[k] for k in used], vector, create_graph) if used else (), strict=True
        ):
            found[k] = product
        products = _filled(found, outputs, strict, STRICT_GRAPH, STRICT_GRAPH if create_graph else "")
    return _like(_finished(outputs, create_graph), returned), _like(_finished(products, create_graph), returned)


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
        leaves, output, vector, gradient = _first_order(func, inputs, v, "vhp", create_graph, strict)
        found = _gradients(gradient, leaves, vector, create_graph)
        product = _filled(found, leaves, strict, STRICT_HESSIAN, STRICT_GRAPH if create_graph else "")
    return _finished([output], create_graph)[0], _like(_finished(product, create_graph), inputs)


def hvp(func: Function, inputs: Tensors, v: Any = None, create_graph: bool = False, strict: bool = False) -> tuple[Any, Any]:
    """Value of a function of one element, and the product of its Hessian with a vector.

    Parameters, results and errors are those of `vhp`, which costs less and gives the same where second derivatives are continuous.

    Notes
    -----
    The `jvp` of the gradient, by two reverse sweeps over it.

    Examples
    --------
    >>> tg.autograd.functional.hvp(lambda x: (x**3).sum(), tg.tensor([1.0, 2.0]), tg.tensor([1.0, 1.0]))
    (tensor(9.), tensor([ 6., 12.]))
    """
    with enable_grad():
        leaves, output, vector, gradient = _first_order(func, inputs, v, "hvp", create_graph, strict)
        seeds = [wrap(np.zeros_like(array_of(x))).requires_grad_() for x in leaves]
        linear = _gradients(gradient, leaves, seeds)
        found = _gradients(_filled(linear, leaves, strict, STRICT_HESSIAN), seeds, vector, create_graph)
        product = _filled(found, leaves, strict, STRICT_HESSIAN, STRICT_GRAPH if create_graph else "")
    return _finished([output], create_graph)[0], _like(_finished(product, create_graph), inputs)


def _first_order(
    func: Function, inputs: Any, v: Any, name: str, create_graph: bool, strict: bool
) -> tuple[tuple[Tensor, ...], Tensor, tuple[Tensor, ...], tuple[Tensor, ...]]:
    leaves, returned = _run(func, inputs, name, create_graph, strict)
    vector = _vector(v, leaves, OF_INPUT, name)
    output = _single(returned, name)
    found = _gradients([output], leaves, None)
    return leaves, output, vector, _filled(found, leaves, strict, INDEPENDENT, STRICT_HESSIAN)
