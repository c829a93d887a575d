"""Lessons as static pages: in a real browser, from a folder, on a phone, with nothing from elsewhere."""

from __future__ import annotations

import pytest

from shardviz.cli.group import run
from shardviz.lessons.course import find
from shardviz.lessons.measures import answer_of

PHONE = {"width": 360, "height": 740}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("site")
    assert run(["export", "site", "-o", str(folder), "reduce-scatter", "four-spellings"]) == 0
    return folder


def test_a_phone_predicts_and_sees_the_answer(folder, browser):
    page, elsewhere, errors = browser.new_page(viewport=PHONE), [], []
    page.on("request", lambda asked: asked.url.startswith("file:") or elsewhere.append(asked.url))
    page.on("console", lambda said: errors.append(said.text))
    page.goto((folder / "index.html").as_uri())
    page.get_by_text("Reduce-scatter").click()
    lesson = find("reduce-scatter")
    right = answer_of(lesson.predictions[1]).text
    field = page.locator("fieldset", has_text=lesson.predictions[1].question)
    assert not field.get_by_text("is right").is_visible()
    field.get_by_text("12 KiB", exact=True).click()
    assert field.get_by_text("one piece per round").is_visible()
    # By keyboard, back through the choices to the right one.
    for _ in range(2):
        page.keyboard.press("ArrowUp")
    assert field.get_by_text(f"{right} is right").is_visible()
    assert not field.get_by_text("one piece per round").is_visible()
    field.locator("summary").first.click()
    strip = field.locator(".rounds").first
    assert strip.is_visible()
    assert strip.evaluate("strip => strip.scrollWidth > 2 * strip.clientWidth")
    # Everything is open, and still nothing but pictures in their frames is wider than the phone.
    page.evaluate("document.querySelectorAll('details').forEach(each => { each.open = true })")
    assert page.evaluate("document.scrollingElement.scrollWidth") == PHONE["width"]
    page.get_by_role("link", name="Next").click()
    page.get_by_role("link", name="All lessons").click()
    assert page.url.endswith("index.html")
    assert (elsewhere, errors) == ([], [])


def test_files_that_are_there_stay(folder, capsys):
    before = {path.name: path.read_text() for path in folder.iterdir()}
    assert run(["export", "site", "-o", str(folder), "4"]) != 0
    assert "add --force to overwrite it" in capsys.readouterr().err
    assert {path.name: path.read_text() for path in folder.iterdir()} == before
    assert run(["export", "site", "4"]) != 0
    assert "needs a folder" in capsys.readouterr().err
