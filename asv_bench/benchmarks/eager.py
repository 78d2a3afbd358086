"""Time and memory of gradients recorded operation by operation from Python."""

from __future__ import annotations

import statistics
import time
from typing import Any

from .workloads import LIBRARIES, PHASES, STEPS, build

PEERS = LIBRARIES[1:]


class Gradient:
    """Forward and backward together, one call."""

    params = (list(STEPS), list(LIBRARIES))
    param_names = ("workload", "library")

    def setup(self, workload: str, library: str) -> None:
        self.step = build(STEPS[workload], library)
        self.step()  # compiles

    def time_gradient(self, workload: str, library: str) -> None:
        self.step()


class GradientRatio:
    """How many times longer a peer takes, in turns within one process."""

    params = (list(STEPS), list(PEERS))
    param_names = ("workload", "peer")
    unit = "x"

    def setup(self, workload: str, peer: str) -> None:
        self.ours = build(STEPS[workload], "tapegrad")
        self.theirs = build(STEPS[workload], peer)
        self.ours()
        self.theirs()

    def track_time_ratio(self, workload: str, peer: str) -> float:
        ours, theirs = [], []
        for _ in range(5):
            ours.append(_seconds(self.ours))
            theirs.append(_seconds(self.theirs))
        return statistics.median(theirs) / statistics.median(ours)

    track_time_ratio.unit = "x"  # type: ignore[attr-defined]


class Phase:
    """Recording and the sweep apart, for chains of many small operations."""

    params = (list(PHASES), list(LIBRARIES))
    param_names = ("workload", "library")
    number = 1  # a sweep uses its graph up

    def setup(self, workload: str, library: str) -> None:
        self.phases = build(PHASES[workload], library)
        self.phases.record()
        self.phases.sweep()  # compiles
        self.phases.release()


class Record(Phase):
    """The forward pass."""

    def time_record(self, workload: str, library: str) -> None:
        self.phases.record()


class Sweep(Phase):
    """The backward pass."""

    def setup(self, workload: str, library: str) -> None:
        super().setup(workload, library)
        self.phases.record()

    def time_sweep(self, workload: str, library: str) -> None:
        self.phases.sweep()


class Peak:
    """Largest resident memory of a process that takes one gradient of many elements."""

    params = (["W3", "W5 n=1e+07"], list(LIBRARIES))
    param_names = ("workload", "library")

    def setup(self, workload: str, library: str) -> None:
        self.step = build(STEPS[workload], library)

    def peakmem_gradient(self, workload: str, library: str) -> None:
        self.step()


def _seconds(step: Any) -> float:
    calls, elapsed = 0, 0.0
    start = time.perf_counter()
    while elapsed < 0.01:
        step()
        calls += 1
        elapsed = time.perf_counter() - start
    return elapsed / calls
