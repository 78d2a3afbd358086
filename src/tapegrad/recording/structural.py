"""Structural operations: one definition each, and the rows that record them.

Three kinds of row need no Python in the sweep: strided linear maps (views, broadcasting, sums; a gather's transpose is a
scatter and the other way round), concatenations, and elementwise rules. Everything else is a `Structural`: a forward value, and
a vjp written with differentiable operations, which therefore serves the plain pass and ``create_graph`` alike.
"""

from __future__ import annotations

from array import array
from collections.abc import Callable, Collection, Sequence
from typing import Any, ClassVar

import numpy as np

from tapegrad.tape.tape import TAPE
from tapegrad.tensors.inference_tensors import InferenceTensor, check_saved
from tapegrad.tensors.saved_value_packing import current_packer
from tapegrad.tensors.tensor import FLOATS, Tensor, array_of, is_recording, make, retry, wrap

__all__ = [
    "Context",
    "Payload",
    "Structural",
    "apply",
    "axes",
    "axis",
    "check_recordable",
    "join",
    "reduce_sum",
    "reshape_copy",
    "strided_copy",
    "strided_gather",
    "strided_place",
    "strided_scatter",
    "sum_to",
    "tracked_among",
    "write_host_row",
]

_ADDRESS = TAPE.address
RESULT_BIT = 62
Uses = tuple[tuple[int | str, ...], ...]


class Context:
    """What a vjp is given besides the cotangent.

    Attributes
    ----------
    inputs : tuple of Tensor or None
        Values of the inputs, where they were saved.
    result : Tensor or None
        The result, if saved.
    extra : tuple of Tensor
        Saved untracked tensors.
    attrs : object
        Whatever the forward pass gave.
    needs : tuple of bool
        Which cotangents are wanted.
    shapes, dtypes : tuple
        Of the inputs.
    on : object
        The operations that a vjp is written with where there is a shorter form of them for the plain pass.
    """

    __slots__ = ("attrs", "dtypes", "extra", "inputs", "needs", "on", "result", "shapes")

    def __init__(self, inputs: Any, result: Any, extra: Any, attrs: Any, needs: Any, shapes: Any, kinds: Any, on: Any) -> None:
        self.inputs, self.result, self.extra, self.attrs = inputs, result, extra, attrs
        self.needs, self.shapes, self.dtypes, self.on = needs, shapes, kinds, on


class Structural:
    """Definition of one structural operation.

    Parameters
    ----------
    name : str
        PyTorch's node name.
    uses : tuple of tuple
        For each input, what its cotangent needs: numbers of inputs, ``"z"`` for the result. One entry serves any number of
        inputs.
    vjp : callable
        ``vjp(g, context)`` gives a cotangent (or None) for each input.
    joins : bool
        Whether its result is shown as another output of the node that made its last input.
    """

    __slots__ = ("_saved", "_uses", "joins", "name", "number", "uses", "uses_at", "vjp")
    packs: ClassVar[bool] = False  # whether pieces of its result that have its name are shown as outputs of its node

    def __init__(
        self, name: str, uses: Uses, vjp: Callable[[Tensor, Context], Sequence[Tensor | None]], joins: bool = False
    ) -> None:
        self.name, self.uses, self.vjp, self.joins = name, uses, vjp, joins
        self.number = TAPE.name_number(name)
        self._saved: dict[int, tuple[frozenset[int], bool]] = {}
        # For compiled code: how many entries there are, and each as bits.
        bits = [sum(1 << (RESULT_BIT if use == "z" else int(use)) for use in set(entry)) for entry in uses]
        self._uses = array("q", [len(bits), *bits])
        self.uses_at, _ = self._uses.buffer_info()

    def saves(self, tracked: int) -> tuple[frozenset[int], bool]:
        """Inputs that the tracked inputs' cotangents need, and whether they need the result; bit k says that input k is tracked."""
        found = self._saved.get(tracked)
        if found is None:
            needed: set[int | str] = set()
            for k in range(tracked.bit_length()):
                if tracked >> k & 1:
                    needed.update(self.uses[k] if len(self.uses) > 1 else self.uses[0])
            found = self._saved[tracked] = frozenset(k for k in needed if isinstance(k, int)), "z" in needed
        return found


def check_recordable(name: str, dtype: np.dtype[Any]) -> None:
    """Raise if the derivative of a result would get lost: that of integers is zero, but not that of floats that are not tracked.

    Raises
    ------
    RuntimeError
        Names the dtype.
    """
    if dtype.kind in "fc" and dtype not in FLOATS:
        raise RuntimeError(
            f"{name}: cannot record a result of dtype {dtype}; only float32 and float64 are tracked. Where a constant is meant, "
            "convert t.detach()."
        )


