"""PyTorch's own samples of its operations, and a call of one of them on either library.

They come with PyTorch for its own tests: of each operation inputs of many shapes and layouts, with every keyword.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any, NamedTuple

import numpy as np
import torch
from torch.testing._internal.common_methods_invocations import op_db

import tapegrad as tg

__all__ = ["Form", "NotComparableError", "Sample", "as_arrays", "forms", "tensors_in"]

DTYPES = {torch.float64: tg.float64, torch.float32: tg.float32, torch.int64: tg.int64, torch.int32: tg.int32, torch.bool: tg.bool}
MOST = 20  # samples of an operation


class NotComparableError(Exception):
    """A sample that says something that tapegrad has not: complex numbers, layouts, generators."""


class Sample(NamedTuple):
    """Arguments, and the leaves among them that are differentiated by."""

    arguments: tuple[Any, ...]
    keywords: dict[str, Any]
    leaves: list[Any]


class Form(NamedTuple):
    """A function, a method or an in-place method on both libraries."""

    name: str
    ours: Callable[..., Any]
    theirs: Callable[..., Any]
    table: Any

    def __str__(self) -> str:
        return self.name

    def samples(self, dtype: torch.dtype) -> Iterator[tuple[Sample, Sample]]:
        """Each sample for tapegrad and for PyTorch."""
        tracked = self.table.supports_autograd and dtype.is_floating_point
        for number, sample in enumerate(self.table.sample_inputs("cpu", dtype, requires_grad=tracked)):
            if number == MOST:
                return
            known: dict[int, tuple[Any, Any]] = {}
            try:
                arguments = tuple(_here(value, known) for value in (sample.input, *sample.args))
                keywords = {name: _here(value, known) for name, value in sample.kwargs.items()}
            except NotComparableError:
                continue
            leaves = [pair for pair in known.values() if pair[1].requires_grad]
            ours = Sample(arguments, keywords, [ours for ours, _ in leaves])
            yield ours, Sample((sample.input, *sample.args), sample.kwargs, [theirs for _, theirs in leaves])


def _here(value: Any, known: dict[int, tuple[Any, Any]]) -> Any:
    """A part of a sample for tapegrad; tensors that are one are one again."""
    if isinstance(value, torch.Tensor):
        if value.dtype not in DTYPES or value.layout != torch.strided or value.storage_offset():
            raise NotComparableError
        if id(value) not in known:
            made = tg.tensor(np.array(value.detach().numpy(), order="K"), requires_grad=value.requires_grad)
            known[id(value)] = made, value
        return known[id(value)][0]
    if isinstance(value, torch.dtype) and value in DTYPES:
        return DTYPES[value]
    if isinstance(value, (torch.dtype, torch.layout, torch.memory_format, torch.Generator, complex)):
        raise NotComparableError
    if isinstance(value, (list, tuple)):
        return type(value)(_here(part, known) for part in value)
    return value


def _on_a_copy(write: Callable[..., Any]) -> Callable[..., Any]:
    return lambda x, *rest, **keywords: write(x.clone(), *rest, **keywords)


def forms() -> list[Form]:
    """Of all operations in PyTorch's table the forms that tapegrad has."""
    found: dict[str, Form] = {}
    for table in op_db:
        place, theirs = tg, torch
        *path, name = table.name.split(".")
        for part in path:
            place, theirs = getattr(place, part, None), getattr(theirs, part, None)
        label = table.name + (f" {table.variant_test_name}" if table.variant_test_name else "")
        places = [("", place, theirs, name)]
        if table.get_method():
            places.append((" as a method", tg.Tensor, torch.Tensor, name))
        if table.get_inplace():
            places.append((" in place", tg.Tensor, torch.Tensor, f"{name}_"))
        for kind, here, there, called in places:
            pair = getattr(here, called, None), getattr(there, called, None)
            if all(map(callable, pair)):
                ours, other = map(_on_a_copy, pair) if kind == " in place" else pair
                found[label + kind] = Form(label + kind, ours, other, table)
    return list(found.values())


def tensors_in(result: Any) -> list[Any]:
    """The tensors that a result is made of."""
    if isinstance(result, (tg.Tensor, torch.Tensor)):
        return [result]
    return [tensor for part in result for tensor in tensors_in(part)] if isinstance(result, (list, tuple)) else []


def as_arrays(tensors: list[Any]) -> list[np.ndarray]:
    """Their values."""
    return [t.detach().numpy(force=True) if isinstance(t, torch.Tensor) else t.detach().numpy() for t in tensors]
