"""Pages of reference: every public name, by topic, from the docstrings.

python docs/reference.py folder
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Iterator
from pathlib import Path
from types import ModuleType
from typing import Any

import tapegrad as tg
from tapegrad.rules.table import RULES
from tapegrad.surface.public_names import ALIASES, FAMILIES, FILES, OTHERS

__all__ = ["PAGES", "names_of_page", "public_names", "write"]

# Title of each page, what it says, and what is on it: a module, or files of the table of names.
FAMILY_PAGES: dict[str, tuple[str, tuple[str, ...]]] = {
    "Derivatives of functions": ("drivers", ("drivers", "numpy_arrays")),
    "Programs": ("programs", ("programs",)),
    "Looking inside": ("inspection", ("inspection",)),
    "Compiled functions": ("compiled", ("nopython",)),
    "Files": ("files", ("files",)),
}
MODULE_PAGES = {
    "tapegrad.optimize": "Optimisation", "tapegrad.sparse": "Sparse derivatives",
    "tapegrad.integrate": "Differential equations", "tapegrad.parallel": "Sums over data",
    "tapegrad.autograd": "Autograd of tensors", "tapegrad.autograd.function": "Operations of your own",
    "tapegrad.autograd.functional": "Derivatives by tensors", "tapegrad.autograd.graph": "Graphs, saved tensors and hooks",
    "tapegrad.linalg": "Linear algebra", "tapegrad.special": "Special functions",
    "tapegrad.nn": "Layers", "tapegrad.nn.functional": "Functions of layers",
    "tapegrad.nn.init": "Initial values", "tapegrad.nn.utils": "Gradients that are clipped, parameters as a vector",
    "tapegrad.optim": "Optimisers of parameters", "tapegrad.optim.lr_scheduler": "Schedules of learning rates",
    "tapegrad.utils.checkpoint": "Checkpoints of tensors", "tapegrad.utils.hooks": "Handles of hooks", "tapegrad.errors": "Errors",
}  # fmt: skip
TOPICS = {
    "Elementwise functions": ("ops.activations", "ops.piecewise", "ops.in_place_nonlinearities", "special"),
    "Arithmetic and comparisons": (
        "ops.arithmetic", "ops.comparing", "ops.missing_values", "ops.undifferentiable", "ops.multivariate_gamma", "ops.neighbours",
    ),
    "Sums, extremes and statistics": (
        "ops.reductions", "ops.moments", "ops.norms", "ops.extremes", "ops.order_statistics", "ops.normalisation", "ops.scans",
        "ops.running_extremes", "ops.counting", "ops.differences", "ops.slopes", "ops.grouped_reductions",
    ),
    "Shapes and indices": (
        "ops.shaping", "ops.transposing", "ops.joining", "ops.splitting", "ops.subviews", "ops.tiling", "ops.rearranging",
        "ops.view_scattering",
        "ops.indexing", "ops.selecting", "ops.scattering", "ops.slice_writing", "ops.searching", "ops.sorting", "ops.diagonals",
        "ops.triangles", "ops.grids", "ops.broadcast_sums",
    ),
    "Products and linear algebra": (
        "ops.products", "ops.affine", "ops.contractions", "ops.tensor_products", "ops.vectors", "linalg",
    ),
}  # fmt: skip


def _is_shown(value: Any) -> bool:
    return (inspect.isclass(value) or callable(value)) and not isinstance(value, ModuleType) and bool(inspect.getdoc(value))


def public_names() -> dict[str, Any]:
    """Everything that the package offers by name: functions and classes, its own and those of its modules."""
    found = {name: getattr(tg, name) for name in dir(tg) if not name.startswith("_")}
    return {name: value for name, value in found.items() if _is_shown(value)}


def _family(files: tuple[str, ...]) -> list[str]:
    return [
        name
        for file, names in FAMILIES.items()
        for name in names.split()
        if name != "." and file.partition(".")[0] in files and _is_shown(getattr(tg, name))
    ]


def pages() -> Iterator[tuple[str, str, str, list[str]]]:
    """File, title, module and names of each page."""
    told: set[str] = set()
    for title, (file, families) in FAMILY_PAGES.items():
        names = _family(families)
        told.update(names)
        yield file, title, "tapegrad", names
    for module, title in MODULE_PAGES.items():
        holder: Any = tg
        for part in module.split(".")[1:]:
            holder = getattr(holder, part)
        names = [
            name
            for name in getattr(holder, "__all__", dir(holder))
            if not name.startswith("_") and _is_shown(getattr(holder, name))
        ]
        yield module.replace(".", "-"), title, module, sorted(set(names))
    for title, files in TOPICS.items():
        names = [name for file in files for name in FILES.get(file, "").split()]
        names += [
            name for name, place in OTHERS.items() if place.startswith(tuple(f"{file}{end}" for file in files for end in ":."))
        ]
        if "ops.activations" in files:
            names += [rule.name for rule in RULES if not rule.name.startswith("_")] + list(ALIASES)
        names = sorted({name for name in names if hasattr(tg, name) and _is_shown(getattr(tg, name))} - told)
        told.update(names)
        yield title.split()[0].strip(",").lower(), title, "tapegrad", names
    rest = sorted(name for name in set(public_names()) - told if name not in tg.errors.__all__)
    yield "tensors", "Tensors: making them, modes, dtypes", "tapegrad", rest


PAGES = list(pages())


def names_of_page(file: str) -> list[str]:
    """The names on a page."""
    return next(names for page, _, _, names in PAGES if page == file)


def _methods_of_tensors() -> str:
    """Methods and attributes of `Tensor`: a line each of those that are no functions, the names of the others."""
    names = [name for name in dir(tg.Tensor) if not name.startswith("_") and hasattr(tg.Tensor, name)]
    in_place = [name for name in names if name.endswith("_") and name[:-1] in names]
    functions = [name for name in names if hasattr(tg, name)]
    rows = [
        f"| `{name}` | {summary(inspect.getattr_static(tg.Tensor, name))} |"
        for name in names
        if name not in {*in_place, *functions}
    ]
    listed = (", ".join(f"`{name}`" for name in found) for found in (functions, in_place))
    text = "\n\n".join(
        f"{said}: {found}." for said, found in zip(("Functions that are methods, too", "In place"), listed, strict=True)
    )
    return "\n".join(["| of tensors | what it is |", "|---|---|", *rows, "", text, ""])


def summary(value: Any) -> str:
    """The first paragraph of a docstring, in a line."""
    return " ".join((inspect.getdoc(value) or "").split("\n\n")[0].split()).replace("|", "\\|")


def _entry(module: str, name: str, shown: dict[int, str], value: Any) -> str:
    other = ALIASES.get(name) if module == "tapegrad" else None
    first = f"tapegrad.{other}" if other else shown.setdefault(id(value), f"{module}.{name}")
    if first != f"{module}.{name}":
        return f"## {name}\n\nAnother name of `{first}`.\n"
    if value is tg.Tensor:
        return f"## {name}\n\n```{{eval-rst}}\n.. autoclass:: {module}.{name}\n   :no-index:\n```\n\n{_methods_of_tensors()}"
    directive = "autoclass" if inspect.isclass(value) else "autofunction"
    members = "   :members:\n" if inspect.isclass(value) else ""
    return f"## {name}\n\n```{{eval-rst}}\n.. {directive}:: {module}.{name}\n   :no-index:\n{members}```\n"


def _page(title: str, module: str, names: list[str], shown: dict[int, str]) -> str:
    holder: Any = tg
    for part in module.split(".")[1:]:
        holder = getattr(holder, part)
    parts = [_entry(module, name, shown, getattr(holder, name)) for name in names]
    return "\n".join([f"# {title}\n", *parts])


def write(folder: Path) -> None:
    """Write all pages, where they are not there as they should be."""
    folder.mkdir(parents=True, exist_ok=True)
    shown: dict[int, str] = {}
    texts = {file: _page(title, module, names, shown) for file, title, module, names in PAGES}
    listed = "\n".join(file for file, *_ in PAGES)
    texts["index"] = f"# Reference by topic\n\n```{{toctree}}\n:maxdepth: 1\n\n{listed}\n```\n"
    for path in folder.glob("*.md"):
        if path.stem not in texts:
            path.unlink()
    for file, text in texts.items():
        path = folder / f"{file}.md"
        if not path.exists() or path.read_text(encoding="utf-8") != text:
            path.write_text(text, encoding="utf-8")


if __name__ == "__main__":
    write(Path(sys.argv[1]))
