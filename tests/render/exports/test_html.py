"""Pages for a browser."""

from __future__ import annotations

from base64 import b64encode
from hashlib import sha256
from html.parser import HTMLParser

import pytest

from shardviz.errors import QuestionError
from shardviz.render.exports import pictures as module
from shardviz.render.exports.pictures import html

EMPTY = {"meta", "input"}


class Page(HTMLParser):
    """The tags of a page in order, what stands in them, and whether each ends where it should."""

    def __init__(self, text):
        super().__init__()
        self.open, self.tags, self.texts = [], [], {}
        self.feed(text)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag, attrs):
        self.tags.append((tag, dict(attrs)))
        if tag not in EMPTY:
            self.open.append(tag)

    def handle_endtag(self, tag):
        assert self.open.pop() == tag

    def handle_data(self, data):
        if self.open:
            self.texts.setdefault(self.open[-1], []).append(data)


def hashed(text):
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


def test_it_is_one_page_that_loads_nothing(subject):
    page = Page(html(subject))
    names = {name for _, attributes in page.tags for name in attributes}
    assert names & {"src", "href", "style", "onclick", "action"} == set()
    assert "url(" not in "".join(page.texts["style"])
    assert "@import" not in "".join(page.texts["style"])


def test_its_policy_allows_its_own_style_and_script_alone(subject, ring):
    for each, scripts in ((subject, subject.shown.__class__.__name__ == "CollectiveRun"), (ring, True)):
        page = Page(html(each))
        (policy,) = [found["content"] for tag, found in page.tags if tag == "meta" and "http-equiv" in found]
        rules = dict(rule.strip().split(" ", 1) for rule in policy.split(";"))
        assert rules["default-src"] == "'none'"
        assert rules["style-src"] == hashed("".join(page.texts["style"]))
        assert rules.get("script-src") == (hashed("".join(page.texts["script"])) if scripts else None)
        assert len([tag for tag, _ in page.tags if tag == "script"]) == scripts


def test_words_are_words_and_never_markup(subject):
    page = Page(html(subject))
    said = "<script>alert(1)</script> & \"quotes\" '{x}' ]]> -->"
    for tag in ("title", "h1", "code"):
        assert "".join(page.texts[tag]).startswith(said)
        assert "".join(page.texts[tag]).isprintable()


def test_every_picture_has_a_heading_and_every_style_a_rule(subject):
    page = Page(html(subject))
    headings = {found["id"] for tag, found in page.tags if tag == "h2"}
    pictures = [found["aria-labelledby"] for tag, found in page.tags if tag == "pre"]
    assert set(pictures) == headings
    used = {found["class"] for tag, found in page.tags if tag == "span"}
    assert used
    assert all(f".{name} {{" in "".join(page.texts["style"]) for name in used)


def test_what_no_browser_opens_at_once_is_refused(ring, monkeypatch):
    monkeypatch.setattr(module, "MAX_CHARACTERS", 10_000)
    with pytest.raises(QuestionError, match=r"the page would have [\d,]+ characters"):
        html(ring)


@pytest.mark.slow
def test_a_browser_plays_the_rounds_by_keys_and_shows_all_of_them_without_scripts(ring, browser, tmp_path):
    path = tmp_path / "psum.html"
    path.write_text(html(ring), encoding="utf-8")
    page = browser.new_page()
    said = []
    page.on("console", lambda message: said.append(message.text))
    page.on("pageerror", lambda error: said.append(str(error)))
    page.goto(path.as_uri())

    def shown():
        return [heading.inner_text() for heading in page.query_selector_all(".round.shown h2")]

    assert shown() == ["Before any round"]
    for key, name in {
        "ArrowRight": "Round 1 of 6",
        "End": "Round 6 of 6",
        "ArrowLeft": "Round 5 of 6",
        "Home": "Before any round",
    }.items():
        page.keyboard.press(key)
        assert shown() == [name]
    page.click("#next")
    # Space on a button presses the button.
    page.keyboard.press(" ")
    assert shown() == ["Round 2 of 6"]
    page.evaluate("document.activeElement.blur()")
    page.keyboard.press(" ")
    assert page.inner_text("#play") == "Pause"
    page.keyboard.press("ArrowRight")
    assert (page.inner_text("#play"), shown()) == ("Play", ["Round 3 of 6"])
    assert said == []

    plain = browser.new_context(java_script_enabled=False).new_page()
    plain.goto(path.as_uri())
    assert [plain.is_visible(f"#part-{number}") for number in range(8)] == [True] * 8
    assert not plain.is_visible("#play")
