"""PyTorch's place for some public names."""

from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

from tapegrad.deferred import NamesOnDemand as _NamesOnDemand
from tapegrad.deferred import places as _places

if _TYPE_CHECKING:
    from tapegrad.utils import checkpoint, hooks

__all__ = ["checkpoint", "hooks"]

_names = _NamesOnDemand(globals(), _places({"utils.checkpoint": ".", "utils.hooks": "."}))


def __getattr__(name: str) -> _Any:
    return _names.get(name)


def __dir__() -> list[str]:
    return _names.listed()
