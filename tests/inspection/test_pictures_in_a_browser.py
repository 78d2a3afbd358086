"""Pages and pictures in a real browser, where this machine has one."""

from __future__ import annotations

import io
import re
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from inspection_browser import Browser, is_wanted

import tapegrad as tg

pytestmark = pytest.mark.skipif(not is_wanted(), reason="needs chromium: make browser")


def loop(x: Any, steps: int) -> Any:
    y = x[0]
    for k in range(steps):
        z = np.sin(y) * x[1]
        y = z * 0.5 + 1.0
        if k % 50 == 0:
            y = np.exp(-y)
    return y


@pytest.fixture(scope="module")
def browser(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Browser]:
    found = Browser(tmp_path_factory.mktemp("profile"))
    yield found
    found.close()


def place_of(browser: Browser, selector: str, number: int = 0) -> tuple[float, float]:
    box = browser.value(
        f"(() => {{const b = document.querySelectorAll('{selector}')[{number}].getBoundingClientRect();"
        "return [b.x + b.width / 2, b.y + b.height / 2]})()"
    )
    return box[0], box[1]


def colours(png: bytes) -> int:
    """How many colours a picture has."""
    from matplotlib.image import imread

    return len(np.unique((imread(io.BytesIO(png)) * 255).astype(np.uint8).reshape(-1, 3 if png[25] == 2 else 4), axis=0))


def test_page_of_many_rows_opens_hovers_searches_and_collapses(browser: Browser, tmp_path: Path) -> None:
    picture = tg.draw(loop, np.array([1.0, 2.0]), 1000)
    picture.save(tmp_path / "graph.html")
    browser.open(tmp_path / "graph.html")
    groups = browser.value("document.querySelectorAll('.node').length")
    assert 3 < groups < 20
    assert colours(browser.screenshot()) > 10

    browser.pointer("mouseMoved", *place_of(browser, ".group"))
    told = browser.value("document.getElementById('tip').textContent")
    assert (
        "rows:" in told
        and re.search(r"^\d\S* (k?B|MB)$", told, re.MULTILINE)
        and re.search(r"^\d\S* [mµ]?s to record$", told, re.MULTILINE)
    )

    browser.click(*place_of(browser, ".group"))
    assert browser.value("document.getElementById('tip').style.display") == "none"  # what it told of is gone
    opened = browser.value("document.querySelectorAll('.node').length")
    assert groups < opened <= 500
    assert browser.value("document.querySelectorAll('#opened li').length") == 1

    browser.click(*place_of(browser, "#search"))
    browser.type("exp")
    found = browser.value("document.querySelectorAll('#found li').length")
    assert found == 40  # the line has two operations
    browser.click(*place_of(browser, "#found li", 1))
    assert browser.value("document.querySelectorAll('.marked').length") == 1
    browser.pointer("mouseMoved", *place_of(browser, ".marked rect"))
    shown = browser.value("document.getElementById('tip').textContent")
    assert shown.startswith("Exp (row")
    assert "value 0." in shown and "gradient " in shown and "y = np.exp(-y)" in shown

    before = browser.value("document.getElementById('scene').getAttribute('transform')")
    browser.pointer("mouseWheel", 700, 400, deltaX=0, deltaY=-300)
    assert browser.value("document.getElementById('scene').getAttribute('transform')") != before

    browser.click(*place_of(browser, "#close"))
    assert browser.value("document.querySelectorAll('.node').length") == groups
    assert browser.complaints == []


def test_picture_shows_as_it_is(browser: Browser, tmp_path: Path) -> None:
    tg.draw(loop, np.array([1.0, 2.0]), 3).save(tmp_path / "graph.svg")
    browser.open(tmp_path / "graph.svg")
    assert browser.value("document.querySelectorAll('.node').length") > 10
    assert "gradient" in browser.value("document.querySelector('.row title').textContent")
    assert colours(browser.screenshot()) > 10
    assert browser.complaints == []