def tracked_among(inputs: Sequence[Tensor]) -> int:
    """Bit k says whether input k is tracked."""
    tracked, bit = 0, 1
    for t in inputs:
        if t._row:
            tracked |= bit
        bit += bit
    return tracked


class Payload:
    """What the row of a structural operation keeps in Python: plain data, no tensors."""

    __slots__ = ("attrs", "dtypes", "hooks", "inputs", "op", "shapes")
    hooks: Any  # set when the tensor that had them died
    runs_itself: ClassVar[bool] = False  # whether it has a `contributions` of its own

    def __init__(self, op: Structural, attrs: Any, operands: Sequence[Any], inputs: int) -> None:
        self.op, self.attrs, self.inputs = op, attrs, inputs
        own = operands if len(operands) == inputs else operands[:inputs]
        self.shapes = tuple([() if type(a) is float else a.shape for a in own])
        self.dtypes = tuple([_FLOAT64 if type(a) is float else a.dtype for a in own])

    def contributions(self, state: Any, slot: int, gradients: Any, wanted: Any) -> Any:
        """What a row sends to its arguments; only of rows that run themselves."""
        raise NotImplementedError

    def new_node(self) -> Any:
        """A view of the row, not yet bound to it, or None for the usual one."""
        return None


_FLOAT64 = np.dtype(np.float64)


def as_result(value: Any) -> Any:
    """A computed value in the form tensors keep: arrays as they are, 0-d float64 as a float."""
    if type(value) is np.ndarray:
        return value.item() if value.ndim == 0 and value.dtype == _FLOAT64 else value
    return wrap(value)._data


def apply(op: Structural, inputs: Sequence[Tensor], result: Any, attrs: Any = None, extra: Sequence[Tensor] = ()) -> Tensor:
    """Record an operation whose value was computed.

    Parameters
    ----------
    op : Structural
        Its definition.
    inputs : sequence of Tensor
        Operands.
    result : ndarray, NumPy scalar or float
        Its value, not a view of an input.
    attrs : object
        Plain data for the vjp.
    extra : sequence of Tensor
        Untracked tensors for the vjp.

    Returns
    -------
    Tensor
        Tracked if an input is, recording is on and the value is float32 or float64.
    """
    value = as_result(result)
    row = TAPE.operation_row(_ADDRESS, id(op), id(inputs), id(extra), id(attrs), id(value))
    return make(value, row if row >= 0 else _general(op, inputs, value, attrs, extra))


def _general(op: Structural, inputs: Sequence[Tensor], value: Any, attrs: Any, extra: Sequence[Tensor]) -> int:
    """The row of any operation, 0 if its result is untracked."""
    tracked = tracked_among(inputs)
    if not tracked or (TAPE.recording_off and not is_recording()):
        return 0
    if type(value) is not float and value.dtype not in FLOATS:
        check_recordable(op.name, value.dtype)
        return 0
    everything = (*inputs, *extra) if extra else inputs
    saved, saves_result = op.saves(tracked)
    if InferenceTensor in map(type, everything):
        check_saved((*(inputs[k] for k in saved), *extra))
    if TAPE.packers:
        packed = _packed(op, inputs, value, attrs, extra)
        if packed is not None:
            return packed
    payload = Payload(op, attrs, [t._data for t in everything], len(inputs))
    return write_host_row(payload, everything, len(inputs), saved, value, saves_result)


def write_host_row(
    payload: Payload, tensors: Sequence[Tensor], tracked: int, saved: Collection[int], value: Any, saves_result: bool = False
) -> int:
    """Write a row whose derivative is Python; its handle.

    Parameters
    ----------
    payload : Payload
        What its step needs.
    tensors : sequence of Tensor
        The inputs, and then what is saved besides them.
    tracked : int
        Number of inputs.
    saved : collection of int
        Which of the inputs are saved.
    value : ndarray or float
        The result.
    saves_result : bool
        Whether that is saved too.
    """
    count = len(tensors)
    rows = [t._row for t in tensors]
    rest = [id(t._data) for t in tensors]
    if count > tracked:
        rows[tracked:] = [0] * (count - tracked)
        rest += [k in saved or k >= tracked for k in range(count)]
    elif saved:
        rest += [k in saved for k in range(count)]
    else:
        rest += [0] * count
    words = array("q", rows + rest)
    at, _ = words.buffer_info()
    number, payload_at, value_at, saves = payload.op.number, id(payload), id(value), int(saves_result)

    def attempt() -> Any:
        words[:tracked] = array("q", [t._row for t in tensors[:tracked]])
        return TAPE.host_row(_ADDRESS, number, count, at, at + 8 * count, at + 16 * count, payload_at, saves, value_at)

    row = TAPE.host_row(_ADDRESS, number, count, at, at + 8 * count, at + 16 * count, payload_at, saves, value_at)
    return row if row > 0 else retry(attempt, tuple(tensors[:tracked]), count + 8, 4 * count + 512)


