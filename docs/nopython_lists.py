"""Writes the lists of compiled-functions.md: what is recorded, constant and refused, from the tables that the tests run.

python docs/nopython_lists.py
"""

from __future__ import annotations

import importlib
import inspect
import re
import sys
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

__all__ = ["DOCUMENT", "document"]

HERE = Path(__file__).parent
TESTS = HERE.parent / "tests"
DOCUMENT = HERE / "compiled-functions.md"
BEGIN, END = "<!-- lists: made by docs/nopython_lists.py -->", "<!-- end of lists -->"

LANGUAGE = ["control", "arrays", "views", "language", "callables"]
# Groups that are apart for the time of compiling only, and one whose name says too little.
UNITED = {"norms of matrices": "norms", "equal spectra": "decompositions", "moves": "elements that are moved"}
CALL = re.compile(r"(?<![\w.])((?:np|math|cmath|poly)\.(?:linalg\.|random\.)?\w+|x\.\w+|max|min|abs|divmod)(?=\()")
FRAME = frozenset(["np.arange", "np.array", "np.ones", "np.zeros", "x.reshape"])  # what calls are written with


def table(module: str) -> Any:
    """A module of the tests."""
    for folder in (TESTS, TESTS / "nopython"):
        if str(folder) not in sys.path:
            sys.path.insert(0, str(folder))
    return importlib.import_module(module)


def calls(texts: Iterable[str]) -> list[str]:
    """The functions that expressions call, each once, in their order."""
    found = (name for text in texts for name in CALL.findall(text))
    return list(dict.fromkeys(name for name in found if name not in FRAME))


def listed(names: Iterable[str]) -> str:
    """Names as code, on one line."""
    return ", ".join(f"`{name}`" for name in names)


def words(names: Iterable[str]) -> str:
    """Names of functions as plain words."""
    return ", ".join(name.replace("_", " ") for name in names)


def of_numpy(names: str) -> str:
    """Names without their module, as code."""
    return listed(f"np.{name}" for name in sorted(names.split()))


def functions() -> Iterator[str]:
    """What is recorded of libraries."""
    kinks, rules, agreement = (table(f"test_nopython_{name}") for name in ("kinks", "rules", "agreement"))
    overloads, complex_numbers = (table(f"test_nopython_{name}") for name in ("overloads", "complex"))
    of_math = listed(f"math.{name}" for name in rules.OF_MATH.split())
    yield f"| functions of numbers, and of arrays element by element | {of_math} |"
    yield f"| | {of_numpy(f'{kinks.ONE} {kinks.TWO}')} |"
    of_python = listed(["abs", "divmod", "max", "min", "pow", "sum"])
    yield f"| operators, and Python's own functions | `+ - * / % **` and their forms in place, {of_python} |"
    groups: dict[str, list[str]] = {}
    for group, entries in agreement.GROUPS.items():
        groups.setdefault(UNITED.get(group, group), []).extend(entry.text for entry in entries)
    yield from (f"| {group} | {listed(calls(texts))} |" for group, texts in groups.items())
    alone = [*calls(entry.text for entry in overloads.TABLE), *agreement.COMPILED_ALONE.split()]
    yield f"| in compiled code alone | {listed(alone)} |"
    sources = [inspect.getsource(case[0]) for case in complex_numbers.CASES]
    yield f"| complex numbers | {listed(calls(sources))}, `z.real`, `z.imag`, `z.conjugate()` |"


def language() -> Iterator[str]:
    """What is recorded of the language."""
    for name in LANGUAGE:
        module = table(f"compiled_{name}")
        title = (module.__doc__ or "").partition("\n")[0].partition(":")[0].rstrip(".")
        yield f"- {title}: {words(repr(case) for case in module.TABLE)}."
    float32 = table("test_nopython_float32")
    yield f"- float32: {words(dict.fromkeys(case[0].__name__ for case in float32.CASES))}."


def refusals() -> Iterator[str]:
    """What is refused, and what the message says to write."""
    module = table("compiled_refusals")
    for refusal in module.TABLE:
        yield f"| `{refusal.line()[1]}` | {refusal.construct} | {refusal.instead} |"
    for text, construct, instead in [*module.OF_MATRICES, *module.OF_COMPLEX_NUMBERS]:
        yield f"| `{text}` | {construct} | {instead} |"


def without_derivative() -> Iterator[str]:
    """Functions whose results do not follow the inputs."""
    agreement = table("test_nopython_agreement")
    constant = {f"np.{name}" for name in agreement.WITHOUT_DERIVATIVE.split()} | set(calls(agreement.STEPS))
    yield f"{listed([*sorted(constant - {'np.where'}), 'np.where(x)', 'int', 'round', '//'])}."


RECORDED = """### What is recorded

Functions, each with value, gradient and Hessian at regular points, ties, zeros and infinities:

| of | |
|---|---|"""
OF_THE_LANGUAGE = """
Of the language, as the functions are named that the tests differentiate:
"""
STEPS = """
### What has no derivative

Results are integers, truth values or steps:
"""
REFUSED = """
### What raises `tg.CompileError`

| where `x` is differentiated | the message names | and says |
|---|---|---|"""


def lists() -> str:
    """The three lists."""
    parts = {RECORDED: functions, OF_THE_LANGUAGE: language, STEPS: without_derivative, REFUSED: refusals}
    return "\n".join(line for title, lines in parts.items() for line in (title, *lines()))


def document(text: str) -> str:
    """The page with its lists made anew."""
    before, _, rest = text.partition(BEGIN)
    _, _, after = rest.partition(END)
    return f"{before}{BEGIN}\n\n{lists()}\n\n{END}{after}"


if __name__ == "__main__":
    DOCUMENT.write_text(document(DOCUMENT.read_text(encoding="utf-8")), encoding="utf-8")
