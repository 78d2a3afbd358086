"""Peak memory of recording a deep chain and sweeping it, in a process of its own; torch beside us on the same graph."""

from __future__ import annotations

import importlib.util
import os
import subprocess
import sys
from pathlib import Path

# Name: elements of the leaf (None: a scalar), operations.
CHAINS = {"scalars": (None, 200_000), "small arrays": (100, 20_000), "large arrays": (100_000, 200)}

_SCRIPT = """
import sys
import numpy as np
from benchmarks.workloads import chain, load

library, elements, operations = sys.argv[1], eval(sys.argv[2]), int(sys.argv[3])
module = load(library)

def run(operations):
    start = 0.3 if elements is None else np.full(elements, 0.3)
    x = module.tensor(start, requires_grad=True)
    y = chain(x, operations, module.sin)
    (y if elements is None else y.sum()).backward()

def peak():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) * 1024

run(8)
with open("/proc/self/clear_refs", "w") as file:
    file.write("5")  # the peak starts anew
before = peak()
run(operations)
print(peak() - before)
"""


def require(library: str) -> None:
    """Raise what tells asv to skip, in a `setup`.

    Raises
    ------
    NotImplementedError
        If a peer is not installed, or the system does not tell peaks.
    """
    if library != "tapegrad" and importlib.util.find_spec(library) is None:
        raise NotImplementedError(f"{library} is not installed")
    if not os.path.exists("/proc/self/clear_refs"):
        raise NotImplementedError("the peak of a process can be read and reset on Linux only")


def peak_bytes(library: str, name: str) -> int:
    """Bytes by which a process grows at most while it records a chain and runs backward.

    Parameters
    ----------
    library : str
    name : str
        A key of `CHAINS`.

    Raises
    ------
    NotImplementedError
        If a peer is not installed, or the system does not tell peaks.
    """
    require(library)
    command = [sys.executable, "-c", _SCRIPT, library, *map(str, CHAINS[name])]
    return int(subprocess.run(command, check=True, text=True, stdout=-1, cwd=Path(__file__).parents[1]).stdout)


class PeakOfAChain:
    """Growth of the process."""

    params = (["tapegrad", "torch"], list(CHAINS))
    param_names = ("library", "chain")
    timeout = 300

    def setup(self, library: str, name: str) -> None:
        require(library)

    def track_peak(self, library: str, name: str) -> int:
        return peak_bytes(library, name)

    track_peak.unit = "bytes"  # type: ignore[attr-defined]


class PeakBesideTorch:
    """Ours over torch's; at most 1 is wanted."""

    params = tuple(CHAINS)
    param_names = ("chain",)
    timeout = 300

    def setup(self, name: str) -> None:
        require("torch")

    def track_ratio(self, name: str) -> float:
        return peak_bytes("tapegrad", name) / peak_bytes("torch", name)

    track_ratio.unit = "ratio"  # type: ignore[attr-defined]


if __name__ == "__main__":
    for name in CHAINS:
        ours, theirs = peak_bytes("tapegrad", name), peak_bytes("torch", name)
        print(f"{name}: {ours / 1e6:.1f} MB, torch {theirs / 1e6:.1f} MB, ratio {ours / theirs:.2f}")
