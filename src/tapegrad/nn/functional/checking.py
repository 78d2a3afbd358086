"""What is no tensor where one is needed."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import Any

from tapegrad.tensors.tensor import Tensor

__all__ = ["checked"]

_TENSORS = ("Tensor", "Tensor | None")


def checked(function: Callable[..., Any]) -> Callable[..., Any]:
    """The function, with PyTorch's error for arguments that should be tensors and are none.

    The arguments are looked at after the function has failed over them, so calls that are right cost nothing more.
    """
    annotations = function.__annotations__
    wanted = [(k, name) for k, name in enumerate(annotations) if annotations[name] in _TENSORS and name != "return"]

    @functools.wraps(function)
    def call(*args: Any, **kwargs: Any) -> Any:
        try:
            return function(*args, **kwargs)
        except (AttributeError, TypeError) as error:
            if isinstance(error, TypeError) and not str(error).startswith("expected a Tensor"):
                raise  # said better where it was found
            for k, name in wanted:
                value = args[k] if k < len(args) else kwargs.get(name)
                if not isinstance(value, Tensor) and (value is not None or annotations[name] == "Tensor"):
                    raise TypeError(
                        f"{function.__name__}(): argument '{name}' (position {k + 1}) must be Tensor, not "
                        f"{type(value).__name__}. Use tg.tensor(...)."
                    ) from None
            raise

    call.__module__ = __package__  # where this one is found, by pickling too
    return call
