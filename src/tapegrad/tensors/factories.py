"""Functions that make tensors: from data, filled, and PyTorch's older names for them."""

from typing import Any

import numpy as np

from tapegrad.arrays import dtypes
from tapegrad.arrays.dtypes import DType, as_dtype, float_or_default
from tapegrad.arrays.floating_point_warnings import quiet
from tapegrad.arrays.foreign_arrays import plain_array
from tapegrad.arrays.sizes import Lengths, parse_size
from tapegrad.tape.tape import TAPE
from tapegrad.tensors.nested_sequences import array_from_nested, own_data
from tapegrad.tensors.tensor import Meta, Tensor, array_of, make, wrap
from tapegrad.tensors.tracers import current_tracer

__all__ = [
    "DoubleTensor",
    "FloatTensor",
    "LongTensor",
    "Variable",
    "as_tensor",
    "empty",
    "empty_like",
    "from_numpy",
    "full",
    "full_like",
    "ones",
    "ones_like",
    "tensor",
    "zeros",
    "zeros_like",
]

Number = bool | int | float


def finish(array: np.ndarray, requires_grad: bool = False, device: object = None) -> Tensor:
    """Tensor around a fresh array, tracked if asked for.

    Raises
    ------
    RuntimeError
        If a tensor of integers or bools is to be tracked, or to be on another device than the CPU.
    """
    if device is not None:
        _check_device(device)
    if not isinstance(requires_grad, bool):
        raise TypeError(f"argument 'requires_grad' must be bool, not {type(requires_grad).__name__}")
    if requires_grad and array.dtype.kind != "f":
        raise RuntimeError(
            "Only Tensors of floating point and complex dtype can require gradients, "
            f"got {array.dtype.name}; make it with dtype=tg.float64"
        )
    # A fresh 0-d result goes on as a scalar, which is what lets `wrap` keep float64 as a plain float.
    result = wrap(array[()] if array.ndim == 0 else array)
    if TAPE.tracers and (tracer := current_tracer()) is not None:
        tracer.made(result)
    return result.requires_grad_() if requires_grad else result


def _check_device(device: object) -> None:
    from tapegrad.tensors.devices import check_device

    check_device(device)


def like(name: str, input: Tensor, dtype: object) -> tuple[tuple[int, ...], DType]:
    """Shape and dtype for the ``_like`` function `name`."""
    if not isinstance(input, Tensor):
        raise TypeError(f"{name}(): argument 'input' (position 1) must be Tensor, not {type(input).__name__}")
    array = array_of(input)
    return array.shape, array.dtype if dtype is None else as_dtype(dtype)


# From data


def tensor(data: Any, dtype: object = None, requires_grad: bool = False, *, device: object = None) -> Tensor:
    """Tensor with a copy of the data.

    Parameters
    ----------
    data : number, nested sequence of numbers, ndarray, or Tensor
        Python floats give the default dtype, integers int64, bools bool; arrays keep theirs.
    dtype : dtype, optional
        Element type of the result.
    requires_grad : bool
        Whether operations on the result are recorded.
    device : device or str, optional
        The CPU; there is no other.

    Raises
    ------
    ValueError
        If sequences are ragged.
    TypeError
        If there is text in the data, or an array of an unsupported dtype.
    RuntimeError
        If anything else cannot become a number of the dtype, or integers are to be tracked.

    Warns
    -----
    UserWarning
        If there is a tracked tensor in the data: the result does not depend on it. `stack`, `cat` and `clone` do.

    Examples
    --------
    >>> tg.tensor([[1, 2], [3, 4]])
    tensor([[1, 2],
            [3, 4]])
    >>> tg.tensor([2.0], requires_grad=True)
    tensor([2.], requires_grad=True)
    """
    if dtype is None and device is None and type(requires_grad) is bool and not TAPE.tracers:
        own = own_data(data)
        if own is not None and not requires_grad:
            return make(own, 0)
        if own is not None and (type(own) is float or own.dtype is dtypes.float64):
            return _leaf(own)
    wanted = None if dtype is None else as_dtype(dtype)
    if isinstance(data, Tensor):
        from tapegrad.tensors.constant_warnings import warn_of_copy

        warn_of_copy(data)
    source = _array_or_none(data)
    if source is None:
        return finish(array_from_nested(data, wanted), requires_grad, device)
    return finish(cast(source, wanted or source.dtype), requires_grad, device)


def _leaf(data: Any) -> Tensor:
    """A new leaf; a fifth of the time of `finish`."""
    t = make(data, 0)
    if TAPE.inferring:
        return t.requires_grad_()
    t._meta = Meta()  # made before threads share the leaf: each would make its own, and one gradient would be lost
    t._row = -1
    return t


