"""Loops that compute much for each element, once more for processors with wider registers.

Numba compiles for one processor in a process, so another process does it meanwhile: ``python -m
tapegrad.library_build.wide_loops FAMILY FILE`` writes LLVM code whose functions say themselves what they are for. A process chooses
when it loads the library. Both forms have the same bits: no operation is fused, and none is reordered.
"""

from __future__ import annotations

import contextlib
import os
import re
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

from tapegrad.kernels import library
from tapegrad.kernels.generated_text import whole_source
from tapegrad.library_build.glue import HELPERS, Function
from tapegrad.library_build.machine_code import compiled, defined_by, optimised, renamed
from tapegrad.library_build.processes import written_meanwhile

__all__ = ["declared", "made_meanwhile"]

FEATURES = {"x86-64-v4": "-prefer-256-bit"}  # LLVM would leave the wide registers to who asks for them
GROUP = 1000000  # number of the attributes; LLVM counts its own from 0


def declared(functions: list[Function]) -> list[Function]:
    """The wide forms of functions, as the other process calls them."""
    names = [library.WIDE + function.name for function in functions]
    return [function._replace(name=name, symbol=name) for function, name in zip(functions, names, strict=True)]


@contextlib.contextmanager
def made_meanwhile(processor: str) -> Iterator[Callable[[], list[str]]]:
    """What waits for the LLVM code that another process makes for a family of processors; none if there are no wider registers."""
    wider = library.WIDER.get(processor)
    if wider is None:
        yield list
        return
    with written_meanwhile("wide_loops", wider) as code:
        yield lambda: [code()]


def _code(family: str) -> str:
    """LLVM code of all wide forms, optimised."""
    features = FEATURES[family]
    os.environ |= {"NUMBA_CPU_NAME": family, "NUMBA_CPU_FEATURES": features}
    functions, codes = compiled({name: lazy for name, lazy in defined_by(whole_source()).items() if lazy.wide})
    names = [function.symbol for function in declared(functions)]
    whole, _ = optimised([HELPERS, *renamed(codes, functions, names)], family, names, features)
    text = re.sub(r"^(define .*) \{$", rf"\1 #{GROUP} {{", str(whole), flags=re.MULTILINE)
    return f'{text}\nattributes #{GROUP} = {{ "target-cpu"="{family}" "target-features"="{features}" }}\n'


if __name__ == "__main__":
    family, path = sys.argv[1:]
    Path(path).write_text(_code(family))
