"""Numba's reports in words about the user's text: which line, which construct, what to write instead."""

from __future__ import annotations

import linecache
import re
from pathlib import Path

import numba

from tapegrad.errors import CompileError

__all__ = ["explained"]

_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_PLACE = re.compile(r'(?:File "([^"]+)", line (\d+))|(?:\(([^()\s]+\.py|<[^<>]+>) \((\d+)\))|(?:at ([^\s()]+\.py) \((\d+)\))')
_NOT_THE_USERS = (str(Path(numba.__file__).parent), str(Path(__file__).parent), "<tapegrad")


def _places(text: str) -> list[tuple[str, int]]:
    found = []
    for groups in _PLACE.findall(text):
        path, line = next((groups[k], groups[k + 1]) for k in (0, 2, 4) if groups[k])
        if not any(part in str(Path(path).resolve()) or path.startswith(part) for part in _NOT_THE_USERS):
            found.append((path, int(line)))
    return found


def _in_our_words(text: str) -> str:
    text = re.sub(r"array\(TapeVariable, (\d)d, \w\)", r"array of \1 dimensions of tape variables", text)
    return text.replace("TapeVariable", "tape variable")


def explained(function: str, error: Exception) -> CompileError:
    """The error that a function which cannot be recorded raises."""
    text = _COLOUR.sub("", str(error))
    places = _places(text)
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    own = [line for line in lines if "[tapegrad]" in line]
    reason = own[-1].split("[tapegrad]")[-1].strip() if own else _reason(lines)
    where = ""
    if places:
        path, number = places[-1]
        source = linecache.getline(str(Path(path).resolve()), number).strip() or linecache.getline(path, number).strip()
        where = f'\n  File "{path}", line {number}\n    {source}\n'
    return CompileError(f"{function} cannot be differentiated: {_in_our_words(reason)}{where}")


def _reason(lines: list[str]) -> str:
    telling = (
        "No implementation",
        "Cannot",
        "cannot",
        "Unknown attribute",
        "Invalid use",
        "Unsupported",
        "unsupported",
        "NameError",
    )
    for line in lines:
        if any(word in line for word in telling):
            rest = [other for other in lines[lines.index(line) + 1 :] if other.startswith((">>>", "-"))]
            return line + (f" {rest[0].lstrip('> ')}" if rest and rest[0].startswith(">>>") else "")
    return lines[0] if lines else "it does not compile"
