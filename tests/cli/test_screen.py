"""Which colours, and how wide."""

from __future__ import annotations

import pytest
from rich.text import Text

from shardviz.cli.entry import run
from shardviz.cli.screen import PIPE_WIDTH, Screen, color_system, screen

XTERM = {"TERM": "xterm-256color"}

COLOURS = [
    ("auto", True, XTERM, "256"),
    ("auto", True, {"TERM": "xterm"}, "standard"),
    ("auto", True, {"TERM": "xterm", "COLORTERM": "truecolor"}, "truecolor"),
    ("auto", True, {"TERM": "xterm-direct"}, "truecolor"),
    ("auto", True, {"TERM": "dumb"}, None),
    ("auto", False, XTERM, None),
    ("auto", True, {**XTERM, "NO_COLOR": "1"}, None),
    ("auto", True, {**XTERM, "NO_COLOR": ""}, "256"),
    ("auto", False, {**XTERM, "FORCE_COLOR": "1"}, "256"),
    ("auto", False, {**XTERM, "FORCE_COLOR": "1", "NO_COLOR": "1"}, None),
    ("always", False, {**XTERM, "NO_COLOR": "1"}, "256"),
    ("always", False, {"TERM": "dumb"}, "truecolor"),
    ("always", False, {}, "truecolor"),
    ("never", True, {**XTERM, "COLORTERM": "truecolor"}, None),
]


@pytest.mark.parametrize(("choice", "is_terminal", "environ", "expected"), COLOURS)
def test_color_system(choice: str, is_terminal: bool, environ: dict[str, str], expected: str | None) -> None:
    assert color_system(choice, is_terminal, environ) == expected


@pytest.mark.parametrize(("columns", "width"), [("120", 120), ("7", 40), ("", PIPE_WIDTH)])
def test_the_width_is_the_terminals(columns: str, width: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", columns)
    assert screen(None, "never").width == width


def test_the_width_asked_for_wins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    assert screen(60, "never").width == 60


TEXTS = ["A[b_X, d_Y]{U_Z}", "[bold]A[/bold]", "[x=4, y=2]", ":smile:", "A[I]", "B[k]", "\\[x]", "x" * 200]


@pytest.mark.parametrize("text", TEXTS)
@pytest.mark.parametrize("colors", [None, "standard", "truecolor"])
def test_text_is_never_read_as_markup(
    text: str, colors: str | None, capsys: pytest.CaptureFixture[str]
) -> None:
    Screen(80, colors).show([Text(text)])
    assert capsys.readouterr().out == f"{text}\n"


@pytest.mark.parametrize(("columns", "widest"), [("40", 40), ("100", 80)])
def test_jax_draws_on_a_narrow_terminal_too(columns, widest, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", columns)
    assert run(["layout", "8x64", "--mesh", "X=16", "--spec", "_X", "--style", "jax"]) == 0
    assert max(map(len, capsys.readouterr().out.splitlines())) == widest
