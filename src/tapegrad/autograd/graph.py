"""PyTorch's names for what looks at the graph, and for what decides how it keeps values."""

from tapegrad.autograd.edges import GradientEdge, get_gradient_edge
from tapegrad.autograd.nodes import Node, register_multi_grad_hook
from tapegrad.autograd.saved_hooks import (
    allow_mutation_on_saved_tensors,
    disable_saved_tensors_hooks,
    save_on_cpu,
    saved_tensors_hooks,
)
from tapegrad.autograd.written_versions import increment_version

__all__ = [
    "GradientEdge",
    "Node",
    "allow_mutation_on_saved_tensors",
    "disable_saved_tensors_hooks",
    "get_gradient_edge",
    "increment_version",
    "register_multi_grad_hook",
    "save_on_cpu",
    "saved_tensors_hooks",
]
