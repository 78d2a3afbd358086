"""Writes `tape/entry_types.pyi`: the compiled entries that the tape calls, as mypy and editors see them.

    python -m tapegrad.library_build.entry_types

Names, arguments and types are those of the functions that the generated text decorates with `entry`; nothing is compiled for it.
"""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

from tapegrad.engine import SOURCES
from tapegrad.kernels.entries import ENTRIES, OTHER_NAMES
from tapegrad.kernels.generated_text import source

__all__ = ["FILE", "text"]

PACKAGE = Path(__file__).parent.parent
FILE = PACKAGE / "tape" / "entry_types.pyi"

HEAD = """# Compiled entries that the tape calls, by `python -m tapegrad.library_build.entry_types` from their definitions, which
# the comments name. What is called `tape` is the address of the tape's header.

class Entries:
"""
WIDTH = 132
TYPES = {"float64": "float"}  # what else there is are integers and addresses


def _signature(node: ast.FunctionDef) -> str | None:
    """The text given to the decorator `entry`, if the function has it."""
    for decorator in node.decorator_list:
        if isinstance(decorator, ast.Call) and ast.unparse(decorator.func) == "entry":
            return str(ast.literal_eval(decorator.args[0]))
    return None


def _declarations() -> Iterator[tuple[str, str, str]]:
    """Name, arguments with their types, and type of the result, of every entry in the generated text."""
    for node in ast.parse(source()).body:
        signature = _signature(node) if isinstance(node, ast.FunctionDef) else None
        if isinstance(node, ast.FunctionDef) and signature is not None:
            result, _, types = signature.rstrip(")").partition("(")
            pairs = zip((argument.arg for argument in node.args.args), types.split(","), strict=True)
            yield node.name, ", ".join(f"{name}: {TYPES.get(kind, 'int')}" for name, kind in pairs), TYPES.get(result, "int")


def _places() -> dict[str, str]:
    """The module in which each function of the engine is defined."""
    found = {}
    for name in SOURCES:
        for node in ast.parse((PACKAGE / "engine" / f"{name}.py").read_text(encoding="utf-8")).body:
            if isinstance(node, ast.FunctionDef):
                found[node.name] = f"engine.{name}.{node.name}"
    return found


def text() -> str:
    """What the file says."""
    declared = {name: (arguments, result) for name, arguments, result in _declarations()}
    places = _places()
    lines = []
    for name in (*ENTRIES, *OTHER_NAMES):
        arguments, result = declared[OTHER_NAMES.get(name, name)]
        lines.append(f"    # {places.get(OTHER_NAMES.get(name, name), 'kernels.generated_text')}")
        line, listed = f"    def {name}(self, {arguments}, /) -> {result}: ...", f"        self, {arguments}, /"
        if len(line) <= WIDTH:
            lines.append(line)
            continue
        apart = [f"        {argument}," for argument in ("self", *arguments.split(", "), "/")]
        lines += [f"    def {name}(", *([listed] if len(listed) <= WIDTH else apart), f"    ) -> {result}: ..."]
    return HEAD + "\n".join(lines) + "\n"


if __name__ == "__main__":
    FILE.write_text(text(), encoding="utf-8")
