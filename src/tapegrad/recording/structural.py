"""Structural operations: one definition each, and the rows that record them.

Three kinds of row need no Python in the sweep: strided linear maps and concatenations (`recording.strided_maps`), and elementwise
rules. Everything else is a `Structural`: a forward value, and a vjp written with differentiable operations, which therefore serves
the plain pass and ``create_graph`` alike.
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
    "InBlocks",
    "Payload",
    "Structural",
    "apply",
    "apply_form",
    "as_result",
    "check_recordable",
    "in_front",
    "one_by_one",
    "tracked_among",
    "use_compiled",
    "write_host_row",
]

_ADDRESS = TAPE.address
RESULT_BIT = 62
Uses = tuple[tuple[int | str, ...], ...]
InBlocks = Callable[[np.ndarray[Any, Any], Any, tuple[int, ...]], np.ndarray[Any, Any]]
Forms = tuple[list[tuple[int, InBlocks | None]], bool, bool]


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

    def with_inputs(self, inputs: Sequence[Tensor]) -> Context:
        """The same of other inputs, whose result is not known."""
        return Context(tuple(inputs), None, self.extra, self.attrs, self.needs, self.shapes, self.dtypes, self.on)

    def with_operations(self, on: Any) -> Context:
        """The same with other operations to write a vjp with."""
        return Context(self.inputs, self.result, self.extra, self.attrs, self.needs, self.shapes, self.dtypes, on)


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
    linear : tuple of callable or None
        For each input in which it is linear, the operation itself on many arrays at once, so that vectors go through its rows in
        blocks: ``linear[k](x_dot, context, shape)`` is given tangents of input k, of that input's shape with one more dimension
        behind, and gives those of the result, which is of `shape`. None for other inputs. Inputs that are not named have none.
    forward : callable or None
        ``forward(arrays, attrs, *extra)`` gives the value again for other values of the inputs, of the same shapes. Only of
        operations whose attributes do not depend on values.
    payload_class : type or None
        Of the payloads of its rows, if that is not `Payload`.
    takes_stretched : bool
        Whether the vjp may be given a large cotangent of equal numbers as one number that is stretched.
    moves : sequence of int
        Of an operation that only moves elements, how those of each input come into the result (`engine.layout`): then the plain
        pass does in compiled code what the vjp says, where arrays are small. Places, or a mask, are saved besides the inputs, and
        the attributes begin with the number of elements in a block.
    """

    __slots__ = (
        "_forms", "_saved", "_uses", "forward", "joins", "linear", "moves", "name", "number", "payload_class", "takes_stretched",
        "uses", "uses_at", "vjp",
    )  # fmt: skip
    packs: ClassVar[bool] = False  # whether pieces of its result that have its name are shown as outputs of its node

    def __init__(
        self,
        name: str,
        uses: Uses,
        vjp: Callable[[Tensor, Context], Sequence[Tensor | None]],
        joins: bool = False,
        linear: Sequence[InBlocks | None] = (),
        forward: Callable[..., Any] | None = None,
        payload_class: type[Payload] | None = None,
        takes_stretched: bool = False,
        moves: Sequence[int] = (),
    ) -> None:
        self.payload_class, self.takes_stretched = payload_class or Payload, takes_stretched
        self.name, self.uses, self.vjp, self.joins, self.linear, self.forward = name, uses, vjp, joins, linear, forward
        self.number, self.moves = TAPE.name_number(name), sum(how << 4 * k for k, how in enumerate(moves))
        self._saved: dict[int, tuple[frozenset[int], bool]] = {}
        self._forms: dict[tuple[bool, ...], Forms] = {}
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

    def linear_forms(self, varying: tuple[bool, ...]) -> Forms:
        """Inputs that vary with what it gives for tangents of them, whether all have that, and whether it is linear in them."""
        found = self._forms.get(varying)
        if found is None:
            named, numbers = len(self.linear), [k for k, varies in enumerate(varying) if varies]
            forms = [(k, self.linear[k] if k < named else None) for k in numbers]
            is_flat = all(set(numbers).isdisjoint(self.uses[k] if len(self.uses) > 1 else self.uses[0]) for k in numbers)
            found = self._forms[varying] = forms, all(form is not None for _, form in forms), is_flat
        return found


