"""Whole optimisation scripts in fresh processes, with compiled code on disk."""

from __future__ import annotations

from .script_process import measure, problems


class Script:
    """From ``python script.py`` to the answer."""

    params = (problems(), ("tapegrad", "tapegrad compiled"))
    param_names = ("script", "form")
    timeout = 300

    def setup(self, script: str, form: str) -> None:
        measure(script, form)  # fills disk caches

    def track_elapsed(self, script: str, form: str) -> float:
        return measure(script, form).elapsed

    def track_processor(self, script: str, form: str) -> float:
        return measure(script, form).processor

    for _track in (track_elapsed, track_processor):
        _track.unit = "seconds"  # type: ignore[attr-defined]
