"""Names of what machine code is asked for: a driver's need, with the number of vectors that it gives."""

from __future__ import annotations

from typing import Any

__all__ = ["LATER", "kind_of", "split_kind"]

LATER = frozenset(["jvp", "vjp"])  # needs of drivers whose vectors are known later: names alone


def kind_of(needs: Any) -> tuple[str, list[Any]]:
    """What a driver needs (`finished_call`), with the number of directions if there are several, and these."""
    if type(needs) is str:
        return needs, []
    what, *along = needs
    return what if len(along) == 1 else f"{what} {len(along)}", along


def split_kind(kind: str) -> tuple[str, int]:
    """The same in parts: what it is, and of how many directions."""
    what, _, count = kind.partition(" ")
    return what, int(count or what in ("jvp", "value_jvp", "hvp"))
