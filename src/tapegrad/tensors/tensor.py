"""`Tensor`: a NumPy array or a float, and a handle on the row that made it.

A 0-d float64 tensor that shares memory with nothing holds a plain Python float: arithmetic on floats is ten times faster than
on 0-d arrays, and scripts are full of scalars. It turns into an array the moment somebody could see the memory (`promote`).
"""

from __future__ import annotations

import weakref
from typing import TYPE_CHECKING, Any, ClassVar

import numpy as np
from numpy import ndarray

from tapegrad.arrays.dtypes import is_long
from tapegrad.arrays.foreign_arrays import plain_array
from tapegrad.engine.layout import COLLECTED, FULL, NEW_LEAF, SPOILED, UNSUPPORTED
from tapegrad.errors import CompileError
from tapegrad.tape.locks import leaves as _leaf_lock
from tapegrad.tape.row_objects import RowObjects
from tapegrad.tape.tape import TAPE
from tapegrad.tensors.modes import is_recording_on
from tapegrad.tensors.tracers import of_thread
from tapegrad.tensors.version_counters import VersionCounter

__all__ = [
    "KINDS",
    "ROWS_LEFT",
    "SPOILED",
    "LeafLink",
    "Meta",
    "Tensor",
    "array_of",
    "as_operand",
    "check_adjoint",
    "is_leaf",
    "is_recording",
    "leave_row",
    "make",
    "promote",
    "retry",
    "version_count",
    "wrap",
]

if TYPE_CHECKING:
    from tapegrad.ops import in_place, indexing, operators, products

_FLOAT64 = np.dtype(np.float64)
FLOATS = frozenset({np.dtype(np.float32), _FLOAT64})


MOST_TRACKED = 1 << 40  # elements
ROWS_LEFT: RowObjects[int] = RowObjects()  # of leaves that had other rows before: addresses of their links


class LeafLink(weakref.ref["Tensor"]):
    """How the row of a leaf finds its tensor. The tensor holds the row, so the row must hold the tensor weakly."""

    __slots__ = ("data", "hooks", "of_call", "turned")
    data: Any
    of_call: bool  # set when a driver made the leaf for one call, so that nobody else can ask for its gradient
    turned: bool  # set when the tensor got another shape in place, so that the row is no longer its own
    hooks: Any  # set when the tensor that had them died


class Meta:
    """What only some tensors have."""

    __slots__ = (
        "base",
        "given_as",
        "grad",
        "hooks",
        "leaf",
        "left",
        "made_without_grad",
        "one_of_many",
        "output_nr",
        "replay",
        "retained",
        "version",
        "views",
    )

    given_as: type  # set where NumPy's meaning of what has no dimensions is another class than that of its dtype's numbers

    def __init__(self) -> None:
        self.grad: Tensor | None = None
        self.leaf: LeafLink | None = None
        self.left = False  # whether the leaf had other rows before
        self.version: VersionCounter | None = None
        self.base: Tensor | None = None  # the tensor that this one is a view of
        self.replay: Any = None  # how to take the view again
        self.views: list[weakref.ref[Tensor]] | None = None
        self.one_of_many = ""  # name of the multi-output operation that made this view
        self.made_without_grad = ""  # in which mode a view was made
        self.output_nr = 0
        self.retained: Any = None
        self.hooks: Any = None  # of the tensor's latest row that has any


