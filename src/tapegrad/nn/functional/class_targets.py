"""What losses of a choice among classes are given: numbers of the classes, checked, and what they choose."""

from __future__ import annotations

import math
from typing import Any, NamedTuple

import numpy as np

from tapegrad.arrays.dtypes import type_name
from tapegrad.errors import ShapeError
from tapegrad.tape.array_kernels import ARRAY_KERNELS
from tapegrad.tensors.tensor import Tensor, array_of, is_recording

__all__ = ["Chosen", "Operands", "along_classes", "check_untracked", "chosen_by", "operands_of"]

Array = np.ndarray[Any, Any]
Shape = tuple[int, ...]
contiguous: Any = np.ascontiguousarray

_INT64 = np.dtype(np.int64)
_CLASSES = (np.dtype(np.int64), np.dtype(np.uint8))  # dtypes of targets


class Operands(NamedTuple):
    """Values as compiled loops take them, with a batch; targets, factors of the classes, and whether there was no batch."""

    wide: Array
    numbers: Array
    scale: Array | None
    single: bool

    def words(self) -> tuple[int, int, int, int, int]:
        """What the loops are given."""
        shape = self.wide.shape
        inner = 1 if len(shape) == 2 else math.prod(shape[2:])
        return id(self.wide), id(self.numbers), 0 if self.scale is None else id(self.scale), shape[1], inner


class Chosen(NamedTuple):
    """What the targets choose: negative values times factors, the factors, and the places of the values; -1 of what is ignored."""

    losses: Array
    factors: Array
    at: Array


def operands_of(input: Tensor, target: Tensor, weight: Tensor | None) -> Operands:
    """What a loss is given, checked.

    Raises
    ------
    ValueError, RuntimeError, TypeError
        If sizes, dtypes or types are not those of a choice among classes.
    """
    for what, tensor in (("input", input), ("target", target)):
        if not isinstance(tensor, Tensor):
            raise TypeError(f"nll_loss(): argument '{what}' must be Tensor, not {type(tensor).__name__}")
    data, classes = array_of(input), array_of(target)
    if data.ndim == 0:
        raise ValueError(f"Expected 1 or more dimensions (got {data.ndim})")
    single = data.ndim == 1
    if single:
        data, classes = data[None], classes.reshape(1, -1)[0]
    _check_sizes(data.shape, classes.shape, single)
    _check_target(data, classes, weight, "nll_loss_forward")
    wide = (
        data
        if data.itemsize > 2 and data.flags.c_contiguous
        else contiguous(data, np.float32 if data.itemsize == 2 else data.dtype)
    )
    numbers = classes if classes.dtype is _INT64 and classes.flags.c_contiguous else contiguous(classes, np.int64)
    return Operands(wide, numbers, None if weight is None else contiguous(array_of(weight), wide.dtype), single)


def chosen_by(chosen: Operands, ignored: int) -> Chosen:
    """What the targets choose.

    Raises
    ------
    IndexError
        If a target is no class.
    """
    shape, dtype = chosen.numbers.shape, chosen.wide.dtype
    losses, factors, at = np.empty(shape, dtype), np.empty(shape, dtype), np.empty(chosen.numbers.size, np.int64)
    wrong = ARRAY_KERNELS.choose_classes(id(losses), id(factors), id(at), *chosen.words(), ignored)
    if wrong >= 0:
        raise IndexError(f"Target {chosen.numbers.flat[wrong]} is out of bounds.")
    return Chosen(losses, factors, at)


def _check_sizes(shape: Shape, target: Shape, single: bool) -> None:
    if target[:1] != shape[:1]:
        if not target or single:
            raise ShapeError(f"size mismatch (got input: {list(shape)}, target: {list(target)})")
        raise ValueError(f"Expected input batch_size ({shape[0]}) to match target batch_size ({target[0]}).")
    wanted = (shape[0], *shape[2:])
    if target == wanted:
        return
    if len(shape) == 2:
        raise ShapeError(f"0D or 1D target tensor expected, multi-target not supported: got {list(target)}")
    if len(shape) == 4 and len(target) != 3:
        raise ShapeError(
            f"only batches of spatial targets supported (3D tensors) but got targets of dimension: {len(target)}, for input "
            f"{list(shape)}"
        )
    if len(shape) == 4:
        raise ShapeError(f"size mismatch (got input: {list(shape)} , target: {list(target)}")
    raise ShapeError(f"Expected target size {list(wanted)}, got {list(target)}")


def _check_target(data: Array, classes: Array, weight: Tensor | None, name: str) -> None:
    if classes.dtype not in _CLASSES:
        raise RuntimeError(f"expected target dtype to be Long or Byte, but got {type_name(classes.dtype)}")
    if data.dtype.kind != "f":
        raise NotImplementedError(f"\"{name}\" not implemented for '{type_name(data.dtype)}'; convert to a floating point dtype")
    if weight is None:
        return
    check_untracked(name, "weight", weight)
    if array_of(weight).shape != data.shape[1:2]:
        raise ShapeError(
            f"weight tensor should be defined either for all {data.shape[1]} classes or no classes but got weight tensor of "
            f"shape: {list(array_of(weight).shape)}"
        )
    if array_of(weight).dtype != data.dtype:
        raise RuntimeError(f"expected scalar type {type_name(data.dtype)} but found {type_name(array_of(weight).dtype)}")


def check_untracked(name: str, what: str, tensor: Tensor) -> None:
    """Refuse to record an operation that has no derivative for one of its tracked operands."""
    if tensor.requires_grad and is_recording():
        raise RuntimeError(
            f"The function '{name}' is not differentiable with respect to argument '{what}'. This input cannot have requires_grad "
            "True; detach() it."
        )


def along_classes(weight: Tensor, shape: Shape, along: int) -> Tensor:
    """Factors of the classes, stretched over the other dimensions."""
    if array_of(weight).shape != (shape[along],):
        raise ShapeError(
            f"cross_entropy: weight tensor should be defined either for all {shape[along]} classes or no classes but got weight "
            f"tensor of shape: {list(array_of(weight).shape)}"
        )
    return weight.reshape((-1,) + (1,) * (len(shape) - 1 - along))
