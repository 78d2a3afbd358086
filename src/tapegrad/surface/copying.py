"""Copies of tensors, and what pickle keeps of them.

A copy or a pickle holds values and the flag, never the graph. What unpickling calls and imports is `rebuild`, the tensor's class
and NumPy's own reconstruction of arrays, so that an unpickler with a short list of permitted names can load it.
"""

from __future__ import annotations

import copy
from typing import Any

import numpy as np
from numpy.lib.array_utils import byte_bounds

from tapegrad.ops.views import version_of
from tapegrad.surface.attributes import requires_grad_
from tapegrad.tensors.factories import as_tensor
from tapegrad.tensors.inference_tensors import class_of
from tapegrad.tensors.tensor import Tensor, is_leaf, meta_of, promote

__all__ = ["deep_copy", "rebuild", "reduce", "set_state", "shallow_copy"]


def _blank(kind: type[Tensor], data: Any, tracked: bool) -> Tensor:
    """A leaf of a class, past the class's own initialiser."""
    t = Tensor.__new__(kind)
    t._data = data
    return requires_grad_(t) if tracked else t


def _attributes(t: Tensor) -> tuple[dict[str, Any], dict[str, Any]]:
    """What a subclass keeps in its dict and in its slots."""
    state: Any = object.__getstate__(t)
    own, slots = state
    return own or {}, {name: value for name, value in slots.items() if name not in Tensor.__slots__}


def set_state(t: Tensor, state: tuple[dict[str, Any], dict[str, Any]]) -> None:
    """Set what a subclass keeps beside the tensor.

    Raises
    ------
    TypeError
        For what belongs to the tensor itself: a pickle could break the tape with it.
    """
    for part in state:
        for name, value in part.items():
            if name in Tensor.__slots__:
                raise TypeError(f"the state of a pickled {type(t).__name__} must not set {name!r}")
            object.__setattr__(t, name, value)


def shallow_copy(t: Tensor) -> Tensor:
    """A leaf on the same memory, with the same flag and without gradient."""
    copied = _blank(class_of(t), promote(t), t._row != 0)
    meta_of(copied).version = version_of(t)
    set_state(copied, _attributes(t))
    return copied


def _copy_memory(array: np.ndarray, memo: dict[Any, Any]) -> np.ndarray:
    """The same view of a copy of all the memory that an array is a view of; that copy is made once."""
    whole = array
    while isinstance(whole.base, np.ndarray):
        whole = whole.base
    if whole.dtype.hasobject:
        return array.copy()
    key = ("memory of tensors", id(whole))
    low, high = byte_bounds(whole)
    if key not in memo:
        memory = np.zeros(high - low, np.uint8)
        np.ndarray(whole.shape, whole.dtype, memory, whole.ctypes.data - low, whole.strides)[...] = whole
        memo[key] = memory, whole  # the second so that its id is not given to another
    return np.ndarray(array.shape, array.dtype, memo[key][0], array.ctypes.data - low, array.strides)


def deep_copy(t: Tensor, memo: dict[Any, Any], with_gradient: bool = True) -> Tensor:
    """A leaf with the same values, flag and gradient.

    Tensors that share memory share it in the copy, as long as they are copied by one call of `copy.deepcopy`.

    Raises
    ------
    RuntimeError
        For results of recorded operations.
    """
    if id(t) in memo:
        known: Tensor = memo[id(t)]
        return known
    if not is_leaf(t):
        raise RuntimeError(
            "Only Tensors created explicitly by the user (graph leaves) support the deepcopy protocol at the moment. "
            "detach() it first."
        )
    copied = _blank(class_of(t), t._data if type(t._data) is float else _copy_memory(t._data, memo), t._row != 0)
    memo[id(t)] = copied
    if with_gradient and t._meta is not None and t._meta.grad is not None:
        meta_of(copied).grad = copy.deepcopy(t._meta.grad, memo)
    set_state(copied, copy.deepcopy(_attributes(t), memo))
    return copied


def rebuild(kind: type[Tensor], data: Any, tracked: bool) -> Tensor:
    """A tensor from what pickle keeps of it.

    Raises
    ------
    TypeError
        If the parts are not those of a tensor: a damaged or hostile pickle.
    """
    if not (isinstance(kind, type) and issubclass(kind, Tensor)):
        raise TypeError(f"a pickled tensor must be of a class of tensors, but got {kind!r}")
    if type(data) is not float:
        if type(data) is not np.ndarray:
            raise TypeError(f"the values of a pickled tensor must be an array, but got {type(data).__name__}")
        # Out-of-band buffers may begin anywhere, and come from a machine with another byte order.
        data = as_tensor(data if data.flags.aligned else data.copy())._data
    return _blank(kind, data, bool(tracked))


def reduce(t: Tensor, protocol: int) -> Any:
    """Pickle's protocol: the values and the flag, for results too; neither gradient nor graph."""
    data = t._data
    if type(data) is not float and not data.flags.writeable:
        data = data.copy()  # what is loaded is the reader's own
    state = _attributes(t)
    return (rebuild, (class_of(t), data, t._row != 0), *((state,) if any(state) else ()))
