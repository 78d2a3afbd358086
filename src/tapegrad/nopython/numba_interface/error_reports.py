"""Numba's reports in words about the user's text: which line, which construct, what to write instead."""

from __future__ import annotations

import copy
import linecache
import re
import traceback
import warnings
from collections.abc import Callable
from inspect import getattr_static
from pathlib import Path
from typing import Any

import numba
from numba.core.errors import NumbaError
from numba.core.ir import Loc

from tapegrad.errors import CompileError
from tapegrad.frames import PACKAGE

__all__ = ["Failures", "explained", "reason_of"]

_COLOUR = re.compile(r"\x1b\[[0-9;]*m")
_PLACE = re.compile(r'(?:File "([^"]+)", line (\d+))|(?:\(([^()\s]+\.py|<[^<>]+>) \((\d+)\))|(?:at ([^\s()]+\.py) \((\d+)\))')
_OF_AN_INSTANCE = re.compile(
    r"callee type: BoundFunction\(\(<class '[\w.]*ClassInstanceType'>, '(\w+)'\) for instance\.jitclass\.(\w+)"
)
_NOT_THE_USERS = (str(Path(numba.__file__).parent), PACKAGE, "<tapegrad")


# What types are called in messages; a name that another one begins with comes after it.
NAMES = (
    ("TapeComplexVariable", "complex tape variable"),
    ("TapeVariable32", "float32 tape variable"),
    ("TapeVariable", "tape variable"),
)


def _places(text: str) -> list[tuple[str, int]]:
    found = []
    for groups in _PLACE.findall(text):
        path, line = next((groups[k], groups[k + 1]) for k in (0, 2, 4) if groups[k])
        if not any(part in str(Path(path).resolve()) or path.startswith(part) for part in _NOT_THE_USERS):
            full = Path(path).resolve()
            found.append((str(full) if full.exists() else path, int(line)))
    return found


def _in_our_words(text: str) -> str:
    for name, words in NAMES:
        text = re.sub(rf"array\({name}, (\d)d, \w\)", rf"array of \1 dimensions of {words}s", text).replace(name, words)
    return text


def reason_of(text: str) -> str:
    """Why something is not compiled, out of Numba's report; nothing if it does not say."""
    lines = [line.strip() for line in _COLOUR.sub("", text).splitlines() if line.strip()]
    own = [line for line in lines if "[tapegrad]" in line]
    method = next(filter(None, map(_OF_AN_INSTANCE.search, lines)), None)
    if method and not own:
        return (
            f"{method[1]} of an instance of the compiled class {method[2]} is called with a variable; since containers have a "
            "method of that name, pass the instance as an argument, or give the method another name"
        )
    return own[-1].split("[tapegrad]")[-1].strip() if own else _reason(lines)


class Failures(dict[Any, Exception]):
    """Errors that a dispatcher keeps for good, so that it need not compile again what failed, without their frames.

    A frame keeps what all its callers work with: graphs, tapes, arrays.
    """

    def __setitem__(self, key: Any, error: Exception) -> None:
        super().__setitem__(key, _without_frames(error))

    def __getitem__(self, key: Any) -> Exception:
        return _without_frames(super().__getitem__(key))  # which is raised, and gets frames by that


def _without_frames(error: Exception) -> Exception:
    made = copy.copy(error)
    # Packages that send exceptions to other processes let copies have these.
    made.__traceback__ = made.__cause__ = made.__context__ = None
    return made


UNRECORDED = (
    "what depends on the inputs cannot be used so: write with arithmetic, functions of math and NumPy, arrays, tuples and lists, "
    "or give it constants only"
)
UNCOMPILED = "Numba does not compile the function for these arguments: call it by itself, and change it until Numba takes it"


def explained(function: Any, error: BaseException, compile_plain: Callable[[], Any] | None = None) -> CompileError:
    """The error that a function which cannot be recorded raises; `compile_plain` tells whether Numba takes it as it is."""
    text = _COLOUR.sub("", str(error)) if isinstance(error, NumbaError) else _stopped(error)
    reason = reason_of(text) or "it does not compile"
    advice = ""
    is_ours = isinstance(error, NumbaError) and ("[tapegrad]" in text or _OF_AN_INSTANCE.search(text) is not None)
    if compile_plain is not None and not is_ours:
        advice = f"; {UNRECORDED if _succeeds(compile_plain) else UNCOMPILED}"
    # Numba writes the innermost place first. Before the reason stand the places of other attempts.
    code = function.__code__
    places = _places(text[text.rfind(reason) :]) or _places(text)[-1:] or [(code.co_filename, code.co_firstlineno)]
    where = "".join(_quoted(*place) for place in reversed(dict.fromkeys(places)))
    return CompileError(f"{function.__name__} cannot be differentiated: {_in_our_words(reason)}{advice}\n{where}")


def _succeeds(compile_plain: Callable[[], Any]) -> bool:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            compile_plain()
    except Exception:
        return False
    return True


def _stopped(error: BaseException) -> str:
    """A report on an error of another kind out of the middle of the compiler: which one, and what it was working at."""
    places = [loc for frame, _ in traceback.walk_tb(error.__traceback__) if (loc := _worked_at(frame.f_locals))]
    place = f'\nFile "{places[-1].filename}", line {places[-1].line}' if places else ""
    said = " ".join(str(error).split()) or "no reason given"
    return f"[tapegrad] the compiler stopped with {type(error).__name__}: {said}{place}"


def _worked_at(names: dict[str, Any]) -> Loc | None:
    """The place in the user's text that a frame of the compiler is about."""
    # Attributes are looked up without calling anything: those of Numba's data structures may raise.
    state = names.get("state")
    owners = (names.get("self"), state.get("func_ir") if isinstance(state, dict) else None, names.get("func_ir"))
    for loc in (names.get("loc"), *(getattr_static(owner, "loc", None) for owner in owners)):
        if isinstance(loc, Loc) and loc.line and not any(part in loc.filename for part in _NOT_THE_USERS):
            return loc
    return None


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
    said = [line for line in lines if not line.startswith(("Failed in", "During:", "File "))]
    return (said or lines or [""])[0]
