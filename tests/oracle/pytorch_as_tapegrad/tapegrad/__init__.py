"""PyTorch under the name of tapegrad, so that tests written for tapegrad run on PyTorch.

Put the folder above first on the path. What tapegrad has and PyTorch lacks is an error of the test that asks for it; a test that
looks into tapegrad's own modules is skipped.
"""

import importlib
import importlib.abc
import importlib.machinery
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import numpy as np
import pytest
import torch
from torch._tensor_str import _add_suffixes

SOURCE = Path(__file__).parents[4] / "src" / "tapegrad"
SAME = [
    "autograd", "autograd.functional", "autograd.graph", "linalg", "nn", "nn.functional", "nn.init", "optim", "optim.lr_scheduler",
    "random", "utils", "utils.hooks",
]  # fmt: skip


class Internal(ModuleType):
    """A module of tapegrad's own."""

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        return Internal(f"{self.__name__}.{name}")

    def __call__(self, *_: Any, **__: Any) -> Any:
        if "PYTEST_CURRENT_TEST" in os.environ:
            pytest.skip(f"{self.__name__} is tapegrad's own")
        return self


class Package(ModuleType):
    """A package of PyTorch, with tapegrad's own modules in it."""

    def __init__(self, name: str, module: ModuleType) -> None:
        super().__init__(name)
        self.__dict__["_module"] = module
        self.__path__: list[str] = []

    def __getattr__(self, name: str) -> Any:
        if name == "tape":
            return Internal("tapegrad.tape.tape")
        found = getattr(self._module, name, None)
        # Functions of one tensor stand on both sides in tapegrad.
        return found if found is not None else getattr(torch.nn.functional, name)

    def __setattr__(self, name: str, value: Any) -> None:
        if not isinstance(value, ModuleType):
            super().__setattr__(name, value)


class Finder(importlib.abc.MetaPathFinder, importlib.abc.Loader):
    """Finds tapegrad's own modules: the rule table, which is text, as it is, and the others empty."""

    def find_spec(self, name: str, path: Sequence[str] | None = None, target: ModuleType | None = None) -> Any:
        if name == "tapegrad.rules.table":
            return importlib.util.spec_from_file_location(name, SOURCE / "rules" / "table.py")
        return importlib.machinery.ModuleSpec(name, self, is_package=True) if name.startswith("tapegrad.") else None

    def create_module(self, spec: importlib.machinery.ModuleSpec) -> ModuleType:
        return Internal(spec.name)

    def exec_module(self, module: ModuleType) -> None:
        if module.__name__ == "tapegrad.surface.printing":
            module.format_tensor = _format_tensor


def _format_tensor(array: np.ndarray, suffix: str = "") -> str:
    text = repr(torch.tensor(array.copy()))
    if suffix:
        text = _add_suffixes(text[:-1], [suffix], 7, False)
    return text.replace("dtype=torch.", "dtype=")


_numpy = torch.Tensor.numpy


def _array(t: torch.Tensor, *, force: bool = False) -> np.ndarray:
    # PyTorch's zeros that take no memory have no view.
    return _numpy(t, force=force or t._is_zerotensor())


torch.Tensor.numpy = _array
torch.set_default_dtype(torch.float64)
sys.meta_path.insert(0, Finder())
for name in SAME:
    sys.modules[f"tapegrad.{name}"] = Package(f"tapegrad.{name}", importlib.import_module(f"torch.{name}"))
sys.modules["tapegrad.autograd.gradcheck"] = importlib.import_module("torch.autograd.gradcheck")
sys.modules["tapegrad"] = Package("tapegrad", torch)
