"""PyTorch's place for some public names."""

from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

from tapegrad.utils import hooks

if _TYPE_CHECKING:
    from tapegrad.utils import checkpoint

__all__ = ["checkpoint", "hooks"]


def __getattr__(name: str) -> _Any:
    # It needs the drivers, which are loaded when they are first used.
    from importlib import import_module

    if name == "checkpoint":
        return import_module("tapegrad.utils.checkpoint")
    raise AttributeError(f"module 'tapegrad.utils' has no attribute {name!r}")
