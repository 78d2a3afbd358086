"""Every operation that the tests have a case of, forward and backward, at the sizes of scripts."""

from __future__ import annotations

from .breadth_operations import POINTS, SCRIPT, build, operations

OPERATIONS = {f"{operation.group}: {operation.name}": operation for operation in operations("tapegrad")}


class Breadth:
    params = (list(OPERATIONS), ["tapegrad"])
    param_names = ("operation", "library")

    def setup(self, operation: str, library: str) -> None:
        for point in range(POINTS):
            try:
                self.step, _ = build(library, OPERATIONS[operation], SCRIPT, point)
            except Exception:
                if point == POINTS - 1:
                    raise
            else:
                return

    def time_gradient(self, operation: str, library: str) -> None:
        self.step()
