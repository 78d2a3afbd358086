"""The later ones of the library's functions, compiled in another process while this one compiles the first.

``python -m tapegrad.library_build.later_functions FILE`` writes their LLVM code in the place of the text that defines them.
"""

from __future__ import annotations

import contextlib
import sys
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path

from tapegrad.compilation import jit
from tapegrad.compilation.jit import Lazy
from tapegrad.library_build.glue import Function
from tapegrad.library_build.machine_code import compiled, defined_by, joined, renamed
from tapegrad.library_build.processes import written_meanwhile

__all__ = ["made_meanwhile", "shared_out"]

FEW = 64  # functions that take less than a process does
FIRST = 0.45  # of the functions, which take longer than the later ones
PREFIX = "later_"

Functions = dict[str, Lazy]


def shared_out(found: Functions) -> tuple[Functions, Functions]:
    """The functions for this process, and those for the other one."""
    names = list(found)
    first = names[: len(names) if len(names) < FEW else int(FIRST * len(names))]
    return {name: found[name] for name in first}, {name: lazy for name, lazy in found.items() if name not in first}


@contextlib.contextmanager
def made_meanwhile(text: str, later: Functions) -> Iterator[tuple[list[Function], Callable[[], Sequence[str]]]]:
    """These functions under the names that they have in the other process's code, and what waits for that."""
    if not later:
        yield [], list
        return
    functions = [Function(name, lazy.signature, PREFIX + name, lazy.is_entry, lazy.nogil) for name, lazy in later.items()]
    with written_meanwhile("later_functions", text=text) as code:
        yield functions, lambda: [code()]


def _code(text: str) -> str:
    jit.takes_all_passes = True
    _, later = shared_out(defined_by(text))
    functions, codes = compiled(later)
    names = [PREFIX + function.name for function in functions]
    return str(joined(renamed(codes, functions, names), names))


if __name__ == "__main__":
    place = Path(sys.argv[1])
    place.write_text(_code(place.read_text()))
