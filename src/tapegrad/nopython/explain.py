"""Numba's reports in words about the user's text: which line, which construct, what to write instead."""

from __future__ import annotations

import copy
import linecache
import re
import traceback
from pathlib import Path
from typing import Any

import numba
from numba.core.errors import TypingError
from numba.core.ir import Loc

from tapegrad.errors import CompileError

__all__ = ["Failures", "explained", "failed_to_compile", "reason_of"]

_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_PLACE = re.compile(r'(?:File "([^"]+)", line (\d+))|(?:\(([^()\s]+\.py|<[^<>]+>) \((\d+)\))|(?:at ([^\s()]+\.py) \((\d+)\))')
_NOT_THE_USERS = (str(Path(numba.__file__).parent), str(Path(__file__).parent), "<tapegrad")


def _places(text: str) -> list[tuple[str, int]]:
    found = []
    for groups in _PLACE.findall(text):
        path, line = next((groups[k], groups[k + 1]) for k in (0, 2, 4) if groups[k])
        if not any(part in str(Path(path).resolve()) or path.startswith(part) for part in _NOT_THE_USERS):
            full = Path(path).resolve()
            found.append((str(full) if full.exists() else path, int(line)))
    return found


def _in_our_words(text: str) -> str:
    text = re.sub(r"array\(TapeVariable, (\d)d, \w\)", r"array of \1 dimensions of tape variables", text)
    return text.replace("TapeVariable", "tape variable")


def reason_of(text: str) -> str:
    """Why something is not compiled, out of Numba's report; nothing if it does not say."""
    lines = [line.strip() for line in _COLOUR.sub("", text).splitlines() if line.strip()]
    own = [line for line in lines if "[tapegrad]" in line]
    return own[-1].split("[tapegrad]")[-1].strip() if own else _reason(lines)


class Failures(dict[Any, Exception]):
    """Errors that a dispatcher keeps for good, so that it need not compile again what failed, without their frames.

    A frame keeps what all its callers work with: graphs, tapes, arrays.
    """

    def __setitem__(self, key: Any, error: Exception) -> None:
        super().__setitem__(key, copy.copy(error))

    def __getitem__(self, key: Any) -> Exception:
        return copy.copy(super().__getitem__(key))  # which is raised, and gets frames by that


def explained(function: str, error: Exception) -> CompileError:
    """The error that a function which cannot be recorded raises."""
    text = _COLOUR.sub("", str(error))
    reason = reason_of(text) or "it does not compile"
    # Numba writes the innermost place first. Before the reason stand the places of other attempts.
    places = _places(text[text.rfind(reason) :]) or _places(text)[-1:]
    where = "".join(_quoted(*place) for place in reversed(dict.fromkeys(places)))
    return CompileError(f"{function} cannot be differentiated: {_in_our_words(reason)}\n{where}")


def failed_to_compile(error: Exception) -> TypingError | None:
    """An error of another kind out of the middle of Numba's compiler as one that can be explained; None if it is the user's."""
    compiling, place = False, ""
    for frame, _ in traceback.walk_tb(error.__traceback__):
        compiling |= frame.f_code.co_name == "_compile_for_args"
        loc = frame.f_locals.get("loc") or getattr(frame.f_locals.get("self"), "loc", None)
        if isinstance(loc, Loc) and loc.line and not any(part in loc.filename for part in _NOT_THE_USERS):
            place = f'\nFile "{loc.filename}", line {loc.line}'
    if not compiling:
        return None
    return TypingError(f"[tapegrad] the compiler stopped with {type(error).__name__}: {str(error) or 'no reason given'}{place}")


def _quoted(path: str, number: int) -> str:
    return f'  File "{path}", line {number}\n    {linecache.getline(path, number).strip()}\n'


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
    return lines[0] if lines else ""
