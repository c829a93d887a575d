"""Pictures and pages of timelines: whole, valid, without anything from elsewhere, and drawn by a browser."""

from __future__ import annotations

import re
import xml.etree.ElementTree as ElementTree
from dataclasses import replace

import pytest

from shardviz.errors import QuestionError
from shardviz.render.exports import Subject, pictures
from shardviz.render.exports.pictures import svg
from tests.render.timelines import LAYER, long_timeline

SVG = "{http://www.w3.org/2000/svg}"


def subject(*timelines, title: str = "layer", command: str = "") -> Subject:
    return Subject(timelines, title, command)


def test_a_picture_has_the_chart_alone_and_a_page_its_causes() -> None:
    picture = svg(subject(LAYER))
    words = "\n".join(text.text or "" for text in ElementTree.fromstring(picture).iter(f"{SVG}text"))
    words = words.replace("\xa0", " ")
    for each in ("compute", "HBM copies", "X", "Y", "memory", "peak 13 GiB", "×4 while.1"):
        assert each in words
    assert words.count("critical path") == 1  # its lane
    assert "largest savings" not in words
    assert "largest savings" in pictures.html(subject(LAYER))
    assert not re.search(r"(href|src|url)\s*[=(]\s*[\"']?http", picture)


def test_a_picture_of_many_operations_stays_small() -> None:
    picture = svg(subject(long_timeline(20_000)))
    assert len(picture) < 1_000_000
    ElementTree.fromstring(picture)


def test_names_are_escaped() -> None:
    hostile = replace(LAYER, title='</script><b onclick="x">', machine="a&b")
    ElementTree.fromstring(svg(subject(hostile, title=hostile.title)))
    page = pictures.html(subject(hostile, title=hostile.title))
    assert "<script" not in page
    assert "<b onclick" not in page


def test_a_page_tells_what_the_terminal_does() -> None:
    page = pictures.html(subject(LAYER, LAYER, title="two of them", command="shardviz hlo layer.txt --time"))
    assert page.count("<h2") == 2
    assert page.count("critical path") == 6
    assert not re.search(r"(href|src)=|https?://", re.sub(r"xmlns\S+", "", page))


def test_fifty_thousand_operations_fit_on_a_page(monkeypatch) -> None:
    many = subject(long_timeline(50_000))
    assert len(pictures.html(many)) < pictures.MAX_CHARACTERS
    monkeypatch.setattr(pictures, "MAX_CHARACTERS", 1_000)
    with pytest.raises(QuestionError, match=r"the page would have [\d,]+ characters"):
        pictures.html(many)
