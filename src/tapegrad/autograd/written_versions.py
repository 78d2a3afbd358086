"""Versions of tensors that others have written."""

from __future__ import annotations

from collections.abc import Iterable

from tapegrad.engine.layout import CLOCK
from tapegrad.ops.views import version_of
from tapegrad.tape.tape import TAPE, owner_of
from tapegrad.tensors.inference_tensors import InferenceTensor
from tapegrad.tensors.tensor import Tensor

__all__ = ["increment_version"]


def increment_version(tensor: Tensor | Iterable[Tensor]) -> None:
    """Count a write to the memory of tensors that autograd has not seen, such as one through ``numpy()``.

    A pass that needs a value from before then raises instead of using what was written.

    Parameters
    ----------
    tensor : Tensor or iterable of Tensor
        Inference tensors have no version and are left alone.

    Raises
    ------
    RuntimeError
        If it is neither.

    Examples
    --------
    >>> x = tg.ones(2)
    >>> x.numpy()[0] = 5.0
    >>> tg.autograd.graph.increment_version(x)
    >>> x._version
    1
    """
    try:
        tensors = [tensor] if isinstance(tensor, Tensor) else list(tensor)
    except TypeError:
        tensors = [tensor]
    for t in tensors:
        if not isinstance(t, Tensor):
            raise RuntimeError(f"increment_version expect a Iterable[Tensor] as input, but got {type(t).__name__}")
    for t in tensors:
        if not isinstance(t, InferenceTensor):
            note_write(t)


def note_write(t: Tensor) -> None:
    """Values saved from the tensor's memory before are stale from now on."""
    counter = version_of(t)
    counter.note(int(TAPE.header[CLOCK]))
    if type(t._data) is not float:
        TAPE.note_written(t._data)
        TAPE.versions[owner_of(t._data)] = counter
    elif t._row > 0:
        TAPE.mark_overwritten(TAPE.address, t._row)
