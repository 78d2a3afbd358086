"""The package's functions by their names, for files that are made of them: each is looked up when it is first used."""

from __future__ import annotations

from typing import Any

from tapegrad.deferred import NamesOnDemand, places
from tapegrad.surface.public_names import MORE
from tapegrad.surface.tensor_methods import PUBLIC, public
from tapegrad.tensors.factories import *  # noqa: F403

_names = NamesOnDemand(globals(), places(MORE), PUBLIC, public)


def __getattr__(name: str) -> Any:
    return _names.get(name)
