"""Second derivatives of operations that the tests have a case of: forward, a recorded gradient, and backward through that."""

from __future__ import annotations

from typing import Any

from .breadth_operations import Operation, as_tuple, operations, placed, total
from .workloads import Step, load

__all__ = ["build", "operations"]


def build(library: str, operation: Operation, size: int, point: int) -> tuple[Step, list[float]]:
    """A step and numbers that other libraries should find as well, as those of first derivatives have them.

    Raises
    ------
    ValueError
        If the operation is linear, or an idiom, which has a step of its own.
    """
    if operation.arrays is None:
        raise ValueError(f"{operation.name} has a step of its own")
    module, call = load(library), operation.call
    leaves, tracked, _, wanted = placed(module, operation, size, point)

    def gradients() -> list[Any]:
        results = as_tuple(call(*leaves))
        summed = results[wanted[0]].sum()
        for k in wanted[1:]:
            summed = summed + results[k].sum()
        found = module.autograd.grad(summed, tracked, create_graph=True, allow_unused=True)
        return [g for g in found if g is not None and g.requires_grad]

    if not gradients():
        raise ValueError(f"{operation.name} is linear")

    def step() -> None:
        for leaf in tracked:
            leaf.grad = None
        first, *others = gradients()
        summed = (first * first).sum()
        for g in others:
            summed = summed + (g * g).sum()
        summed.backward()

    step()
    return step, [total(leaf.grad) for leaf in tracked if leaf.grad is not None]
