"""Open the application where there is a terminal for it; nothing else is loaded."""

from __future__ import annotations

import os
import sys

from shardviz.cli.process import ExitCode

TYPE_CHECKING = False  # what `typing` has under this name, without the time to load it
if TYPE_CHECKING:
    from typing import NoReturn

    from shardviz.drafts.form import ProblemForm
    from shardviz.lessons.attempt import Attempt
    from shardviz.lessons.lesson import Lesson


def open_app(
    draft: ProblemForm | None = None,
    screen: str = "layout",
    lesson: Lesson | Attempt | None = None,
    present: bool = False,
    warning: str = "",
) -> NoReturn:
    """Open the application, in a lesson if one is given, and end the process when it is left.

    A lesson opens where it was left, an attempt where its sender was; with `present` it is shown to a class.
    A `warning` is shown first.
    """
    import asyncio

    from shardviz.cli.process import end_at_once, on_signal
    from shardviz.cli.terminal import TerminalDriver, restorer
    from shardviz.tui.app import ShardvizApp

    app = ShardvizApp(draft, screen, lesson=lesson, present=present, warning=warning)
    app.driver_class = TerminalDriver
    on_signal(app.kill_compilers)
    # Last: until then the application may still draw.
    on_signal(restorer())
    # A loop of its own: the one that `run` makes by itself waits for whatever a thread still reads.
    app.run(loop=asyncio.new_event_loop())
    end_at_once(app.return_code or ExitCode.FINE)


def no_terminal() -> str:
    """The reason why the application cannot be opened here; empty where it can."""
    term = os.environ.get("TERM", "")
    if term in ("", "dumb"):
        said = "TERM is dumb" if term else "TERM is not set"
        return f"the application needs a terminal that can place its letters; {said}"
    streams = (("input", sys.stdin), ("output", sys.stdout), ("error", sys.stderr))
    missing = [name for name, stream in streams if stream is None or not stream.isatty()]
    if missing:
        return f"the application needs a terminal, and standard {missing[0]} is not one"
    return ""
