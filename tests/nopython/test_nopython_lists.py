"""The lists of the page on compiled functions are those of the tests' tables."""

import importlib.util
from pathlib import Path
from typing import Any

import pytest

PATH = Path(__file__).parents[2] / "docs" / "nopython_lists.py"


@pytest.fixture
def maker() -> Any:
    spec = importlib.util.spec_from_file_location("nopython_lists", PATH)
    assert spec is not None and spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_page_is_what_its_script_makes(maker: Any) -> None:
    text = maker.DOCUMENT.read_text(encoding="utf-8")
    assert text == maker.document(text), "run python docs/nopython_lists.py"


def test_each_function_is_listed_once_and_what_calls_are_written_with_is_not(maker: Any) -> None:
    assert maker.calls(["weigh(np.sum(x, 0))", "np.sum(np.arange(3.0) * x)", "x.sum()", "max(x)"]) == ["np.sum", "x.sum", "max"]
