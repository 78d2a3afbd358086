"""Programs in processes of their own that need not import NumPy and Numba first: they are forked from one that has.

Importing takes a second of a process, most of what many of them do. Nothing of tapegrad is imported before the fork. Processes that
follow each other are forked from different ones, so that they differ in the seed of hashes and in their addresses as any two do.
Most of them compile something, where collections find nothing and take an eighth of the time: there are fewer than usual.
For what a process imports, `fresh_processes` is the place.
"""

from __future__ import annotations

import functools
import itertools
import json
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from fresh_processes import environment

__all__ = ["Forked", "Origin", "run", "start"]

# A process that forks as it is told, one line an order. A child leaves the loop and runs its program as Python does, to the
# interpreter's end; Numba reads its settings anew.
SERVER = """
import gc, importlib, json, os, sys, types
for name in sys.argv[1].split():
    importlib.import_module(name)
if len(sys.argv) > 2:
    sys.path.append(sys.argv[2])
    importlib.import_module("quicker_numba").patch_numba(setattr)
    sys.path.pop()
if "numba" in sys.modules:
    from numba.core.registry import cpu_target
    cpu_target.typing_context.refresh()
    cpu_target.target_context.refresh()
gc.freeze()
gc.set_threshold(50_000, 20, 20)
for line in sys.stdin:
    order = json.loads(line)
    if "wait" in order:
        reply = os.waitstatus_to_exitcode(os.waitpid(order["wait"], 0)[1])
    else:
        reply = os.fork()
        if reply == 0:
            break
    print(reply, flush=True)
else:
    sys.exit()
os.environ.clear()
os.environ.update(order["settings"])
os.chdir(order["folder"])
for number, place in enumerate([os.devnull, order["stdout"], order["stderr"]]):
    os.dup2(os.open(place, os.O_RDWR), number)
sys.path[1:1] = os.environ["PYTHONPATH"].split(os.pathsep)
if "numba" in sys.modules:
    sys.modules["numba.core.config"].reload_config()
def program():
    if os.path.isfile(order["program"]):
        import runpy
        sys.argv = [order["program"], *order["arguments"]]
        sys.path[0] = os.path.dirname(order["program"])
        runpy.run_path(order["program"], run_name="__main__")
    else:
        sys.argv = ["-c", *order["arguments"]]
        main = sys.modules["__main__"] = types.ModuleType("__main__")
        exec(compile(order["program"], "<string>", "exec"), vars(main))
program.__code__ = program.__code__.replace(co_stacksize=(1 << 16) + 64)  # as tapegrad.compilation.compiler_room has it
program()
"""


class Origin:
    """A process that others are forked from, which has imported some modules; in a quicker one Numba is that of `quicker_numba`."""

    def __init__(self, modules: str, *flags: str, quicker: bool = False) -> None:
        settings = environment() | {"OPENBLAS_NUM_THREADS": "1"}  # a process with threads is not to be forked
        settings.pop("PYTHONPATH")
        command = [sys.executable, *flags, "-c", SERVER, modules, *([str(Path(__file__).parent)] if quicker else [])]
        self._process = subprocess.Popen(command, env=settings, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, **order: Any) -> int:
        """Send an order, and return the number that it is answered with."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(order) + "\n")
        self._process.stdin.flush()
        return int(self._process.stdout.readline())


class Forked:
    """A program that was begun, which is a text or the path of one; the settings are all that it has in its environment."""

    def __init__(self, origin: Origin, program: str, settings: dict[str, str], *arguments: str, folder: str | Path = ".") -> None:
        self._origin, self._program = origin, program
        self._printed = [tempfile.NamedTemporaryFile("r", encoding="utf-8") for _ in range(2)]  # noqa: SIM115 - closed when read
        stdout, stderr = (file.name for file in self._printed)
        self._number = origin.ask(
            program=program,
            settings=settings,
            folder=str(Path(folder).absolute()),
            stdout=stdout,
            stderr=stderr,
            arguments=arguments,
        )

    def communicate(self) -> tuple[str, str]:
        """Wait for its end; what it printed, and what it complained of."""
        self.returncode = self._origin.ask(wait=self._number)
        texts = [file.read() for file in self._printed]
        for file in self._printed:
            file.close()
        return texts[0], texts[1]

    def completed(self) -> subprocess.CompletedProcess[str]:
        """Wait for its end, which has to be a good one."""
        stdout, stderr = self.communicate()
        if self.returncode:
            raise subprocess.CalledProcessError(self.returncode, self._program, stdout, stderr)
        return subprocess.CompletedProcess(self._program, self.returncode, stdout, stderr)


@functools.cache
def _origins(quicker: bool) -> Iterator[Origin]:
    return itertools.cycle([Origin("numpy numba", quicker=quicker) for _ in range(2)])


def start(program: str, settings: dict[str, str], *arguments: str, folder: str | Path = ".", quicker: bool = False) -> Forked:
    """Begin it."""
    return Forked(next(_origins(quicker)), program, settings, *arguments, folder=folder)


def run(
    program: str, settings: dict[str, str], *arguments: str, folder: str | Path = ".", quicker: bool = False
) -> subprocess.CompletedProcess[str]:
    """Run it to its end."""
    return start(program, settings, *arguments, folder=folder, quicker=quicker).completed()
