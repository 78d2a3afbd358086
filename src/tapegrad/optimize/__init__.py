"""SciPy's optimisers with exact derivatives, on structured variables; needs the extra ``scipy``."""

from importlib.util import find_spec as _find_spec

if _find_spec("scipy") is None:
    raise ModuleNotFoundError("tapegrad.optimize needs SciPy: pip install 'tapegrad[scipy]'", name="scipy")

from tapegrad.optimize.constraints import Constraint, between, equality, inequality
from tapegrad.optimize.fitting import curve_fit, least_squares
from tapegrad.optimize.fixed_points import fixed_point
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
    "root",
    "scipy_fun",
]
