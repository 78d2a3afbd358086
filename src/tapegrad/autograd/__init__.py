"""Differentiation: `backward`, `grad`, gradient modes and the graph seen as nodes."""

from tapegrad.autograd.backward import backward, grad
from tapegrad.factories import Variable
from tapegrad.grad_mode import enable_grad, is_grad_enabled, no_grad, set_grad_enabled

__all__ = ["Variable", "backward", "enable_grad", "grad", "is_grad_enabled", "no_grad", "set_grad_enabled"]