def as_tensor(data: Any, dtype: object = None, *, device: object = None) -> Tensor:
    """Tensor that shares memory with the data where it can: a tensor is returned itself, an array is not copied.

    Parameters
    ----------
    data : number, nested sequence of numbers, ndarray, or Tensor
    dtype : dtype, optional
        Another dtype than the data's makes a copy; for a tensor it is a recorded conversion.
    device : device or str, optional
        The CPU.

    Examples
    --------
    >>> a = np.zeros(2)
    >>> t = tg.as_tensor(a)
    >>> a[0] = 5.0
    >>> t
    tensor([5., 0.])
    """
    if device is not None:
        _check_device(device)
    if isinstance(data, Tensor):
        return data if dtype is None else data.to(as_dtype(dtype))
    if issubclass(type(data), np.ndarray):
        source = plain_array(data)
        if source.dtype.isnative and (dtype is None or as_dtype(dtype) == source.dtype):
            return wrap(source)
    return tensor(data, dtype=dtype)


def from_numpy(array: np.ndarray) -> Tensor:
    """Tensor that shares memory with an array: what is written to one is seen in the other.

    Raises
    ------
    TypeError
        If it is not an array, or of a dtype that tensors cannot have.
    ValueError
        If its byte order is not the machine's.

    Examples
    --------
    >>> a = np.zeros(2)
    >>> tg.from_numpy(a).add_(1.0)
    tensor([1., 1.])
    >>> a
    array([1., 1.])
    """
    if not issubclass(type(array), np.ndarray):
        raise TypeError(f"expected np.ndarray (got {type(array).__name__})")
    source = plain_array(array)
    if not source.dtype.isnative:
        raise ValueError(
            "given numpy array has byte order different from the native byte order; "
            "copy it first: array.astype(array.dtype.newbyteorder('='))"
        )
    return wrap(source)


def _array_or_none(data: Any) -> np.ndarray | None:
    """The data as an array that may share memory; None for Python numbers and sequences."""
    if type(data) in (list, float, int):
        return None
    if isinstance(data, Tensor):
        return array_of(data)
    # A numpy.float64 is a Python float too and takes the default dtype as one.
    if issubclass(type(data), np.ndarray) or (issubclass(type(data), np.generic) and not issubclass(type(data), float)):
        return plain_array(data)
    if hasattr(data, "__array__") and not issubclass(type(data), np.generic):
        return plain_array(np.asarray(data))
    return None


def cast(array: np.ndarray, dtype: DType) -> np.ndarray:
    """An array of another dtype, in C order."""
    with quiet():  # beyond float32 is inf, as in PyTorch
        return array.astype(as_dtype(dtype), order="C")


# Filled


def zeros(
    *lengths: Lengths,
    size: Lengths | None = None,
    dtype: object = None,
    requires_grad: bool = False,
    device: object = None,
) -> Tensor:
    """Tensor of zeros.

    Parameters
    ----------
    *lengths : int, or one sequence of int
        Shape of the result.
    size : sequence of int, optional
        The same, by its name.
    dtype : dtype, optional
        The default float if not given.
    requires_grad : bool
        Whether operations on the result are recorded.
    device : device or str, optional
        The CPU; there is no other.

    Examples
    --------
    >>> tg.zeros(2, 3)
    tensor([[0., 0., 0.],
            [0., 0., 0.]])
    """
    return finish(np.zeros(parse_size("zeros", lengths, size), float_or_default(dtype)), requires_grad, device)


def ones(
    *lengths: Lengths,
    size: Lengths | None = None,
    dtype: object = None,
    requires_grad: bool = False,
    device: object = None,
) -> Tensor:
    """Tensor of ones; arguments as for `zeros`."""
    return finish(np.ones(parse_size("ones", lengths, size), float_or_default(dtype)), requires_grad, device)


def empty(
    *lengths: Lengths,
    size: Lengths | None = None,
    dtype: object = None,
    requires_grad: bool = False,
    device: object = None,
) -> Tensor:
    """Tensor whose values are whatever the memory held; arguments as for `zeros`."""
    return finish(np.empty(parse_size("empty", lengths, size), float_or_default(dtype)), requires_grad, device)


def full(
    size: Lengths, fill_value: Number | Tensor, dtype: object = None, requires_grad: bool = False, *, device: object = None
) -> Tensor:
    """Tensor of one value.

    Parameters
    ----------
    size : sequence of int
        Shape of the result.
    fill_value : number or 0-d Tensor
        It decides the dtype if that is not given.

    Raises
    ------
    TypeError
        If `fill_value` is no number, or a tensor that is tracked: its gradient would be lost.

    Examples
    --------
    >>> tg.full((2,), 7)
    tensor([7, 7])
    """
    if not isinstance(size, tuple | list):
        raise TypeError(f"full(): argument 'size' (position 1) must be tuple of ints, not {type(size).__name__}")
    value = _fill_value("full", fill_value, None if dtype is None else as_dtype(dtype))
    return finish(np.full(parse_size("full", (size,)), value, value.dtype), requires_grad, device)


