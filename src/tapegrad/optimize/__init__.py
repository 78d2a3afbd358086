"""SciPy's optimisers with exact derivatives, on structured variables; needs the extra ``scipy``."""

from importlib.util import find_spec as _find_spec
from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

if _find_spec("scipy") is None:
    raise ModuleNotFoundError("tapegrad.optimize needs SciPy: pip install 'tapegrad[scipy]'", name="scipy")

from tapegrad.deferred import NamesOnDemand as _NamesOnDemand
from tapegrad.deferred import places as _places

if _TYPE_CHECKING:
    from tapegrad.optimize.constraints import Constraint, between, equality, inequality
    from tapegrad.optimize.fitting import curve_fit, least_squares
    from tapegrad.optimize.fixed_points import fixed_point
    from tapegrad.optimize.many_starts import multistart
    from tapegrad.optimize.minimizing import minimize
    from tapegrad.optimize.recordings import ScipyFunction, scipy_fun
    from tapegrad.optimize.roots import root

__all__ = [
    "Constraint",
    "ScipyFunction",
    "between",
    "curve_fit",
    "equality",
    "fixed_point",
    "inequality",
    "least_squares",
    "minimize",
    "multistart",
    "root",
    "scipy_fun",
]

_names = _NamesOnDemand(
    globals(),
    _places(
        {
            "optimize.constraints": "Constraint between equality inequality",
            "optimize.fitting": "curve_fit least_squares",
            "optimize.fixed_points": "fixed_point",
            "optimize.minimizing": "minimize",
            "optimize.many_starts": "multistart",
            "optimize.recordings": "ScipyFunction scipy_fun",
            "optimize.roots": "root",
        }
    ),
)


def __getattr__(name: str) -> _Any:
    return _names.get(name)


def __dir__() -> list[str]:
    return _names.listed()
