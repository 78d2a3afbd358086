"""Modules of one family over one, two and three spatial dimensions: one text for all of them."""

from __future__ import annotations

import inspect
from typing import Any

from tapegrad.nn.functional.dimensions import WORDS
from tapegrad.nn.module import Module

__all__ = ["Spatial"]


class Spatial(Module):
    """A family of modules, whose members say in how many dimensions they are.

    A member's text is that of the family, with the words of `WORDS` in the place of braces, and its own examples.
    """

    _dimensions = 0

    def __init_subclass__(cls, dimensions: int = 0, **kwargs: Any) -> None:
        super().__init_subclass__(**kwargs)
        if dimensions:  # else a family, or a class of the user's
            cls._dimensions = dimensions
            # Without the indentation, which Python leaves out from 3.13 on.
            family, own = (inspect.cleandoc(text or "") for text in (cls.__base__.__doc__, cls.__doc__))
            if own:  # python -OO leaves texts out
                cls.__doc__ = family.format(**WORDS[dimensions - 1]) + own[own.index("\n\nExamples") :]