def zeros_like(input: Tensor, dtype: object = None, requires_grad: bool = False, *, device: object = None) -> Tensor:
    """Tensor of zeros with the shape, and if not given the dtype, of another.

    Examples
    --------
    >>> tg.zeros_like(tg.tensor([1, 2]))
    tensor([0, 0])
    """
    return finish(np.zeros(*like("zeros_like", input, dtype)), requires_grad, device)


def ones_like(input: Tensor, dtype: object = None, requires_grad: bool = False, *, device: object = None) -> Tensor:
    """Tensor of ones with the shape, and if not given the dtype, of another."""
    return finish(np.ones(*like("ones_like", input, dtype)), requires_grad, device)


def empty_like(input: Tensor, dtype: object = None, requires_grad: bool = False, *, device: object = None) -> Tensor:
    """Tensor of arbitrary values with the shape, and if not given the dtype, of another."""
    return finish(np.empty(*like("empty_like", input, dtype)), requires_grad, device)


def full_like(
    input: Tensor, fill_value: Number | Tensor, dtype: object = None, requires_grad: bool = False, *, device: object = None
) -> Tensor:
    """Tensor of one value with the shape, and if not given the dtype, of another."""
    shape, kind = like("full_like", input, dtype)
    return finish(np.full(shape, _fill_value("full_like", fill_value, kind), kind), requires_grad, device)


def _fill_value(name: str, value: Any, dtype: DType | None) -> np.ndarray:
    if isinstance(value, Tensor) and value._row:
        raise TypeError(
            f"{name}(): argument 'fill_value' must be Number, not Tensor that requires grad; for a result that depends on it write "
            "fill_value.expand(size)"
        )
    data = array_of(value) if isinstance(value, Tensor) else value
    if not isinstance(data, bool | int | float | np.generic | np.ndarray) or np.ndim(data):
        raise TypeError(f"{name}(): argument 'fill_value' must be Number, not {type(value).__name__} {value!r}")
    return array_from_nested(data, dtype)


# PyTorch's older names


def FloatTensor(*data: Any) -> Tensor:
    """float32 tensor from data, or of a given size with arbitrary values.

    Examples
    --------
    >>> tg.FloatTensor([[1, 2]])
    tensor([[1., 2.]], dtype=float32)
    >>> tg.FloatTensor(2, 3).shape
    tapegrad.Size([2, 3])
    """
    return _typed("FloatTensor", dtypes.float32, data)


def initialise(self: Tensor, data: Any = ()) -> None:
    """Give a new tensor its data: what `Tensor` does with its argument."""
    self._data = FloatTensor(data)._data


def DoubleTensor(*data: Any) -> Tensor:
    """float64 tensor; arguments as for `FloatTensor`."""
    return _typed("DoubleTensor", dtypes.float64, data)


def LongTensor(*data: Any) -> Tensor:
    """int64 tensor; arguments as for `FloatTensor`."""
    return _typed("LongTensor", dtypes.int64, data)


def _typed(name: str, dtype: DType, data: tuple[Any, ...]) -> Tensor:
    if not data:
        return empty(0, dtype=dtype)
    if len(data) > 1 or isinstance(data[0], int):
        return finish(np.empty(parse_size(name, data), dtype))
    if isinstance(data[0], float):
        raise TypeError(f"{name}(): data must be a sequence (got float); use tg.tensor({data[0]}) for a 0-d tensor")
    return tensor(data[0], dtype=dtype)


def Variable(data: Tensor, requires_grad: bool = False) -> Tensor:
    """New leaf that shares memory with a tensor: PyTorch's name from when tensors were not yet differentiable.

    Raises
    ------
    TypeError
        If `data` is not a tensor.

    Examples
    --------
    >>> tg.Variable(tg.tensor([1.0]), requires_grad=True)
    tensor([1.], requires_grad=True)
    """
    if not isinstance(data, Tensor):
        raise TypeError(f"Variable data has to be a tensor, but got {type(data).__name__}")
    leaf = data.detach()
    if requires_grad and array_of(leaf).dtype.kind != "f":
        raise RuntimeError(
            "Only Tensors of floating point and complex dtype can require gradients, "
            f"got {array_of(leaf).dtype.name}; convert it with .double() first"
        )
    return leaf.requires_grad_() if requires_grad else leaf
