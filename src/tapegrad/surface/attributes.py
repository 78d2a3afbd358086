"""What a tensor tells about itself, and its conversions."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np

from tapegrad.arrays import dtypes
from tapegrad.arrays.sizes import Size
from tapegrad.ops.views import alias, separate
from tapegrad.tape.tape import TAPE
from tapegrad.tensors.devices import CPU, device
from tapegrad.tensors.inference_tensors import InferenceTensor, check_inference_flag
from tapegrad.tensors.number_entries import NumberEntries, entry
from tapegrad.tensors.retained_gradients import unwatch, watch
from tapegrad.tensors.tensor import FLOATS, Tensor, array_of, is_leaf, leave_row, meta_of, promote, register_leaf, version_count

if TYPE_CHECKING:
    from tapegrad.autograd.nodes import Node

__all__: list[str] = []


def shape(t: Tensor) -> Size:
    """Lengths of the dimensions."""
    return Size() if type(t._data) is float else Size(t._data.shape)


def size(t: Tensor, dim: int | None = None) -> Any:
    """Shape, or the length of one dimension.

    Raises
    ------
    IndexError
        If `dim` is out of range.
    """
    own = shape(t)
    if dim is None:
        return own
    from tapegrad.recording.axes import axis

    if not own:
        raise IndexError("Dimension specified as 0 but tensor has no dimensions")
    return own[axis(dim, len(own))]


def dtype(t: Tensor) -> np.dtype[Any]:
    """Element type."""
    return dtypes.float64 if type(t._data) is float else t._data.dtype


def ndim(t: Tensor) -> int:
    """Number of dimensions."""
    return 0 if type(t._data) is float else int(t._data.ndim)


def numel(t: Tensor) -> int:
    """Number of elements."""
    return 1 if type(t._data) is float else int(t._data.size)


def itemsize(t: Tensor) -> int:
    """Bytes of one element."""
    return int(dtype(t).itemsize)


def nbytes(t: Tensor) -> int:
    """Bytes of all elements."""
    return numel(t) * itemsize(t)


def conj(t: Tensor) -> Tensor:
    """The conjugate and the real part of real numbers: the tensor itself."""
    return t


def stride(t: Tensor, dim: int | None = None) -> Any:
    """Steps between elements along each dimension, in elements."""
    data = array_of(t)
    steps = tuple(s // data.itemsize for s in data.strides)
    return steps if dim is None else steps[dim]


def is_contiguous(t: Tensor) -> bool:
    """Whether the elements stand in C order without gaps."""
    return type(t._data) is float or bool(t._data.flags.c_contiguous)


def get_requires_grad(t: Tensor) -> bool:
    """Whether operations on the tensor are recorded."""
    return t._row != 0


def set_requires_grad(t: Tensor, wanted: Any) -> None:
    """Set the flag of a leaf."""
    if not isinstance(wanted, bool):
        raise RuntimeError(f"requires_grad must be a bool, but got {type(wanted).__name__}")
    if not is_leaf(t):
        advice = (
            ""
            if wanted
            else " If you want to use a computed variable in a subgraph that doesn't require differentiation use "
            "var_no_grad = var.detach()."
        )
        raise RuntimeError(f"you can only change requires_grad flags of leaf variables.{advice}")
    _set_flag(t, wanted, "only Tensors of floating point dtype can require gradients")


def _set_flag(t: Tensor, wanted: bool, message: str) -> None:
    if wanted and dtype(t) not in FLOATS:
        raise RuntimeError(f"{message}, but this one is {dtypes.type_name(dtype(t))}; convert it with .double() or .float()")
    if wanted:
        if t._row == 0:
            check_inference_flag(t)
            meta_of(t)  # made before threads share the leaf: each would make its own, and one gradient would be lost
            t._row = -1
    elif t._row:
        leave_row(t, 0)


def requires_grad_(t: Tensor, requires_grad: bool = True) -> Tensor:
    """Set whether operations on the tensor are recorded; returns the tensor.

    Raises
    ------
    RuntimeError
        If the tensor is not floating point, or is a result and the flag is cleared.
    """
    if not is_leaf(t):
        if not requires_grad:
            set_requires_grad(t, False)
        return t
    _set_flag(t, bool(requires_grad), "only Tensors of floating point dtype can require gradients")
    return t


def get_grad(t: Tensor) -> Tensor | None:
    """Accumulated gradient."""
    meta = t._meta
    grad = None if meta is None else meta.grad
    if grad is None and not is_leaf(t) and not (meta is not None and meta.retained):
        warnings.warn(
            "The .grad attribute of a Tensor that is not a leaf Tensor is being accessed. Its .grad attribute won't be populated "
            "during autograd.backward(). If you want it to be, use .retain_grad() on the non-leaf Tensor.",
            UserWarning,
            stacklevel=2,
        )
    return grad


def set_grad(t: Tensor, value: Any) -> None:
    """Replace the accumulated gradient."""
    if value is not None:
        if not isinstance(value, Tensor):
            raise TypeError(f"assigned grad expected to be a Tensor or None but got grad of type {type(value).__name__}")
        if value is t:
            raise RuntimeError("can't assign Variable as its own grad")
        if shape(value) != shape(t):
            raise RuntimeError(
                f"attempting to assign a gradient of size '{list(shape(value))}' to a tensor of size '{list(shape(t))}'. "
                "Please ensure that the gradient and the tensor are the same size"
            )
        if dtype(value) != dtype(t):
            raise RuntimeError(
                f"attempting to assign a gradient with dtype '{dtypes.type_name(dtype(value)).lower()}' to a tensor with dtype "
                f"'{dtypes.type_name(dtype(t)).lower()}'. The gradient must match the tensor dtype"
            )
        meta_of(t).grad = value
    elif t._meta is not None:
        t._meta.grad = None


def del_grad(t: Tensor) -> None:
    """Forget the gradient."""
    set_grad(t, None)


def retain_grad(t: Tensor) -> None:
    """Keep the gradient of a result in its ``.grad``, as for a leaf.

    Raises
    ------
    RuntimeError
        If the tensor is not tracked, or a view that may not be used any more.
    """
    if t._row == 0:
        raise RuntimeError("can't retain_grad on Tensor that has requires_grad=False")
    meta = meta_of(t)
    if is_leaf(t) or meta.retained:
        return
    if t._row < 0:
        register_leaf(t)  # raises: it may not be used any more
    watch(t)


def retains_grad(t: Tensor) -> bool:
    """Whether `retain_grad` is in force."""
    return t._meta is not None and bool(t._meta.retained)


def get_grad_fn(t: Tensor) -> Node | None:
    """The operation that made the tensor, None for leaves."""
    if not t._row:
        return None
    from tapegrad.autograd.nodes import node_of

    return node_of(t)


def output_nr(t: Tensor) -> int:
    """Which output of its operation the tensor is."""
    return 0 if t._meta is None else t._meta.output_nr


def version(t: Tensor) -> int:
    """How often the tensor's memory was written in place.

    Raises
    ------
    RuntimeError
        For inference tensors.
    """
    if type(t) is InferenceTensor:
        raise RuntimeError("Inference tensors do not track version counter.")
    return version_count(t)


def base(t: Tensor) -> Tensor | None:
    """The tensor that this one is a view of."""
    return None if t._meta is None else t._meta.base


def is_view(t: Tensor) -> bool:
    """Whether the tensor is a view of another one."""
    return base(t) is not None


def device_of(t: Tensor) -> device:
    """Where the tensor is: on the CPU."""
    return CPU


def is_cpu(t: Tensor) -> bool:
    """Whether the tensor is on the CPU: always."""
    return True


def is_cuda(t: Tensor) -> bool:
    """Whether the tensor is on a GPU: never."""
    return False


def get_device(t: Tensor) -> int:
    """The number of the GPU that the tensor is on: -1, for none."""
    return -1


def data_ptr(t: Tensor) -> int:
    """Address of the first element; 0 if there is none."""
    data = promote(t)
    return int(data.__array_interface__["data"][0]) if data.size else 0


def detach(t: Tensor) -> Tensor:
    """An untracked tensor on the same memory."""
    return alias(t, shares_version=True)


def detach_(t: Tensor) -> Tensor:
    """Cut the tensor off its graph, in place.

    Raises
    ------
    RuntimeError
        If it is a view.
    """
    if t._meta is not None and t._meta.base is not None:
        raise RuntimeError("Can't detach views in-place. Use detach() instead.")
    if is_leaf(t):
        set_requires_grad(t, False)
        return t
    from tapegrad.tensors.hooks import leave_to_rows

    unwatch(t)
    leave_to_rows(t)
    t._row, before = 0, t._row
    TAPE.drop(TAPE.address, before)
    return t  # views taken before keep their rows until the memory is written


def get_data(t: Tensor) -> Tensor:
    """An untracked tensor on the same memory, with a version counter of its own."""
    return alias(t, shares_version=False)


def set_data(t: Tensor, value: Any) -> None:
    """Replace the memory behind a tensor, outside of recording."""
    if not isinstance(value, Tensor):
        raise TypeError(f"Variable data has to be a tensor, but got {type(value).__name__}")
    if t._row and dtype(value) not in FLOATS:
        raise RuntimeError("data set to a tensor that requires gradients must be floating point dtype")
    if shape(value) != shape(t) or dtype(value) != dtype(t):
        if not is_leaf(t):
            raise RuntimeError(
                f"data of a result must keep its shape and dtype: got {list(shape(value))} {dtype(value)}, "
                f"but the recorded operation made {list(shape(t))} {dtype(t)}. detach() the tensor first."
            )
        if t._row > 0:
            leave_row(t, -1)  # the row of a leaf has its shape
        if t._meta is not None:
            t._meta.grad = None
        TAPE.note_reshaped()
    separate(t)
    t._data = value._data


def length(t: Tensor) -> int:
    """Length of the first dimension."""
    if ndim(t) == 0:
        raise TypeError("len() of a 0-d tensor")
    return int(t._data.shape[0])


def iterate(t: Tensor) -> Any:
    """Slices along the first dimension."""
    if ndim(t) == 0:
        raise TypeError("iteration over a 0-d tensor")
    if ndim(t) == 1 and type(t._meta) is NumberEntries:
        return iter([entry(t, k) for k in range(len(t._data))])
    return iter(t.unbind(0))


def contains(t: Tensor, value: Any) -> bool:
    """Whether a value is among the elements."""
    if not isinstance(value, (bool, int, float, Tensor)):
        raise RuntimeError(f"Tensor.__contains__ only supports Tensor or scalar, but you passed in a {type(value)}.")
    found: Any = t == value
    return bool(found.any())


def describe(t: Tensor) -> str:
    """Values as PyTorch prints them, and how the tensor came about."""
    from tapegrad.surface.printing import format_tensor

    suffix = ""
    node = get_grad_fn(t)
    if node is not None:
        suffix = f"grad_fn=<{type(node).__name__}>"
    elif t._row:
        suffix = "requires_grad=True"
    return format_tensor(array_of(t), suffix)
