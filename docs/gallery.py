"""The gallery: what each example is for, what it prints, its picture and its source, made by running it.

python docs/gallery.py folder
"""

from __future__ import annotations

import ast
import os
import subprocess
import sys
from pathlib import Path

__all__ = ["DRAWING", "write"]

ROOT = Path(__file__).parents[1]
EXAMPLES = ROOT / "examples"
DRAWING = (
    "rosenbrock", "logistic_regression", "curve_fit", "constrained", "implicit", "numba_ode", "stiff_reactions", "swing_up",
    "bundle_adjustment", "inverse_heat",
)  # fmt: skip


def _run(path: Path, picture: Path | None) -> str:
    words = [sys.executable, str(path), *([str(picture)] if picture else [])]
    settings = {**os.environ, "PYTHONPATH": os.pathsep.join([str(ROOT / "src"), os.environ.get("PYTHONPATH", "")])}
    done = subprocess.run(words, capture_output=True, text=True, env=settings, check=False)
    if done.returncode:
        raise RuntimeError(f"{path.name} failed: {done.stderr.strip().splitlines()[-1]}")
    return done.stdout


def _told(path: Path) -> list[str]:
    """What an example says that it does, by paragraphs."""
    return (ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or path.stem).split("\n\n")


def _title(path: Path) -> str:
    return path.stem.replace("_", " ").capitalize()


def _page(path: Path, folder: Path, run: bool) -> str:
    """The page of one example, which is run if that is newer than its output."""
    picture = folder / f"{path.stem}.png" if path.stem in DRAWING else None
    printed = folder / f"{path.stem}.txt"
    if run and (not printed.exists() or printed.stat().st_mtime < path.stat().st_mtime):
        printed.write_text(_run(path, picture), encoding="utf-8")
    parts = [f"# {_title(path)}", *_told(path)]
    if picture is not None and picture.exists():
        parts.append(f"![What the example draws]({picture.name})")
    if printed.exists():
        parts.append(f"It prints\n\n```text\n{printed.read_text(encoding='utf-8').rstrip()}\n```")
    source = os.path.relpath(path, folder)
    parts.append(f"```{{literalinclude}} {source}\n:language: python\n```")
    return "\n\n".join(parts) + "\n"


def _index(paths: list[Path], folder: Path) -> str:
    """All examples, with their pictures."""
    rows = []
    for path in paths:
        picture = (
            f"```{{image}} {path.stem}.png\n    :width: 240px\n    :target: {path.stem}.html\n    ```"
            if (folder / f"{path.stem}.png").exists()
            else ""
        )
        rows.append(f"* - {picture}\n  - [{_title(path)}]({path.stem}.md): {' '.join(_told(path)[0].split())}")
    listed, shown = "\n".join(path.stem for path in paths), "\n".join(rows)
    return (
        "# Gallery\n\nThe programs of `examples/`, as they ran for this site.\n\n"
        f"::::{{list-table}}\n:widths: 35 65\n\n{shown}\n::::\n\n```{{toctree}}\n:hidden:\n\n{listed}\n```\n"
    )


def write(folder: Path, run: bool = True) -> None:
    """Write the pages; with `run` the examples are run for their output and pictures where those are older."""
    folder.mkdir(parents=True, exist_ok=True)
    paths = sorted(EXAMPLES.glob("*.py"))
    texts = {path.stem: _page(path, folder, run) for path in paths}
    texts["index"] = _index(paths, folder)
    for name, text in texts.items():
        path = folder / f"{name}.md"
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write(Path(sys.argv[1]))
