"""Differentiation: `backward`, `grad`, gradient modes, the graph seen as nodes, derivatives of functions, and checks of them."""

from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

from tapegrad.autograd import gradcheck as _gradcheck
from tapegrad.deferred import NamesOnDemand as _NamesOnDemand
from tapegrad.deferred import places as _places
from tapegrad.errors import GradcheckError
from tapegrad.tensors.factories import Variable
from tapegrad.tensors.grad_mode import enable_grad, inference_mode, no_grad, set_grad_enabled
from tapegrad.tensors.modes import is_grad_enabled

if _TYPE_CHECKING:
    from tapegrad.autograd import function, functional, graph
    from tapegrad.autograd.anomaly_mode import detect_anomaly, set_detect_anomaly
    from tapegrad.autograd.entry_points import backward, grad
    from tapegrad.autograd.function import Function
    from tapegrad.autograd.gradcheck import gradcheck, gradgradcheck

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

# A file takes its name in the package when it is imported first, which is above: not later, in the place of the function.
del globals()[_gradcheck.__name__.rpartition(".")[2]], _gradcheck
_names = _NamesOnDemand(
    globals(),
    _places(
        {
            "autograd.anomaly_mode": "detect_anomaly set_detect_anomaly",
            "autograd.function": ". Function",
            "autograd.functional": ".",
            "autograd.graph": ".",
            "autograd.entry_points": "backward grad",
            "drivers.gradcheck": "gradcheck gradgradcheck",
        }
    ),
)


def __getattr__(name: str) -> _Any:
    return _names.get(name)


def __dir__() -> list[str]:
    return _names.listed()
