"""Edges of the graph: outputs of nodes, in the place of tensors that may be gone."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from tapegrad.autograd.decoded_rows import opcode_of, record_of
from tapegrad.autograd.nodes import AccumulateGrad, Node, node_at, node_of, output_number, outputs_of
from tapegrad.tape.tape import TAPE
from tapegrad.tensors.tensor import Tensor, make, register_leaf

__all__ = ["GradientEdge", "get_gradient_edge", "has_edges", "listed", "tensor_at"]


class GradientEdge(NamedTuple):
    """An output of a node, which `backward` and `grad` take where they take a tensor.

    Attributes
    ----------
    node : Node
    output_nr : int
        Which of its outputs.
    ownership_token : None
        A node keeps what it needs by itself.
    """

    node: Node
    output_nr: int
    ownership_token: None = None


def get_gradient_edge(tensor: Tensor) -> GradientEdge:
    """Where in the graph a tensor stands: for a result its ``grad_fn``, for a leaf the node that accumulates its gradient.

    Parameters
    ----------
    tensor : Tensor

    Returns
    -------
    GradientEdge
        It keeps the graph below it recorded, and not the tensor.

    Raises
    ------
    RuntimeError
        If the tensor is not tracked.

    Examples
    --------
    >>> x = tg.tensor([1.0, 2.0], requires_grad=True)
    >>> y = x * x
    >>> edge, z = tg.autograd.graph.get_gradient_edge(y), y.sum()
    >>> del y
    >>> tg.autograd.grad(z, edge)
    (tensor([1., 1.]),)
    """
    if not isinstance(tensor, Tensor):
        raise TypeError(f"get_gradient_edge() takes a Tensor, but got {type(tensor).__name__}")
    if tensor._row == 0:
        raise RuntimeError(
            "It is not possible to get the gradient edge for a Tensor that does not require gradients: set requires_grad=True first"
        )
    node = node_of(tensor)
    if node is None:
        if tensor._row < 0:
            register_leaf(tensor)
        with TAPE.claim():
            node = node_at(TAPE.slot(tensor._row))
        return GradientEdge(node, 0)
    with TAPE.claim():
        return GradientEdge(node, output_number(TAPE.slot(tensor._row)))


def has_edges(value: Any) -> bool:
    """Whether there is an edge among what was given for a list of tensors."""
    if isinstance(value, (Tensor, GradientEdge)):
        return isinstance(value, GradientEdge)
    return any(isinstance(one, GradientEdge) for one in value)


def listed(value: Any, name: str) -> list[Any]:
    """One tensor or edge, or a sequence of these, as a list of tensors."""
    if isinstance(value, (Tensor, GradientEdge)) or value is None:
        value = [value]
    try:
        return [tensor_at(one) if isinstance(one, GradientEdge) else one for one in value]
    except TypeError:
        raise TypeError(f"{name} must be a Tensor or a sequence of Tensors, but got {type(value).__name__}") from None


def tensor_at(edge: GradientEdge) -> Tensor:
    """A tensor that stands at an edge: the leaf itself, or one of the result's shape and dtype without its values.

    Raises
    ------
    RuntimeError
        If the node has no such output, or nothing depends on it any more.
    """
    node = edge.node
    if not isinstance(node, Node):
        raise RuntimeError(f"the node of a GradientEdge must be a node of the graph, but got {type(node).__name__}")
    if isinstance(node, AccumulateGrad):
        return node.variable
    with TAPE.claim():
        slot = next((slot for slot in outputs_of(TAPE.slot(node._row)) if output_number(slot) == edge.output_nr), -1)
        if slot < 0:
            raise RuntimeError(f"{node.name()} has no output {edge.output_nr} that anything depends on")
        if not opcode_of(slot)[1]:
            return make(0.0, TAPE.new_handle(slot))
        record = record_of(slot)
        return make(np.broadcast_to(np.zeros((), record.dtype), record.shape), TAPE.new_handle(slot))
