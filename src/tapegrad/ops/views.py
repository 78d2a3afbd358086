"""Views: tensors on the memory of another one, and what happens to them when that memory is written.

A view is a strided linear map of its base, read off by taking the same view of the base's array. The base knows its views
(weakly); when one of the family is written in place, the others get new rows at once, so no operator has to look whether its
operand is still up to date.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any
from weakref import ref

import numpy as np

from tapegrad.recording.strided_maps import reshape_copy
from tapegrad.tape.tape import TAPE
from tapegrad.tensors.inference_tensors import InferenceTensor, make_like
from tapegrad.tensors.modes import is_inference_mode_enabled, is_recording_on
from tapegrad.tensors.tensor import Meta, Tensor, is_recording, make, meta_of, promote, retry
from tapegrad.tensors.tracers import computed
from tapegrad.tensors.version_counters import VersionCounter

__all__ = [
    "Replay",
    "alias",
    "check_memory",
    "is_strided",
    "look_through",
    "part",
    "record_view",
    "separate",
    "split_views",
    "use_compiled",
    "version_of",
    "view",
]

_ADDRESS = TAPE.address
Take = Callable[[Any], Any]
HUGE = 1 << 30  # elements
_FLOAT64 = np.dtype(np.float64)


class Replay:
    """How a view of a view is taken from the base: a chain, so that it costs no more than a view."""

    __slots__ = ("before", "take")

    def __init__(self, before: Take, take: Take) -> None:
        self.before, self.take = before, take

    def __call__(self, array: np.ndarray) -> np.ndarray:
        """The view of an array of the base's shape."""
        takes = []
        step: Take = self
        while type(step) is Replay:
            takes.append(step.take)
            step = step.before
        array = step(array)
        for take in reversed(takes):
            array = take(array)
        return array


def check_memory(data: np.ndarray, repeats: bool = False) -> None:
    """Raise unless the elements of an array may be written.

    Parameters
    ----------
    repeats : bool
        Whether they may share memory: all of them get one value.

    Raises
    ------
    RuntimeError
        If elements share memory, or the memory is read-only.
    """
    if not repeats and not data.flags.c_contiguous and _overlaps(data):
        raise RuntimeError(
            "unsupported operation: more than one element of the written-to tensor refers to a single memory location. "
            "Please clone() the tensor before performing the operation."
        )
    if not data.flags.writeable:
        raise RuntimeError("the tensor's memory is read-only (it came from a read-only array); clone() it before writing")


def _overlaps(data: np.ndarray) -> bool:
    """Whether two elements of an array share bytes."""
    reach = 0
    for stride, extent in sorted((abs(s), n) for s, n in zip(data.strides, data.shape, strict=True) if n > 1):
        if stride == 0:
            return True
        if stride < reach + data.itemsize:  # so it seems, but the places may also lie between each other
            places = np.zeros(data.shape, np.int64)
            for d, n in enumerate(data.shape):
                places += np.arange(n).reshape(-1, *(1,) * (data.ndim - d - 1)) * data.strides[d]
            return bool(np.diff(np.sort(places, axis=None)).min() < data.itemsize)
        reach += stride * (extent - 1)
    return False


def version_of(t: Tensor) -> VersionCounter:
    """The version counter of a tensor's memory."""
    meta = meta_of(t)
    if meta.version is None:
        meta.version = VersionCounter()
    return meta.version


def record_view(x: Tensor, name: str, take: Take, z: np.ndarray) -> int:
    """Row of the view `z` of `x`, whose data are an array."""
    return _record_taken(x, name, take, z, z)


def _record_taken(x: Tensor, name: str, take: Take, taken: np.ndarray, z: np.ndarray) -> int:
    """Row of `z`, whose elements are those of the view `taken`."""
    base = a = x._data
    # The map is in terms of x's elements in C order; where x is strided, a stand-in of its shape is viewed instead.
    if not a.flags.c_contiguous:
        base = _stand_in(a.shape, a.size)
        taken = take(base)
    number = TAPE.name_number(name)
    row = TAPE.view_row(_ADDRESS, number, x._row, id(a), id(base), id(taken), id(z))
    return row if row > 0 else _row_after_refusal(x, number, a, base, taken, z)


