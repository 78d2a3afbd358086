"""Which hooks pack the values that operations save now, a setting of each thread.

Recording costs nothing while nobody uses such hooks: operators do not look. As long as a thread does, compiled operators hand
their operands over to their Python forms, and in this thread those come to `tapegrad.recording.apply_rule.record`, which looks.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, ClassVar

import numpy as np

from tapegrad.engine import layout as at
from tapegrad.tape.locks import OfThread
from tapegrad.tape.locks import packing as _lock
from tapegrad.tape.tape import TAPE
from tapegrad.tensors.grad_mode import without_recording
from tapegrad.tensors.operator_dispatch import count, surround
from tapegrad.tensors.tensor import Tensor, version_count

__all__ = ["Packer", "current_packer", "enter", "forbid", "forget_other_threads", "leave", "pack", "unpack"]

_ENTRIES = ("array1", "array2", "array3")


class Packer:
    """A pair of hooks, and how rows are recorded that keep what these make of values.

    Parameters
    ----------
    pack_hook, unpack_hook : callable
        Give an object for a tensor, and the tensor for the object.

    Attributes
    ----------
    keeps_numbers : bool
        Whether rows keep the values of numbers that are written afterwards.
    """

    __slots__ = ("pack_hook", "unpack_hook")
    keeps_numbers: ClassVar[bool] = False

    def __init__(self, pack_hook: Callable[[Tensor], Any], unpack_hook: Callable[[Any], Tensor]) -> None:
        self.pack_hook, self.unpack_hook = pack_hook, unpack_hook

    def record_rule(
        self, opcode: int, operands: tuple[Tensor, ...], data: tuple[Any, ...], z: Any, numbers: Sequence[bool]
    ) -> int | None:
        """Write the row of an elementwise operation with packed values; its handle, None if it saves nothing."""
        raise NotImplementedError

    def record_structural(self, op: Any, inputs: Sequence[Tensor], value: Any, attrs: Any, extra: Sequence[Tensor]) -> int | None:
        """Write the row of a structural operation with packed values; its handle, None if it saves nothing."""
        raise NotImplementedError


class _Thread(OfThread):
    def __init__(self) -> None:
        self.packers: list[Packer] = []
        self.forbidden: str | None = None  # the message for who asks for hooks


_thread = _Thread()


def current_packer() -> Packer | None:
    """The innermost pair of hooks of this thread."""
    packers = _thread.packers
    return packers[-1] if packers else None


def _guarded(entry: Any) -> Any:
    def call(*arguments: Any) -> Any:
        return at.UNSUPPORTED if _thread.packers else entry(*arguments)

    return call


def forbid(message: str | None) -> str | None:
    """Let this thread use no hooks from now on, with an error that says so, or use them again; what was said before.

    Raises
    ------
    RuntimeError
        If hooks are in use.
    """
    if message is not None and _thread.packers:
        raise RuntimeError(message)
    before, _thread.forbidden = _thread.forbidden, message
    return before


def enter(packer: Packer) -> None:
    """Let a pair of hooks pack what this thread saves from now on.

    Raises
    ------
    RuntimeError
        If that is forbidden.
    """
    if _thread.forbidden is not None:
        raise RuntimeError(_thread.forbidden)
    TAPE.load()
    with _lock:
        if not TAPE.packers:
            surround("packers", dict.fromkeys(_ENTRIES, _guarded))
        count("packers", 1)
        _thread.packers.append(packer)


def leave() -> None:
    """End what `enter` began."""
    with _lock:
        _thread.packers.pop()
        if not count("packers", -1):
            surround("packers", None)


def forget_other_threads() -> None:
    """In a forked process, only this thread's hooks count."""
    if TAPE.packers > len(_thread.packers):
        TAPE.packers = len(_thread.packers) + 1
        _thread.packers.append(Packer(lambda t: t, lambda made: made))
        leave()


class Packed:
    """What a hook made of a saved tensor, and how to get the tensor back."""

    __slots__ = ("made", "unpack", "version")

    def __init__(self, made: Any, unpack: Callable[[Any], Tensor]) -> None:
        self.made, self.unpack = made, unpack
        self.version = version_count(made) if isinstance(made, Tensor) else 0


def pack(packer: Packer, tensors: list[Tensor]) -> np.ndarray:
    """Packed tensors as one object, which a row can keep and release like an array.

    Raises
    ------
    RuntimeError
        If a hook writes to a tensor in place.
    """
    packed = np.empty(len(tensors), object)
    for k, t in enumerate(tensors):
        before = version_count(t)
        packed[k] = Packed(without_recording(packer.pack_hook, t), packer.unpack_hook)
        if version_count(t) != before:
            raise RuntimeError(
                "A saved tensor pack hook is modifying its input in place. Tensors provided as input to pack hook can not be "
                "modified by in-place operations as this can lead to unexpected side-effects; write to a clone()."
            )
    return packed


def unpack(packed: Packed) -> Any:
    """Values of a packed tensor.

    Raises
    ------
    TypeError
        If the hook does not return a tensor.
    RuntimeError
        If what was packed is a tensor that has been written in place since.
    """
    if isinstance(packed.made, Tensor) and version_count(packed.made) != packed.version:
        raise RuntimeError(
            "one of the variables needed for gradient computation has been modified by an inplace operation: a pack hook returned "
            "a tensor that was written to afterwards. Return a clone() from it."
        )
    t = packed.unpack(packed.made)
    if not isinstance(t, Tensor):
        raise TypeError(f"Output of saved tensor unpack_hook expected to be a Tensor but got result of type {type(t).__name__}")
    return t._data
