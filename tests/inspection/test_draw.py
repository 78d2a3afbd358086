"""Pictures of graphs are well-formed, have a node for every row or group, and show what is known of it."""

from __future__ import annotations

import json
import re
from itertools import pairwise
from pathlib import Path
from typing import Any
from xml.etree import ElementTree

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import tapegrad as tg
from tapegrad.inspection.layered_layout import layered, nearest_places
from tapegrad.inspection.values_as_text import duration_in_words

SVG = "{http://www.w3.org/2000/svg}"


def model(x: Any) -> Any:
    inner = np.sin(x) * x
    total = inner.sum()
    return total / np.sqrt(x[0])


def loop(x: Any, steps: int) -> Any:
    y = x[0]
    for _ in range(steps):
        y = np.sin(y) * x[1]
        y = y + 1.0
    return y


def nodes(svg: str) -> list[list[str]]:
    """Details of each node of a picture."""
    root = ElementTree.fromstring(svg)
    groups = [group for group in root.iter(f"{SVG}g") if "node" in group.get("class", "").split()]
    return [str(group.find(f"{SVG}title").text).splitlines() for group in groups]  # type: ignore[union-attr]


def page_data(html: str) -> Any:
    found = re.search(r'<script id="data" type="application/json">(.*?)</script>', html, flags=re.DOTALL)
    assert found is not None
    return json.loads(found[1])


def test_rows_of_a_call_show_value_gradient_and_line() -> None:
    x = np.array([4.0, 1.0])
    found = {details[0]: details for details in nodes(tg.draw(model, x).svg)}
    assert set(found) == {"argument 0", "Sin", "Mul", "Sum", "Select", "Sqrt", "Div"}
    gradient = tg.grad(model)(x)
    assert found["argument 0"][1:4] == [
        "shape (2,)", "value [4, 1] of shape (2,)", f"gradient [{gradient[0]:.6g}, {gradient[1]:.6g}] of shape (2,)",
    ]  # fmt: skip
    assert "value 2" in found["Sqrt"]
    assert any(text.endswith("in model: inner = np.sin(x) * x") for text in found["Mul"])


def test_every_edge_is_drawn() -> None:
    svg = tg.draw(model, np.array([4.0, 1.0])).svg
    assert svg.count("marker-end=") == 8


def test_style_of_a_picture_is_its_own() -> None:
    style = re.search(r"<style>(.*?)</style>", tg.draw(model, np.array([4.0, 1.0])).svg)
    assert style is not None
    assert all(rule.startswith(".tapegrad-graph ") for rule in re.findall(r"[^{}]+(?={)", style[1]))


def test_graph_of_a_tensor_shows_what_rows_kept() -> None:
    x = tg.tensor([1.0, 2.0], requires_grad=True)
    y = (x * x).sum() * 3.0
    y.backward(retain_graph=True)
    found = {details[0]: details for details in nodes(tg.draw(y).svg)}
    assert set(found) == {"leaf", "Mul", "Sum"}
    assert len(nodes(tg.draw(y).svg)) == 4
    assert "gradient [6, 12] of shape (2,)" in found["leaf"]
    assert "value 5" in found["Sum"]


def test_lines_of_tensors_are_shown_if_they_were_noted() -> None:
    x = tg.tensor(1.0, requires_grad=True)
    with tg.autograd.set_detect_anomaly(True):
        y = np.sin(x)
    (details,) = [details for details in nodes(tg.draw(y).svg) if details[0] == "Sin"]
    assert any("y = np.sin(x)" in text for text in details)


def test_loops_are_groups_by_line_with_edges_that_go_back() -> None:
    svg = tg.draw(loop, np.array([1.0, 0.5]), 40, by="lines").svg
    found = {details[0]: details for details in nodes(svg)}
    assert "y = np.sin(y) * x[1]: 120 rows" in found
    assert found["y = np.sin(y) * x[1]: 120 rows"][1] in ("40 Sin, 40 Select, 40 Mul", "40 Sin, 40 Mul, 40 Select")
    assert 'class="back"' in svg
    assert len(nodes(tg.draw(loop, np.array([1.0, 0.5]), 40, by="functions").svg)) == 2
    assert len(nodes(tg.draw(loop, np.array([1.0, 0.5]), 40, by="operations").svg)) == 5


def test_large_graphs_are_grouped_by_themselves() -> None:
    picture = tg.draw(loop, np.array([1.0, 0.5]), 400)
    assert picture.by == "lines"
    assert len(nodes(picture.svg)) < 10
    assert picture._repr_html_().startswith("<iframe")
    assert tg.draw(loop, np.array([1.0, 0.5]), 4)._repr_html_().startswith("<svg")


