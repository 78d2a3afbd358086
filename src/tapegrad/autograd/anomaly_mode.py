"""`detect_anomaly`: which operation's derivative failed or made the first nan, and which line recorded it."""

from __future__ import annotations

import warnings

from tapegrad.autograd.anomalies import Settings
from tapegrad.autograd.recording_stacks import keep_traces
from tapegrad.tape.locks import anomalies as _lock
from tapegrad.tape.tape import TAPE
from tapegrad.tensors.operator_dispatch import count

__all__ = ["detect_anomaly", "is_anomaly_check_nan_enabled", "is_anomaly_enabled", "set_detect_anomaly"]


def is_anomaly_enabled() -> bool:
    """Whether anomalies are looked for; a setting of all threads.

    Examples
    --------
    >>> with tg.autograd.set_detect_anomaly(True):
    ...     tg.is_anomaly_enabled()
    True
    """
    return TAPE.anomalies != 0


def is_anomaly_check_nan_enabled() -> bool:
    """Whether nan counts as an anomaly.

    Examples
    --------
    >>> with tg.autograd.set_detect_anomaly(True, check_nan=False):
    ...     tg.is_anomaly_check_nan_enabled()
    False
    """
    return Settings.check_nan


def _switch(enabled: bool, check_nan: bool) -> tuple[bool, bool]:
    """Set both; what they were."""
    with _lock:
        before = is_anomaly_enabled(), Settings.check_nan
        Settings.check_nan = check_nan
        if enabled and not before[0]:
            TAPE.load()
            count("anomalies", 1)
            keep_traces(True)
        elif before[0] and not enabled:
            keep_traces(False)
            count("anomalies", -1)
        return before


class set_detect_anomaly:  # noqa: N801 - PyTorch's name
    """Switch anomaly detection on or off: at once, and back at the end of the block if used with ``with``.

    Parameters
    ----------
    mode : bool
        Whether to look for anomalies; see `detect_anomaly`.
    check_nan : bool
        Whether nan is one.

    Examples
    --------
    >>> with tg.autograd.set_detect_anomaly(True):
    ...     tg.is_anomaly_enabled()
    True
    >>> tg.is_anomaly_enabled()
    False
    """

    __slots__ = ("_before",)

    def __init__(self, mode: bool, check_nan: bool = True) -> None:
        self._before = _switch(bool(mode), bool(check_nan))

    def __enter__(self) -> None:
        pass

    def __exit__(self, *exception: object) -> None:
        _switch(*self._before)


class detect_anomaly:  # noqa: N801 - PyTorch's name
    """Context in which passes name the operation whose derivative fails or gives nan, and the line that recorded it.

    Operations recorded inside remember the stack of Python. A pass inside walks row by row, and looks at what each operation sends
    to its operands. At an exception, and at the first nan, it warns with the stack on which the operation was recorded, and
    raises; every ``.grad`` and the graph are then as they were.

    Parameters
    ----------
    check_nan : bool
        Whether nan raises. If not, only exceptions are explained.

    Warns
    -----
    UserWarning
        When it is made, because recording takes tens of times longer and passes hundreds of times; and before an error, with the
        stack.

    Notes
    -----
    It holds in all threads. Recording and passes outside of it cost nothing.

    Examples
    --------
    >>> import warnings
    >>> x = tg.tensor([-1.0, 4.0], requires_grad=True)
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("ignore")
    ...     with tg.autograd.detect_anomaly():
    ...         x.sqrt().sum().backward()
    Traceback (most recent call last):
    RuntimeError: Function 'SqrtBackward0' returned nan values in its 0th output.
    """

    __slots__ = ("_before", "_check_nan")

    def __init__(self, check_nan: bool = True) -> None:
        self._check_nan = bool(check_nan)
        self._before: list[tuple[bool, bool]] = []
        warnings.warn(
            "Anomaly Detection has been enabled. This mode will increase the runtime and should only be enabled for debugging.",
            UserWarning,
            stacklevel=2,
        )

    def __enter__(self) -> None:
        self._before.append(_switch(True, self._check_nan))

    def __exit__(self, *exception: object) -> None:
        _switch(*self._before.pop())
