"""What a custom function keeps between ``forward`` and ``backward``, and its gradients in the forms of its inputs."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from tapegrad.recording.casting import cast
from tapegrad.recording.strided_maps import sum_to
from tapegrad.tensors.tensor import Tensor, make

if TYPE_CHECKING:
    from tapegrad.autograd.function import FunctionCtx

__all__ = ["State", "fit"]


class State:
    """What the row of a custom function keeps: all that its `ctx` shows."""

    __slots__ = (
        "arguments",
        "attributes",
        "dirty",
        "kind",
        "link",
        "materialize",
        "needs",
        "others",
        "outputs",
        "positions",
        "saved",
        "to_save",
        "untracked",
    )

    def __init__(self, kind: type[FunctionCtx], args: Sequence[Any]) -> None:
        self.kind = kind
        self.link: weakref.ref[FunctionCtx] | None = None  # to the `ctx` that is bound to the row
        self.attributes: dict[str, Any] = {}
        self.arguments = len(args)
        self.positions = tuple([k for k, a in enumerate(args) if isinstance(a, Tensor)])  # of the tensors among the arguments
        self.needs = tuple([isinstance(a, Tensor) and a._row != 0 for a in args])
        self.materialize = True
        self.outputs: list[tuple[tuple[int, ...], np.dtype[Any]] | None] = []  # None for what is not a tensor
        self.others: list[Tensor] = []  # on the rows of saved tensors that are neither inputs nor outputs, counted from one
        self.saved: list[tuple[int, int, int] | None] = []  # what each was, its number, and the argument of the row that keeps it
        self.to_save: tuple[Any, ...] = ()
        self.dirty: tuple[Any, ...] = ()
        self.untracked: tuple[Any, ...] = ()

    def materialized(self, gradients: Sequence[Tensor | None]) -> Sequence[Tensor | None]:
        """Gradients of the outputs as ``backward`` is given them: zeros for those that there are not, if it wants that."""
        if not self.materialize or not any([g is None for g in gradients]):  # noqa: C419 - a generator takes longer
            return gradients
        return [
            make(np.zeros(*kind), 0) if g is None and kind is not None else g
            for g, kind in zip(gradients, self.outputs, strict=True)
        ]

    def for_inputs(self, name: str, results: Any) -> tuple[Tensor | None, ...]:
        """For each tensor among the arguments what ``backward`` gave for it.

        Raises
        ------
        RuntimeError
            If it gave another number of gradients, one for something else, or one that is no tensor.
        """
        given = results if isinstance(results, tuple) else (results,)
        while len(given) > self.arguments and given[-1] is None:
            given = given[:-1]
        if len(given) != self.arguments:
            raise RuntimeError(
                f"function {name} returned an incorrect number of gradients (expected {self.arguments}, got {len(given)}): "
                "backward returns one for each argument of forward, None for those that are no tensors"
            )
        for position, result in enumerate(given):
            if result is None:
                continue
            if position not in self.positions:
                raise RuntimeError(
                    f"function {name} returned a gradient different than None at position {position + 1}, "
                    "but the corresponding forward input was not a Variable"
                )
            if not isinstance(result, Tensor):
                raise RuntimeError(
                    f"expected Variable or None (got {type(result).__name__}) from {name}; convert it with tg.tensor(...)"
                )
        return tuple([given[position] for position in self.positions])


def fit(of: Any, result: Tensor, k: int) -> Tensor:
    """A gradient in the shape and dtype of input k, which a payload or a context knows (`of`).

    Raises
    ------
    RuntimeError
        If the shape can't be made of it.
    """
    shape, dtype, data = of.shapes[k], of.dtypes[k], result._data
    own = () if type(data) is float else data.shape
    if own != shape:
        aligned = own[len(own) - len(shape) :] if shape else ()
        if len(own) < len(shape) or any(n not in (1, m) for n, m in zip(shape, aligned, strict=True)):
            raise RuntimeError(
                f"Function {of.op.name} returned an invalid gradient at index {k} - got {list(own)} but expected shape "
                f"compatible with {list(shape)}"
            )
        result = sum_to(result, shape)
    return result if type(data) is np.ndarray and data.dtype == dtype else cast(result, dtype)
