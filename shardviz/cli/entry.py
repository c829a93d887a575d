"""Run one command line; its failures become messages on stderr and an exit code."""

from __future__ import annotations

import os
import sys
from collections.abc import Sequence

import click

from shardviz.cli.group import commands_with, shardviz
from shardviz.cli.messages import print_error
from shardviz.cli.process import COMPLETION, ExitCode
from shardviz.cli.streams import Unwritable
from shardviz.errors import NotationError, ShardvizError

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
        print_error(*_reworded(error))
        return ExitCode.QUESTION
    except ShardvizError as error:
        print_error(error.message, _hint(error))
        return error.exit_code
    except Unwritable as error:
        if error.reader_left:
            return ExitCode.FINE
        print_error(
            f"cannot write to standard output: {error.reason}",
            "see where stdout goes, or print to a terminal",
        )
        return ExitCode.QUESTION
    return result if isinstance(result, int) else ExitCode.FINE


def _reworded(error: click.ClickException) -> tuple[str, str]:
    """click's complaint as our message and hint."""
    close = getattr(error, "possibilities", None)
    message = " ".join((error.message if close else error.format_message()).split()).rstrip(".")
    if isinstance(error, click.NoSuchOption) and error.option_name[1:2].isdigit():
        return f"a number cannot be negative, and {error.option_name} is not an option", NEGATIVE_HINT
    context = getattr(error, "ctx", None)
    command = context.command_path if context is not None else "shardviz"
    hint = f"did you mean {close[0]}?" if close else f"{command} --help lists what it takes"
    if message.startswith("Got unexpected extra") or getattr(error, "option_name", "")[:2] == "->":
        hint = f"put a value with spaces or -> in quotes; {hint}"
    elif isinstance(error, click.NoSuchOption):
        name = error.option_name
        is_near = any(each.startswith(name) or name.startswith(each) for each in (close or ())[:1])
        if not is_near and (others := commands_with(name)):
            hint = f"it is an option of {', '.join(others)}"
    return message[:1].lower() + message[1:], hint


def _hint(error: ShardvizError) -> str:
    """The error's hint; for text whose ``->`` has lost its end to the shell, what keeps it together."""
    if isinstance(error, NotationError) and error.text.endswith("-") and error.start == len(error.text) - 1:
        return "put text with -> in quotes, as in 'bd,df->bf': without them the shell writes to a file"
    return error.hint
