"""SciPy's solvers of ordinary differential equations, with derivatives of their solutions; needs the extra ``scipy``."""

from importlib.util import find_spec as _find_spec
from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

if _find_spec("scipy") is None:
    raise ModuleNotFoundError("tapegrad.integrate needs SciPy: pip install 'tapegrad[scipy]'", name="scipy")

from tapegrad.deferred import NamesOnDemand as _NamesOnDemand
from tapegrad.deferred import places as _places

if _TYPE_CHECKING:
    from tapegrad.integrate.initial_values import odeint, solve_ivp

__all__ = ["odeint", "solve_ivp"]

_names = _NamesOnDemand(globals(), _places({"integrate.initial_values": "odeint solve_ivp"}))


def __getattr__(name: str) -> _Any:
    return _names.get(name)


def __dir__() -> list[str]:
    return _names.listed()
