"""A visitor's process: the application for a guest.

The server runs it as ``python -m shardviz.serve.visitor STRING``, in a folder of its own.
"""

from __future__ import annotations

import os
import resource
import sys
from typing import TYPE_CHECKING, Any

from shardviz.compiler.worker import Worker
from shardviz.drafts.form import OPEN
from shardviz.drafts.share import from_string
from shardviz.errors import TargetError
from shardviz.lessons.sharing import attempt_of
from shardviz.tui.app import ShardvizApp

if TYPE_CHECKING:
    from shardviz.compiler import CompilerRequest, Target

PROCESS = "simulated"
"""The one compilers' process that a visitor may have: Shardy and XLA for simulated devices."""
MEMORY, MEMORY_OF_A_CORE = 2**30, 2**27
"""Bytes; XLA starts threads for every core, each of which has a stack."""


class VisitorsWorker(Worker):
    """Starts the compilers when they are first asked, not before, and only those that need no hardware."""

    def start(self, *_targets: Target) -> None:
        """A class that looks at layouts needs no compiler."""

    def submit(self, *args: Any, **named: Any) -> CompilerRequest[Any]:
        _check(args[1])
        return super().submit(*args, **named)

    def trace(self, *args: Any, **named: Any) -> CompilerRequest[Any]:
        _check(args[1])
        return super().trace(*args, **named)

    def run(self, *args: Any, **named: Any) -> CompilerRequest[Any]:
        _check(args[3])
        return super().run(*args, **named)


def _check(target: Target) -> None:
    if target.process != PROCESS:
        raise TargetError(
            f"a visitor cannot ask {target.name} on the server's machine",
            "ask shardy or cpu, or run shardviz yourself",
        )


class VisitorApp(ShardvizApp):
    """The application without files, with compilers that start when something shows their answers."""

    def ask(self) -> None:
        if self.state.area != "layout" or OPEN in self.state.resolved.draft.specs:
            super().ask()

    def on_workspace_pane_shown(self) -> None:
        self.ask()  # Textual runs the application's own handler too.


def limit_memory() -> None:
    """Nothing that a visitor does takes all of the machine's memory, here or in the compilers' process."""
    most = MEMORY + MEMORY_OF_A_CORE * (os.cpu_count() or 1)
    _, hard = resource.getrlimit(resource.RLIMIT_DATA)
    resource.setrlimit(
        resource.RLIMIT_DATA, (most if hard == resource.RLIM_INFINITY else min(most, hard), hard)
    )


def main(string: str) -> None:
    """Run the application until the visitor or the server leaves."""
    from shardviz.serve.driver import leave, say_end
    from shardviz.serve.guard import refuse_files

    # What goes wrong here is not for the page, and not for the server's terminal either.
    os.dup2(os.open(os.devnull, os.O_WRONLY), 2)
    shared = from_string(string)
    limit_memory()
    refuse_files()
    code = 1
    try:
        with VisitorsWorker() as worker:
            if shared.lesson:
                app = VisitorApp(worker=worker, is_guest=True, lesson=attempt_of(shared))
            else:
                app = VisitorApp(shared.draft, shared.screen, worker, is_guest=True)
            app.run()
            say_end(app._exception if app.return_code else None)
        code = app.return_code or 0
    finally:
        leave(code)


if __name__ == "__main__":
    main(sys.argv[1])