def _row_after_refusal(x: Tensor, number: int, a: np.ndarray, base: np.ndarray, taken: np.ndarray, z: np.ndarray) -> int:
    """A function of its own, because variables of a closure would cost every view a fifth of a microsecond."""
    return retry(lambda: TAPE.view_row(_ADDRESS, number, x._row, id(a), id(base), id(taken), id(z)), (x,))


def _stand_in(shape: tuple[int, ...], size: int) -> np.ndarray:
    """An array of a shape, in C order, whose elements are never looked at."""
    if size < HUGE:
        return np.empty(shape, np.int8)
    # An expanded tensor may have more elements than there is memory: all of them stand for one byte then.
    steps = [size]
    for extent in shape:
        steps.append(steps[-1] // extent)
    return np.lib.stride_tricks.as_strided(np.zeros(1, np.int8), shape, steps[1:], writeable=False)


def view(x: Tensor, name: str, take: Take) -> Tensor:
    """A view of `x`.

    Parameters
    ----------
    name : str
        Node name.
    take : callable
        Takes the NumPy view of an array of x's shape.
    """
    seen = _in_one_call(x, TAPE.name_number(name), take)
    if seen is not None:
        return seen
    data = x._data
    if x._numbers_are_values and (type(data) is float or not data.ndim) and not is_written(x):
        return _of_number(x, name, take)
    if type(data) is float:
        number, data = make(data, 0), promote(x)
        if TAPE.tracers and not x._row:
            computed(np.asarray, (number,), {}, x)
    z = take(data)
    recording = not TAPE.recording_off or is_recording_on()
    t = make_like(x, z, record_view(x, name, take, z) if x._row and recording else 0)
    if type(t) is not InferenceTensor:
        own = _adopt(t, x, take, recording)
        if x._meta is not None and x._meta.one_of_many:
            own.one_of_many = name.removesuffix("Backward0")
    return computed(_taken, (x, take), {}, t) if TAPE.tracers and not t._row else t


def _left_to_python(x: Tensor, name: int, take: Take) -> None:
    """There is no compiled form yet."""


_in_one_call: Any = _left_to_python


def use_compiled(function: Any) -> None:
    """Let views be taken by a compiled function, which gives None for what is not usual."""
    global _in_one_call
    _in_one_call = function


def part(x: Tensor, name: str, take: Take, copies: bool) -> Tensor:
    """The elements of a view of `x`, as a result of one operation that is no view.

    Parameters
    ----------
    name, take
        As for `view`.
    copies : bool
        Whether they get memory of their own; else the result is for an operation that saves nothing of it, and for nobody else.
    """
    data = x._data
    if type(data) is float or TAPE.tracers or not (x._row and is_recording()):
        seen = view(x, name, take)
        return reshape_copy(seen, "CloneBackward0", promote(seen).copy()) if copies else seen
    found = take(data)
    z = found.copy() if copies else found
    return make(z, _record_taken(x, name, take, found, z))


def is_written(x: Tensor) -> bool:
    """Whether writing into what has no dimensions, and makes numbers of what is read of it, is seen by others: it is an array then.

    What a driver was given is none, since a function cannot write into its arguments.
    """
    meta = x._meta
    return meta is not None and (meta.base is not None or (meta.leaf is None and getattr(meta, "given_as", None) is np.ndarray))


def _of_number(x: Tensor, name: str, take: Take) -> Tensor:
    """What is taken of a number that is a value: a copy, as NumPy's numbers give."""
    a = np.array(x._data)
    z = take(a)
    value = z.item() if not z.ndim and z.dtype == _FLOAT64 else z
    row = 0
    if x._row and is_recording():
        number = TAPE.name_number(name)
        row = TAPE.view_row(_ADDRESS, number, x._row, id(a), id(a), id(z), id(value))
        if row <= 0:
            row = retry(lambda: TAPE.view_row(_ADDRESS, number, x._row, id(a), id(a), id(z), id(value)), (x,))
    t = make(value, row)
    return computed(_taken, (x, take), {}, t) if TAPE.tracers and not row else t


def _taken(values: Any, take: Take) -> Any:
    """The view of values that have no row."""
    return take(np.asarray(values))


def _adopt(t: Tensor, x: Tensor, take: Take, recording: bool) -> Meta:
    """Make `t`, which is new, known as a view of x (or of what x is a view of); its meta.

    A view may be written only where what it is a view of may be.
    """
    own = t._meta = Meta()
    theirs = x._meta
    if theirs is None:
        theirs = x._meta = Meta()
    if not recording or theirs.made_without_grad:
        own.made_without_grad = theirs.made_without_grad or _mode()
    if theirs.version is None:
        theirs.version = VersionCounter()
    own.version = theirs.version
    base = theirs.base
    if base is None:
        own.base, own.replay = x, take
    else:
        own.base, own.replay = base, Replay(theirs.replay, take)
        theirs = meta_of(base)
    views = theirs.views
    if views is None:
        theirs.views = [ref(t)]
        return own
    views.append(ref(t))
    count = len(views)
    if count & (count - 1) == 0 and count >= 8:  # at powers of two, so that dead entries cost a constant each
        look_through(theirs)
    return own


def look_through(meta: Meta) -> None:
    """Forget the views that are dead."""
    meta.views = [link for link in meta.views or () if link() is not None]


def _mode() -> str:
    """The mode of this thread, which does not record."""
    return "inference" if is_inference_mode_enabled() else "no_grad"


def alias(x: Tensor, shares_version: bool) -> Tensor:
    """An untracked tensor on the same memory: `detach` shares the version counter, `data` does not."""
    t = make_like(x, promote(x), 0)
    if shares_version:
        meta_of(t).version = version_of(x)
    return t


def split_views(x: Tensor, name: str, takes: Sequence[Take]) -> tuple[Tensor, ...]:
    """Views that are the outputs of one operation: they share its node."""
    recording = is_recording()
    node = _identity(x, name) if x._row and recording else x
    if node is not x:
        TAPE.number_output(TAPE.address, node._row, len(takes))
    outputs, whole, tracked = [], promote(x), node is not x and node._row != 0
    in_order, label = whole.flags.c_contiguous, TAPE.name_number(name)
    for number, take in enumerate(takes):
        z, row = take(whole), 0
        if tracked and in_order:
            row = TAPE.view_row(_ADDRESS, label, node._row, id(whole), id(whole), id(z), id(z))
        if tracked and row <= 0:
            row = record_view(node, name, take, z)
        t = make_like(x, z, row)
        outputs.append(t)
        if row > 0:
            TAPE.number_output(TAPE.address, row, number)
        if type(t) is InferenceTensor:
            continue
        meta = _adopt(t, x, take, recording)
        meta.output_nr, meta.one_of_many = number, name.removesuffix("Backward0")
    return tuple(outputs)


def _identity(x: Tensor, name: str) -> Tensor:
    """The row that stands for a multi-output operation: the whole of `x`."""
    a = promote(x)
    return make(a, record_view(x, name, lambda array: array[...], a[...]))


def is_strided(replay: Take, shape: tuple[int, ...]) -> bool:
    """Whether the view is one in an array of `shape` in C order too, and not only in the order that its base has in memory."""
    whole = np.empty(shape, np.int8)
    part = replay(whole)
    return not part.size or np.may_share_memory(part, whole)


def separate(t: Tensor) -> None:
    """Cut a tensor that gets other memory off the family of views on its old memory."""
    meta = t._meta
    if meta is None:
        return
    meta.base = meta.replay = meta.version = None
    for link in meta.views or ():
        view_of_it = link()
        if view_of_it is not None and view_of_it._meta is not None:
            view_of_it._meta.base = view_of_it._meta.replay = None
    meta.views = None
