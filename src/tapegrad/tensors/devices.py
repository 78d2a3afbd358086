"""Where tensors are: the CPU, as an object that scripts written for PyTorch can ask for, compare and hand on."""

from __future__ import annotations

from typing import Any

__all__ = ["CPU", "check_device", "device"]


class device:  # noqa: N801 - PyTorch's name
    """A place for tensors. There is one, the CPU.

    Parameters
    ----------
    type : str or device
        ``"cpu"``, with or without a number (``"cpu:0"``), or a device.
    index : int, optional
        The number, where `type` has none.

    Attributes
    ----------
    type : str
        ``"cpu"``.
    index : int or None

    Raises
    ------
    RuntimeError
        For other devices.
    TypeError
        If `type` is neither text nor a device.

    Examples
    --------
    >>> tg.device("cpu")
    device(type='cpu')
    >>> tg.ones(2).device == tg.device("cpu")
    True
    """

    __slots__ = ("index", "type")
    type: str
    index: int | None

    def __init__(self, type: Any, index: int | None = None) -> None:
        if isinstance(type, device):
            if index is not None:
                raise TypeError(f"device(): {type!r} is a device already, so it takes no index")
            type, index = type.type, type.index
        if not isinstance(type, str):
            raise TypeError(f"device(): argument 'type' must be str, not {_class_name(type)}; write tg.device('cpu')")
        name, colon, number = type.partition(":")
        if name != "cpu":
            raise RuntimeError(f"tapegrad runs on the CPU only, so there is no device {type!r}; write 'cpu', or leave it out")
        if colon:
            if index is not None:
                raise RuntimeError(f"type (string) must not include an index because index was passed explicitly: {type}")
            if not (number.isascii() and number.isdigit()) or number != str(int(number)):
                raise RuntimeError(f"Invalid device string: {type!r}")
            index = int(number)
        if index is not None and (isinstance(index, bool) or not isinstance(index, int)):
            raise TypeError(f"device(): argument 'index' must be int, not {_class_name(index)}")
        if index is not None and index < 0:
            raise RuntimeError(f"Device index must not be negative, but got {index}")
        object.__setattr__(self, "type", name)
        object.__setattr__(self, "index", index)

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"attribute {name!r} of device objects is not writable")

    def __eq__(self, other: object) -> bool:
        return isinstance(other, device) and (self.type, self.index) == (other.type, other.index)

    def __hash__(self) -> int:
        return hash((self.type, self.index))

    def __repr__(self) -> str:
        return f"device(type={self.type!r}{'' if self.index is None else f', index={self.index}'})"

    def __str__(self) -> str:
        return self.type if self.index is None else f"{self.type}:{self.index}"

    def __reduce__(self) -> tuple[Any, ...]:
        return device, (self.type, self.index)


def _class_name(value: object) -> str:
    return type(value).__name__


CPU = device("cpu")


def check_device(given: object) -> None:
    """Raise unless an argument ``device=`` is left out or names the CPU.

    Raises
    ------
    RuntimeError, TypeError
        As `device` does.
    """
    if given is not None and given != "cpu":
        device(given)
