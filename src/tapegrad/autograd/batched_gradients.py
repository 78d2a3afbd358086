"""Gradients for several seeds at once: `grad` with ``is_grads_batched=True``."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from tapegrad.errors import ShapeError
from tapegrad.ops.indexing import getitem
from tapegrad.ops.joining import stack
from tapegrad.tensors.tensor import Tensor

__all__ = ["gradients_of_batch"]

Gradients = Sequence[Tensor | None]


def gradients_of_batch(
    pass_with: Callable[[list[Tensor], bool | None], Gradients], roots: Sequence[Tensor], seeds: Sequence[Any], retain: bool | None
) -> tuple[Tensor | None, ...]:
    """One pass for each index of the first dimension of the seeds; the gradients are stacked.

    Parameters
    ----------
    pass_with : callable
        Is given the seeds of one pass and whether the graph is kept, and gives the gradients.
    roots : sequence of Tensor
    seeds : sequence of Tensor
        Each of its root's shape, with one more dimension in front.
    retain : bool, optional
        Whether the graph is kept after the last pass.

    Raises
    ------
    RuntimeError
        If a seed is missing, or its other dimensions are not those of its root.
    ValueError
        If the seeds differ in their first dimension.
    IndexError
        If that is empty.
    """
    sizes = {_batch_size(k, root, seed) for k, (root, seed) in enumerate(zip(roots, seeds, strict=False))}
    if len(sizes) > 1:
        raise ValueError(
            f"is_grads_batched=True: all grad_outputs must have the same size in the first dimension, got {sorted(sizes)}"
        )
    (count,) = sizes or {0}
    if not count:
        raise IndexError("is_grads_batched=True: there is no grad_output, for the first dimension of grad_outputs has size 0")
    passes = [
        pass_with([getitem(seed, k) for seed in seeds[: len(roots)]], True if k < count - 1 else retain) for k in range(count)
    ]
    return tuple(None if found[0] is None else stack(found) for found in zip(*passes, strict=True))


def _batch_size(index: int, root: Tensor, seed: Any) -> int:
    own = list(np.shape(root._data))
    if seed is None:
        raise RuntimeError(
            f"grad can be implicitly created only for scalar outputs, and not with is_grads_batched=True: output {index} needs a "
            f"grad_output of shape [{', '.join(map(str, ['n', *own]))}]"
        )
    if not isinstance(seed, Tensor):
        raise TypeError(f"gradients can be either Tensors or None, but got {type(seed).__name__}. Convert it with tg.tensor(...).")
    shape = list(np.shape(seed._data))
    if not shape or shape[1:] != own:
        raise ShapeError(
            "If `is_grads_batched=True`, we interpret the first dimension of each grad_output as the batch dimension. The sizes of "
            "the remaining dimensions are expected to match the shape of corresponding output, but a mismatch was detected: "
            f"grad_output[{index}] has a shape of {shape} and output[{index}] has a shape of {own}."
        )
    return shape[0]
