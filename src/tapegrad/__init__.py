"""tapegrad: reverse-mode automatic differentiation on a flat tape, with PyTorch's interface.

>>> import tapegrad as tg
>>> x = tg.tensor([1.0, 2.0, 3.0], requires_grad=True)
>>> (x * x).sum().backward()
>>> x.grad
tensor([2., 4., 6.])
"""

from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

from tapegrad import autograd, descriptors, dtypes, forking, linalg, surface, tape, utils
from tapegrad.autograd.anomaly_mode import is_anomaly_check_nan_enabled, is_anomaly_enabled
from tapegrad.devices import device
from tapegrad.dtypes import *
from tapegrad.errors import CompileError, ShapeError, TapeFullError
from tapegrad.factories import *
from tapegrad.grad_mode import (
    enable_grad,
    inference_mode,
    is_grad_enabled,
    is_inference_mode_enabled,
    no_grad,
    set_grad_enabled,
)
from tapegrad.random import *
from tapegrad.ranges import *
from tapegrad.tensor import Tensor

if _TYPE_CHECKING:
    from tapegrad import drivers, nn, optim, optimize
    from tapegrad.drivers import (
        check_grads,
        checkpoint,
        elementwise_grad,
        gauss_newton,
        grad,
        hessian,
        hvp,
        jacobian,
        jvp,
        linearize,
        value_and_grad,
        value_and_jacobian,
        vjp,
    )
    from tapegrad.nopython import free_tape_memory, njit_op, tape_memory
    from tapegrad.saving import load, save

__version__ = "0.1.0"

_DRIVERS = frozenset([
    "check_grads", "checkpoint", "elementwise_grad", "gauss_newton", "grad", "hessian", "hvp", "jacobian", "jvp", "linearize",
    "value_and_grad", "value_and_jacobian", "vjp",
])  # fmt: skip

globals().update(surface.PUBLIC)
surface.attach()


def __getattr__(name: str) -> _Any:
    # Layers and files are a quarter of the import, and scripts without networks need not wait for them, nor for optimisers.
    from importlib import import_module

    if name in ("nn", "optim", "optimize", "drivers"):
        return import_module(f"tapegrad.{name}")
    if name in _DRIVERS:
        return getattr(import_module("tapegrad.drivers"), name)
    if name in ("load", "save"):
        return getattr(import_module("tapegrad.saving"), name)
    if name in ("free_tape_memory", "njit_op", "tape_memory"):
        return getattr(import_module("tapegrad.nopython"), name)
    raise AttributeError(f"module 'tapegrad' has no attribute {name!r}")
