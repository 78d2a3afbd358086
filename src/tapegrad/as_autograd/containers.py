"""Python's containers and types: what is differentiated stands in them as in any others."""

from __future__ import annotations

import builtins
from typing import Any

from tapegrad.as_autograd.tracing import getval

__all__ = ["DictBox", "SequenceBox", "dict", "isinstance", "list", "tuple", "type"]

dict, list, tuple = builtins.dict, builtins.list, builtins.tuple
dict_, list_, tuple_, isinstance_, type_ = builtins.dict, builtins.list, builtins.tuple, builtins.isinstance, builtins.type
DictBox = builtins.dict


class _OfSequences(builtins.type):
    def __instancecheck__(cls, instance: Any) -> bool:
        return builtins.isinstance(instance, (builtins.list, builtins.tuple))


class SequenceBox(metaclass=_OfSequences):
    """What lists and tuples are instances of."""


def isinstance(x: Any, kind: Any) -> bool:
    """Whether a value is of a type; for what is being differentiated, whether its value is."""
    return builtins.isinstance(x, kind) or builtins.isinstance(getval(x), kind)


def type(x: Any) -> Any:
    """The type of a value, also of one that is being differentiated."""
    return builtins.type(getval(x))
