"""Derivatives of functions of tensors, in PyTorch's place: Jacobians, Hessians and their products with vectors."""

from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

from tapegrad.deferred import NamesOnDemand as _NamesOnDemand
from tapegrad.deferred import places as _places

if _TYPE_CHECKING:
    from tapegrad.drivers.functional_hessians import hessian, hvp, vhp
    from tapegrad.drivers.functional_jacobians import jacobian, jvp, vjp

__all__ = ["hessian", "hvp", "jacobian", "jvp", "vhp", "vjp"]

_names = _NamesOnDemand(
    globals(), _places({"drivers.functional_hessians": "hessian hvp vhp", "drivers.functional_jacobians": "jacobian jvp vjp"})
)


def __getattr__(name: str) -> _Any:
    return _names.get(name)


def __dir__() -> list[str]:
    return _names.listed()
