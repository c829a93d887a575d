"""The colours and the width of pages; progress on stderr while compilers work."""

from __future__ import annotations

import io
import pkgutil
import re
import sys
import time
from importlib import import_module

import pytest
from rich.text import Text

from shardviz.cli import output
from shardviz.cli.group import run
from shardviz.cli.output import PIPE_WIDTH, CommandOutput, color_system
from shardviz.cli.process import CLEAR_LINE
from shardviz.compiler.requests import CompilerRequest

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
    assert CommandOutput().width == width


def test_the_width_asked_for_wins(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("COLUMNS", "120")
    assert CommandOutput(columns=60).width == 60


@pytest.mark.parametrize("text", ["A[b_X, d_Y]{U_Z}", "[bold]A[/bold]", ":smile:", "\\[x]", "x" * 200])
def test_text_is_never_read_as_markup(
    text: str, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("TERM", "xterm")
    CommandOutput(columns=80, color="always").show([Text(text)])
    assert capsys.readouterr().out == f"{text}\n"


class Terminal(io.StringIO):
    """A terminal, and an answer that is there as soon as one was told to wait."""

    def __init__(self, pending: CompilerRequest[str]) -> None:
        super().__init__()
        self._pending = pending

    def isatty(self) -> bool:
        return True

    def flush(self) -> None:
        if self._pending.stage in self.getvalue():
            self._pending.settle("answer")


def waiting(stage: str) -> CompilerRequest[str]:
    pending: CompilerRequest[str] = CompilerRequest(None, str)
    pending.stage = stage
    return pending


def test_the_stage_of_what_is_waited_for_is_told(monkeypatch: pytest.MonkeyPatch) -> None:
    first = waiting("compiling")
    monkeypatch.setattr(sys, "stderr", told := Terminal(first))
    monkeypatch.setattr(output, "PATIENCE_S", 0.02)
    monkeypatch.setattr(output, "TICK_S", 0.01)
    assert output.wait_for(first, "v2:2x2") == "answer"
    first_line, end = told.getvalue().removeprefix(CLEAR_LINE).split(CLEAR_LINE)
    assert re.fullmatch(r"v2:2x2: compiling … \d+\.\d s", first_line)
    assert end == ""


ON_FOUR = ("ab->ab", "--mesh", "x=2,y=2,z=2,w=2", "--specs", "(x y) (z w)->(z w) (x y)")


@pytest.mark.parametrize(
    ("words", "engine", "shown"),
    [
        (
            ("explain", "bd,df->bf", "--specs", "X_,?"),
            "shardviz.planner.ranking:rank",
            "ranking all shardings … ",
        ),
        (("explain", *ON_FOUR, "--target", "none"), "shardviz.planner.planner:plan", "planning … "),
        (
            ("versus", "ab->ab", *ON_FOUR[4:], "(x y) _->_ _", *ON_FOUR[1:3]),
            "shardviz.planner.planner:plan",
            "planning … ",
        ),
        (
            ("sweep", "ab->ab", "a=64:128", *ON_FOUR[1:]),
            "shardviz.planner.pricing.costs:plan",
            "planning … ",
        ),
        (
            ("model", "llama-3-8b", "--mesh", "data=2", "--rules", "data"),
            "shardviz.models.answer:planned_step",
            "planning a step … ",
        ),
    ],
)
def test_a_plan_that_takes_long_is_told_on_a_terminal(
    words: tuple[str, ...],
    engine: str,
    shown: str,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
) -> None:
    """The plan is held back until the line is there, so no machine is too fast for it."""
    terminal = io.StringIO()
    monkeypatch.setattr(terminal, "isatty", lambda: True)
    monkeypatch.setattr(sys, "stderr", terminal)
    monkeypatch.setattr(output, "PATIENCE_S", 0.02)
    monkeypatch.setattr(output, "TICK_S", 0.01)
    own = pkgutil.resolve_name(engine)

    def held_back(*given: object) -> object:
        stop = time.monotonic() + 20
        while shown not in terminal.getvalue() and time.monotonic() < stop:
            time.sleep(0.005)
        return own(*given)

    module, _, name = engine.partition(":")
    monkeypatch.setattr(import_module(module), name, held_back)
    assert run(words) == 0
    assert shown in terminal.getvalue()
    assert terminal.getvalue().endswith(CLEAR_LINE)
    assert capsys.readouterr().out
