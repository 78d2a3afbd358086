"""The modes of each thread: whether it records operations, and whether it is in inference mode."""

from __future__ import annotations

from tapegrad.tape.locks import OfThread

__all__ = ["Modes", "ThreadModes", "is_grad_enabled", "is_inference_mode_enabled", "is_recording_on", "of_thread"]

Modes = tuple[bool, bool]  # gradient mode, inference mode


class ThreadModes:
    """The modes of one thread, as they are until it sets any."""

    __slots__ = ("enabled", "inference")

    def __init__(self) -> None:
        self.enabled = True
        self.inference = False


class _OfThread(OfThread):
    def __init__(self) -> None:
        self.modes = ThreadModes()


of_thread = _OfThread()


def is_grad_enabled() -> bool:
    """Whether this thread records operations on tracked tensors.

    Examples
    --------
    >>> with tg.no_grad():
    ...     tg.is_grad_enabled()
    False
    """
    return of_thread.modes.enabled


def is_inference_mode_enabled() -> bool:
    """Whether this thread is in inference mode.

    Examples
    --------
    >>> with tg.inference_mode():
    ...     tg.is_inference_mode_enabled()
    True
    """
    return of_thread.modes.inference


def is_recording_on() -> bool:
    """Whether this thread records, which in inference mode it never does."""
    modes = of_thread.modes
    return modes.enabled and not modes.inference
