"""Programs that have machine code at once."""

from __future__ import annotations

from typing import Any

import tapegrad as tg


def compiled(function: Any, *arguments: Any, argnums: Any = 0) -> tuple[Any, Any]:
    """A program with machine code, and its value and gradient."""
    program = tg.program(function)
    run = tg.value_and_grad(program, argnums)
    run(*arguments)
    program.compile()
    run(*arguments)
    assert [trace["machine code"][:13] for trace in program.traces] == ["machine code,"], program.explain()
    return program, run
