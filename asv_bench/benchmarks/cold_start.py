"""The start of a process: imports and first gradients."""

from __future__ import annotations

import tempfile

from .fresh_process import measure
from .workloads import LIBRARIES


class Start:
    """With whatever compiled code earlier runs left on disk."""

    params = LIBRARIES
    param_names = ("library",)
    timeout = 300

    def setup(self, library: str) -> None:
        measure(library)  # fills disk caches

    def track_import(self, library: str) -> float:
        return measure(library).importing

    def track_import_over_numpy(self, library: str) -> float:
        return measure(library).importing - measure("numpy").importing

    def track_first_gradient(self, library: str) -> float:
        return measure(library).first_gradient

    for _track in (track_import, track_import_over_numpy, track_first_gradient):
        _track.unit = "seconds"  # type: ignore[attr-defined]


class ColdStart:
    """Without the built engine, and with no compiled code on disk."""

    timeout = 300

    def track_first_gradient(self) -> float:
        with tempfile.TemporaryDirectory() as cache:
            return measure("tapegrad", cache).first_gradient

    track_first_gradient.unit = "seconds"  # type: ignore[attr-defined]
