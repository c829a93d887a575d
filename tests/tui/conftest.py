"""The application in a terminal of any size that nobody sees, driven by keys and read as text."""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Awaitable, Callable
from functools import cache
from pathlib import Path
from typing import Any

import pytest
import textual.app
import textual.pilot
from textual.css.model import RuleSet
from textual.css.stylesheet import Stylesheet
from textual.pilot import Pilot

from shardviz.compiler.messages import ChildCall
from shardviz.compiler.requests import CompilerRequest
from shardviz.forms import resolve
from shardviz.forms.form import ProblemForm
from shardviz.tui import planning, workspace
from shardviz.tui.app import ShardvizApp
from shardviz.tui.dialogs.export import strips_of

FRAME_S = 0.002
"""Longer than what a frame waits for."""


async def at_rest(*_):
    """Wait until the application has done all that it can do now.

    Textual's own way is to see whether the process takes time, in steps of 20 ms, after every key: that is
    slower, and on a busy machine a guess.
    """
    ready = asyncio.get_running_loop()._ready
    rounds = 0
    while rounds != 1:
        await asyncio.sleep(FRAME_S)
        rounds = 1
        while ready:
            await asyncio.sleep(0)
            rounds += 1


textual.app.wait_for_idle = textual.pilot.wait_for_idle = at_rest


async def at_once(function: Callable[..., object], *arguments: object) -> object:
    """Call what would have been called in a thread: a pane's modules are loaded before a key is done with,
    also by the first test of a process that shows it."""
    return function(*arguments)


workspace.to_thread = at_once

_PARSED: dict[tuple[Any, ...], list[RuleSet]] = {}
_parse_rules = Stylesheet._parse_rules


def parsed_once(self: Stylesheet, *where: Any, **more: Any) -> list[RuleSet]:
    """The rules of a style sheet, which every test's application has."""
    key = (*where, *more.items(), *self._variables.items())
    if key not in _PARSED:
        _PARSED[key] = _parse_rules(self, *where, **more)
    return _PARSED[key]


Stylesheet._parse_rules = parsed_once
# Nor is a problem that another test has shown planned again.
resolve.planned = planning.planned = cache(resolve.planned)

SNAPSHOTS = Path(__file__).parent / "snapshots"
SIZES = {"small": (40, 15), "usual": (80, 24), "wide": (120, 36)}
"""The sizes at which every screen is looked at."""
PATIENCE = 600
"""Looks at a condition before a test gives up; each lets the application do all that waits."""
OFTEN_S, SELDOM_S = 0.01, 0.1
"""Between the first looks, and between later ones: most draw the whole screen, beside a compiler at work."""

Script = Callable[[Pilot], Awaitable[None]]


class Mute:
    """A worker that never answers: for tests of all that does not need a compiler."""

    def start(self, *_):
        """Nothing is started."""

    def submit(self, *_, turn, **__):
        request = CompilerRequest(ChildCall("answer.answer"), str)
        now = time.monotonic()
        if turn[0] <= now:
            request.began = now
        return request

    trace = run = submit


def text_of(app: ShardvizApp) -> str:
    """What is on screen, without colours and without blanks at the ends of lines."""
    return "\n".join(strip.text.rstrip() for strip in strips_of(app.screen))


def drive(
    script: Script,
    size: tuple[int, int] = SIZES["wide"],
    draft: ProblemForm | None = None,
    screen: str = "layout",
    worker: object = None,
    **others: Any,
) -> None:
    """Open the application and run a script on it; without a worker no compiler answers."""

    async def session() -> None:
        app = ShardvizApp(draft, screen, worker or Mute(), **others)
        app.animation_level = "none"
        async with app.run_test(size=size) as pilot:
            await pilot.pause()
            await script(pilot)

    asyncio.run(session())


async def until(pilot: Pilot, condition: Callable[[], object]) -> None:
    """Let the application go on until a condition holds, and then do what waits: a screen that has just come
    is not drawn yet."""
    for look in range(PATIENCE):
        if condition():
            await pilot.pause()
            return
        await pilot.pause(min(OFTEN_S * 1.1**look, SELDOM_S))
    raise AssertionError(f"never came to be:\n{text_of(pilot.app)}")


def check_snapshot(name: str, text: str) -> None:
    """Compare with the file of that name, or write it where SHARDVIZ_SNAPSHOTS=write asks for that."""
    path = SNAPSHOTS / f"{name}.txt"
    if os.environ.get("SHARDVIZ_SNAPSHOTS") == "write":
        path.write_text(text + "\n", encoding="utf-8")
    assert path.read_text(encoding="utf-8") == text + "\n"


@pytest.fixture(autouse=True)
def state_home(tmp_path, monkeypatch):
    """A state directory of its own for every test."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    # Choices stand in the order of their values.
    monkeypatch.setattr("shardviz.tui.kept.own_seed", str)
    return tmp_path
