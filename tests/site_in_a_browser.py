"""Open the built site in a browser, from its files and without a network: every page as it should be, and the search.

python tests/site_in_a_browser.py [folder]
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

from inspection_browser import Browser

__all__ = ["faults_of_pages", "faults_of_search"]

SITE = Path(__file__).parents[1] / "docs" / "_build"

# What a reader may look for, and the page that has it.
SEARCHED = {
    "explain_nan": "reference/inspection.html",
    "least_squares": "reference/tapegrad-optimize.html",
    "register_derivative": "compiled-functions.html",
    "sum_over": "how-to/large-data.html",
}
PATIENCE = 30.0

MISSING = "[...document.images].filter(i => !i.complete || !i.naturalWidth).map(i => i.getAttribute('src')).join(', ')"
TOO_WIDE = "Math.max(document.documentElement.scrollWidth - innerWidth, 0)"
FOUND = "[...document.querySelectorAll('#search-results ul.search a')].map(a => a.getAttribute('href')).join(' ')"


def faults_of_pages(browser: Browser, site: Path) -> Iterator[str]:
    """What is wrong with a page: errors of its scripts, images that are not there, more width than the window has."""
    for page in sorted(site.rglob("*.html")):
        name = page.relative_to(site)
        if name.parts[0] in ("_static", "_sources"):
            continue
        browser.complaints.clear()
        browser.open(page)
        yield from (f"{name}: {complaint}" for complaint in browser.complaints)
        if missing := browser.value(MISSING):
            yield f"{name}: no image {missing}"
        if wider := browser.value(TOO_WIDE):
            yield f"{name}: {wider} pixels wider than the window"


def faults_of_search(browser: Browser, site: Path, searched: dict[str, str]) -> Iterator[str]:
    """Words that are typed into the search of the first page and do not lead to their page."""
    for word, page in searched.items():
        browser.complaints.clear()
        browser.open(site / "index.html")
        browser.value("document.querySelector('input[name=q]').focus()")
        browser.type(word)
        browser.value("document.querySelector('input[name=q]').form.requestSubmit()")
        found, end = "", time.monotonic() + PATIENCE
        while page not in found and time.monotonic() < end:
            time.sleep(0.1)
            found = browser.value(FOUND)
        yield from (f"search for {word}: {complaint}" for complaint in browser.complaints)
        if page not in found:
            yield f"search for {word}: {page} is not among the results ({found or 'none'})"


def main() -> None:
    site = Path(sys.argv[1]) if len(sys.argv) > 1 else SITE
    if not (site / "index.html").exists():
        raise SystemExit(f"there is no site in {site}: make docs")
    with tempfile.TemporaryDirectory(ignore_cleanup_errors=True) as folder:
        browser = Browser(Path(folder))
        try:
            faults = [*faults_of_pages(browser, site), *faults_of_search(browser, site, SEARCHED)]
        finally:
            browser.close()
    if faults:
        raise SystemExit("\n".join(faults))
    print(f"{sum(1 for _ in site.rglob('*.html'))} pages open, and the search finds {', '.join(SEARCHED)}")


if __name__ == "__main__":
    main()
