"""The cases of the shared table, each once on tapegrad and once, from the same text, on PyTorch."""

import importlib
import importlib.util
import sys
from pathlib import Path
from types import ModuleType
from typing import Any, NamedTuple
from unittest import mock

import torch
from operation_case import Case


class NotInPyTorchError(Exception):
    """PyTorch has no such name."""


class Torch:
    """PyTorch in the place of tapegrad: a name that it lacks is an error when it is called, not when it is looked up."""

    def __init__(self, module: ModuleType) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Any:
        if self._module is torch and not hasattr(torch, name):
            return getattr(Torch(torch.nn.functional), name)  # in tapegrad, functions of one tensor stand in both places
        if not hasattr(self._module, name):

            def missing(*_: Any, **__: Any) -> Any:
                raise NotInPyTorchError(f"{self._module.__name__}.{name}")

            return missing
        found = getattr(self._module, name)
        return Torch(found) if isinstance(found, ModuleType) else found


class Twins(NamedTuple):
    """One case on both libraries."""

    ours: Case
    theirs: Case

    def __str__(self) -> str:
        return str(self.ours)


def on_torch(path: Path) -> ModuleType:
    """The module of cases at `path`, with PyTorch in the place of tapegrad."""
    places = {"tapegrad": torch, "tapegrad.nn": torch.nn, "tapegrad.nn.functional": torch.nn.functional}
    spec = importlib.util.spec_from_file_location(f"{path.stem}_on_torch", path)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    with mock.patch.dict(sys.modules, {name: Torch(place) for name, place in places.items()}):
        spec.loader.exec_module(module)
    return module


def twins() -> list[Twins]:
    """All cases."""
    found = []
    for path in sorted(Path(__file__).parents[1].glob("cases_*.py")):
        ours, theirs = importlib.import_module(path.stem).CASES, on_torch(path).CASES
        found += [Twins(one, other) for one, other in zip(ours, theirs, strict=True)]
    return found
