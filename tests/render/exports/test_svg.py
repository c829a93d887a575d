"""Pictures as SVG files."""

from __future__ import annotations

from xml.etree import ElementTree

import pytest

from shardviz.errors import QuestionError
from shardviz.render.exports import Subject, pictures as module
from shardviz.render.exports.pictures import svg

SVG = "{http://www.w3.org/2000/svg}"


def test_it_is_xml_that_needs_nothing_else(subject):
    drawn = ElementTree.fromstring(svg(subject))
    assert {each.tag.removeprefix(SVG) for each in drawn.iter()} <= {
        *("svg", "title", "desc", "style", "defs", "clipPath", "rect", "g", "circle", "text")
    }
    values = [value for each in drawn.iter() for value in each.attrib.values()]
    styles = "".join(each.text for each in drawn.iter(f"{SVG}style"))
    assert all("url(" not in value or "url(#" in value for value in values)
    assert "url(" not in styles
    assert "@import" not in styles


def test_those_who_do_not_see_it_are_told_the_same(subject):
    drawn = ElementTree.fromstring(svg(subject))
    names = drawn.attrib["aria-labelledby"].split()
    told = {each.attrib.get("id"): each.text for each in drawn}
    assert told[names[0]].startswith("<script>alert(1)</script> & \"quotes\" '{x}' ]]>")
    seen = "".join(each.text for each in drawn.iter(f"{SVG}text"))
    assert "".join(told[names[1]].split()) == "".join(seen.split())


def test_it_has_a_ground_of_its_own_and_is_the_same_every_time(ring):
    text = svg(ring)
    assert '<rect fill="#11121a"' in text
    assert text == svg(ring)


def test_two_pictures_on_a_page_do_not_share_their_styles(run_of):
    names = {
        svg(Subject(run_of("all_gather", "i=4", data), "")).split('class="')[1].split('"')[0]
        for data in ([1, 2, 3, 4], [1, 2, 3, 5])
    }
    assert len(names) == 2


def test_what_no_viewer_shows_is_refused(ring, monkeypatch):
    monkeypatch.setattr(module, "MAX_LINES", 50)
    with pytest.raises(QuestionError, match=r"would have \d+ lines; viewers show up to 50"):
        svg(ring)
