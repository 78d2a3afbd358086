"""Gradients compared with central differences, in PyTorch's place."""

from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

from tapegrad.deferred import NamesOnDemand as _NamesOnDemand
from tapegrad.deferred import places as _places
from tapegrad.errors import GradcheckError

if _TYPE_CHECKING:
    from tapegrad.drivers.gradcheck import gradcheck, gradgradcheck

__all__ = ["GradcheckError", "gradcheck", "gradgradcheck"]

_names = _NamesOnDemand(globals(), _places({"drivers.gradcheck": "gradcheck gradgradcheck"}))


def __getattr__(name: str) -> _Any:
    return _names.get(name)


def __dir__() -> list[str]:
    return _names.listed()
