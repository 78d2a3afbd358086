"""The documentation site: every page is reached, every link leads somewhere, every public name has its place in the reference."""

from __future__ import annotations

import importlib
import re
import sys
from pathlib import Path
from types import ModuleType
from typing import Any

import pytest

import tapegrad as tg
from tapegrad.surface.public_names import FAMILIES

ROOT = Path(__file__).parents[1]
DOCS = ROOT / "docs"
PAGES = [path for path in sorted(DOCS.glob("**/*.md")) if not any(part.startswith("_") for part in path.relative_to(DOCS).parts)]
LINK = re.compile(r"(?<!`)\[(?:[^\]\[]|\[[^\]]*\])*\]\(([^)\s]+)\)")


def generator(name: str, monkeypatch: pytest.MonkeyPatch) -> Any:
    """A module of the folder `docs`."""
    monkeypatch.syspath_prepend(str(DOCS))
    monkeypatch.delitem(sys.modules, name, raising=False)
    return importlib.import_module(name)


def anchors(path: Path) -> set[str]:
    """What headings are called in links."""
    text = re.sub(r"```.*?```", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
    headings = re.findall(r"^#+ (.*)$", text, flags=re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", heading.lower()).replace(" ", "-") for heading in headings}


def links(path: Path) -> list[str]:
    text = re.sub(r"```.*?```", "", path.read_text(encoding="utf-8"), flags=re.DOTALL)
    return LINK.findall(text)


@pytest.mark.parametrize("page", [*PAGES, ROOT / "README.md", ROOT / "CONTRIBUTING.md"], ids=lambda path: path.name)
def test_links_lead_somewhere(page: Path) -> None:
    broken = []
    for link in links(page):
        file, _, anchor = link.partition("#")
        if file.startswith(("http://", "https://")):
            continue
        target = (page.parent / file).resolve() if file else page
        if not target.exists() or (anchor and anchor not in anchors(target)):
            broken.append(link)
    assert broken == []


def test_every_page_is_in_the_tree() -> None:
    index = (DOCS / "index.md").read_text(encoding="utf-8")
    listed = {
        line.strip() for block in re.findall(r"```\{toctree\}(.*?)```", index, flags=re.DOTALL) for line in block.splitlines()
    }
    pages = {str(path.relative_to(DOCS).with_suffix("")) for path in PAGES if path.parent.name != "decisions"} - {"index"}
    assert pages - listed == set()
    assert {name for name in listed if name and not name.startswith((":", "_"))} - pages == set()


def test_every_public_name_is_in_the_reference(monkeypatch: pytest.MonkeyPatch) -> None:
    reference = generator("reference", monkeypatch)
    told = {name for _, _, module, names in reference.PAGES if module in ("tapegrad", "tapegrad.errors") for name in names}
    assert set(reference.public_names()) - told == set()
    assert {"draw", "explain_nan", "profile"} == set(reference.names_of_page("inspection"))
    assert "sin" in reference.names_of_page("elementwise") and "minimize" in reference.names_of_page("tapegrad-optimize")


def test_every_public_module_is_in_the_reference(monkeypatch: pytest.MonkeyPatch) -> None:
    reference = generator("reference", monkeypatch)
    families = {f"tapegrad.{name}" for name, names in FAMILIES.items() if names == "."} | {"tapegrad.autograd", "tapegrad.linalg"}
    own_page = {"tapegrad.drivers", "tapegrad.numpy"}  # whose names are those of tapegrad, and of NumPy
    told = set(reference.MODULE_PAGES)
    assert families - own_page - told == set()
    for name in told | {"tapegrad.utils"}:
        module = importlib.import_module(name)
        inner = {f"{name}.{one}" for one in module.__all__ if isinstance(getattr(module, one), ModuleType)}
        assert inner - told == set()


def test_methods_are_in_the_reference(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    generator("reference", monkeypatch).write(tmp_path)
    of_tensors = (tmp_path / "tensors.md").read_text(encoding="utf-8")
    methods = {name for name in dir(tg.Tensor) if not name.startswith("_") and hasattr(tg.Tensor, name)}
    assert {name for name in methods if f"`{name}`" not in of_tensors} == set()
    assert "| `register_hook` | " in of_tensors
    assert ".. autoclass:: tapegrad.profile\n   :no-index:\n   :members:" in (tmp_path / "inspection.md").read_text(
        encoding="utf-8"
    )


def test_pages_of_reference_are_written_once(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    reference = generator("reference", monkeypatch)
    (tmp_path / "of-a-module-that-is-gone.md").write_text("# Gone\n")
    reference.write(tmp_path)
    assert not (tmp_path / "of-a-module-that-is-gone.md").exists()
    times = {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()}
    reference.write(tmp_path)
    assert {path: path.stat().st_mtime_ns for path in tmp_path.iterdir()} == times
    assert ".. autofunction:: tapegrad.hessian" in (tmp_path / "drivers.md").read_text(encoding="utf-8")
    assert "Another name of `tapegrad.abs`" in (tmp_path / "elementwise.md").read_text(encoding="utf-8")


def test_gallery_has_every_example(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    gallery = generator("gallery", monkeypatch)
    gallery.write(tmp_path, run=False)
    examples = {path.stem for path in (ROOT / "examples").glob("*.py")}
    assert {path.stem for path in tmp_path.glob("*.md")} == examples | {"index"}
    assert set(gallery.DRAWING) <= examples
    for name in examples:
        found = re.search(r"```\{literalinclude\} (\S+)", (tmp_path / f"{name}.md").read_text(encoding="utf-8"))
        assert found is not None
        assert (tmp_path / found[1]).resolve() == ROOT / "examples" / f"{name}.py"


def test_gallery_shows_what_an_example_prints_and_says_if_one_fails(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    gallery = generator("gallery", monkeypatch)
    (tmp_path / "examples").mkdir()
    (tmp_path / "examples" / "small.py").write_text('"""A small one.\n\nMore of it.\n"""\nprint(6 * 7)\n')
    monkeypatch.setattr(gallery, "EXAMPLES", tmp_path / "examples")
    gallery.write(tmp_path / "pages")
    page = (tmp_path / "pages" / "small.md").read_text(encoding="utf-8")
    assert page.startswith("# Small\n\nA small one.\n\nMore of it.")
    assert "```text\n42\n```" in page
    (tmp_path / "examples" / "small.py").write_text("raise ValueError('no')\n")
    (tmp_path / "pages" / "small.txt").unlink()
    with pytest.raises(RuntimeError, match=r"small\.py failed: ValueError: no"):
        gallery.write(tmp_path / "pages")


def test_gallery_begins_with_all_pictures(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    gallery = generator("gallery", monkeypatch)
    (tmp_path / "examples").mkdir()
    (tmp_path / "examples" / "drawn.py").write_text(
        '"""One that draws."""\nimport pathlib, sys\npathlib.Path(sys.argv[1]).touch()\n'
    )
    (tmp_path / "examples" / "told.py").write_text('"""One that does not."""\n')
    monkeypatch.setattr(gallery, "EXAMPLES", tmp_path / "examples")
    monkeypatch.setattr(gallery, "DRAWING", ("drawn",))
    gallery.write(tmp_path / "pages")
    index = (tmp_path / "pages" / "index.md").read_text(encoding="utf-8")
    assert "{image} drawn.png" in index and "[Drawn](drawn.md): One that draws." in index
    assert "told.png" not in index and "[Told](told.md): One that does not." in index


def test_tables_of_the_simulated_cluster_are_those_of_the_simulation(monkeypatch: pytest.MonkeyPatch) -> None:
    page = (DOCS / "how-to" / "cluster.md").read_text(encoding="utf-8")
    assert "from a simulation" in page
    for table in generator("cluster_simulation", monkeypatch).tables():
        assert table in page, "python docs/cluster_simulation.py prints them anew"
