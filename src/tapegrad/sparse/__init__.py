"""Sparse Jacobians and Hessians: patterns from the tape, colours, compressed products; needs the extra ``scipy``."""

from importlib.util import find_spec as _find_spec
from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

if _find_spec("scipy") is None:
    raise ModuleNotFoundError("tapegrad.sparse needs SciPy: pip install 'tapegrad[scipy]'", name="scipy")

from tapegrad.deferred import NamesOnDemand as _NamesOnDemand
from tapegrad.deferred import places as _places

if _TYPE_CHECKING:
    from tapegrad.sparse.compression import Info
    from tapegrad.sparse.derivatives import hessian, jacobian, plan, value_and_jacobian
    from tapegrad.sparse.evaluation import PatternError
    from tapegrad.sparse.lagrangians import lagrangian_hessian
    from tapegrad.sparse.structures import hessian_structure, jacobian_structure

__all__ = [
    "Info",
    "PatternError",
    "hessian",
    "hessian_structure",
    "jacobian",
    "jacobian_structure",
    "lagrangian_hessian",
    "plan",
    "value_and_jacobian",
]

_names = _NamesOnDemand(
    globals(),
    _places(
        {
            "sparse.derivatives": "hessian jacobian plan value_and_jacobian",
            "sparse.lagrangians": "lagrangian_hessian",
            "sparse.compression": "Info",
            "sparse.evaluation": "PatternError",
            "sparse.structures": "hessian_structure jacobian_structure",
        }
    ),
)


def __getattr__(name: str) -> _Any:
    return _names.get(name)


def __dir__() -> list[str]:
    return _names.listed()
