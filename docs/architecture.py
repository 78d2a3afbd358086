"""Draws architecture.svg: the rooms of the package from the ground up, and which of them import which.

nopython.svg shows the same of the rooms inside of one of them.

    python docs/architecture.py

Reads the imports of all modules, whether at module level or inside of functions; nothing is imported for it.
"""

from __future__ import annotations

import ast
from collections.abc import Callable, Iterable, Iterator, Sequence
from pathlib import Path

DOCS = Path(__file__).parent
SOURCE = DOCS.parent / "src"
FIGURE = DOCS / "architecture.svg"
INNER_FIGURE = DOCS / "nopython.svg"

# From the ground up: a room imports those before it only. The ground are files in no room, the roof is the package itself.
ROOMS = (
    "ground", "rules", "arrays", "compilation", "engine", "kernels", "tape", "tensors", "recording", "ops", "autograd", "linalg",
    "surface", "numpy_protocol", "special", "numpy_arrays", "numpy", "linear", "nopython", "library_build", "nn", "optim", "files",
    "drivers", "programs", "sparse", "parallel", "optimize", "integrate", "inspection", "utils", "as_autograd", "roof",
)  # fmt: skip
ROOF = ("", "__main__")

# The same inside of `nopython`, whose own roof are the files in none of its rooms.
INNER_ROOMS = (
    "types", "numba_interface", "formulas", "tape", "statements", "twins", "functions", "compiler", "arguments", "roof",
)  # fmt: skip

# The floors of the figure.
FLOORS = (
    ("ground",),
    ("rules", "compilation", "arrays"),
    ("engine",),
    ("kernels",),
    ("tape",),
    ("tensors",),
    ("recording",),
    ("ops",),
    ("optim", "autograd", "linalg"),
    ("surface", "linear", "nopython"),
    ("numpy_protocol", "nn", "library_build"),
    ("numpy_arrays", "special", "files"),
    ("drivers", "numpy"),
    ("utils", "sparse", "parallel", "as_autograd", "programs"),
    ("optimize",),
    ("inspection", "integrate"),
)
INNER_FLOORS = (
    ("types", "numba_interface"),
    ("formulas", "twins"),
    ("tape",),
    ("statements", "functions"),
    ("compiler", "arguments"),
    ("roof",),
)
WIDTH, HEIGHT, BOX, LINE, MARGIN = 900, 74, 136, 34, 16  # five rooms fit on a floor


def modules(source: Path = SOURCE) -> dict[str, Path]:
    """All modules of the package, by their names without that of the package."""
    found = {}
    for path in sorted((source / "tapegrad").rglob("*.py")):
        if "__pycache__" not in path.parts:
            parts = path.relative_to(source).with_suffix("").parts[1:]
            found[".".join(parts[:-1] if parts[-1] == "__init__" else parts)] = path
    return found


def _is_for_types(node: ast.AST) -> bool:
    return isinstance(node, ast.If) and "TYPE_CHECKING" in ast.unparse(node.test)


def _statements(node: ast.AST) -> Iterator[ast.Import | ast.ImportFrom]:
    for child in ast.iter_child_nodes(node):
        if isinstance(child, (ast.Import, ast.ImportFrom)):
            yield child
        elif not isinstance(child, ast.expr) and not _is_for_types(child):
            yield from _statements(child)


def imports(source: Path = SOURCE) -> dict[str, set[str]]:
    """For each module those that it imports, also inside of functions; imports for type checkers are left out."""
    known = modules(source)
    found: dict[str, set[str]] = {}
    for name, path in known.items():
        found[name] = set()
        for node in _statements(ast.parse(path.read_text(encoding="utf-8"))):
            if isinstance(node, ast.Import):
                names = [alias.name for alias in node.names]
            else:
                names = [f"{node.module}.{alias.name}" for alias in node.names]
                names = [one if one.removeprefix("tapegrad.") in known else str(node.module) for one in names]
            found[name].update(one.removeprefix("tapegrad").lstrip(".") for one in names if one.partition(".")[0] == "tapegrad")
        found[name] &= known.keys() - {name}
    return found


def room(module: str) -> str:
    """The room of a module."""
    head = module.partition(".")[0]
    if module in ROOF:
        return "roof"
    return head if head in ROOMS else "ground"


def inner_room(module: str) -> str:
    """The room inside of `nopython` of one of its modules."""
    head = module.removeprefix("nopython").lstrip(".").partition(".")[0]
    return head if head in INNER_ROOMS else "roof"