def _packed(op: Structural, inputs: Sequence[Tensor], value: Any, attrs: Any, extra: Sequence[Tensor]) -> int | None:
    """The row, if hooks of this thread pack what it saves."""
    packer = current_packer()
    return None if packer is None else packer.record_structural(op, inputs, value, attrs, extra)


def reduce_sum(x: Tensor, name: str, over: tuple[int, ...], scale: float, result: Any) -> Tensor:
    """Record ``result = scale * sum(x, over)``.

    Parameters
    ----------
    over : tuple of int
        Non-negative axes.
    """
    value = as_result(result)
    if not (x._row and is_recording()):
        return make(value, 0)
    bits = -1
    if type(x._data) is not float and len(over) < x._data.ndim:
        bits = sum(1 << d if d < 63 else -(1 << 63) for d in over)  # dimension 63 has the sign bit
    number = TAPE.name_number(name)
    row = TAPE.reduce_row(_ADDRESS, number, x._row, id(x._data), bits, scale, id(value))
    if row < 0:
        row = retry(lambda: TAPE.reduce_row(_ADDRESS, number, x._row, id(x._data), bits, scale, id(value)), (x,))
    return make(value, row)


def reshape_copy(x: Tensor, name: str, result: np.ndarray) -> Tensor:
    """Record a copy of `x` that has another shape but the same elements in C order."""
    return _map(x, name, False, (result.size,), (1,), 0, 1.0, result)


def _map(x: Tensor, name: str, scatters: bool, dims: Any, strides: Any, offset: int, scale: float, result: Any) -> Tensor:
    value = as_result(result)
    if not (x._row and is_recording()):
        return make(value, 0)
    if not dims:
        dims, strides = (1,), (1,)
    geometry = array("q", [len(dims), offset, *dims, *strides])
    at, _ = geometry.buffer_info()
    number = TAPE.name_number(name)

    def attempt() -> Any:
        return TAPE.map_row(_ADDRESS, int(scatters), number, x._row, id(x._data), at, scale, id(value))

    row = TAPE.map_row(_ADDRESS, int(scatters), number, x._row, id(x._data), at, scale, id(value))
    return make(value, row if row > 0 else retry(attempt, (x,)))


def strided_copy(x: Tensor, name: str, take: Callable[[Any], Any], shape: tuple[int, ...]) -> Tensor:
    """Record a copy of a strided view of `x`, which repeats elements or passes them in another order.

    Parameters
    ----------
    take : callable
        Takes the NumPy view of an array of x's shape.
    shape : tuple of int
        Shape of the result, which has as many elements as the view.
    """
    data = array_of(x)
    result = np.array(take(data), order="C").reshape(shape)
    return _map(x, name, False, *_geometry(data.shape, take), 1.0, result)


def strided_place(x: Tensor, name: str, take: Callable[[Any], Any], result: np.ndarray) -> Tensor:
    """Record that `x` was written to the strided view of `result` that `take` takes; the other elements are constants."""
    return _map(x, name, True, *_geometry(result.shape, take), 1.0, result)


def _geometry(shape: tuple[int, ...], take: Callable[[Any], Any]) -> tuple[Any, Any, int]:
    """Dimensions, strides and offset, in elements in C order, of a view of an array of `shape`."""
    whole = np.empty(shape, np.int8)
    part = take(whole)
    offset = part.__array_interface__["data"][0] - whole.__array_interface__["data"][0] if part.size else 0
    return part.shape, part.strides, offset


def _dense(x: Tensor) -> np.ndarray:
    return np.ascontiguousarray(x._data).reshape(-1)


def _strided(flat: np.ndarray, dims: Any, strides: Any, offset: int) -> np.ndarray:
    """The view that a strided map reads or writes; NumPy checks that it stays inside."""
    size = flat.itemsize
    return np.ndarray(dims, flat.dtype, flat, offset * size, [s * size for s in strides])


def strided_gather(
    x: Tensor, dims: Any, strides: Any, offset: int, scale: float, shape: Any, name: str = "GatherBackward0"
) -> Tensor:
    """Strided linear map ``z[i] = scale * x[offset + strides . i]``, strides in elements of x in C order.

    Parameters
    ----------
    dims, strides : tuple of int
        Extent and stride of each index.
    shape : tuple of int
        Shape of the result, which has ``prod(dims)`` elements.
    """
    flat = _dense(x)
    taken = _strided(flat, dims, strides, offset)
    result = taken * flat.dtype.type(scale) if scale != 1.0 else taken.copy()
    return _map(x, name, False, dims, strides, offset, scale, result.reshape(shape))


