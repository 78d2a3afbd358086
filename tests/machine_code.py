"""Programs that have machine code at once."""

from __future__ import annotations

from typing import Any

import tapegrad as tg


def with_code(function: Any, *arguments: Any, driver: Any = None, is_fast: bool = False) -> Any:
    """A program, or what a driver makes of it, with machine code."""
    program = tg.program(function, fast=is_fast)
    run = program if driver is None else driver(program)
    run(*arguments)
    program.compile()
    run(*arguments)
    run(*arguments)
    assert "machine code, made" in program.traces[0]["machine code"], program.explain()
    return run


def fast(function: Any, *arguments: Any, driver: Any = None) -> Any:
    """One with ``fast=True``."""
    return with_code(function, *arguments, driver=driver, is_fast=True)


def compiled(function: Any, *arguments: Any, argnums: Any = 0) -> tuple[Any, Any]:
    """A program with machine code, and its value and gradient."""
    program = tg.program(function)
    run = tg.value_and_grad(program, argnums)
    run(*arguments)
    program.compile()
    run(*arguments)
    assert [trace["machine code"][:13] for trace in program.traces] == ["machine code,"], program.explain()
    return program, run
