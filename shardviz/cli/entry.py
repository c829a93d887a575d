"""Runs one command line and turns whatever happens into words on stderr and an exit code."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

import click

from shardviz.cli import COMPLETION
from shardviz.cli.complaint import report
from shardviz.cli.exit_code import ExitCode
from shardviz.cli.group import shardviz
from shardviz.cli.streams import Unwritable
from shardviz.errors import ShardvizError

NEGATIVE_HINT = "write sizes of 0 or more: 16384x16384"


def run(args: Sequence[str] | None = None) -> int:
    """Run one command line (by default the process's own) and return its exit code."""
    try:
        if instruction := os.environ.get(COMPLETION):
            from shardviz.cli.completion import answer_shell

            result = answer_shell(instruction)
        else:
            result = shardviz.main(args, prog_name="shardviz", standalone_mode=False)
        sys.stdout.flush()
    except click.exceptions.Exit as exit_:
        return exit_.exit_code
    except click.ClickException as error:
        return _complain(*_reworded(error), ExitCode.QUESTION)
    except ShardvizError as error:
        return _complain(error.message, error.hint, error.exit_code)
    except Unwritable as error:
        if error.reader_left:
            return ExitCode.FINE
        return _complain(
            f"cannot write to standard output: {error.reason}",
            "see where stdout goes, or print to a terminal",
            ExitCode.QUESTION,
        )
    return result if isinstance(result, int) else ExitCode.FINE


def _complain(message: str, hint: str, code: int) -> int:
    report(message, hint)
    return code


def _reworded(error: click.ClickException) -> tuple[str, str]:
    """click's complaint as our message and hint."""
    close = getattr(error, "possibilities", None)
    message = (error.message if close else error.format_message()).rstrip(".")
    if isinstance(error, click.NoSuchOption) and error.option_name[1:2].isdigit():
        return f"a number cannot be negative, and {error.option_name} is not an option", NEGATIVE_HINT
    context = getattr(error, "ctx", None)
    command = context.command_path if context is not None else "shardviz"
    hint = f"did you mean {close[0]}?" if close else f"{command} --help lists what it takes"
    return message[:1].lower() + message[1:], hint