class Tensor:
    """An array whose operations can be differentiated.

    Make tensors with `tapegrad.tensor`, `tapegrad.zeros` and the other factories. The interface is PyTorch's.

    Attributes
    ----------
    shape : tuple of int
    dtype : numpy.dtype
    requires_grad : bool
        Whether operations on this tensor are recorded.
    grad : Tensor or None
        Gradient accumulated by `backward`, of the tensor's shape and dtype.
    grad_fn : object or None
        View of the recorded operation that made this tensor.

    Examples
    --------
    >>> x = tg.tensor([1.0, 2.0], requires_grad=True)
    >>> (x * x).sum().backward()
    >>> x.grad
    tensor([2., 4.])
    """

    __slots__ = ("__weakref__", "_data", "_meta", "_row")
    _data: Any
    _row: int
    _meta: Meta | None
    __array_priority__ = 1000.0  # sparse matrices on the left leave the operation to us
    _numbers_are_values: ClassVar[bool] = False  # whether what a number is reshaped to is a copy, and not a view on its memory

    def __new__(cls, *args: Any, **kwargs: Any) -> Tensor:
        """An untracked tensor, without data until the class's initialiser sets it."""
        self = _new(cls)
        self._row = 0
        self._meta = None
        return self

    def __del__(self, tape: Any = TAPE, address: int = TAPE.address) -> None:
        row = self._row
        if row > 0:
            tape.drop(address, row)

    @property
    def _numba_type_(self) -> Any:
        """What Numba asks for where a compiled function is called with a tensor."""
        raise CompileError(
            "a function that numba.njit compiled was called with a tensor, of which compiled code knows nothing; write "
            "tg.njit_op(f)(x) for f(x), which makes an operation of it, or give the compiled function itself to the driver"
        )

    if TYPE_CHECKING:
        grad: Any
        data: Any
        requires_grad: bool

        def __init__(self, data: Any = ()) -> None: ...
        def __getattr__(self, name: str) -> Any: ...

        # The operators, where they are defined; `surface.tensor_methods` attaches them.
        __add__ = __radd__ = operators.add
        __sub__, __rsub__ = operators.sub, operators.rsub
        __mul__ = __rmul__ = operators.mul
        __truediv__, __rtruediv__ = operators.truediv, operators.rtruediv
        __mod__, __rmod__ = operators.mod, operators.rmod
        __pow__, __rpow__ = operators.power, operators.rpower
        __neg__, __abs__ = operators.neg, operators.absolute
        __matmul__ = products.matmul
        __getitem__, __setitem__ = indexing.getitem, in_place.setitem

        # These are made by `ops.comparing`, and decline what is no operand (`surface.tensor_methods`).
        def __lt__(self, other: Any) -> Tensor: ...
        def __le__(self, other: Any) -> Tensor: ...
        def __gt__(self, other: Any) -> Tensor: ...
        def __ge__(self, other: Any) -> Tensor: ...
        def __and__(self, other: Any) -> Tensor: ...
        def __or__(self, other: Any) -> Tensor: ...
        def __invert__(self) -> Tensor: ...


KINDS: set[type] = {Tensor}  # classes of which an operation needs no more than data and row; others join it
_new: Any = object.__new__  # another one while a thread is in inference mode


def make(data: Any, row: int) -> Tensor:
    """A tensor around `data` (owned) with a handle."""
    t = _new(Tensor)
    t._data = data
    t._row = row
    t._meta = None
    return t


def wrap(data: Any) -> Tensor:
    """An untracked tensor around an array (not copied), a NumPy scalar or a float."""
    if type(data) is not float:
        if not issubclass(type(data), np.ndarray):
            data = float(data) if isinstance(data, float) else np.asarray(data)
        elif type(data) is not np.ndarray:
            data = data.view(np.ndarray)
    return make(data, 0)


def array_of(t: Tensor) -> np.ndarray:
    """The data as an array, which must not be written to.

    Raises
    ------
    TypeError
        If `t` is not a tensor.
    """
    try:
        data = t._data
    except AttributeError:
        raise TypeError(f"expected a Tensor, but got {type(t).__name__}. Use tg.tensor(...).") from None
    return np.array(data) if type(data) is float else data


def promote(t: Tensor) -> np.ndarray:
    """The data as an array that the tensor shares from now on."""
    data = t._data
    if type(data) is float:
        data = t._data = np.array(data)
    return data


def as_operand(value: Any, like: Tensor | None = None) -> Tensor:
    """An operand as a tensor; numbers and arrays become untracked ones.

    Raises
    ------
    TypeError
        For anything else (strings, lists, None), and for dtypes that tensors cannot have.
    OverflowError
        For integers beyond float64.
    """
    if isinstance(value, Tensor):
        return value
    operand = _as_constant(value)
    if TAPE.tracers and (tracer := of_thread.tracer) is not None:
        tracer.constant(operand, value)
    return operand


def _as_constant(value: Any) -> Tensor:
    kind = type(value)
    if kind is float:
        return make(value, 0)
    if kind is ndarray and value.dtype is _FLOAT64:
        if not value.ndim:
            return make(value.item(), 0)
        return make(value.copy("K") if is_recording() else value, 0)  # for the reason below
    if issubclass(type(value), float):
        return make(float(value), 0)
    if isinstance(value, int):
        # What int64 cannot hold counts as a float, here and in promotion.
        return wrap(np.asarray(value)) if is_long(value) else make(float(value), 0)
    if issubclass(type(value), (np.bool_, np.number)):
        return wrap(plain_array(value))
    if issubclass(type(value), np.ndarray):
        array = plain_array(value)
        # The operation may keep its operand for the derivative, and the caller may write into the array before that is taken.
        # `newbyteorder` makes another dtype object even of a native one, which what looks for float64 by identity would miss.
        native = array.dtype if array.dtype.isnative else array.dtype.newbyteorder("=")
        return wrap(array.astype(native, copy=is_recording()))
    raise TypeError(
        f"unsupported operand: expected a Tensor, a number or a NumPy array, but got {type(value).__name__}"
        + (f" {value!r}" if isinstance(value, str) else "")
        + ". Convert it with tg.tensor(...)."
    )