def in_front(form: Callable[[Tensor, Any], Tensor]) -> InBlocks:
    """Many arrays at once by an operation that takes further dimensions in front: ``form(x, context)``."""

    def of_many(x_dot: np.ndarray[Any, Any], ctx: Any, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
        found = form(make(np.ascontiguousarray(np.moveaxis(x_dot, -1, 0)), 0), ctx)
        return np.moveaxis(array_of(found), 0, -1)

    return of_many


def one_by_one(form: Callable[[Tensor, Any], Tensor]) -> InBlocks:
    """Many arrays by an operation that takes one, where there is no other way: ``form(x, context)``."""

    def of_many(x_dot: np.ndarray[Any, Any], ctx: Any, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
        result = np.empty((*shape, x_dot.shape[-1]))
        for k in range(x_dot.shape[-1]):
            result[..., k] = array_of(form(make(np.ascontiguousarray(x_dot[..., k]), 0), ctx)).reshape(shape)
        return result

    return of_many


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

    def context(self, values: Sequence[Tensor | None], result: Tensor | None, needs: Sequence[bool], on: Any) -> Context:
        """What the vjp is given besides the cotangent; compiled code gives the same to most rows of a plain pass.

        Parameters
        ----------
        values : sequence of Tensor or None
            Of the inputs where they were saved, and of what was saved besides them.
        result : Tensor or None
            If it was saved.
        needs : sequence of bool
            Which inputs' cotangents are wanted.
        on : object
            The operations that the vjp is to be written with.
        """
        extra = tuple([t for t in values[self.inputs :] if t is not None])
        return Context(tuple(values[: self.inputs]), result, extra, self.attrs, tuple(needs), self.shapes, self.dtypes, on)

    def contributions(self, state: Any, slot: int, gradients: Any, wanted: Any) -> Any:
        """What a row sends to its arguments; only of rows that run themselves."""
        raise NotImplementedError

    def node_at(self, slot: int) -> Any:
        """The view of the row, if it has one of its own kind; the same object while somebody holds it."""
        return None


_FLOAT64 = np.dtype(np.float64)


def as_result(value: Any) -> Any:
    """A computed value in the form tensors keep: arrays as they are, 0-d float64 as a float."""
    if type(value) is np.ndarray:
        return value.item() if value.ndim == 0 and value.dtype == _FLOAT64 else value
    if type(value) is float or type(value) is np.float64:
        return float(value)
    return wrap(value)._data


def apply_form(op: Structural, inputs: Sequence[Tensor], result: Any, attrs: Any, extra: Sequence[Tensor]) -> Tensor:
    """The Python form of `apply`."""
    value = as_result(result)
    row = TAPE.operation_row(_ADDRESS, id(op), id(inputs), id(extra), id(attrs), id(value))
    return make(value, row if row >= 0 else _general(op, inputs, value, attrs, extra))


_applied: Any = apply_form


def use_compiled(function: Any) -> None:
    """Let `apply` be a compiled function, which calls the Python form for what is not usual."""
    global _applied
    _applied = function


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
    made: Tensor = _applied(op, inputs, result, attrs, extra)
    return made


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
    payload: Payload,
    tensors: Sequence[Tensor],
    tracked: int,
    saved: Collection[int],
    value: Any,
    saves_result: bool = False,
    data: Sequence[Any] | None = None,
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
    data : sequence of array or float, optional
        What is saved of each tensor, if not its own data.
    """
    count = len(tensors)
    rows = [t._row for t in tensors]
    rest = [id(t._data) for t in tensors] if data is None else list(map(id, data))
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
