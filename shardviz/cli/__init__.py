"""The command line: one small file a command, loaded when it is called."""

from __future__ import annotations

import gc
import os
import sys

TYPE_CHECKING = False  # what `typing` has under this name, without the time to load it
if TYPE_CHECKING:
    from collections.abc import Sequence
    from typing import NoReturn

NO_MEMORY = b"""shardviz: error: there is not enough memory
hint: end other programs, or raise this shell's limit: ulimit -v unlimited
"""


def main(args: Sequence[str] | None = None) -> NoReturn:
    """The entry point of `shardviz` and of `python -m shardviz`."""
    # Whatever loads before this answers an interrupt with a traceback.
    from shardviz.cli.process import end_undisturbed, end_when_interrupted

    end_when_interrupted()
    gc.set_threshold(100_000)  # not 700: what a command loads and finds out stays until its end
    from shardviz.cli.streams import open_standard_streams

    open_standard_streams()
    try:
        code = _open_or_run(sys.argv[1:] if args is None else args)
    except (MemoryError, RuntimeError) as error:
        if not isinstance(error, MemoryError) and str(error) != "can't start new thread":
            raise
        os.write(2, NO_MEMORY)  # which loads nothing
        code = 3
    end_undisturbed()
    sys.exit(code)


def _open_or_run(args: Sequence[str]) -> int:
    """Without arguments open the application where there is a terminal for it, which needs no click."""
    from shardviz.cli.process import COMPLETION, ExitCode

    if not args and not os.environ.get(COMPLETION):
        from shardviz.cli.streams import no_terminal

        if not no_terminal():
            from shardviz.cli.open_app import open_app
            from shardviz.errors import ShardvizError

            try:
                open_app()
            except ShardvizError as error:
                from shardviz.cli.output import print_error

                print_error(error.message, error.hint)
                return ExitCode(error.exit_code)
    from shardviz.cli.group import run

    return run(args)
