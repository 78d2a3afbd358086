"""Drivers for optimisation: derivatives of functions, NumPy in and NumPy out, in the conventions of JAX."""

from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

from tapegrad.deferred import NamesOnDemand as _NamesOnDemand
from tapegrad.deferred import places as _places
from tapegrad.surface.public_names import FAMILIES as _FAMILIES

if _TYPE_CHECKING:
    from tapegrad.drivers.checkpointing import checkpoint
    from tapegrad.drivers.curvature import gauss_newton, hessian, hvp
    from tapegrad.drivers.derivative_checks import check_grads
    from tapegrad.drivers.gradients import elementwise_grad, grad, value_and_grad
    from tapegrad.drivers.jacobian_products import jvp, linearize, vjp
    from tapegrad.drivers.jacobians import jacobian, value_and_jacobian

__all__ = [
    "check_grads",
    "checkpoint",
    "elementwise_grad",
    "gauss_newton",
    "grad",
    "hessian",
    "hvp",
    "jacobian",
    "jvp",
    "linearize",
    "value_and_grad",
    "value_and_jacobian",
    "vjp",
]

_names = _NamesOnDemand(
    globals(),
    _places({file: names for file, names in _FAMILIES.items() if file.startswith("drivers.")}),
)


def __getattr__(name: str) -> _Any:
    return _names.get(name)


def __dir__() -> list[str]:
    return _names.listed()
