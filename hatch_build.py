"""Build hook: the engine's library is made before a wheel, or an installation in place, is put together.

Numba compiles it in a process of its own, for a family of processors and not for this machine. With ``TAPEGRAD_COMPILE=1``
it is left out, and so it is, with a note, where it cannot be built: the package then compiles the engine where it is used.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

from hatchling.builders.hooks.plugin.interface import BuildHookInterface
from packaging.tags import sys_tags


class EngineBuildHook(BuildHookInterface[Any]):
    """Makes ``src/tapegrad/compiled`` and names the wheel for the platform."""

    PLUGIN_NAME = "custom"

    def initialize(self, version: str, build_data: dict[str, Any]) -> None:
        """Build the library unless the one that is there is current."""
        if self.target_name != "wheel" or os.environ.get("TAPEGRAD_COMPILE", "0") not in ("", "0"):
            return
        source = Path(self.root, "src")
        folder = source / "tapegrad" / "compiled"
        command = [sys.executable, "-m", "tapegrad.library_build", str(folder)]
        modules = os.pathsep.join(
            filter(None, [str(source), os.environ.get("PYTHONPATH")])
        )  # installers set it for their environments
        done = subprocess.run(command, env={**os.environ, "PYTHONPATH": modules}, check=False)
        if done.returncode or not any(folder.glob("engine.*")):
            self.app.display_warning("the engine's library was not built; tapegrad will compile its engine where it is used")
            return
        build_data["artifacts"] += ["src/tapegrad/compiled/engine.*"]
        build_data["pure_python"] = False
        platform = next(tag.platform for tag in sys_tags() if "linux_" not in tag.platform or tag.platform.startswith("linux_"))
        build_data["tag"] = f"cp311-abi3-{platform}"
