"""tapegrad: reverse-mode automatic differentiation on a flat tape, with PyTorch's interface.

>>> import tapegrad as tg
>>> x = tg.tensor([1.0, 2.0, 3.0], requires_grad=True)
>>> (x * x).sum().backward()
>>> x.grad
tensor([2., 4., 6.])
"""

from typing import TYPE_CHECKING as _TYPE_CHECKING
from typing import Any as _Any

from tapegrad import archived_modules as _archived_modules  # first: it finds the others

# isort: split
from tapegrad import autograd, tape
from tapegrad.arrays import dtypes
from tapegrad.arrays.dtypes import *
from tapegrad.arrays.sizes import Size
from tapegrad.autograd import forking as _forking
from tapegrad.deferred import NamesOnDemand as _NamesOnDemand
from tapegrad.deferred import places as _places
from tapegrad.errors import CompileError, ProgramError, ShapeError, TapeFullError
from tapegrad.ops import compiled_operators as _compiled_operators
from tapegrad.surface import tensor_methods as _tensor_methods
from tapegrad.surface.public_names import FAMILIES as _FAMILIES
from tapegrad.surface.public_names import MORE as _MORE
from tapegrad.tensors.factories import *
from tapegrad.tensors.grad_mode import enable_grad, inference_mode, no_grad, set_grad_enabled
from tapegrad.tensors.inference_tensors import is_inference
from tapegrad.tensors.modes import is_grad_enabled, is_inference_mode_enabled
from tapegrad.tensors.tensor import Tensor

if _TYPE_CHECKING:
    from tapegrad import drivers, integrate, linalg, nn, optim, optimize, parallel, sparse, utils
    from tapegrad.autograd.anomaly_mode import is_anomaly_check_nan_enabled, is_anomaly_enabled
    from tapegrad.drivers import *
    from tapegrad.files.saving import load, save
    from tapegrad.nopython import dual, free_tape_memory, njit_derivative, njit_op, register_derivative, tape_memory
    from tapegrad.tensors.devices import device
    from tapegrad.tensors.random import *
    from tapegrad.tensors.ranges import *

__version__ = "0.2.0"

_tensor_methods.attach()
_more = _places(_MORE)
__all__ = [_name for _name in (*globals(), *_tensor_methods.PUBLIC, *_more) if not _name.startswith("_")]
_names = _NamesOnDemand(globals(), _more | _places(_FAMILIES), _tensor_methods.PUBLIC, _tensor_methods.public)


def __getattr__(name: str) -> _Any:
    return _names.get(name)


def __dir__() -> list[str]:
    return _names.listed()