def strided_scatter(
    x: Tensor, dims: Any, strides: Any, offset: int, scale: float, shape: Any, name: str = "ScatterBackward0"
) -> Tensor:
    """Transpose of `strided_gather`: ``z[offset + strides . i] += scale * x[i]`` into zeros of `shape`."""
    values = _dense(x).reshape(dims)
    if scale != 1.0:
        values = values * values.dtype.type(scale)
    out = np.zeros(shape, values.dtype)
    flat = out.reshape(-1)
    repeated = tuple(d for d, s in enumerate(strides) if s == 0)
    if repeated:
        values = values.sum(axis=repeated, keepdims=True)
    if values.size:
        if _is_injective(values.shape, strides):
            places = _strided(flat, values.shape, strides, offset)
            places += values
        else:
            index = np.full(values.shape, offset)
            for d, s in enumerate(strides):
                index += s * np.arange(values.shape[d]).reshape((-1,) + (1,) * (values.ndim - d - 1))
            np.add.at(flat, index.reshape(-1), values.reshape(-1))
    return _map(x, name, True, dims, strides, offset, scale, out)


def _is_injective(dims: Sequence[int], strides: Sequence[int]) -> bool:
    """Whether no two indices lead to the same place: each stride exceeds all that the smaller ones can reach."""
    reach = 0
    for stride, extent in sorted((abs(s), n) for s, n in zip(strides, dims, strict=True) if n > 1):
        if stride <= reach:
            return False
        reach += stride * (extent - 1)
    return True


def join(name: str, inputs: Sequence[Tensor], at: int, result: np.ndarray) -> Tensor:
    """Record a concatenation of `inputs` along axis `at` of `result` (for a stack, along the new axis).

    Parameters
    ----------
    inputs : sequence of Tensor
        Their data have the result's dtype or one that was converted to it.
    """
    if not (any(t._row for t in inputs) and is_recording()) or result.dtype not in FLOATS:
        return make(result, 0)
    count = len(inputs)
    words = np.empty((3, count), np.int64)
    data = [t._data for t in inputs]
    words[1] = [id(a) for a in data]
    outer = int(np.prod(result.shape[:at], dtype=np.int64))
    words[2] = [1 if type(a) is float else a.size // outer if outer else 0 for a in data]
    start = words.ctypes.data
    number = TAPE.name_number(name)

    def attempt() -> Any:
        words[0] = [t._row for t in inputs]
        return TAPE.join_row(_ADDRESS, number, count, start, start + 8 * count, start + 16 * count, id(result))

    return make(result, retry(attempt, tuple(inputs), 2 * count + 8, 4 * count + 512))


def sum_to(t: Tensor, shape: tuple[int, ...]) -> Tensor:
    """Sum over the axes that broadcasting `shape` to ``t.shape`` added or stretched."""
    own = () if type(t._data) is float else t._data.shape
    if own == shape:
        return t
    extra = len(own) - len(shape)
    over = tuple(range(extra)) + tuple(d + extra for d, n in enumerate(shape) if n == 1 and own[d + extra] != 1)
    total = np.add.reduce(t._data, axis=over, keepdims=True) if over else t._data
    return reduce_sum(t, "SumBackward1", over, 1.0, np.asarray(total).reshape(shape))


def axis(dim: Any, ndim: int) -> int:
    """A dimension as a non-negative axis.

    Raises
    ------
    IndexError
        If it is out of range.
    TypeError
        If it is not an integer.
    """
    if isinstance(dim, bool) or not hasattr(dim, "__index__"):
        raise TypeError(f"dim must be an int, but got {type(dim).__name__} {dim!r}")
    number = dim.__index__()
    bound = max(ndim, 1)
    if not -bound <= number < bound:
        raise IndexError(f"Dimension out of range (expected to be in range of [{-bound}, {bound - 1}], but got {number})")
    return int(number) % bound


def axes(dim: Any, ndim: int) -> tuple[int, ...]:
    """Dimensions as sorted non-negative axes; None and () are all of them.

    Raises
    ------
    IndexError
        If one is out of range.
    RuntimeError
        If one appears twice.
    """
    if dim is None:
        return tuple(range(ndim))
    if isinstance(dim, (tuple, list)):
        found = [axis(d, ndim) for d in dim]
        for d in found:
            if found.count(d) > 1:
                raise RuntimeError(f"dim {d} appears multiple times in the list of dims")
        return tuple(sorted(found)) if found else tuple(range(ndim))
    return (axis(dim, ndim),)