def inside(graph: dict[str, set[str]], room: str = "nopython") -> dict[str, set[str]]:
    """The part of the imports that stays in one room."""
    names = {module for module in graph if module == room or module.startswith(f"{room}.")}
    return {module: graph[module] & names for module in names}


def circles(graph: dict[str, set[str]]) -> list[list[str]]:
    """Modules that import each other in a circle, one list a circle (Tarjan's strongly connected components)."""
    number: dict[str, int] = {}
    low: dict[str, int] = {}
    stack: list[str] = []
    found: list[list[str]] = []

    def visit(module: str) -> None:
        number[module] = low[module] = len(number)
        stack.append(module)
        for other in sorted(graph[module]):
            if other not in number:
                visit(other)
                low[module] = min(low[module], low[other])
            elif other in stack:
                low[module] = min(low[module], number[other])
        if low[module] == number[module]:
            place = stack.index(module)
            if len(stack) - place > 1:
                found.append(sorted(stack[place:]))
            del stack[place:]

    for module in sorted(graph):
        if module not in number:
            visit(module)
    return found


def arrows(graph: dict[str, set[str]], room: Callable[[str], str] = room) -> dict[tuple[str, str], list[tuple[str, str]]]:
    """For each pair of rooms the imports from the first into the second."""
    found: dict[tuple[str, str], list[tuple[str, str]]] = {}
    for module, others in graph.items():
        for other in sorted(others):
            pair = room(module), room(other)
            if pair[0] != pair[1]:
                found.setdefault(pair, []).append((module, other))
    return found


def shown(pairs: set[tuple[str, str]]) -> set[tuple[str, str]]:
    """The arrows of the figure: those that do not follow from others."""
    direct: dict[str, set[str]] = {}
    for upper, lower in pairs:
        direct.setdefault(upper, set()).add(lower)

    def reached(start: str) -> set[str]:
        found: set[str] = set()
        left = list(direct.get(start, ()))
        while left:
            one = left.pop()
            if one not in found:
                found.add(one)
                left += direct.get(one, ())
        return found

    return {(a, b) for a, b in pairs if not any(b in reached(other) for other in direct[a] - {b})}


def drawing(pairs: Iterable[tuple[str, str]], floors: Sequence[Sequence[str]]) -> str:
    """A figure of rooms on floors, and arrows between them, as SVG; of arrows those are left out that follow from others."""
    places: dict[str, tuple[float, float]] = {}
    height = MARGIN * 2 + LINE + HEIGHT * (len(floors) - 1)
    for floor, names in enumerate(floors):
        for k, name in enumerate(names):
            places[name] = WIDTH * (k + 1) / (len(names) + 1), height - MARGIN - LINE / 2 - HEIGHT * floor
    parts = [
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {WIDTH} {height}" font-family="sans-serif" font-size="14">',
        '<defs><marker id="tip" viewBox="0 0 8 8" refX="8" refY="4" markerWidth="7" markerHeight="7" orient="auto">',
        '<path d="M0 0L8 4L0 8z" fill="#667"/></marker></defs>',
        f'<rect width="{WIDTH}" height="{height}" fill="#fff"/>',
    ]
    for upper, lower in sorted(shown({pair for pair in pairs if places.keys() >= set(pair)})):
        (x, y), (u, v) = places[upper], places[lower]
        if v > y:
            y, v = y + LINE / 2, v - LINE / 2
        else:  # beside each other
            x, u = (x + BOX / 2, u - BOX / 2) if x < u else (x - BOX / 2, u + BOX / 2)
        parts.append(
            f'<path d="M{x:.0f} {y:.0f}C{x:.0f} {(y + v) / 2:.0f} {u:.0f} {(y + v) / 2:.0f} {u:.0f} {v:.0f}" fill="none" '
            'stroke="#99a" marker-end="url(#tip)"/>'
        )
    for name, (x, y) in places.items():
        parts.append(
            f'<rect x="{x - BOX / 2:.0f}" y="{y - LINE / 2:.0f}" width="{BOX}" height="{LINE}" rx="5" fill="#eef3fb" '
            f'stroke="#557"/><text x="{x:.0f}" y="{y + 5:.0f}" text-anchor="middle">{name}</text>'
        )
    return "\n".join([*parts, "</svg>", ""])


def figures(graph: dict[str, set[str]]) -> dict[Path, str]:
    """What the figures show, by their files."""
    return {
        FIGURE: drawing(arrows(graph), FLOORS),
        INNER_FIGURE: drawing(arrows(inside(graph), inner_room), INNER_FLOORS),
    }


if __name__ == "__main__":
    for path, text in figures(imports()).items():
        path.write_text(text, encoding="utf-8")
