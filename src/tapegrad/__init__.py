"""tapegrad: reverse-mode automatic differentiation on a flat tape, with PyTorch's interface.

>>> import tapegrad as tg
>>> x = tg.tensor([1.0, 2.0, 3.0], requires_grad=True)
>>> (x * x).sum().backward()
>>> x.grad
tensor([2., 4., 6.])
"""

from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

from tapegrad import autograd, descriptors, dtypes, forking, surface, tape
from tapegrad.dtypes import *
from tapegrad.errors import ShapeError, TapeFullError
from tapegrad.factories import *
from tapegrad.grad_mode import enable_grad, is_grad_enabled, no_grad, set_grad_enabled
from tapegrad.random import *
from tapegrad.ranges import *
from tapegrad.saving import load, save
from tapegrad.tensor import Tensor

if _TYPE_CHECKING:
    from tapegrad import nn

__version__ = "0.1.0"

globals().update(surface.PUBLIC)
surface.attach()


def __getattr__(name: str) -> _Any:
    # The layers are a fifth of the package, and scripts without networks need not wait for them.
    if name == "nn":
        from importlib import import_module

        return import_module("tapegrad.nn")
    raise AttributeError(f"module 'tapegrad' has no attribute {name!r}")
