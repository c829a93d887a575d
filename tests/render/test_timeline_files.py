"""Pictures and pages of timelines: whole, valid, without anything from elsewhere, and alive in a browser."""

from __future__ import annotations

import json
import re
import xml.etree.ElementTree as ElementTree

import pytest

from shardviz.errors import QuestionError
from shardviz.render.exports import html
from shardviz.render.times.timeline_html import timeline_html
from shardviz.render.times.timeline_svg import timeline_svg
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
    assert page.count("</script>") == 2
    assert "<b onclick" not in page


def test_a_page_holds_every_operation() -> None:
    page = timeline_html([LAYER, LAYER], "two of them", "shardviz hlo layer.txt --time")
    data = json.loads(re.search(r'id="data">(.*)</script>\n', page)[1])
    assert len(data) == 2
    ops, texts = data[0]["ops"], data[0]["texts"]
    assert [texts[name] for name in ops["name"]] == [op.name for op in LAYER.ops]
    assert [end / 1e12 for end in ops["end"]] == pytest.approx([op.end for op in LAYER.ops])
    assert {len(column) for column in ops.values()} == {len(LAYER.ops)}
    assert not re.search(r"(href|src)=|https?://(?!ui)", re.sub(r"xmlns\S+", "", page))


def test_fifty_thousand_operations_fit_on_a_page(monkeypatch) -> None:
    many = long_timeline(50_000)
    assert len(timeline_html([many], "many")) < html.MAX_CHARACTERS
    monkeypatch.setattr(html, "MAX_CHARACTERS", 100_000)
    with pytest.raises(QuestionError, match=r"the page would have [\d,]+ characters"):
        timeline_html([many], "many")


@pytest.mark.parametrize("scheme", ["light", "dark"])
def test_a_browser_zooms_pans_and_tells_what_is_under_the_pointer(browser, tmp_path, scheme) -> None:
    path = tmp_path / "layer.html"
    path.write_text(timeline_html([LAYER], "layer"), encoding="utf-8")
    page = browser.new_page(color_scheme=scheme)
    said = []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.goto(path.as_uri())

    def window():
        return [round(page.evaluate(name) / 1e9, 3) for name in ("first", "last")]

    assert window() == [0, 36]
    box = page.locator("canvas").bounding_box()
    row = page.evaluate("all[0].rows[0].y") + box["y"] + 10
    names, width = page.evaluate("NAMES"), box["width"] - page.evaluate("NAMES") - 16
    page.mouse.move(box["x"] + names + width * 12 / 36, row)
    assert page.locator("#tip").is_visible()
    assert "fusion.1" in page.locator("#tip").inner_text()
    assert "net.py:12" in page.locator("#tip").inner_text()
    page.mouse.wheel(0, -400)
    page.wait_for_timeout(50)
    start, end = window()
    assert end - start < 36
    assert start < 12 < end
    assert (12 - start) / (end - start) == pytest.approx(12 / 36, abs=0.02)
    page.keyboard.press("ArrowRight")
    assert window()[0] > start
    page.keyboard.press("0")
    assert window() == [0, 36]
    page.mouse.down()
    page.mouse.up()
    assert "fusion.1" in page.locator("#detail").inner_text()
    page.keyboard.press("Escape")
    assert page.locator("#detail").inner_text() == ""
    page.keyboard.press("+")
    before = window()
    page.mouse.move(box["x"] + 600, row)
    page.mouse.down()
    page.mouse.move(box["x"] + 500, row, steps=3)
    page.mouse.up()
    assert window()[0] > before[0]
    assert said == []


def test_a_browser_draws_fifty_thousand_operations_at_once(browser, tmp_path) -> None:
    path = tmp_path / "many.html"
    path.write_text(timeline_html([long_timeline(50_000)], "many"), encoding="utf-8")
    page = browser.new_page()
    page.goto(path.as_uri())
    taken = page.evaluate(
        "(() => { const begun = performance.now(); draw(); return performance.now() - begun; })()"
    )
    assert taken < 500