def is_recording() -> bool:
    """Whether this thread records."""
    return not TAPE.recording_off or is_recording_on()


def check_adjoint(size: int) -> None:
    """Raise if so many elements cannot have an adjoint: expanded memory may pretend to any size, adjoints may not.

    With more than that in each of many rows, the places in the buffer of adjoints would no longer fit in 64 bits.

    Raises
    ------
    RuntimeError
        Names the number of elements.
    """
    if size > MOST_TRACKED:
        raise RuntimeError(
            f"a tensor of {size} elements cannot be differentiated: its gradient would take {8 * size / 2**40:.0f} TiB. "
            "Expand less of it, or work on detach()."
        )


def is_leaf(t: Tensor) -> bool:
    """Whether no recorded operation made this tensor."""
    return t._row in (0, -1) or (t._meta is not None and t._meta.leaf is not None)


def register_leaf(t: Tensor) -> None:
    """Give a leaf its row; done when it is first used."""
    meta = meta_of(t)
    if t._row == SPOILED:
        raise RuntimeError(
            f"Output {meta.output_nr} of {meta.one_of_many} is a view and its base or another view of its base has been modified "
            "inplace. This view is the output of a function that returns multiple views. Such functions do not allow their outputs "
            "to be used after that; take the views again."
        )
    if t._row == COLLECTED:
        raise RuntimeError(
            "The garbage collector found this tensor in a reference cycle that nobody held, and the graph behind it is gone. A "
            "destructor of another object in the cycle, or a hook, uses it all the same: let that hold tensor.detach(), or hold "
            "the tensor elsewhere."
        )
    with _leaf_lock:
        if t._row > 0:
            return  # another thread was first
        register_new_leaf(t, meta)
        if meta.hooks is not None:  # the leaf had another row before
            meta.hooks.move(t._row)


def register_new_leaf(t: Tensor, meta: Meta) -> LeafLink:
    """The same for a leaf that no other thread knows yet; how its row finds it."""
    data = t._data
    link = LeafLink(t)
    link.data = data
    record = TAPE.leaf_row
    if type(data) is not float:
        if data.size > MOST_TRACKED:
            check_adjoint(data.size)
        record = TAPE.array_leaf_row
    while (handle := record(TAPE.address, id(link), id(data))) <= 0:
        TAPE.make_room(8, 128)
    meta.leaf = link
    t._row = handle
    return link


def leave_row(t: Tensor, row: int) -> None:
    """Let a leaf be untracked (`row` 0), or be registered anew when it is used again (-1).

    Graphs that were recorded before still end in the row that it had.
    """
    meta = t._meta
    if t._row > 0 and meta is not None:
        if meta.leaf is not None:
            with TAPE.claim():
                ROWS_LEFT.set(TAPE.slot(t._row), id(meta.leaf))
            meta.left, meta.leaf = True, None
        t._row, before = row, t._row
        TAPE.drop(TAPE.address, before)
    else:
        t._row = row


def meta_of(t: Tensor) -> Meta:
    """The extra attributes of a tensor, made when first needed."""
    meta = t._meta
    if meta is None:
        meta = t._meta = Meta()
    return meta


def version_count(t: Tensor) -> int:
    """How often the tensor's memory was written in place."""
    return 0 if t._meta is None or t._meta.version is None else t._meta.version.count


def retry(call: Any, operands: tuple[Tensor, ...], rows: int = 8, words: int = 512) -> int:
    """Repeat a refused recording after doing what it asked for.

    Parameters
    ----------
    call : callable
        Makes the recording call with the operands' present handles and returns its answer.
    operands : tuple of Tensor
        Those that may be leaves without a row.
    rows, words : int
        Room that the call needs at most.
    """
    while True:
        answer = int(call())
        if answer > 0 or answer == UNSUPPORTED:
            return answer
        if answer == NEW_LEAF:
            for t in operands:
                if t._row < 0:
                    register_leaf(t)
        elif answer == FULL:
            TAPE.make_room(rows, words)
        else:  # pragma: no cover - the engine has no other answers
            raise RuntimeError(f"the recording engine answered {answer}")
