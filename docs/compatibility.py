"""Writes pytorch-compatibility.md: the points of pytorch-points.toml, joined with the tests that are marked with them."""

import ast
import tomllib
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path
from typing import Any

HERE = Path(__file__).parent
TESTS = HERE.parent / "tests"
DOCUMENT = HERE / "pytorch-compatibility.md"

HEAD = """# Compatibility with PyTorch

What tapegrad keeps of PyTorch's behaviour, where it differs on purpose, and the tests that show it: those marked with the number
of the point. `make compatibility` writes this page from `docs/pytorch-points.toml` and the marks. `make oracle` runs the same
programs on tapegrad and on PyTorch.
"""


def table() -> dict[str, Any]:
    """The sections, their points, and the differences outside of these."""
    return tomllib.loads((HERE / "pytorch-points.toml").read_text(encoding="utf-8"))


def _numbers(decorator: ast.expr) -> list[int]:
    """The points that a decorator names."""
    if isinstance(decorator, ast.Call) and ast.unparse(decorator.func) == "pytest.mark.point":
        return [ast.literal_eval(argument) for argument in decorator.args]
    return []


def _marks(path: Path) -> Iterator[tuple[int, str]]:
    for node in ast.parse(path.read_text(encoding="utf-8")).body:
        if isinstance(node, ast.FunctionDef):
            yield from ((number, node.name) for decorator in node.decorator_list for number in _numbers(decorator))
        elif isinstance(node, ast.Assign) and ast.unparse(node.targets[0]) == "pytestmark":
            marks = node.value.elts if isinstance(node.value, (ast.List, ast.Tuple)) else [node.value]
            yield from ((number, "all of its tests") for mark in marks for number in _numbers(mark))


def marked_tests(folder: Path = TESTS) -> dict[int, dict[str, list[str]]]:
    """For each point, the marked tests of each file."""
    found: dict[int, dict[str, list[str]]] = defaultdict(lambda: defaultdict(list))
    for path in sorted(folder.rglob("test_*.py")):
        for number, name in _marks(path):
            found[number][path.relative_to(folder).as_posix()].append(name)
    return found


def _shown_by(files: dict[str, list[str]]) -> str:
    return "<br>".join(f"`{file}`: {', '.join(f'`{name}`' for name in names)}" for file, names in files.items())


def _shown(tests: list[str], cases: list[str]) -> str:
    """The tests and the cases of operations that show a difference."""
    parts = [f"`{test}`" for test in tests]
    if cases:
        parts.append(f"`test_operations.py`, case{'s' * (len(cases) > 1)} {', '.join(f'`{case}`' for case in cases)}")
    return "<br>".join(parts)


def document(points: dict[str, Any], tests: dict[int, dict[str, list[str]]]) -> str:
    """The text of the page.

    Raises
    ------
    ValueError
        If a point has no test, or a test names a point that does not exist.
    """
    known = {int(number) for section in points["section"] for number in section["points"]}
    if known != set(tests):
        raise ValueError(
            f"points without a test: {sorted(known - set(tests))}; marked but not listed: {sorted(set(tests) - known)}"
        )
    parts = [HEAD]
    for section in points["section"]:
        differs = section.get("differs", {})
        rows = [
            " | ".join((f"| {number}", text, f"different: {differs[number]}" if number in differs else "same", shown, "")).rstrip()
            for number, text in section["points"].items()
            for shown in [_shown_by(tests[int(number)])]
        ]
        parts.append(
            "\n".join([f"## {section['title']}\n", "| point | behaviour | PyTorch | shown by |", "|---|---|---|---|", *rows, ""])
        )
    parts += ["## Differences outside of the points\n", "| difference | shown by |", "|---|---|"]
    parts += [f"| {one['text']} | {_shown(one['tests'], one.get('cases', []))} |" for one in points["difference"]]
    return "\n".join(parts) + "\n"


if __name__ == "__main__":
    DOCUMENT.write_text(document(table(), marked_tests()), encoding="utf-8")
