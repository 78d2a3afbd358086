"""Drivers for optimisation: derivatives of functions, NumPy in and NumPy out, in the conventions of JAX."""

from tapegrad.drivers.checking import check_grads
from tapegrad.drivers.checkpointing import checkpoint
from tapegrad.drivers.curvature import gauss_newton, hessian, hvp
from tapegrad.drivers.gradients import elementwise_grad, grad, value_and_grad
from tapegrad.drivers.jacobians import jacobian, value_and_jacobian
from tapegrad.drivers.products import jvp, linearize, vjp

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
