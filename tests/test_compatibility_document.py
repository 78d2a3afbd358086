"""The page on compatibility: every point has a test, every mark a point, and the page is what its script makes."""

import importlib.util
from pathlib import Path
from typing import Any

import pytest

PATH = Path(__file__).parents[1] / "docs" / "compatibility.py"


@pytest.fixture
def compatibility() -> Any:
    spec = importlib.util.spec_from_file_location("compatibility", PATH)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


ONE = {
    "section": [{"title": "T", "points": {"7": "behaves"}, "differs": {"7": "but so"}}],
    "difference": [{"text": "other", "tests": ["test_a.py::test_d"], "cases": ["inv"]}],
}


def test_page_is_what_its_script_makes(compatibility: Any) -> None:
    made = compatibility.document(compatibility.table(), compatibility.marked_tests())
    assert compatibility.DOCUMENT.read_text(encoding="utf-8") == made, "run make compatibility"


def test_point_is_a_line_with_its_difference_and_its_tests(compatibility: Any) -> None:
    text = compatibility.document(ONE, {7: {"test_a.py": ["test_b", "test_c"]}})
    assert "| 7 | behaves | different: but so | `test_a.py`: `test_b`, `test_c` |\n" in text


def test_difference_outside_of_the_points_is_a_line(compatibility: Any) -> None:
    text = compatibility.document(ONE, {7: {"test_a.py": ["test_b"]}})
    assert text.endswith("| other | `test_a.py::test_d`<br>`test_operations.py`, case `inv` |\n")


def test_tests_of_differences_exist(compatibility: Any) -> None:
    folder = Path(__file__).parent
    named = [test.split("[")[0].split("::") for one in compatibility.table()["difference"] for test in one["tests"]]
    assert [name for file, name in named if f"def {name}(" not in next(folder.rglob(file)).read_text(encoding="utf-8")] == []


def test_point_without_a_test_is_refused(compatibility: Any) -> None:
    with pytest.raises(ValueError, match=r"points without a test: \[7\]"):
        compatibility.document(ONE, {})


def test_mark_of_no_point_is_refused(compatibility: Any) -> None:
    with pytest.raises(ValueError, match=r"marked but not listed: \[8\]"):
        compatibility.document(ONE, {7: {"test_a.py": ["test_b"]}, 8: {"test_a.py": ["test_b"]}})


def test_marks_are_read_of_functions_and_of_files(compatibility: Any, tmp_path: Path) -> None:
    (tmp_path / "test_a.py").write_text("@pytest.mark.point(1, 2)\n@pytest.mark.slow\ndef test_b(): ...\n")
    (tmp_path / "test_c.py").write_text("pytestmark = [pytest.mark.point(2)]\n")
    found = compatibility.marked_tests(tmp_path)
    assert found == {1: {"test_a.py": ["test_b"]}, 2: {"test_a.py": ["test_b"], "test_c.py": ["all of its tests"]}}
