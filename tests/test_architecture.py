"""The rooms of the package: imports run downwards only, without circles, and the figure shows them as they are."""

import ast
import importlib.util
from pathlib import Path
from typing import Any

import pytest

PATH = Path(__file__).parents[1] / "docs" / "architecture.py"


@pytest.fixture(scope="module")
def architecture() -> Any:
    spec = importlib.util.spec_from_file_location("architecture", PATH)
    assert spec is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)  # type: ignore[union-attr]
    return module


@pytest.fixture(scope="module")
def graph(architecture: Any) -> Any:
    """The imports of the package itself."""
    return architecture.imports()


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """Two modules in a circle, one of whose imports is hidden in a function, and an import that is for types only."""
    folder = tmp_path / "tapegrad"
    (folder / "tape").mkdir(parents=True)
    (folder / "ops").mkdir()
    (folder / "tape" / "a.py").write_text("def f():\n    from tapegrad.ops import b\n    return b\n")
    (folder / "ops" / "b.py").write_text("from tapegrad.tape.a import f\nfrom tapegrad.ops import c\n")
    (folder / "ops" / "c.py").write_text("if TYPE_CHECKING:\n    from tapegrad.ops.b import f\n")
    return tmp_path


def test_hidden_imports_are_found(architecture: Any, package: Path) -> None:
    assert architecture.imports(package) == {"ops.b": {"tape.a", "ops.c"}, "ops.c": set(), "tape.a": {"ops.b"}}


def test_circles_are_found(architecture: Any, package: Path) -> None:
    assert architecture.circles(architecture.imports(package)) == [["ops.b", "tape.a"]]


def test_no_modules_import_each_other_in_a_circle(architecture: Any, graph: Any) -> None:
    assert architecture.circles(graph) == []


def test_every_folder_is_a_room(architecture: Any) -> None:
    folders = {name.partition(".")[0] for name in architecture.modules() if "." in name}
    assert folders - set(architecture.ROOMS) == set()


def test_every_room_is_described(architecture: Any) -> None:
    text = PATH.with_suffix(".md").read_text()
    assert [room for room in architecture.ROOMS if f"`{room}`" not in text and f"| {room} |" not in text] == []


def test_rooms_import_lower_ones_only(architecture: Any, graph: Any) -> None:
    floor = architecture.ROOMS.index
    found = architecture.arrows(graph)
    assert {pair: names for pair, names in found.items() if floor(pair[0]) < floor(pair[1])} == {}


def test_figure_shows_every_room(architecture: Any) -> None:
    assert sorted(name for floor in architecture.FLOORS for name in floor) == sorted(set(architecture.ROOMS) - {"roof"})


def test_rooms_of_compiled_functions_import_lower_ones_only(architecture: Any, graph: Any) -> None:
    floor = architecture.INNER_ROOMS.index
    found = architecture.arrows(architecture.inside(graph), architecture.inner_room)
    assert {pair: names for pair, names in found.items() if floor(pair[0]) < floor(pair[1])} == {}


def test_figure_shows_every_room_of_compiled_functions(architecture: Any) -> None:
    folders = {name.split(".")[1] for name in architecture.modules() if name.startswith("nopython.") and name.count(".") == 2}
    assert sorted(name for floor in architecture.INNER_FLOORS for name in floor) == sorted(folders | {"roof"})


def test_figures_are_as_the_imports_are(architecture: Any, graph: Any) -> None:
    for path, text in architecture.figures(graph).items():
        assert path.read_text(encoding="utf-8") == text, "python docs/architecture.py draws it anew"


def test_the_package_asks_for_types_where_arrays_answer_for_numpys_classes() -> None:
    """``x.__class__`` of an array in a driver is NumPy's."""
    package = PATH.parents[1] / "src" / "tapegrad"
    answering = {"numpy_arrays/classes.py", "numpy_arrays/complex_arrays.py"}
    found = {
        path.relative_to(package).as_posix()
        for path in package.rglob("*.py")
        if ".__class__" in (text := path.read_text(encoding="utf-8"))
        for node in ast.walk(ast.parse(text))
        if isinstance(node, ast.Attribute) and node.attr == "__class__" and isinstance(node.ctx, ast.Load)
    }
    assert found == answering
