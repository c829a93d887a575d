"""The command line: one small file a command, loaded when it is called."""

from __future__ import annotations

import os
import sys

TYPE_CHECKING = False  # what `typing` has under this name, without the time to load it
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import NoReturn


COMPLETION = "_SHARDVIZ_COMPLETE"
"""The environment variable with which a shell asks for completions; click names it after the program."""


def main(args: Sequence[str] | None = None) -> NoReturn:
    """The entry point of `shardviz` and of `python -m shardviz`."""
    # Whatever loads before this answers an interrupt with a traceback.
    from shardviz.cli.interrupt import end_undisturbed, end_when_interrupted

    end_when_interrupted()
    from shardviz.cli.streams import open_standard_streams

    open_standard_streams()
    code = _open_or_run(sys.argv[1:] if args is None else args)
    end_undisturbed()
    sys.exit(code)


def _open_or_run(args: Sequence[str]) -> int:
    """Without a word, the application where there is a terminal for it: it needs no command line's reader."""
    from shardviz.cli.descriptors import LEAST, allow_descriptors

    if (allowed := allow_descriptors()) < LEAST:
        from shardviz.cli.complaint import report
        from shardviz.cli.exit_code import ExitCode

        report(
            f"shardviz needs {LEAST} file descriptors, and the limit here is {allowed}",
            "allow more in this shell: ulimit -n 256",
        )
        return ExitCode.QUESTION
    if not args and not os.environ.get(COMPLETION):
        from shardviz.cli.opening import no_terminal, open_app

        if not no_terminal():
            open_app()
    from shardviz.cli.entry import run

    return run(args)