def test_page_has_every_row() -> None:
    data = page_data(tg.draw(loop, np.array([1.0, 0.5]), 300).html)
    assert len(data["name"]) == len(data["value"]) == len(data["starts"]) - 1 == 1 + 1 + 300 * 4
    assert all(
        parent < row for row in range(len(data["name"])) for parent in data["parents"][slice(*data["starts"][row : row + 2])]
    )
    assert {data["names"][number] for number in data["name"]} == {"argument 0", "Select", "Sin", "Mul", "Add"}
    assert "y = y + 1.0" in data["lineTexts"]


def test_text_of_lines_cannot_end_the_page() -> None:
    html = tg.draw(lambda x: x * len("</script><script>alert(1)</script>"), 1.0).html
    assert html.count("</script>") == 2
    assert any("alert" in text for text in page_data(html)["lineTexts"])


def test_page_needs_no_network() -> None:
    html = tg.draw(model, np.array([4.0, 1.0])).html
    assert set(re.findall(r"https?://[^\s\"']+", html)) == {"http://www.w3.org/2000/svg"}


def test_odd_values_are_framed() -> None:
    svg = tg.draw(lambda x: np.log(x).sum(), np.array([0.0, 1.0])).svg
    assert re.search(r'class="node row odd', svg)
    assert not re.search(r'class="node \w+ [^"]*odd', tg.draw(model, np.array([4.0, 1.0])).svg)


def test_program_shows_its_steps_and_guards() -> None:
    @tg.program
    def f(x: Any) -> Any:
        return np.exp(x).sum() if x[0] > 0.0 else x.sum()

    with pytest.raises(ValueError, match="recorded nothing yet"):
        tg.draw(f)
    tg.value_and_grad(f)(np.ones(2))
    svg = tg.draw(f).svg
    assert "exp" in {details[0] for details in nodes(svg)}
    assert 'class="node guard' in svg
    assert "Exp" in {details[0] for details in nodes(tg.draw(f, np.ones(2)).svg)}


def test_pictures_are_saved_by_their_ending(tmp_path: Path) -> None:
    picture = tg.draw(model, np.array([4.0, 1.0]))
    picture.save(tmp_path / "graph.svg")
    picture.save(tmp_path / "graph.html")
    assert (tmp_path / "graph.svg").read_text(encoding="utf-8") == picture.svg
    assert (tmp_path / "graph.html").read_text(encoding="utf-8").startswith("<!DOCTYPE html>")
    with pytest.raises(ValueError, match=r"saved as \.svg or \.html, but the file is graph\.png"):
        picture.save(tmp_path / "graph.png")


def test_what_cannot_be_drawn_is_refused() -> None:
    with pytest.raises(ValueError, match="the tensor has no graph"):
        tg.draw(tg.tensor(1.0))
    with pytest.raises(ValueError, match="does not depend on its arguments"):
        tg.draw(lambda x: tg.tensor(1.0), 2.0)
    with pytest.raises(TypeError, match="takes a tensor, or a function and its arguments, but got str"):
        tg.draw("graph")
    with pytest.raises(ValueError, match="by must be one of rows, lines"):
        tg.draw(model, np.ones(2), by="line")


@given(st.lists(st.floats(-10.0, 10.0), min_size=1, max_size=8), st.floats(0.1, 3.0))
def test_places_keep_their_distances_and_are_nearest(wanted: list[float], distance: float) -> None:
    found = np.array(nearest_places(wanted, [distance] * (len(wanted) - 1)))
    assert (np.diff(found) >= distance - 1e-9).all()
    cost = ((found - wanted) ** 2).sum()
    others = np.sort(np.random.default_rng(0).uniform(-15.0, 15.0, (50, len(wanted))), axis=1)
    shifted = others + distance * np.arange(len(wanted))
    assert (((shifted - wanted) ** 2).sum(axis=1) >= cost - 1e-9).all()


@given(st.integers(1, 12), st.randoms(use_true_random=False))
def test_layers_lie_below_what_they_depend_on_and_boxes_apart(count: int, random: Any) -> None:
    edges = sorted({(a, b) for b in range(count) for a in range(b) if random.random() < 0.3})
    widths = [10.0 + 5.0 * k for k in range(count)]
    found = layered(widths, edges)
    assert all(found.layer[a] < found.layer[b] for a, b in edges)
    for path in found.paths:
        assert [found.layer[k] for k in path] == list(range(found.layer[path[0]], found.layer[path[-1]] + 1))
    for layer in set(found.layer[:count]):
        own = sorted((found.x[k], widths[k]) for k in range(count) if found.layer[k] == layer)
        assert all(y - x >= (v + w) / 2 for (x, v), (y, w) in pairwise(own))


@pytest.mark.parametrize(
    ("seconds", "words"),
    [(0.0, "0 µs"), (2.5e-7, "0.25 µs"), (1.2e-4, "120 µs"), (0.9996e-3, "1 ms"), (0.25, "250 ms"), (2.3987, "2.4 s")],
)
def test_times_have_a_unit_that_fits(seconds: float, words: str) -> None:
    assert duration_in_words(seconds) == words
