"""How often memory was written in place, and when."""

from __future__ import annotations

__all__ = ["VersionCounter"]


class VersionCounter:
    """How often a piece of memory was written in place; shared by all tensors on it."""

    __slots__ = ("count", "times")

    def __init__(self) -> None:
        self.count = 0
        self.times: list[int] = []  # the tape's clock at the latest writes

    def note(self, clock: int) -> None:
        """Count a write."""
        self.count += 1
        self.times.append(clock)
        if len(self.times) > 64:  # only messages need them
            del self.times[:32]

    def before(self, serial: int) -> int:
        """The version when the row with this serial number was recorded."""
        return self.count - sum(time >= serial for time in self.times)
