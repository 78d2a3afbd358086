"""Special functions: `tapegrad.special`, with PyTorch's names. What is no operation of the package needs the extra ``scipy``."""

from typing import Any as _Any

from tapegrad.deferred import NamesOnDemand as _NamesOnDemand
from tapegrad.special import of_the_package as _of_the_package
from tapegrad.special.by_scipy import DOCUMENTED as _DOCUMENTED

_names = _NamesOnDemand(
    globals(), {name: f"special.by_scipy:{name}" for name in _DOCUMENTED}, _of_the_package.NAMES, _of_the_package.function
)
__all__ = sorted({*_DOCUMENTED, *_of_the_package.NAMES})  # noqa: PLE0605 - names of two tables


def __getattr__(name: str) -> _Any:
    return _names.get(name)


def __dir__() -> list[str]:
    return _names.listed()
