"""How an answer shows itself: as text, on a Rich console, in a notebook."""

from __future__ import annotations

import io
import re
from html.parser import HTMLParser

import pytest
from rich.console import Console

import shardviz


@pytest.fixture(scope="module")
def answer() -> shardviz.Explanation:
    """A plan with pictures, and a `>` to escape."""
    return shardviz.explain("bd,df->bf", specs="XY,Y_->X_", target="none")


class Page(HTMLParser):
    """The text, the styles and the elements of some HTML; elements must close in order."""

    def __init__(self, html: str) -> None:
        super().__init__()
        self.text = ""
        self.styles: list[str] = []
        self.tags: set[str] = set()
        self.attributes: set[str] = set()
        self.open: list[str] = []
        self.feed(html)
        self.close()
        assert self.open == []

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.open.append(tag)
        self.tags.add(tag)
        self.attributes |= {name for name, _ in attrs}
        self.styles += [value or "" for name, value in attrs if name == "style"]

    def handle_endtag(self, tag: str) -> None:
        assert self.open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.text += data


def test_text_has_the_width_of_the_terminal(answer, monkeypatch):
    for columns, width in (("70", 70), ("120", 120), ("10", 40)):
        monkeypatch.setenv("COLUMNS", columns)
        assert max(map(len, repr(answer).splitlines())) <= width
        assert "\x1b" not in repr(answer)
        assert str(answer) == f"{answer}" == repr(answer)


def test_the_full_text_has_what_the_short_one_leaves_out(answer):
    assert len(answer.full.splitlines()) > len(repr(answer).splitlines())
    assert max(map(len, answer.full.splitlines())) <= 100


def test_rich_draws_it_in_colour_and_in_the_width_of_its_console(answer, monkeypatch):
    monkeypatch.setenv("COLUMNS", "70")
    drawn = Console(
        file=io.StringIO(), width=70, color_system="truecolor", force_terminal=True, no_color=False
    )
    drawn.print(answer)
    output = drawn.file.getvalue()
    assert "\x1b[1;38;2;59;156;246mX\x1b[0m" in output
    plain = re.sub(r"\x1b\[[\d;]*m", "", output)
    assert [line.rstrip() for line in plain.splitlines()] == repr(answer).splitlines()


def test_a_console_without_colour_gets_none(answer):
    drawn = Console(file=io.StringIO(), width=70, color_system=None)
    drawn.print(answer)
    assert "\x1b" not in drawn.file.getvalue()


def test_a_notebook_gets_html_that_reads_on_light_and_on_dark(answer, monkeypatch):
    monkeypatch.setenv("COLUMNS", "100")
    bundle = answer._repr_mimebundle_(include=None, exclude=None)
    assert bundle["text/plain"] == repr(answer)
    page = Page(bundle["text/html"])
    assert [line.rstrip() for line in page.text.splitlines()] == repr(answer).splitlines()
    assert (page.tags, page.attributes) == ({"pre", "span"}, {"style"})
    assert {"color:inherit", "background:transparent"} <= set(page.styles[0].split(";"))
    # Axes have the palette's colours, what is dim is grey; neither page nor plain words have a colour.
    colours = {style for style in page.styles if style.startswith("color:")} - {page.styles[0]}
    assert any("#3b9cf6" in style for style in colours)
    assert any("#808080" in style for style in colours)
    # Dark ink stands on a coloured shard only.
    for style in page.styles:
        assert ("#0b0b10" in style) == ("background-color" in style)


def test_answers_stay_what_they_are(answer):
    assert shardviz.explain("bd,df->bf", specs="XY,Y_->X_", target="none") == answer
    assert hash(shardviz.rank("bd,df->bf", mesh="X=2"))
    with pytest.raises(AttributeError):
        answer.plan = None
    with pytest.raises(AttributeError, match="has no attribute 'explian'"):
        shardviz.explian  # noqa: B018
    assert set(shardviz.__all__) <= set(dir(shardviz))
