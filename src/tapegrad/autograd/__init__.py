"""Differentiation: `backward`, `grad`, gradient modes, the graph seen as nodes, derivatives of functions, and checks of them."""

from tapegrad.autograd import function, functional, graph
from tapegrad.autograd.anomaly_mode import detect_anomaly, set_detect_anomaly
from tapegrad.autograd.backward import backward, grad
from tapegrad.autograd.function import Function
from tapegrad.autograd.gradcheck import GradcheckError, gradcheck, gradgradcheck
from tapegrad.factories import Variable
from tapegrad.grad_mode import enable_grad, inference_mode, is_grad_enabled, no_grad, set_grad_enabled

__all__ = [
    "Function",
    "GradcheckError",
    "Variable",
    "backward",
    "detect_anomaly",
    "enable_grad",
    "function",
    "functional",
    "grad",
    "gradcheck",
    "gradgradcheck",
    "graph",
    "inference_mode",
    "is_grad_enabled",
    "no_grad",
    "set_detect_anomaly",
    "set_grad_enabled",
]
