"""Write a page of what `asv run` measured at a commit: each benchmark with its peers beside us, as bars.

``python asv_bench/result_pages.py`` (in ``asv_bench``; ``make bench-html`` measures first) reads ``.asv/results`` and writes
``.asv/html/peers.html``. The page is one file, which needs no network and no server. Pages of asv beside it show how figures
went from commit to commit; those load their libraries from the network.
"""

from __future__ import annotations

import argparse
import html
import itertools
import json
import math
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any, NamedTuple

from conditions import conditions

FOLDER = Path(__file__).parents[1] / ".asv"
# Parameters whose values stand beside each other; others make a group of bars for each of their values.
COMPARED = ("library", "rival", "peer", "form", "how", "way")
OURS = ("tapegrad", "tapegrad compiled", "program")
WIDTH, NAMES, FIGURES, LINE = 860, 190, 150, 20  # of the drawings, in points


class Bar(NamedTuple):
    """One figure, with what asv says of its spread: the quartiles."""

    name: str
    value: float
    low: float
    high: float


class Group(NamedTuple):
    """Bars of one scale."""

    title: str
    bars: list[Bar]


class Measured(NamedTuple):
    """A benchmark."""

    name: str
    unit: str
    groups: list[Group]


def main() -> None:
    """Write the page of a commit."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--commit", help="of which results are shown; the one that is checked out, if it is not said")
    parser.add_argument("--folder", type=Path, default=FOLDER, help="where asv keeps results and pages")
    options = parser.parse_args()
    commit = options.commit or subprocess.check_output(["git", "rev-parse", "HEAD"], text=True).strip()
    found = list(measured(options.folder / "results", commit))
    if not found:
        sys.exit(f"{options.folder / 'results'} has no figures of {commit[:10]}: make bench-html measures them")
    target = options.folder / "html" / "peers.html"
    target.parent.mkdir(parents=True, exist_ok=True)
    target.write_text(page(found, commit), encoding="utf-8")
    print(f"{target}: {len(found)} benchmarks, {sum(len(one.groups) for one in found)} graphs")


def measured(results: Path, commit: str) -> Iterator[Measured]:
    """What was measured at a commit; of several environments and machines, that which was measured last."""
    known = json.loads((results / "benchmarks.json").read_text(encoding="utf-8"))
    latest: dict[str, dict[str, Any]] = {}
    for file in results.glob("*/*.json"):
        content = json.loads(file.read_text(encoding="utf-8")) if file.name != "machine.json" else {}
        if content.get("commit_hash") != commit:
            continue
        for name, row in content["results"].items():
            result = dict(zip(content["result_columns"], row, strict=False))
            if name in known and result["started_at"] >= latest.get(name, result)["started_at"]:
                latest[name] = result
    for name in sorted(latest):
        groups = groups_of(known[name]["param_names"], latest[name])
        if groups:
            yield Measured(name, known[name]["unit"], groups)


def groups_of(names: list[str], result: dict[str, Any]) -> list[Group]:
    """Bars side by side for the parameter that is compared, or for all values of one that stands alone."""
    values = result["result"]
    if values is None:
        return []  # it failed
    count = len(values)
    lows, highs = (result.get(f"stats_q_{quartile}") or [None] * count for quartile in (25, 75))
    beside = len(names) - 1 if len(names) == 1 or (names and names[-1] in COMPARED) else len(names)
    found: dict[str, list[Bar]] = {}
    for choice, value, low, high in zip(itertools.product(*result["params"]), values, lows, highs, strict=True):
        if value is None or math.isnan(value):
            continue  # not chosen, or the peer is not installed
        words = [word.strip("'") for word in choice]
        title, own = ", ".join(words[:beside]), ", ".join(words[beside:])
        found.setdefault(title, []).append(Bar(own, value, value if low is None else low, value if high is None else high))
    return [Group(title, bars) for title, bars in found.items()]


def page(found: list[Measured], commit: str) -> str:
    """The page: a list of the benchmarks, and their drawings."""
    parts = []
    for one in found:
        drawings = "\n".join(drawing(group, one.unit) for group in one.groups)
        parts.append(f'<section data-name="{html.escape(one.name)}">\n<h2>{html.escape(one.name)}</h2>\n{drawings}\n</section>')
    return PAGE.format(commit=commit[:10], conditions=html.escape(conditions()), count=len(found), sections="\n".join(parts))


def drawing(group: Group, unit: str) -> str:
    """Bars from zero, to the scale of the longest."""
    longest = max(bar.value for bar in group.bars) or 1.0
    ours = next((bar.value for bar in group.bars if bar.name in OURS), 0.0)
    room = WIDTH - NAMES - FIGURES
    lines = [f"<figure><figcaption>{html.escape(group.title)}</figcaption>"] if group.title else ["<figure>"]
    height = LINE * len(group.bars)
    lines.append(f'<svg viewBox="0 0 {WIDTH} {height}" width="{WIDTH}" height="{height}" role="img">')
    for number, bar in enumerate(group.bars):
        top, width = LINE * number, max(1.0, room * bar.value / longest)
        kind = "ours" if bar.name in OURS or len({other.name for other in group.bars} & set(OURS)) == 0 else "peer"
        ratio = f" ({bar.value / ours:.3g}x)" if ours and bar.name not in OURS else ""
        spread = "" if bar.low == bar.high else f", quartiles {quantity(bar.low, unit)} to {quantity(bar.high, unit)}"
        told = html.escape(f"{bar.name or 'value'}: {quantity(bar.value, unit)}{ratio}{spread}")
        lines.append(
            f'<g><title>{told}</title><rect class="back" x="0" y="{top}" width="{WIDTH}" height="{LINE}"/>'
            f'<text x="{NAMES - 8}" y="{top + 14}" text-anchor="end">{html.escape(short(bar.name))}</text>'
            f'<rect class="{kind}" x="{NAMES}" y="{top + 3}" width="{width:.1f}" height="{LINE - 6}"/>'
            f'<text class="figure" x="{NAMES + width + 6:.1f}" y="{top + 14}">{quantity(bar.value, unit)}{ratio}</text></g>'
        )
    return "\n".join([*lines, "</svg></figure>"])


def short(name: str, most: int = 30) -> str:
    """A name that has room beside its bar; the whole of it is on hover."""
    return name if len(name) <= most else f"{name[: most - 1]}…"


def quantity(value: float, unit: str) -> str:
    """Three digits, and a unit that fits."""
    scales = {"seconds": (("s", 1.0), ("ms", 1e-3), ("µs", 1e-6), ("ns", 1e-9)), "bytes": (("GB", 1e9), ("MB", 1e6), ("kB", 1e3))}
    for name, size in scales.get(unit, ()):
        if abs(value) >= size:
            return f"{value / size:.3g} {name}"
    return f"{value:.3g} {unit}"


PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><title>tapegrad: measurements</title><link rel="icon" href="data:,">
<style>
body {{ font: 15px/1.45 system-ui, sans-serif; color: #222; max-width: 900px; margin: 2em auto; padding: 0 1em }}
h2 {{ font-size: 1em; font-family: ui-monospace, monospace; margin: 2em 0 0.4em; border-top: 1px solid #ddd; padding-top: 0.8em }}
figure {{ margin: 0 0 0.8em }}
figcaption {{ color: #555; font-size: 0.9em }}
svg {{ max-width: 100%; height: auto }}
svg text {{ font: 12px system-ui, sans-serif; fill: #222 }}
svg text.figure {{ fill: #555 }}
rect.back {{ fill: transparent }}
g:hover rect.back {{ fill: #f2f2f2 }}
rect.ours {{ fill: #1f6f8b }}
rect.peer {{ fill: #c9b79c }}
input {{ font: inherit; padding: 0.3em 0.6em; width: 20em }}
.conditions {{ color: #555; font-size: 0.9em }}
</style></head><body>
<h1>tapegrad: measurements</h1>
<p>{count} benchmarks at commit <code>{commit}</code>. Shorter bars are better where the unit is a time or memory; where it is
“x”, a figure says how many times longer the other takes. What is not there was not chosen, or not installed.
Names and quartiles are on hover.</p>
<p class="conditions">{conditions}</p>
<p><input id="search" placeholder="part of a name" aria-label="part of a name"> <span id="shown"></span></p>
{sections}
<p><a href="index.html">How figures went from commit to commit</a>: asv's pages, which load their libraries from the network and
are shown by <code>asv preview</code>.</p>
<script>
const search = document.getElementById("search"), sections = [...document.querySelectorAll("section")];
function choose() {{
  const words = search.value.toLowerCase().split(" ");
  let shown = 0;
  for (const section of sections) {{
    const text = section.textContent.toLowerCase();
    section.hidden = !words.every(word => text.includes(word));
    shown += !section.hidden;
  }}
  document.getElementById("shown").textContent = shown + " of " + sections.length;
}}
search.addEventListener("input", choose);
choose();
</script>
</body></html>
"""


if __name__ == "__main__":
    main()
