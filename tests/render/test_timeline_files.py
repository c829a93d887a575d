"""Pictures and pages of timelines: whole, valid, without anything from elsewhere, and drawn by a browser."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree

import pytest

from shardviz.errors import QuestionError
from shardviz.render.exports import html
from shardviz.render.times.timeline_svg import timeline_html, timeline_svg
from tests.render.timelines import LAYER, long_timeline

SVG = "{http://www.w3.org/2000/svg}"


def test_a_picture_has_every_bar_in_its_place() -> None:
    root = ElementTree.fromstring(timeline_svg([LAYER]))
    bars = {bar.find(f"{SVG}title").text.split(",")[0]: bar for bar in root.iter(f"{SVG}rect") if len(bar)}
    assert set(bars) == {op.name for op in LAYER.ops if op.end > op.start}
    first, second = (float(bars[name].get("x")) for name in ("all-gather.1", "all-gather.2"))
    width = float(root.get("width")) - 28 - first
    assert second - first == pytest.approx(width * 8 / 36, abs=0.1)
    texts = [text.text for text in root.iter(f"{SVG}text")]
    assert {"compute", "HBM copies", "X", "Y", "memory", "?", "peak 13 GiB", "×4 while.1"} <= set(texts)
    assert not re.search(r"(href|src|url)\s*[=(]\s*[\"']?http", timeline_svg([LAYER]))


def test_a_picture_of_many_operations_stays_small() -> None:
    picture = timeline_svg([long_timeline(20_000)])
    assert len(picture) < 1_000_000
    ElementTree.fromstring(picture)


def test_names_are_escaped() -> None:
    from dataclasses import replace

    hostile = replace(LAYER, title='</script><b onclick="x">', machine="a&b")
    ElementTree.fromstring(timeline_svg([hostile]))
    page = timeline_html([hostile], hostile.title)
    assert "<script" not in page
    assert "<b onclick" not in page


def test_a_page_tells_what_the_terminal_does() -> None:
    page = timeline_html([LAYER, LAYER], "two of them", "shardviz hlo layer.txt --time")
    assert page.count("<h2") == 2
    assert page.count("critical path") == 2
    assert {op.name for op in LAYER.ops if op.end > op.start} <= {*re.findall(r"<title>([^,<]*),", page)}
    assert not re.search(r"(href|src)=|https?://(?!ui)", re.sub(r"xmlns\S+", "", page))


def test_fifty_thousand_operations_fit_on_a_page(monkeypatch) -> None:
    many = long_timeline(50_000)
    assert len(timeline_html([many], "many")) < html.MAX_CHARACTERS
    monkeypatch.setattr(html, "MAX_CHARACTERS", 10_000)
    with pytest.raises(QuestionError, match=r"the page would have [\d,]+ characters"):
        timeline_html([many], "many")


def test_a_browser_draws_the_picture_in_its_colours(browser, tmp_path) -> None:
    path = tmp_path / "layer.html"
    path.write_text(timeline_html([LAYER], "layer"), encoding="utf-8")
    page = browser.new_page()
    said = []
    page.on("console", lambda message: said.append(message.text))
    page.goto(path.as_uri())
    lane = page.locator("svg text.lane").nth(1)
    assert lane.evaluate("each => getComputedStyle(each).fill") != "rgb(0, 0, 0)"
    assert lane.evaluate("each => getComputedStyle(each).textAnchor") == "end"
    assert said == []
