"""A process of its own for each library of a benchmark, so that libraries whose threads and memory never meet take turns.

What it runs is a module beside this one with ``operations(library)``, a list of named groups and names, and
``build(library, operation, size, point)``, a step to be timed and the numbers that it found.
"""

from __future__ import annotations

import gc
import importlib
import json
import os
import subprocess
import sys
import time
import warnings
from pathlib import Path
from typing import Any


class Worker:
    """The process as its parent sees it.

    Raises
    ------
    RuntimeError
        If it ends before it is told to.
    """

    def __init__(self, library: str, module: str, size: int) -> None:
        threads = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")
        self._process = subprocess.Popen(
            [sys.executable, "-m", __name__, library, module, str(size)],
            cwd=Path(__file__).parents[1],
            env=os.environ | threads,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )
        self.names: list[tuple[str, str]] = [tuple(pair) for pair in self._read()]

    def prepare(self, number: int, point: int) -> dict[str, Any]:
        """Build an operation at one of its points; the numbers that it found there, or an error."""
        return self._ask(["prepare", number, point])

    def seconds(self, calls: int) -> float:
        """Seconds of the processor a call of what was prepared last."""
        return self._ask(["time", calls])

    def end(self) -> None:
        """Let the process end."""
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait()

    def _ask(self, question: Any) -> Any:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(question) + "\n")
        self._process.stdin.flush()
        return self._read()

    def _read(self) -> Any:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        if not line:
            raise RuntimeError(f"a worker of the benchmark ended with status {self._process.wait()}")
        return json.loads(line)


def main() -> None:
    """Answer what the parent asks, a line each."""
    library, size = sys.argv[1], int(sys.argv[3])
    answers = os.fdopen(os.dup(1), "w")
    os.dup2(2, 1)  # what a library prints is no answer
    warnings.simplefilter("ignore")

    def answer(value: Any) -> None:
        answers.write(json.dumps(value) + "\n")
        answers.flush()

    module = importlib.import_module(sys.argv[2])
    table = module.operations(library)
    gc.freeze()  # a collection need not look at modules
    answer([(operation.group, operation.name) for operation in table])
    step: Any = None
    for line in sys.stdin:
        question, *details = json.loads(line)
        if question == "time":
            answer(_timed(step, details[0]))
            continue
        try:
            step, found = module.build(library, table[details[0]], size, details[1])
        except Exception as exception:  # a case that cannot be larger, or that a peer has not
            answer({"error": f"{type(exception).__name__}: {exception}".splitlines()[0]})
        else:
            answer({"found": [repr(x) for x in found]})


def _timed(step: Any, calls: int) -> float:
    gc.collect()
    gc.disable()
    try:
        start = time.process_time()  # other processes of the machine disturb it less
        for _ in range(calls):
            step()
        return (time.process_time() - start) / calls
    finally:
        gc.enable()


if __name__ == "__main__":
    main()
