"""Sums over data that are computed where the data are: threads, processes, other machines."""

from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

from tapegrad.deferred import NamesOnDemand as _NamesOnDemand
from tapegrad.deferred import places as _places

if _TYPE_CHECKING:
    from tapegrad.parallel.sums import SumOver, sum_over

__all__ = ["SumOver", "sum_over"]

_names = _NamesOnDemand(globals(), _places({"parallel.sums": "SumOver sum_over"}))


def __getattr__(name: str) -> _Any:
    return _names.get(name)


def __dir__() -> list[str]:
    return _names.listed()
