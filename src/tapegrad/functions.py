"""The package's functions by their names, for files that are made of them: each is looked up when it is first used."""

from __future__ import annotations

from typing import Any

from tapegrad.deferred import NamesOnDemand, places
from tapegrad.factories import *  # noqa: F403
from tapegrad.public_names import MORE
from tapegrad.surface import PUBLIC

_names = NamesOnDemand(globals(), PUBLIC | places(MORE))


def __getattr__(name: str) -> Any:
    return _names.get(name)
