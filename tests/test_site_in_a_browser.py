"""The check of the built site says what is wrong with a page and with the search."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import site_in_a_browser as check
from inspection_browser import Browser, is_wanted

SEARCH = "<form action='search.html'><input name='q'></form>"
RESULTS = "<div id='search-results'><ul class='search'><li><a href='found.html'>found</a></li></ul></div>"

pytestmark = pytest.mark.skipif(not is_wanted(), reason="needs chromium: make browser")


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    found = Browser(tmp_path_factory.mktemp("profile"))
    yield found
    found.close()


def test_faults_of_pages_are_told(browser: Browser, tmp_path: Path) -> None:
    (tmp_path / "well.html").write_text("<p>as it should be</p>")
    (tmp_path / "script.html").write_text("<script>throw new Error('no')</script>")
    (tmp_path / "wide.html").write_text("<div style='width: 3000px'>wide</div>")
    (tmp_path / "without.html").write_text("<img src='gone.png'>")
    told = sorted(
        {
            fault.split(":")[0] + (" gone" if "no image gone.png" in fault else "")
            for fault in check.faults_of_pages(browser, tmp_path)
        }
    )
    assert told == ["script.html", "wide.html", "without.html", "without.html gone"]


def test_pages_that_the_search_does_not_find_are_told(browser: Browser, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(check, "PATIENCE", 0.3)
    (tmp_path / "index.html").write_text(SEARCH)
    (tmp_path / "search.html").write_text(RESULTS)
    assert list(check.faults_of_search(browser, tmp_path, {"a": "found.html"})) == []
    assert list(check.faults_of_search(browser, tmp_path, {"a": "other.html"})) == [
        "search for a: other.html is not among the results (found.html)"
    ]
